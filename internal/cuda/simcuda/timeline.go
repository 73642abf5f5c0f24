package simcuda

import (
	"cmp"
	"slices"
	"time"

	"github.com/warpline-ml/warpline/internal/estimate"
)

// kind is what a piece of work occupies: where it runs, and what its call costs the host.
type kind uint8

const (
	note     kind = iota // nothing: an annotation, or a mark that no call made
	mark                 // nothing on the card: an event, a wait
	kernel               // multiprocessors: kernels, fills, copies on the device
	upload               // the engine for copies to the device
	download             // the engine for copies from it, to the host or to another device
	engines
)

// What calls cost the host, and what else it waits for, in ns. Published figures lie around them: 2 to 2.5 µs for a launch, 0.5 for
// an event, 5 to 10 to wait for a stream.
const (
	callTime    = 500
	launchCall  = 2200
	syncTime    = 5000
	arrivalTime = 1000 // from the end of a call until the card sees its work
)

// hostCost is by kind of work.
var hostCost = [engines]int64{note: 0, mark: callTime, kernel: launchCall, upload: launchCall, download: launchCall}

// maxAhead is how many pieces of work a stream takes before a call waits for the oldest to end, about as the driver does.
const maxAhead = 1024

// cost is what a piece of work takes of its engine.
type cost struct {
	ns       int64
	share    float64 // of the engine: the multiprocessors that a kernel has blocks on
	early    bool    // it may start before the kernel ahead has ended
	triggers bool    // it lets that kernel do so
}

// whole is work that nothing runs beside on its engine.
func whole(ns int64) cost { return cost{ns: ns, share: 1} }

// busy is a time in which a part of an engine is taken.
type busy struct {
	from, to int64
	share    float64
}

// engine is a part of a card that work takes in turn.
type engine struct {
	list []busy // by begin
	last int64  // when all of it is over
	most int    // how long the list may get before it is looked through
}

// place finds the first time from ready on at which an engine has room for work, and takes it. Work that was given later may begin
// earlier, where it is ready and fits.
func (e *engine) place(ready int64, c cost) (begin int64) {
	begin = ready
	for again := ready < e.last; again; {
		again = false
		for _, b := range e.list {
			if b.from < begin+c.ns && b.to > begin && e.taken(max(b.from, begin))+c.share > fullShare {
				begin, again = e.next(max(b.from, begin)), true
				break
			}
		}
	}
	if c.ns > 0 {
		i, _ := slices.BinarySearchFunc(e.list, begin, func(b busy, at int64) int { return cmp.Compare(b.from, at) })
		e.list = slices.Insert(e.list, i, busy{begin, begin + c.ns, c.share})
		e.last = max(e.last, begin+c.ns)
	}
	return begin
}

// fullShare is all of an engine, with room for the rounding of sums.
const fullShare = 1 + 1e-9

// taken is how much of the engine is taken at a time.
func (e *engine) taken(at int64) (share float64) {
	for _, b := range e.list {
		if b.from > at {
			break
		}
		if b.to > at {
			share += b.share
		}
	}
	return share
}

// next is when the first of what is taken at a time ends.
func (e *engine) next(at int64) int64 {
	first := int64(1<<63 - 1)
	for _, b := range e.list {
		if b.from > at {
			break
		}
		if b.to > at {
			first = min(first, b.to)
		}
	}
	return first
}

// manyBusy is how much an engine may remember without need.
const manyBusy = 64

// forget drops what ended before a time, before which nothing will be placed.
func (e *engine) forget(before int64) {
	if len(e.list) >= max(e.most, manyBusy) {
		e.list = slices.DeleteFunc(e.list, func(b busy) bool { return b.to <= before })
		e.most = 2 * len(e.list)
	}
}

// timeline is the virtual time of one context: of the host, as far as it works with the context, and of the card's engines.
type timeline struct {
	host    int64
	engines [engines]engine
}

// step is something that the host did, whose time may depend on work that has not taken effect yet. Steps get their times in the
// order in which the host took them, whatever order work takes effect in.
type step struct {
	c    *context
	work *op      // that a call gave to a stream; nil if it waited
	ends []*op    // that the call waited for
	from *context // whose host's time counts too; nil for none
	ns   int64    // of the host
}

