package gpusim

// A copy by cp.async reads its source and writes shared memory at any moment between its issue and its wait. The
// simulator reads at the issue and writes at the latest moment; with a seed, the write falls on one of the moments
// between. Under racecheck the bytes at both ends are watched in the meantime.

// copySpan is the span of an allocation that copies under way read, for a quick look before the copies are searched.
type copySpan struct {
	alloc  *allocation
	lo, hi uint64
}

// sourceRead is a copy that its thread has waited for: others may write its source only behind a barrier.
type sourceRead struct {
	from   uint64
	read   int
	thread uint16
	clock  uint32
	site   *site
}

// maxSourceReads bounds what a block remembers between barriers.
const maxSourceReads = 1 << 16

// watchSource widens the span of the source's allocation.
func (c *cta) watchSource(addr uint64, size int) {
	al := c.worker.last // found by the read of the source just before
	for i := range c.sources {
		if s := &c.sources[i]; s.alloc == al {
			s.lo, s.hi = min(s.lo, addr), max(s.hi, addr+uint64(size))
			return
		}
	}
	c.sources = append(c.sources, copySpan{al, addr, addr + uint64(size)})
}

// checkSource looks whether a write meets bytes that a copy may still read.
func (w *warp) checkSource(a *access, lane int, al *allocation, addr uint64) {
	end := addr + uint64(a.size)
	for _, s := range w.cta.sources {
		if s.alloc != al || addr >= s.hi || end <= s.lo {
			continue
		}
		if by := w.readerOf(lane, addr, end); by != nil {
			w.cta.noteAt(w, a.site, lane, Racecheck, "write of bytes that cp.async may still be reading"+lineOf(by), "global", addr, a.size, al.String())
		}
		return
	}
}

// asyncWatch is what the checks and the schedules ask of an [asyncCopy].
type asyncWatch struct {
	from   [warpSize]uint64 // in global memory
	read   [warpSize]uint8  // bytes from there; zeros follow
	landed uint32           // lanes whose copy is written to shared memory
	site   *site
}

// meets reports whether a lane whose copy is under way reads of [lo, hi).
func (v *asyncWatch) meets(lanes uint32, lo, hi uint64) bool {
	for m := lanes; m != 0; m &= m - 1 {
		if l := lowest(m); v.from[l] < hi && v.from[l]+uint64(v.read[l]) > lo {
			return true
		}
	}
	return false
}

// readerOf finds a copy that reads of [lo, hi) and that the lane cannot know to be over.
func (w *warp) readerOf(lane int, lo, hi uint64) *site {
	c := w.cta
	for _, v := range c.warps {
		for i := range v.async.copies {
			if p := &v.async.watch[i]; p.meets(v.async.list[i].lanes, lo, hi) {
				return p.site
			}
		}
	}
	for i := range c.reads {
		if r := &c.reads[i]; r.from < hi && r.from+uint64(r.read) > lo && !c.race.ordered(w, lane, r.thread, r.clock) {
			return r.site
		}
	}
	return nil
}

// endAsync completes copy i of a lane.
func (w *warp) endAsync(i, lane int) {
	s := &w.async
	w.land(i, lane)
	p := &s.list[i]
	p.lanes &^= 1 << lane
	if w.cta.race != nil {
		w.cta.race.arrived(w, lane, int(p.at[lane]), int(p.size))
		w.readSource(lane, &s.watch[i])
	}
}

// readSource remembers that a copy of the lane is over.
func (w *warp) readSource(lane int, p *asyncWatch) {
	c := w.cta
	if p.read[lane] > 0 && len(c.reads) < maxSourceReads {
		thread := w.id*warpSize + uint32(lane)
		c.reads = append(c.reads, sourceRead{p.from[lane], int(p.read[lane]), uint16(thread), c.race.clock[w.id][w.id], p.site})
	}
}

// allPassed forgets what a barrier of the whole block has put in order.
func (c *cta) allPassed() { c.reads = c.reads[:0] }

// land carries out the write of a lane's copy, unless it has been.
func (w *warp) land(i, lane int) {
	p, v := &w.async.list[i], &w.async.watch[i]
	if v.landed>>lane&1 == 0 {
		copy(w.cta.shared[p.at[lane]:][:p.size], p.data[lane][:])
		v.landed |= 1 << lane
	}
}

// landSome carries out, by chance, copies of some lanes that may arrive at any moment.
func (w *warp) landSome(mask uint32) {
	if w.cta.grid.seed == 0 {
		return
	}
	for i := range w.async.copies {
		for m := w.async.list[i].lanes & mask; m != 0; m &= m - 1 {
			if w.cta.random()&3 == 0 {
				w.land(int(i), lowest(m))
			}
		}
	}
}
