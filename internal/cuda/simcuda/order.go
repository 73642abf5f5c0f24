package simcuda

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/warpline-ml/warpline/internal/gpusim"
)

// Races between streams: two pieces of work that touch the same bytes of a device, one of them by a write, and that nothing puts
// in order, no stream, no event and no wait of the host. What work has done that some later work may not follow is kept, so
// many spans of memory at most; older work is forgotten.

// past is how much of the streams' work comes before a piece of work: what the host had waited for when it gave that, and what is
// known beyond. The host never knows less than before, so that of the past of earlier work only the latter can be new.
type past struct {
	host   []uint64 // by number of a stream how much; many have it, and nobody changes it
	beyond []reach  // by number, each once
}

// reach is a stream's work up to a piece of it.
type reach struct {
	number int
	seq    uint64
}

func (p *past) join(more []reach) {
	for _, r := range more {
		if reached(p.host, r) {
			continue
		}
		i := sort.Search(len(p.beyond), func(i int) bool { return p.beyond[i].number >= r.number })
		if i == len(p.beyond) || p.beyond[i].number != r.number {
			p.beyond = slices.Insert(p.beyond, i, r)
		}
		p.beyond[i].seq = max(p.beyond[i].seq, r.seq)
	}
}

// has is whether a piece of work is part of it.
func (p *past) has(o *op) bool {
	r := reach{o.stream.number, o.seq}
	if reached(p.host, r) {
		return true
	}
	i := sort.Search(len(p.beyond), func(i int) bool { return p.beyond[i].number >= r.number })
	return i < len(p.beyond) && p.beyond[i].number == r.number && p.beyond[i].seq >= r.seq
}

func reached(known []uint64, r reach) bool { return r.number < len(known) && known[r.number] >= r.seq }

// order is what the check knows of the work of a machine.
type order struct {
	on      bool
	streams int
	host    []uint64 // what the host has waited for, by number of a stream
	given   bool     // work has host as it is
	now     *op      // that takes effect
	tracks  []track  // by number of a stream
	spans   int
	missing int // pieces of work that were forgotten though later ones may not follow them
}

// track is what the work of a stream has touched, in its order. All of it lies from lo to hi: most streams, as those of other
// programs in the process, have memory of their own.
type track struct {
	trails []trail
	lo, hi uint64
}

// add keeps one more trail.
func (k *track) add(t trail) {
	if len(k.trails) == 0 {
		k.lo, k.hi = math.MaxUint64, 0
	}
	k.trails = append(k.trails, t)
	lo, hi := t.reach()
	k.lo, k.hi = min(k.lo, lo), max(k.hi, hi)
}

// trail is what a piece of work has touched.
type trail struct {
	op            *op
	what          string
	reads, writes []gpusim.Span
}

// reach is from where to where there is what a trail has.
func (t *trail) reach() (lo, hi uint64) {
	lo = math.MaxUint64
	for _, list := range [2][]gpusim.Span{t.reads, t.writes} {
		if n := len(list); n > 0 {
			lo, hi = min(lo, list[0].Lo), max(hi, list[n-1].Hi)
		}
	}
	return lo, hi
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
	o.past = past{r.host, []reach{{o.stream.number, o.seq}}}
	r.given = true
}

// waited is that the host knows work to be done.
func (r *order) waited(ops []*op) {
	if !r.on {
		return
	}
	for _, o := range ops {
		if o != nil {
			r.learn(o.past.beyond)
		}
	}
}

// learn adds to what the host knows, and lets go of what that is.
func (r *order) learn(more []reach) {
	for _, m := range more {
		if reached(r.host, m) {
			continue
		}
		if r.given || m.number >= len(r.host) {
			known := make([]uint64, r.streams+1)
			copy(known, r.host)
			r.host, r.given = known, false
		}
		r.host[m.number] = m.seq
		if m.number < len(r.tracks) {
			list := r.tracks[m.number].trails
			r.forget(m.number, sort.Search(len(list), func(i int) bool { return list[i].op.seq > m.seq }))
		}
	}
}

// forget lets go of the first n pieces of a stream's work.
func (r *order) forget(number, n int) {
	k := &r.tracks[number]
	for i := range k.trails[:n] {
		r.spans -= len(k.trails[i].reads) + len(k.trails[i].writes)
		k.trails[i] = trail{}
	}
	k.trails = k.trails[n:]
}

// touching is whether it matters what work touches: there is more than one stream.
func (s *System) touching(c *context) bool {
	return s.order.on && (len(c.queues) > 1 || len(s.devices) > 1 || s.order.streams > 1)
}

// ran is a kernel with what it touched.
type ran struct {
	seq     uint64 // in its stream; 0 for none
	touched *gpusim.Ahead
}

// ahead is what the launch ahead in the stream has touched, if the kernel that now takes effect may begin before that has ended.
func (s *System) ahead(t *kernelTask) *gpusim.Ahead {
	now := s.order.now
	if !t.dependent || !s.order.on || now == nil || now.stream.lane || now.stream.ran.seq == 0 || now.stream.ran.seq != now.seq-1 {
		return nil
	}
	return now.stream.ran.touched
}

// touched looks for races of the work that has just taken effect with what may run at the same time, and keeps it. What a stream has
// done is in its order, so that all that is known to be done comes before the rest.
func (s *System) touched(c *context, what string, reads, writes []gpusim.Span) {
	r := &s.order
	t := trail{r.now, what, reads, writes}
	lo, hi := t.reach()
	for number := range r.tracks {
		k := &r.tracks[number]
		list := k.trails
		if number == t.op.stream.number || len(list) == 0 || hi <= k.lo || k.hi <= lo {
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
	for len(r.tracks) <= number {
		r.tracks = append(r.tracks, track{})
	}
	r.tracks[number].add(t)
	for r.spans += len(t.reads) + len(t.writes); r.spans > maxSpans; {
		most := 0
		for i := range r.tracks {
			if len(r.tracks[i].trails) > len(r.tracks[most].trails) {
				most = i
			}
		}
		if len(r.tracks[most].trails) <= 1 {
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
	if len(a) == 0 || len(b) == 0 || a[0].Lo >= b[len(b)-1].Hi || b[0].Lo >= a[len(a)-1].Hi {
		return // as nearly all are: most work is on memory of its own
	}
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
