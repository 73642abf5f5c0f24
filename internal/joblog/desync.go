package joblog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// dumpsOf are the records of ranks, by rank. Records whose rank is not known are counted from the end.
func dumpsOf(reports []*finding.Report) map[int]*Dump {
	all := map[int]*Dump{}
	for _, r := range reports {
		d := r.Detail.(*Dump)
		if d.Rank >= 0 && all[d.Rank] == nil {
			all[d.Rank] = d
		}
	}
	return all
}

// compare finds the first collective, by process group and number, that the ranks do not have in common.
func compare(dumps map[int]*Dump) (all []finding.Finding, checked []string, figures map[string]any) {
	figures = map[string]any{"dumps": len(dumps)}
	names := map[string]bool{}
	for _, d := range dumps {
		for name := range d.Calls {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		g := grouped(name, dumps)
		if f := g.finding(); f != nil {
			all = append(all, *f)
			continue
		}
		checked = append(checked, fmt.Sprintf("process group %s: %d ranks made the same collectives up to number %d", g.title(), len(g.of), g.last))
	}
	sorting.By(all, func(a, b finding.Finding) int { return cmp.Compare(degree(b.Confidence), degree(a.Confidence)) })
	if len(all) > 0 {
		if do, _, ok := strings.Cut(all[0].Title, ":"); ok {
			figures["verdict"] = do
		}
	}
	return all, checked, figures
}

func degree(c finding.Confidence) int {
	return slices.Index([]finding.Confidence{finding.Low, finding.Medium, finding.High}, c)
}

// desync is a process group as the ranks have recorded it.
type desync struct {
	name, desc string
	of         map[int]map[int64]call // by rank and number
	first      map[int]int64          // number that a rank's record begins with
	end        map[int]int64          // and ends with
	last       int64                  // number that any rank came to
	absent     []int                  // members without a record
}

// grouped is a process group over all ranks.
func grouped(name string, dumps map[int]*Dump) *desync {
	g := &desync{name: name, of: map[int]map[int64]call{}, first: map[int]int64{}, end: map[int]int64{}}
	members := map[int]bool{}
	for rank, d := range dumps {
		g.desc = cmp.Or(d.Groups[name].desc, g.desc)
		for _, r := range d.Groups[name].ranks {
			members[r] = true
		}
		calls := d.Calls[name]
		if len(calls) == 0 {
			continue
		}
		of := map[int64]call{}
		for _, c := range calls {
			of[c.seq] = c
			g.end[rank] = max(g.end[rank], c.seq)
		}
		g.of[rank], g.first[rank] = of, slices.Min(slices.Collect(maps.Keys(of)))
		g.last = max(g.last, g.end[rank])
	}
	for r := range members {
		switch {
		case dumps[r] == nil:
			g.absent = append(g.absent, r)
		case g.of[r] == nil:
			g.of[r], g.end[r] = map[int64]call{}, 0 // it made none at all
		}
	}
	slices.Sort(g.absent)
	return g
}

func (g *desync) title() string {
	if g.desc == "" || g.desc == "undefined" {
		return g.name
	}
	return g.name + " (" + g.desc + ")"
}

// finding is where the ranks part; nil where they do not.
func (g *desync) finding() *finding.Finding {
	if len(g.of) < 2 {
		return nil
	}
	from := int64(0)
	for _, n := range g.first {
		from = max(from, n) // what all records still have
	}
	for seq := from; seq <= g.last; seq++ {
		if f := g.at(seq); f != nil {
			return f
		}
	}
	return nil
}

// at looks at one number.
func (g *desync) at(seq int64) *finding.Finding {
	by := map[string][]int{} // ranks by what they called
	var without, open, done []int
	var one call
	for _, r := range slices.Sorted(maps.Keys(g.of)) {
		c, ok := g.of[r][seq]
		switch {
		case !ok:
			without = append(without, r)
			continue
		case c.done():
			done = append(done, r)
		default:
			open = append(open, r)
		}
		one = c
		key := c.op
		if !uneven(c.op) {
			key += " " + c.sizes + " " + c.dtype
		}
		by[key] = append(by[key], r)
	}
	switch {
	case len(by) > 1:
		return g.differ(seq, by)
	case len(without) > 0 && len(open) > 0:
		return g.behind(seq, one, without)
	case len(open) > 0 && len(without) == 0 && len(done) == 0 && g.stopped(seq):
		return g.everybody(seq, one)
	}
	return nil
}

// stopped tells that no rank came beyond a number by its end.
func (g *desync) stopped(seq int64) bool {
	for _, calls := range g.of {
		for n, c := range calls {
			if n > seq && c.done() {
				return false
			}
		}
	}
	return true
}

// uneven are collectives whose operands may differ from rank to rank.
func uneven(op string) bool {
	for _, p := range []string{"all_to_all", "gather", "scatter", "all_gather_v", "reduce_scatter_v", "allgather_coalesced", "barrier", "broadcast"} {
		if strings.HasPrefix(strings.ToLower(strings.TrimPrefix(op, "_")), p) {
			return true
		}
	}
	return false
}

// differ is the finding of a number that is not the same call everywhere.
func (g *desync) differ(seq int64, by map[string][]int) *finding.Finding {
	keys := slices.SortedFunc(maps.Keys(by), func(a, b string) int { return cmp.Or(cmp.Compare(len(by[b]), len(by[a])), cmp.Compare(a, b)) })
	most, odd := keys[0], keys[len(keys)-1]
	rank := by[odd][0]
	f := g.base(seq)
	f.Title = fmt.Sprintf("%s: collective number %d of process group %s is %s on rank %s and %s on rank %s", verdictProgram, seq, g.title(), odd, listed(by[odd]), most, listed(by[most]))
	f.Fix = fmt.Sprintf("look for a branch on the rank or the data before that call: rank %d takes another way%s", rank, behindAt(g.of[rank][seq].site))
	f.Confidence, f.DisprovedBy = finding.High, "the records are of different runs"
	f.Line = g.of[rank][seq].site
	for _, k := range keys {
		f.Evidence = append(f.Evidence, finding.Evidence{Name: "call", Value: k, Text: fmt.Sprintf("rank %s: %s%s", listed(by[k]), k, behindAt(g.of[by[k][0]][seq].site))})
	}
	return f
}

func behindAt(site string) string {
	if site == "" {
		return ""
	}
	return " (" + site + ")"
}

// behind is the finding of ranks that never made a call that the others wait in.
func (g *desync) behind(seq int64, c call, without []int) *finding.Finding {
	f := g.base(seq)
	rank := without[0]
	last := g.of[rank][g.end[rank]]
	f.Title = fmt.Sprintf("%s: rank %s did not come to collective number %d (%s) of process group %s, in which the others wait", verdictProgram, listed(without), seq, c.op, g.title())
	f.Fix = fmt.Sprintf("see what rank %d does after its last one, number %d%s: an error in its log, a loader that waits, a branch that leaves the call out", rank, g.end[rank], behindAt(last.site))
	f.Confidence, f.DisprovedBy = finding.High, "the records were not written in the same moment, and nothing hangs"
	f.Line = last.site
	f.Evidence = append(f.Evidence, finding.Evidence{Name: "missing", Value: listed(without), Text: fmt.Sprintf("rank %s: last number %d %s%s", listed(without), g.end[rank], last.op, behindAt(last.site))},
		finding.Evidence{Name: "call", Value: c.op, Text: fmt.Sprintf("the others: number %d %s %s, %s%s", seq, c.op, c.sizes, c.state, behindAt(c.site))})
	return f
}

// everybody is the finding of a call that all ranks made and none ended.
func (g *desync) everybody(seq int64, c call) *finding.Finding {
	f := g.base(seq)
	f.Confidence = finding.Low
	if len(g.absent) > 0 {
		f.Title = fmt.Sprintf("%s: of rank %s there is no record, and the others wait in collective number %d (%s) of process group %s", verdictRestart, listed(g.absent), seq, c.op, g.title())
		f.Fix = fmt.Sprintf("read the log of rank %d: it ended before it could write its record", g.absent[0])
		f.DisprovedBy = "its record is in another folder"
		return f
	}
	f.Title = fmt.Sprintf("%s: all %d ranks made collective number %d (%s) of process group %s and none ended it: it is the network or a card, not the order of calls", verdictRestart, len(g.of), seq, c.op, g.title())
	f.Fix = "start again from the last checkpoint; if it comes again with the same nodes: warpline doctor on each, and all_reduce_perf of nccl-tests between them"
	f.DisprovedBy = "the records were written while all was well"
	f.Evidence = append(f.Evidence, finding.Evidence{Name: "call", Value: c.op, Text: fmt.Sprintf("number %d %s %s, %s%s", seq, c.op, c.sizes, c.state, behindAt(c.site))})
	return f
}

// base is what the findings of a process group have in common.
func (g *desync) base(seq int64) *finding.Finding {
	return &finding.Finding{Rule: "R37", Name: "desync", Gain: finding.Gain{Text: "the run goes on"},
		Evidence: []finding.Evidence{{Name: "sequence", Value: seq, Text: fmt.Sprintf("process group %s, collective number %d", g.title(), seq)}}}
}
