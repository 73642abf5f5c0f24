package check

import "github.com/warpline-ml/warpline/internal/gpusim/simt"

// MbarrierOrder is what racecheck knows of an mbarrier: what those threads had done that arrived in this phase, and what all
// had who arrived in phases that are over; and who initialised it.
type MbarrierOrder struct {
	arrived, over view // arrived is the mbarrier's own

	fenced, fencedOver []uint32  // the same of what fence.proxy.async came behind, by warp
	flight             *Flight   // the copies of this phase; nil without
	landed             []*Flight // those of the last phases that are over

	by     *Site
	thread uint16
	at     uint32
}

// Release adds what a lane knows to what waiting for the phase tells: all of it, or by a relaxed arrival what it knew at its
// last fence. What other lanes of its warp did is not part of it, unless bar.warp.sync or the like told the lane.
func (o *MbarrierOrder) Release(r *Race, w uint32, lane int, relaxed bool) {
	if r == nil {
		return
	}
	r.any = true
	if o.arrived == nil {
		o.arrived = make(view, len(r.known))
	}
	if r.fly != nil {
		o.bringFenced(r.fly.fenced[w])
	}
	if !relaxed {
		r.addTo(o.arrived, w, lane)
		r.tick(w)
		return
	}
	for i, clock := range r.told[w*simt.WarpSize+uint32(lane)] {
		o.arrived[i] = max(o.arrived[i], clock)
	}
}

// ReleaseAll is for an arrival of a thread of another block, of which nothing is known: who waits knows all that was.
func (o *MbarrierOrder) ReleaseAll(r *Race) {
	if r == nil {
		return
	}
	r.any = true
	if o.arrived == nil {
		o.arrived = make(view, len(r.known))
	}
	for w := range r.clock {
		if r.fly != nil {
			join(r.fly.fenced[w], r.clock[w]) // nor of fences
			o.bringFenced(r.fly.fenced[w])
		}
		for lane := range simt.WarpSize {
			o.arrived[w*simt.WarpSize+lane] = r.clock[w][w]
		}
		r.tick(uint32(w))
	}
}

// Begin forgets what was, and notes who initialised the mbarrier.
func (o *MbarrierOrder) Begin(r *Race, by *Site, w uint32, lane int) {
	*o = MbarrierOrder{}
	if r != nil {
		o.by, o.thread, o.at = by, uint16(w*simt.WarpSize+uint32(lane)), r.Now(w)
	}
}

// Unknown is who initialised the mbarrier, if a lane cannot know of it; else nil.
func (o *MbarrierOrder) Unknown(r *Race, w uint32, lane int) *Site {
	if r == nil || o.by == nil || r.Ordered(w, lane, o.thread, o.at) {
		return nil
	}
	return o.by
}

// End is that of the phase.
func (o *MbarrierOrder) End() {
	o.over, o.arrived = union(o.over, o.arrived), nil
	if o.fenced != nil {
		if o.fencedOver == nil {
			o.fencedOver = make([]uint32, len(o.fenced))
		}
		join(o.fencedOver, o.fenced)
	}
	if o.flight != nil {
		const keep = 8 // phases, of which a thread waits for one after the other
		if o.landed = append(o.landed, o.flight); len(o.landed) > keep {
			o.landed = o.landed[1:]
		}
		o.flight = nil
	}
}

// bringFenced adds what an arriving warp knows to be fenced.
func (o *MbarrierOrder) bringFenced(known []uint32) {
	if o.fenced == nil {
		o.fenced = make([]uint32, len(known))
	}
	join(o.fenced, known)
}

// Flight is that of the copies that complete on this phase, of which the given is one.
func (o *MbarrierOrder) Flight(r *Race, s *Site, w uint32) *Flight {
	if o.flight == nil {
		o.flight = r.NewFlight(s, w)
	}
	return o.flight
}

// Acquire tells a lane what those did who arrived in phases that are over; if it is relaxed, the lane's next fence does.
func (o *MbarrierOrder) Acquire(r *Race, w uint32, lane int, relaxed bool) {
	if r == nil {
		return
	}
	for _, f := range o.landed {
		r.See(f, w, 1<<lane)
	}
	if o.fencedOver != nil {
		join(r.fly.fenced[w], o.fencedOver)
	}
	if o.over == nil {
		return
	}
	r.any = true // a barrier of the block may have come between
	to := r.known
	if relaxed {
		to = r.read
	}
	t := w*simt.WarpSize + uint32(lane)
	to[t] = union(to[t], o.over)
}
