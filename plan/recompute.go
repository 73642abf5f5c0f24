package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/tensor"
)

// Recomputation is a choice of the parts of a model that Backward runs again in place of keeping their values, for
// [tensor.PartsAt].
type Recomputation struct {
	Parts    []string // paths
	Peak     int64    // most bytes that the program holds at once
	Without  int64    // most bytes without recomputation
	Slowdown float64  // of a step, estimated
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
// up by the bytes that they save for their time. Time is estimated from operations and bytes moved, at ten operations a byte,
// about what float32 has on processors and cards alike.
//
// Run makes everything that the program has in env, and makes two steps of training; it calls begin before the second, which
// counts. The error is Run's, or a [*TightError].
func Recompute(d *tensor.Device, b Budget, run func(env *tensor.Env, begin func()) error) (*Recomputation, error) {
	c := chooser{dev: d, run: run}
	found := map[string]tensor.PartUse{}
	if _, _, err := c.try(func(e *tensor.Env) *tensor.Env {
		return e.SurveyParts(func(u tensor.PartUse) { found[u.Path] = u })
	}); err != nil {
		return nil, err
	}
	c.order = ranked(found)
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
	run   func(env *tensor.Env, begin func()) error
	order []string
	base  *Recomputation // nothing is recomputed
	cost  float64        // of a step then
}

// operations is how many of them take as long as to move a byte.
const operations = 10

// try runs the program in what mode makes of the env.
func (c *chooser) try(mode func(*tensor.Env) *tensor.Env) (peak int64, cost float64, err error) {
	env, err := c.dev.Rehearse()
	if err != nil {
		return 0, 0, err
	}
	dev, counts := env.Device(), false
	defer dev.Observe(func(e *device.Event) {
		if counts && e.Step == 0 {
			cost += max(float64(e.Kernel.FLOPs)/operations, float64(e.Kernel.Bytes))
		}
	}, device.KindLaunch, device.KindFill)()
	err = performed(mode(env), func(env *tensor.Env) error { return c.run(env, func() { counts = true }) })
	return dev.Memory().Peak, cost, err
}

// of is the choice of some parts.
func (c *chooser) of(parts []string) (*Recomputation, error) {
	if len(parts) == 0 && c.base != nil {
		return c.base, nil
	}
	peak, cost, err := c.try(func(e *tensor.Env) *tensor.Env { return e.Recompute(tensor.PartsAt(parts...)) })
	if err != nil {
		return nil, err
	}
	if c.base == nil {
		c.base, c.cost = &Recomputation{Peak: peak, Without: peak, Slowdown: 1}, cost
		return c.base, nil
	}
	return &Recomputation{Parts: outermost(parts), Peak: peak, Without: c.base.Peak, Slowdown: cost / c.cost}, nil
}

// manySteps is how many times a choice takes up more at most: of many parts, several at once.
const manySteps = 24

// fewest is the choice with the fewest bytes that slows a step down no more than by a factor. A part that would is left out, and
// the next may do.
func (c *chooser) fewest(slowdown float64) (*Recomputation, error) {
	best := c.base
	var taken []string
	for _, more := range slices.Collect(slices.Chunk(c.order, (len(c.order)+manySteps)/manySteps)) {
		parts := slices.Concat(taken, more)
		r, err := c.of(parts)
		if err != nil {
			return nil, err
		}
		if r.Slowdown > slowdown {
			continue
		}
		if taken = parts; r.Peak < best.Peak {
			best = r
		}
	}
	return best, nil
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

// ranked are the paths of parts in the order in which they are taken up: those first that save most for what they take, and
// a part before what it is a part of, unless that saves more for its time.
func ranked(found map[string]tensor.PartUse) []string {
	worth := func(path string) float64 {
		u := found[path]
		return float64(u.Bytes) / max(1, float64(u.FLOPs)/operations, float64(u.Moved))
	}
	paths := slices.DeleteFunc(slices.Sorted(maps.Keys(found)), func(p string) bool { return found[p].Bytes == 0 })
	slices.SortStableFunc(paths, func(a, b string) int { return cmp.Compare(worth(b), worth(a)) })
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
