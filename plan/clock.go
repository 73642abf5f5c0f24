package plan

import (
	"maps"
	"slices"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/counts"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/estimate"
)

// Step is how long a step takes by the model, in seconds: of a program that has come to its stride, from an update of its parameters to
// the next. Low and High are the model with kernels and calls of the driver as quick, and as slow, as four of five published figures
// of them are. The loader is no part of it.
type Step struct {
	Total, Low, High float64

	// Parts of Total: kernels that arithmetic or waiting inside binds, kernels that memory binds, copies from and to the host, and
	// what is left: waiting for the host to launch, and for kernels to start and end.
	Compute, Memory, Copies, Launch float64

	After float64 // what comes after the last update, as scoring
	Rough float64 // of Compute and Memory, by kernels that nobody has counted
}

// What calls cost the host, in seconds, and from the end of a call until the card sees its work: those of the simulated driver.
const (
	launchCall = estimate.PerCall
	otherCall  = 0.5e-6
	graphNode  = 50e-9
	arrival    = 1e-6
	moveStart  = estimate.CopyStart
)

// pace is how quick the model takes host and card for, as shares of its own times.
type pace struct{ calls, kernels, guesses float64 }

// paces are nominal, low and high. Of the published figures in bench/clock four fifths lie between 0.8 and 1.2 of the model; launches
// cost 2 to 4 µs by processor. Kernels that were never counted are taken for half and for twice as long.
var paces = [...]pace{{1, 1, 1}, {0.9, 0.8, 0.5}, {1.8, 1.2, 2}}

// watched are the kinds of events that the clock needs.
var watched = []device.Kind{device.KindLaunch, device.KindFill, device.KindCopy, device.KindMark, device.KindWait}

// clock follows a program by the events of a device that computes nothing. The host calls one thing after the other; each queue's
// work begins when what is before it has ended and the host has called.
type clock struct {
	card    *cards.Card
	lines   [len(paces)]timeline
	anchor  uint64 // where the parameter is that was updated first: its updates are a step apart
	updates int
	steps   [2][len(paces)]moment // at the last two updates of the anchor
	update  [len(paces)]moment    // at the last update of any
	known   map[launch]cost
	unknown map[string]bool // kernels that nobody has counted
}

// launch tells kernels apart that take as long.
type launch struct {
	kernel *device.Kernel
	step   int
}

// timeline is by one pace.
type timeline struct {
	host   float64
	queues map[int]float64 // when their work ends
	moment
}

// moment is a point of a timeline, and what was spent until then.
type moment struct{ end, compute, memory, copies, rough float64 }

// cost is what a piece of work takes of the card.
type cost struct {
	seconds float64
	fixed   float64 // of them, to start and to end
	bound   limit
	guessed bool // of a kernel that nobody has counted
}

// limit is what a piece of work is bound by.
type limit uint8

const (
	byCompute limit = iota
	byMemory
	byLink
)

func newClock(card *cards.Card) *clock {
	c := &clock{card: card, known: map[launch]cost{}, unknown: map[string]bool{}}
	for i := range c.lines {
		c.lines[i].queues = map[int]float64{}
	}
	return c
}

func (c *clock) observe(e *device.Event) {
	switch e.Kind {
	case device.KindLaunch, device.KindFill:
		call := launchCall
		if e.Captured {
			call = graphNode
		}
		c.work(e.Queue, call, c.launched(e))
		if e.Step == 0 && changes(e.Kernel) && len(e.Args) > 0 {
			c.updated(e.Args[0].Mem.Addr + uint64(e.Args[0].Offset))
		}
	case device.KindCopy:
		c.copied(e)
	case device.KindMark:
		c.call(otherCall)
	case device.KindWait:
		c.wait(e)
	}
}

// changes tells a launch that changes parameters.
func changes(k *device.Kernel) bool {
	return k != nil && k.Name == "" && k.Op.Code.Updates()
}

