package bench

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/tensor"
)

// Profile is where the time of a turn went on the processor.
type Profile struct {
	Parts []Part  // by operation, the longest first
	Turn  float64 // seconds; what the parts lack of it is the host's: dispatch, the graph, memory
}

// Part is what the launches of one operation took.
type Part struct {
	Op       string
	Launches int
	Seconds  float64
	Floor    float64 // the least seconds that they can take by the ceilings
}

// turns of which the quickest is shown: a busy machine disturbs a turn, and never helps it.
const profiled = 5

// profile is the quickest of some turns.
func (c *Ceilings) profile(env *tensor.Env, turn func()) (best *Profile) {
	if c.card != nil {
		return nil
	}
	for range profiled {
		start := time.Now()
		launches := Record(env.Device(), turn)
		if took := time.Since(start).Seconds(); best == nil || took < best.Turn {
			best = c.parts(launches, took)
		}
		if best.Turn > 1 {
			break
		}
	}
	return best
}

func (c *Ceilings) parts(l Launches, took float64) *Profile {
	parts := map[string]*Part{}
	for _, k := range l {
		op := k.What()
		p := parts[op]
		if p == nil {
			p = &Part{Op: op}
			parts[op] = p
		}
		p.Launches++
		p.Seconds += k.Took
		p.Floor += c.least(k)
	}
	out := &Profile{Turn: took}
	for _, p := range slices.SortedFunc(maps.Values(parts), func(a, b *Part) int { return cmp.Compare(b.Seconds, a.Seconds) }) {
		out.Parts = append(out.Parts, *p)
	}
	return out
}

// Text is the profile as a table.
func (p *Profile) Text(width int) string {
	t := render.Table{Header: []string{"operation", "launches", "ms", "of the turn", "floor ms", "of the ceiling"}, Right: []bool{false, true, true, true, true, true}}
	all := Part{Op: "all operations"}
	for _, x := range p.Parts {
		t.Rows = append(t.Rows, x.cells(p.Turn))
		all.Launches += x.Launches
		all.Seconds += x.Seconds
		all.Floor += x.Floor
	}
	t.Rows = append(t.Rows, all.cells(p.Turn), []string{"the host", "", fmt.Sprintf("%.3f", 1e3*(p.Turn-all.Seconds)), percent(1 - all.Seconds/p.Turn), "", ""})
	return t.String(width)
}

func (p *Part) cells(turn float64) []string {
	return []string{p.Op, fmt.Sprint(p.Launches), fmt.Sprintf("%.3f", 1e3*p.Seconds), percent(p.Seconds / turn), fmt.Sprintf("%.3f", 1e3*p.Floor), percent(p.Floor / p.Seconds)}
}

func percent(f float64) string { return fmt.Sprintf("%.0f %%", 100*f) }
