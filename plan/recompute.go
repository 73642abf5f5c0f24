package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/sorting"
	"github.com/warpline-ml/warpline/tensor"
)

// Recomputation is a choice of the parts of a model that Backward runs again in place of keeping their values, for
// [tensor.PartsAt].
type Recomputation struct {
	Parts    []string // paths
	Peak     int64    // most bytes that the program holds at once
	Without  int64    // most bytes without recomputation
	Slowdown float64  // of a step, estimated

	reserved int64 // most bytes that the allocator took
}

// Budget is what a [Recomputation] keeps to.
type Budget struct {
	Slowdown float64 // at most; the choice is that with the fewest bytes. 0: any
	Bytes    int64   // if not 0, at most; the choice is the cheapest
}

// TightError is that of a budget of bytes which no choice keeps to.
type TightError struct{ Bytes, Least int64 }

// Error tells both figures.
func (e *TightError) Error() string {
	return fmt.Sprintf("no choice of what is recomputed needs %d bytes or less: the least is %d", e.Bytes, e.Least)
}

// Recompute chooses what a program recomputes on a device, by running it on ones that compute nothing: its parts, with what each
// keeps and takes, are those of the graph that it records, and bytes and time are those of runs with a choice. Parts are taken
// up by the bytes that they save for their time. For a card whose figures are known, time is that of [Step]; elsewhere it is estimated from
// operations and bytes moved, at ten operations a byte, about what float32 has on processors.
//
// Run makes everything that the program has in env, and makes two steps of training; it calls begin before the second, which
// counts. The error is Run's, or a [*TightError].
func Recompute(d *tensor.Device, b Budget, run func(env *tensor.Env, begin func()) error) (*Recomputation, error) {
	c := chooser{dev: d, run: run, meter: operationsOf, again: map[string]float64{}}
	p := d.Properties()
	if card, ok := cards.Match(p.Compute, p.Multiprocessors, p.Memory); ok {
		c.card, c.meter = &card, func() meter { return &clocked{clock: newClock(&card)} }
	}
	found := map[string]tensor.PartUse{}
	if _, _, err := c.try(func(e *tensor.Env) *tensor.Env {
		return e.SurveyParts(func(u tensor.PartUse) { found[u.Path] = u })
	}); err != nil {
		return nil, err
	}
	c.order = c.ranked(found)
	if _, err := c.of(nil); err != nil {
		return nil, err
	}
	if b.Bytes > 0 {
		return c.within(b.Bytes)
	}
	return c.fewest(cmp.Or(b.Slowdown, 1<<20))
}

// chooser is a choice under way.
type chooser struct {
	dev   *tensor.Device
	card  *cards.Card  // nil where its figures are not known
	meter func() meter // of a run
	run   func(env *tensor.Env, begin func()) error
	order []string
	again map[string]float64 // what each part takes when it runs again
	base  *Recomputation     // nothing is recomputed
	cost  float64            // of a step then
}

// meter tells what a program takes from a moment on by its device's events. Its unit is the same for all runs of a chooser.
type meter interface {
	observe(e *device.Event)
	begin()
	cost() float64
}

// clocked is by the model of a card's time, in seconds.
type clocked struct {
	*clock
	from float64
}

func (c *clocked) begin()        { c.from = c.lines[0].end }
func (c *clocked) cost() float64 { return c.lines[0].end - c.from }

// counted is by operations and bytes, in bytes.
type counted struct {
	begun bool
	bytes float64
}

func operationsOf() meter { return &counted{} }

func (c *counted) observe(e *device.Event) {
	if c.begun && e.Step == 0 && (e.Kind == device.KindLaunch || e.Kind == device.KindFill) {
		c.bytes += inBytes(e.Kernel.FLOPs, e.Kernel.Bytes)
	}
}
func (c *counted) begin()        { c.begun = true }
func (c *counted) cost() float64 { return c.bytes }

// operations is how many of them take as long as to move a byte.
const operations = 10

func inBytes(flops, moved int64) float64 { return max(float64(flops)/operations, float64(moved)) }

// try runs the program in what mode makes of the env.
func (c *chooser) try(mode func(*tensor.Env) *tensor.Env) (r *Recomputation, cost float64, err error) {
	env, err := c.dev.Rehearse()
	if err != nil {
		return nil, 0, err
	}
	dev, m := env.Device(), c.meter()
	defer dev.Observe(m.observe, watched...)()
	err = performed(mode(env), func(env *tensor.Env) error { return c.run(env, m.begin) })
	now := dev.Memory()
	return &Recomputation{Peak: now.Peak, reserved: now.Reserved.Peak}, m.cost(), err
}

