package check

import "github.com/warpline-ml/warpline/internal/gpusim/simt"

// MbarrierOrder is what racecheck knows of an mbarrier: what those threads had done that arrived in this phase, and what all
// had who arrived in phases that are over; and who initialised it.
type MbarrierOrder struct {
	arrived, over *view
	heard, past   *view // the same of threads of other blocks

	fenced, fencedOver fences    // the same of what fence.proxy.async came behind
	flight             *Flight   // the copies of this phase; nil without
	sources            []*Flight // what they read of shared memory
	landed             []*Flight // those of the last phases that are over

	by     *Site
	thread uint16
	at     uint32
}

// Release adds what a lane knows to what waiting for the phase tells: all of it, or by a relaxed arrival what it knew at its
// last fence. What other lanes of its warp did is not part of it, unless bar.warp.sync or the like told the lane.
func (b *MbarrierOrder) Release(o *Order, w uint32, lane int, relaxed bool) {
	if o == nil {
		return
	}
	o.none = false
	if o.fly != nil {
		b.fenced.add(&o.fly.fenced[w])
	}
	if relaxed {
		b.arrived = union(b.arrived, o.at(w, lane).told[OfBlock])
		return
	}
	b.arrived = union(b.arrived, o.snapshot(w, lane, o.toldByBarriers(w)))
	o.tick(w)
}

// ReleaseFrom is for an arrival of a thread of another block.
func (b *MbarrierOrder) ReleaseFrom(o, from *Order, w uint32, lane int, relaxed bool) {
	if o == nil {
		return
	}
	if o.fly != nil {
		b.fenced.add(o.fencesOf(from.fly.fenced[w].all(from)))
	}
	o.none = false
	told := from.at(w, lane).told[OfCluster]
	if !relaxed {
		told = from.snapshot(w, lane, from.toldByBarriers(w))
		from.tick(w)
	}
	b.heard = union(b.heard, viewOf(told.all(from.block, from.levels), o.block, o.levels))
}

// Begin forgets what was, and notes who initialised the mbarrier.
func (b *MbarrierOrder) Begin(o *Order, by *Site, w uint32, lane int) {
	*b = MbarrierOrder{}
	if o != nil {
		b.by, b.thread, b.at = by, uint16(w*simt.WarpSize+uint32(lane)), o.Now(w)
	}
}

// Unknown is who initialised the mbarrier, which is in memory of a block, if a lane cannot know of it; else nil.
func (b *MbarrierOrder) Unknown(in, o *Order, w uint32, lane int) *Site {
	if o == nil || b.by == nil || in != o && o.near == nil || o.follows(w, lane, in.block, b.thread, b.at) {
		return nil
	}
	return b.by
}

// Reads adds what a copy that completes on this phase reads of shared memory.
func (b *MbarrierOrder) Reads(f *Flight) {
	if f != nil {
		b.sources = append(b.sources, f)
	}
}

// End is that of the phase.
func (b *MbarrierOrder) End() {
	b.over, b.arrived = union(b.over, b.arrived), nil
	b.past, b.heard = union(b.past, b.heard), nil
	b.fencedOver.add(&b.fenced)
	if b.flight != nil {
		const keep = 16 // of several phases, of which a thread waits for one after the other
		if b.landed = append(append(b.landed, b.sources...), b.flight); len(b.landed) > keep {
			b.landed = b.landed[len(b.landed)-keep:]
		}
		b.flight, b.sources = nil, nil
	}
}

// Flight is that of the copies that complete on this phase, of which the given is one.
func (b *MbarrierOrder) Flight(r *Race, s *Site, w uint32) *Flight {
	if b.flight == nil {
		b.flight = r.NewFlight(s, w)
	}
	return b.flight
}

// Acquire tells a lane what those did who arrived in phases that are over; if it is relaxed, the lane's next fence does.
func (b *MbarrierOrder) Acquire(o *Order, w uint32, lane int, relaxed bool) {
	if o == nil {
		return
	}
	for _, f := range b.landed {
		if relaxed && len(o.fly.unseen) < maxUnseen {
			o.fly.unseen = append(o.fly.unseen, unseen{f, w, lane})
		} else {
			o.See(f, w, 1<<lane)
		}
	}
	if o.fly != nil {
		o.fly.fenced[w].add(&b.fencedOver)
	}
	if b.over == nil && b.past == nil {
		return
	}
	s := o.of(w, lane)
	if relaxed {
		s.read[OfBlock], s.read[OfCluster] = union(s.read[OfBlock], b.over), union(s.read[OfCluster], b.past)
	} else {
		s.known = union(s.known, union(b.over, b.past))
	}
}