// updated keeps where the timelines are after an update of the parameter at an address.
func (c *clock) updated(at uint64) {
	for i := range c.lines {
		c.update[i] = c.lines[i].moment
	}
	if c.anchor == 0 {
		c.anchor = at
	}
	if at == c.anchor {
		c.updates++
		c.steps[0], c.steps[1] = c.steps[1], c.update
	}
}

// call is one that costs the host alone.
func (c *clock) call(seconds float64) {
	for i := range c.lines {
		c.lines[i].host += seconds * paces[i].calls
	}
}

// work is a call that gives a queue work.
func (c *clock) work(queue int, call float64, w cost) {
	c.call(call)
	for i, p := range paces {
		t, share := &c.lines[i], p.kernels
		if w.guessed {
			share = p.guesses
		}
		seconds := w.seconds * share
		t.queues[queue] = max(t.queues[queue], t.host+arrival) + seconds
		t.end = max(t.end, t.queues[queue])
		busy := seconds - w.fixed*share
		if w.guessed {
			t.rough += busy
		}
		switch w.bound {
		case byCompute:
			t.compute += busy
		case byMemory:
			t.memory += busy
		case byLink:
			t.copies += seconds
		}
	}
}

// launched is what the launch or the fill of an event takes of the card.
func (c *clock) launched(e *device.Event) cost {
	if e.Kind == device.KindFill {
		return c.moved(e.Bytes)
	}
	key := launch{e.Kernel, e.Step}
	w, ok := c.known[key]
	if !ok {
		w = c.kernel(e.Kernel, e.Step)
		c.known[key] = w
	}
	if w.guessed {
		name := e.Kernel.Steps[e.Step].Name
		if e.Kernel.Name != "" {
			name = e.Kernel.What()
		}
		c.unknown[name] = true
	}
	return w
}

// kernel is what a step of a kernel's plan takes.
func (c *clock) kernel(k *device.Kernel, step int) cost {
	l, counted := counts.Of(k, step)
	e := estimate.Brief(c.card, &l)
	return cost{max(e.Seconds, estimate.PerLaunch), estimate.PerLaunch, bound(e.Limiter), !counted}
}

// moved is a fill, or a copy on the device.
func (c *clock) moved(bytes int64) cost {
	return cost{seconds: moveStart + float64(bytes)/(1e9*float64(c.card.Bandwidth)), fixed: moveStart, bound: byMemory}
}

func (c *clock) copied(e *device.Event) {
	if e.What == device.CopyWithin {
		c.work(e.Queue, launchCall, c.moved(2*e.Bytes))
		return
	}
	c.work(e.Queue, launchCall+otherCall, cost{seconds: moveStart + float64(e.Bytes)/(1e9*float64(c.card.Link)), bound: byLink})
}

func (c *clock) wait(e *device.Event) {
	if e.What != device.WaitQueue {
		return
	}
	c.call(otherCall)
	for i := range c.lines {
		q := c.lines[i].queues
		q[e.Queue] = max(q[e.Queue], q[e.Other])
	}
}

// step is the last that was watched from update to update; nil where there were not two updates.
func (c *clock) step() *Step {
	if c.updates < 2 {
		return nil
	}
	took := func(i int) float64 { return c.steps[1][i].end - c.steps[0][i].end }
	a, b := c.steps[0][0], c.steps[1][0]
	s := &Step{Total: took(0), Low: took(1), High: took(2), Compute: b.compute - a.compute, Memory: b.memory - a.memory, Copies: b.copies - a.copies, Rough: b.rough - a.rough}
	s.Launch = max(0, s.Total-s.Compute-s.Memory-s.Copies)
	s.After = c.lines[0].end - c.update[0].end
	return s
}

// uncounted are the kernels that nobody has counted, by name.
func (c *clock) uncounted() []string { return slices.Sorted(maps.Keys(c.unknown)) }

// bound is what a kernel with a limiter is bound by.
func bound(l estimate.Limiter) limit {
	if l == estimate.Memory || l == estimate.L2 || l == estimate.Fixed {
		return byMemory
	}
	return byCompute
}