// of is the choice of some parts.
func (c *chooser) of(parts []string) (*Recomputation, error) {
	if len(parts) == 0 && c.base != nil {
		return c.base, nil
	}
	r, cost, err := c.try(func(e *tensor.Env) *tensor.Env { return e.Recompute(tensor.PartsAt(parts...)) })
	if err != nil {
		return nil, err
	}
	if c.base == nil {
		c.base, c.cost = r, cost
	}
	r.Parts, r.Without, r.Slowdown = outermost(parts), c.base.Peak, cost/c.cost
	return r, nil
}

// manySteps is how many times a choice takes up more at most: of many parts, several at once.
const manySteps = 24

// fewest is the choice with the fewest bytes, of those tried, that slows a step down no more than by a factor: as many parts of the order
// as go, and of what follows the first that does not what still may.
func (c *chooser) fewest(slowdown float64) (best *Recomputation, err error) {
	best = c.base
	chunks := slices.Collect(slices.Chunk(c.order, (len(c.order)+manySteps)/manySteps))
	try := func(parts []string) (fits bool) {
		r, failed := c.of(parts)
		if err = cmp.Or(err, failed); err != nil || r.Slowdown > slowdown {
			return false
		}
		if r.Peak < best.Peak || r.Peak == best.Peak && r.reserved < best.reserved {
			best = r
		}
		return true
	}
	n := sort.Search(len(chunks), func(i int) bool { return !try(slices.Concat(chunks[:i+1]...)) })
	taken := slices.Concat(chunks[:n]...)
	for _, more := range chunks[min(n+1, len(chunks)):] {
		parts := slices.Concat(taken, more)
		if 1+c.least(parts)/c.cost <= slowdown && try(parts) {
			taken = parts
		}
	}
	return best, err
}

// least is what recomputing parts takes at least.
func (c *chooser) least(parts []string) (cost float64) {
	for _, p := range outermost(parts) {
		cost += c.again[p]
	}
	return cost
}

// within is the cheapest choice in the order that needs no more than so many bytes.
func (c *chooser) within(bytes int64) (*Recomputation, error) {
	tries, least := map[int]*Recomputation{}, c.base.Peak
	var failed error
	k := sort.Search(len(c.order)+1, func(k int) bool {
		r, err := c.of(c.order[:k])
		if failed = cmp.Or(failed, err); err != nil {
			return true
		}
		tries[k], least = r, min(least, r.Peak)
		return r.Peak <= bytes
	})
	switch {
	case failed != nil:
		return nil, failed
	case tries[k] == nil:
		return nil, &TightError{bytes, least}
	}
	return tries[k], nil
}

// takes is what it takes to run a part again: seconds, or bytes.
func (c *chooser) takes(u *tensor.PartUse) (cost float64) {
	if c.card == nil {
		return max(1, inBytes(u.FLOPs, u.Moved))
	}
	clock := newClock(c.card)
	for _, k := range u.Kernels {
		for step := range k.Steps {
			cost += clock.kernel(k, step).seconds
		}
	}
	return max(estimate.PerLaunch, cost)
}

// ranked are the paths of parts in the order in which they are taken up: those first that save most for what they take, and
// a part before what it is a part of, unless that saves more for its time.
func (c *chooser) ranked(found map[string]tensor.PartUse) []string {
	for path, u := range found {
		c.again[path] = c.takes(&u)
	}
	worth := func(path string) float64 { return float64(found[path].Bytes) / c.again[path] }
	paths := slices.DeleteFunc(slices.Sorted(maps.Keys(found)), func(p string) bool { return found[p].Bytes == 0 })
	sorting.By(paths, func(a, b string) int { return cmp.Compare(worth(b), worth(a)) })
	var order []string
	for _, p := range paths {
		if !slices.ContainsFunc(order, func(o string) bool { return inside(p, o) }) {
			order = append(order, p)
		}
	}
	return order
}

// outermost are paths without those within others.
func outermost(paths []string) (list []string) {
	for _, p := range paths {
		if !slices.ContainsFunc(paths, func(o string) bool { return inside(p, o) }) {
			list = append(list, p)
		}
	}
	return list
}

// inside tells whether a part lies in another.
func inside(path, outer string) bool { return strings.HasPrefix(path, outer+".") }