// passed adds a step and gives times to as many as there can be.
func (s *System) passed(x step) {
	s.steps = append(s.steps, x)
	s.advance()
	if len(s.steps)-s.first > maxSteps {
		s.settle(s.steps[s.first].work)
	}
}

// advance gives times to the steps that can have them.
func (s *System) advance() {
	for s.first < len(s.steps) && s.steps[s.first].settle() {
		s.steps[s.first] = step{}
		s.first++
	}
	if s.first > len(s.steps)/2 {
		s.steps, s.first = slices.Delete(s.steps, 0, s.first), 0
	}
}

// maxSteps bounds what waits for a time; beyond it the work that all of it waits for takes effect.
const maxSteps = 1 << 14

// settle lets work take effect until the times of some are known.
func (s *System) settle(ops ...*op) {
	for _, o := range ops {
		for !o.settled {
			s.force(s.steps[s.first].work)
			s.advance()
		}
	}
}

// settle gives a step its times, if all that it depends on has taken effect.
func (x *step) settle() bool {
	t := &x.c.time
	if o := x.work; o != nil {
		if !o.done {
			return false
		}
		t.host += x.ns
		o.schedule(t)
		return true
	}
	for _, o := range x.ends {
		if o != nil {
			t.host = max(t.host, o.end) // its own step came before
		}
	}
	if x.from != nil {
		t.host = max(t.host, x.from.time.host)
	}
	t.host += x.ns
	return true
}

// schedule finds when work runs: once the host has asked, all before it has ended and its engine has room.
func (o *op) schedule(caller *timeline) {
	st, t := o.stream, &o.stream.ctx.time
	if i := o.seq % maxAhead; o.kind > mark && !st.lane {
		if st.ends == nil {
			st.ends = make([]int64, maxAhead)
		}
		caller.host = max(caller.host, st.ends[i])
	}
	o.begin = max(o.begin, caller.host+arrivalTime)
	for _, d := range o.behind {
		o.begin = max(o.begin, d.end)
	}
	if o.kind > mark {
		e := &t.engines[o.kind]
		e.forget(min(t.host, caller.host))
		o.cost.ns -= st.started(o)
		o.begin = e.place(o.begin, o.cost)
		if !st.lane {
			st.ends[o.seq%maxAhead] = o.begin + o.cost.ns
		}
	}
	o.end = o.begin + o.cost.ns
	o.settled, o.behind = true, nil
	st.follow(o)
}

// started is how much of what a kernel takes to start is over when the one ahead of it has ended, since both allow that.
func (st *stream) started(o *op) (ns int64) {
	if o.cost.early && st.kernel.seq == o.seq-1 && st.kernel.triggers {
		ns = min(int64(1e9*estimate.PerLaunch), st.kernel.ns, o.cost.ns)
	}
	if o.kind == kernel {
		st.kernel.seq, st.kernel.cost = o.seq, o.cost
	}
	return ns
}

// manyMarks is how many marks in a row a stream tells of what comes behind them.
const manyMarks = 64

// follow tells the marks before o, which has got its times, when work goes on.
func (st *stream) follow(o *op) {
	switch {
	case o.kind == mark:
		if len(st.marks) == manyMarks {
			st.marks = st.marks[:0]
		}
		st.marks = append(st.marks, o)
	case o.kind > mark:
		for i, m := range st.marks {
			m.next, st.marks[i] = o.begin, nil
		}
		st.marks = st.marks[:0]
	}
}

// follow lets the host know of c what it knows of another context, for which it waited.
func (c *context) follow(o *context) {
	if o != c {
		c.dev.sys.passed(step{c: c, from: o})
	}
}

// lap adds what the program took since the last call, by the clock of the machine.
func (s *System) lap(c *context) {
	if !s.cfg.RealHost {
		return
	}
	if !s.left.IsZero() {
		s.passed(step{c: c, ns: int64(time.Since(s.left))})
	}
}
