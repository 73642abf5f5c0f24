package simcuda

import (
	"fmt"
	"sort"

	"github.com/warpline-ml/warpline/internal/gpusim"
)

// Races between streams: two pieces of work that touch the same bytes of a device, one of them by a write, and that nothing puts
// in order, no stream, no event and no wait of the host. What work has done that some later work may not follow is kept, so
// many spans of memory at most; older work is forgotten.

// past is by number of a stream how much of its work comes before.
type past []uint64

func (p *past) learn(d *op) {
	if d.past == nil {
		return
	}
	p.join(d.past)
}

func (p *past) join(q past) {
	for len(*p) < len(q) {
		*p = append(*p, 0)
	}
	for i, seq := range q {
		(*p)[i] = max((*p)[i], seq)
	}
}

// has is whether a piece of work is part of it.
func (p past) has(o *op) bool { return o.stream.number < len(p) && p[o.stream.number] >= o.seq }

// order is what the check knows of the work of a machine.
type order struct {
	on      bool
	streams int
	host    past      // what the host has waited for
	now     *op       // that takes effect
	trails  [][]trail // by number of a stream, in its order
	spans   int
	missing int // pieces of work that were forgotten though later ones may not follow them
}

// trail is what a piece of work has touched.
type trail struct {
	op            *op
	what          string
	reads, writes []gpusim.Span
}

// maxSpans bounds what is kept; tests have less.
var maxSpans = 1 << 18

// begin gives new work what the host knows.
func (r *order) begin(o *op) {
	if !r.on {
		return
	}
	if o.stream.number == 0 {
		r.streams++
		o.stream.number = r.streams
	}
	o.past = make(past, r.streams+1)
	o.past.join(r.host)
	o.past[o.stream.number] = o.seq
}

// waited is that the host knows work to be done.
func (r *order) waited(ops []*op) {
	if !r.on {
		return
	}
	for _, o := range ops {
		if o != nil {
			r.host.join(o.past)
		}
	}
	for number, list := range r.trails {
		done := sort.Search(len(list), func(i int) bool { return !r.host.has(list[i].op) })
		r.forget(number, done)
	}
}

// forget lets go of the first n pieces of a stream's work.
func (r *order) forget(number, n int) {
	list := r.trails[number]
	for i := range list[:n] {
		r.spans -= len(list[i].reads) + len(list[i].writes)
		list[i] = trail{}
	}
	r.trails[number] = list[n:]
}

// touching is whether it matters what work touches: there is more than one stream.
func (s *System) touching(c *context) bool {
	return s.order.on && (len(c.queues) > 1 || len(s.devices) > 1 || s.order.streams > 1)
}

// touched looks for races of the work that has just taken effect with what may run at the same time, and keeps it. What a stream has
// done is in its order, so that all that is known to be done comes before the rest.
func (s *System) touched(c *context, what string, reads, writes []gpusim.Span) {
	r := &s.order
	t := trail{r.now, what, reads, writes}
	for number, list := range r.trails {
		if number == t.op.stream.number {
			continue
		}
		for i := sort.Search(len(list), func(i int) bool { return !t.op.past.has(list[i].op) }); i < len(list); i++ {
			s.meet(c, &t, &list[i])
		}
	}
	r.keep(t)
}

// meet looks for races of two pieces of work.
func (s *System) meet(c *context, t, old *trail) {
	if old.op.past.has(t.op) {
		return
	}
	s.race(c, t, old, t.writes, old.writes, "write", "writes")
	s.race(c, t, old, t.reads, old.writes, "read", "writes")
	s.race(c, t, old, t.writes, old.reads, "write", "reads")
}

// keep adds to what streams have done, and forgets the oldest of the stream that has most where it is too much.
func (r *order) keep(t trail) {
	number := t.op.stream.number
	for len(r.trails) <= number {
		r.trails = append(r.trails, nil)
	}
	r.trails[number] = append(r.trails[number], t)
	for r.spans += len(t.reads) + len(t.writes); r.spans > maxSpans; {
		most := 0
		for i, list := range r.trails {
			if len(list) > len(r.trails[most]) {
				most = i
			}
		}
		if len(r.trails[most]) <= 1 {
			return
		}
		r.forget(most, 1)
		r.missing++
	}
}

// note says what was not compared; empty where everything was.
func (r *order) note() string {
	if r.missing == 0 {
		return ""
	}
	return fmt.Sprintf("races between streams were not all looked for: what %d earlier kernels, copies or fills had touched was forgotten, since no wait of the host "+
		"put them behind it and more than %d pieces of memory are not remembered", r.missing, maxSpans)
}

// race reports the first bytes that both lists have.
func (s *System) race(c *context, now, old *trail, a, b []gpusim.Span, verb, did string) {
	for len(a) > 0 && len(b) > 0 {
		lo, hi := max(a[0].Lo, b[0].Lo), min(a[0].Hi, b[0].Hi)
		if lo < hi {
			f := gpusim.Finding{Check: gpusim.Globalcheck, Kernel: now.what, Count: 1, Space: "global", Addr: lo, Size: int(hi - lo), Alloc: c.dev.sim.Describe(lo), Other: b[0].Site.At()}
			if x := a[0].Site; x != nil {
				at := x.At()
				f.Kernel, f.Line, f.Source, f.Inst = a[0].Kernel, at.Line, at.Source, at.Inst
			}
			f.Msg = fmt.Sprintf("%s of what a %s in another stream %s, in no order: no event, no stream and no wait of the host is between the two", verb, old.what, did)
			s.found(c, []gpusim.Finding{f})
			return
		}
		if a[0].Hi <= b[0].Hi {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
}
