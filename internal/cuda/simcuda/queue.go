package simcuda

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
)

// op is a piece of work in a stream.
type op struct {
	stream *stream
	seq    uint64      // in the stream, from 1
	deps   []*op       // that come first; those that are done are left out
	run    func() cost // takes effect, once the deps are done; returns what it takes; nil for a mark
	asked  int         // how often a query found it pending
	done   bool
	past   past // under the check of global memory

	kind       kind
	cost       cost
	behind     []*op // that come first and have no times yet
	begin, end int64 // in virtual time, once settled; before, begin is the earliest that is known
	settled    bool
	next       int64 // of a mark, when the first work behind it in its stream begins; 0 while there is none
}

// stream is a queue of work, first in, first out.
type stream struct {
	ctx      *context
	handle   driver.Stream
	index    int  // in the context
	blocking bool // ordered with the legacy stream
	dead     bool // destroyed
	pending  []*op
	last     *op // enqueued last, done or not
	seq      uint64
	want     uint64   // while work is forced: up to here
	ends     []int64  // of the last maxAhead pieces of work, by seq
	marks    []*op    // that have times, behind the last piece of work that has
	number   int      // from 1 on, once it has had work
	kernel   struct { // the last one that has times
		seq uint64
		cost
	}
	ran  ran  // the last kernel that has taken effect, if it matters what it touched
	lane bool // of a graph, which the host gives work to as a whole

	capture *capture // that takes what is given to the stream
	tips    []*node  // that the next node captured of the stream waits for
}

// maxPending is how much work a stream holds before a call waits for some of it, as the driver does with about 1024
// launches; annotations count here too.
const maxPending = 4096

// enqueue adds work to a stream, after what the stream and the rules of default streams order before it, and deps.
// The call is of context c.
func (s *System) enqueue(c *context, st *stream, k kind, run func() cost, deps ...*op) *op {
	o := s.add(st, k, run, deps)
	s.passed(step{c: c, work: o, ns: hostCost[k]})
	return o
}

func (s *System) add(st *stream, k kind, run func() cost, deps []*op) *op {
	st.seq++
	o := &op{stream: st, seq: st.seq, run: run, kind: k}
	s.order.begin(o)
	for _, d := range deps {
		o.after(d)
	}
	o.after(st.last)
	c := st.ctx
	switch {
	case st == c.legacy:
		for _, q := range c.queues {
			if q.blocking {
				o.after(q.last)
			}
		}
	case st.blocking:
		o.after(c.legacy.last)
	}
	st.last = o
	if !s.cfg.LateEffects {
		o.exec()
		return o
	}
	st.pending = append(st.pending, o)
	if len(st.pending) > maxPending || s.cfg.Seed != 0 && s.priority(o)%8 == 0 {
		s.force(st.pending[0])
	}
	return o
}

// after makes o wait for d.
func (o *op) after(d *op) {
	if d == nil {
		return
	}
	o.past.join(d.past.beyond)
	switch {
	case d.settled:
		o.begin = max(o.begin, d.end)
	case !slices.Contains(o.behind, d):
		o.behind = append(o.behind, d)
	}
	if !d.done && !slices.Contains(o.deps, d) {
		o.deps = append(o.deps, d)
	}
}

// priority orders work that could happen next, by the seed and by what the work is, so that it does not depend on which
// of several goroutines called first.
func (s *System) priority(o *op) uint64 {
	if s.cfg.Seed == 0 {
		return 0
	}
	z := s.cfg.Seed
	for _, v := range [3]uint64{uint64(o.stream.ctx.dev.ordinal), uint64(o.stream.index), o.seq} {
		z = (z ^ v) + 0x9e3779b97f4a7c15
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
	}
	return z
}

// force lets work take effect, with all that comes before it and no more.
func (s *System) force(ops ...*op) {
	var list []*stream
	for _, o := range ops {
		list = need(o, list)
	}
	for len(list) > 0 {
		i := s.choose(list)
		st := list[i]
		st.pending[0].exec()
		st.pending[0] = nil
		st.pending = st.pending[1:]
		if len(st.pending) == 0 || st.pending[0].seq > st.want {
			st.want = 0
			list = slices.Delete(list, i, i+1)
		}
	}
}

// need marks what o waits for and adds the streams that have some of it.
func need(o *op, list []*stream) []*stream {
	if o == nil || o.done || o.seq <= o.stream.want {
		return list
	}
	st := o.stream
	from := st.want
	if from == 0 {
		list = append(list, st)
	}
	st.want = o.seq
	for _, x := range st.pending {
		if x.seq <= from {
			continue
		}
		if x.seq > o.seq {
			break
		}
		for _, d := range x.deps {
			list = need(d, list)
		}
	}
	return list
}

// choose is the index of the stream whose next work happens next. There is one: work waits only for older work.
func (s *System) choose(list []*stream) int {
	best, least := -1, uint64(0)
	for i, st := range list {
		o := st.pending[0]
		if !o.ready() {
			continue
		}
		if p := s.priority(o); best < 0 || p < least {
			best, least = i, p
		}
	}
	return best
}

func (o *op) ready() bool {
	for _, d := range o.deps {
		if !d.done {
			return false
		}
	}
	return true
}

// exec lets o take effect, unless its context has failed.
func (o *op) exec() {
	if o.run != nil && o.stream.ctx.err == driver.Success {
		o.stream.ctx.dev.sys.order.now = o
		o.cost = o.run()
	}
	o.done, o.deps, o.run = true, nil, nil
}

// bury forgets destroyed streams that are empty.
func (c *context) bury() {
	c.queues = slices.DeleteFunc(c.queues, func(q *stream) bool { return q.dead && len(q.pending) == 0 })
}

// tails is the last work of every stream of the context.
func (c *context) tails() []*op {
	var ops []*op
	c.bury()
	for _, q := range c.queues {
		ops = append(ops, q.last)
	}
	return ops
}

// wait is the host waiting for work.
func (c *context) wait(ops ...*op) driver.Result {
	c.dev.sys.force(ops...)
	c.dev.sys.order.waited(ops)
	c.dev.sys.passed(step{c: c, ends: ops, ns: syncTime})
	return c.err
}

// ask answers a query about work. What is pending, or ends later than the host's clock shows, stays so for some queries and
// happens then: a host that polls must come to an end.
func (c *context) ask(o *op) driver.Result {
	const patience = 16
	sys := c.dev.sys
	if o != nil && (!o.done || o.settled && o.end > sys.now(c)) {
		sys.passed(step{c: c, ns: callTime})
		if o.asked++; o.asked <= patience-int(sys.priority(o)>>32%patience) {
			return driver.NotReady
		}
		return c.wait(o)
	}
	sys.order.waited([]*op{o})
	sys.passed(step{c: c, ns: callTime})
	return c.err
}
