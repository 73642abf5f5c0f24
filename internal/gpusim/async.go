package gpusim

import "unsafe"

// A copy by cp.async reads its source and writes shared memory at any moment between its issue and its wait. The
// simulator reads at the issue and writes at the latest moment; with a seed, the write falls on one of the moments
// between. Under racecheck the bytes at both ends are watched in the meantime.

// asyncState is the copies of cp.async that the lanes of a warp have under way, in the order of their issue. The assembly
// uses the head of it while all lanes are in the same group.
type asyncState struct {
	pending unsafe.Pointer // to the first of list
	copies  int64          // in list
	room    int64          // the length of list; 0 keeps the assembly out
	group   int64          // of the next copy; groups are waited for by number
	list    []asyncCopy
	groups  *[warpSize]int64 // by lane, once they differ
	chance  bool             // a write may fall on any moment
	odd     bool             // a copy under way is not one of 16 bytes by the whole warp, which is all the assembly ends
}

// asyncCopy is one instruction's copies of some lanes.
type asyncCopy struct {
	at     [warpSize]uint32 // in shared memory
	data   [warpSize][16]byte
	group  int64
	lanes  uint32 // that have not waited for it
	size   uint32
	landed uint32           // lanes whose part is written
	access int32            // in code.accesses
	first  uint64           // where the first lane read, or the one of the copy that stood here before: a hint for the assembly
	from   [warpSize]uint64 // in global memory, and so many bytes from there; the assembly does not set them
	read   [warpSize]uint8
}

// reset forgets all copies. Where they land by chance, the assembly is kept out.
func (s *asyncState) reset(chance bool) {
	s.copies, s.group, s.groups, s.chance, s.odd = 0, 0, nil, chance, false
	s.admit()
}

// admit lets the assembly in, or keeps it out.
func (s *asyncState) admit() {
	if s.room = 0; s.groups == nil && !s.chance && !s.odd {
		s.room = int64(len(s.list))
	}
}

// of is the group of a lane's next copy.
func (s *asyncState) of(lane int) int64 {
	if s.groups != nil {
		return s.groups[lane]
	}
	return s.group
}

// add makes room for a copy.
func (s *asyncState) add() *asyncCopy {
	if int(s.copies) == len(s.list) {
		const first = 8
		list := aligned[asyncCopy](max(first, 2*len(s.list)))
		copy(list, s.list)
		s.list, s.pending = list, unsafe.Pointer(&list[0])
		s.admit()
	}
	s.copies++
	return &s.list[s.copies-1]
}

// commitAsync ends the groups of some lanes.
func (w *warp) commitAsync(mask uint32) {
	s := &w.async
	w.landByChance(mask)
	if s.groups == nil && mask == full {
		s.group++
		return
	}
	if s.groups == nil {
		s.groups = new([warpSize]int64)
		s.admit()
		for i := range s.groups {
			s.groups[i] = s.group
		}
	}
	for m := mask; m != 0; m &= m - 1 {
		s.groups[lowest(m)]++
	}
}

// pendAsync records a copy, with those of other lanes by the same instruction where their groups agree.
func (w *warp) pendAsync(to *access, lane int, target, from uint64, read int, data *[16]byte) {
	s := &w.async
	var c *asyncCopy
	if s.groups == nil && w.mask&(1<<lane-1) != 0 {
		c = &s.list[s.copies-1]
	} else {
		c = s.add()
		c.group, c.lanes, c.landed, c.size, c.access = s.of(lane), 0, 0, uint32(to.size), int32(to.id)
	}
	c.at[lane], c.data[lane], c.from[lane], c.read[lane] = uint32(target), *data, from, uint8(read)
	c.lanes |= 1 << lane
	if !s.odd && (to.size != 16 || w.mask != full) {
		s.odd = true
		s.admit()
	}
}

// finishAsync completes the copies of some lanes but for their newest keep groups.
func (w *warp) finishAsync(mask uint32, keep int64) {
	s := &w.async
	w.landByChance(mask)
	kept := int64(0)
	for i := range s.copies {
		c := &s.list[i]
		if c.lanes == full && c.landed == 0 && c.size == 16 && mask == full && s.groups == nil && c.group < s.group-keep {
			w.arriveAll(c)
			continue
		}
		for m := c.lanes & mask; m != 0; m &= m - 1 {
			if lane := lowest(m); c.group < s.of(lane)-keep {
				w.arriveAsync(c, lane)
			}
		}
		if c.lanes == 0 {
			continue
		}
		if kept < i {
			s.list[kept] = *c
		}
		kept++
	}
	if s.copies = kept; kept == 0 && s.odd {
		s.odd = false
		s.admit()
	}
}

// arriveAll ends a copy of 16 bytes by the whole warp.
func (w *warp) arriveAll(c *asyncCopy) {
	shared := w.cta.shared
	for i, at := range &c.at {
		*(*[16]byte)(shared[at:]) = c.data[i]
	}
	if r := w.cta.race; r != nil {
		r.arrivedVectors(w, &c.at)
		w.readSource(full, c)
	}
	c.lanes = 0
}

// arriveAsync ends a lane's part of a copy.
func (w *warp) arriveAsync(c *asyncCopy, lane int) {
	w.cta.land(c, lane)
	c.lanes &^= 1 << lane
	if w.cta.race != nil {
		w.cta.race.arrived(w, lane, int(c.at[lane]), int(c.size))
		w.readSource(1<<lane, c)
	}
}

// copySpan is the span of an allocation that copies under way read, for a quick look before the copies are searched.
type copySpan struct {
	alloc  *allocation
	lo, hi uint64
}

// sourceRead is lanes' parts of a copy that they have waited for: others may write its source only behind a barrier.
type sourceRead struct {
	from  [warpSize]uint64
	read  [warpSize]uint8
	lanes uint32
	warp  uint32
	clock uint32
	site  *site
}

// maxSourceReads bounds what a block remembers between barriers.
const maxSourceReads = 1 << 13

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

// copied is whether copies read of an allocation.
func (c *cta) copied(al *allocation) bool {
	for i := range c.sources {
		if c.sources[i].alloc == al {
			return true
		}
	}
	return false
}

// checkSource looks whether a write meets bytes that a copy may still read.
func (w *warp) checkSource(a *access, lane int, al *allocation, addr uint64) {
	end := addr + uint64(a.size)
	for _, s := range w.cta.sources {
		if s.alloc != al || addr >= s.hi || end <= s.lo {
			continue
		}
		if by := w.readerOf(lane, addr, end); by != nil {
			w.cta.noteBoth(w, a.site, by, lane, Racecheck, "write of bytes that cp.async may still be reading", "global", addr, a.size, al.String())
		}
		return
	}
}

// readerOf finds a copy that reads of [lo, hi) and that the lane cannot know to be over.
func (w *warp) readerOf(lane int, lo, hi uint64) *site {
	c := w.cta
	for _, v := range c.warps {
		for i := range v.async.copies {
			p := &v.async.list[i]
			for m := p.lanes; m != 0; m &= m - 1 {
				if l := lowest(m); p.from[l] < hi && p.from[l]+uint64(p.read[l]) > lo {
					return v.code.accesses[p.access].site
				}
			}
		}
	}
	for i := range c.reads {
		r := &c.reads[i]
		for m := r.lanes; m != 0; m &= m - 1 {
			l := lowest(m)
			if r.from[l] < hi && r.from[l]+uint64(r.read[l]) > lo && !c.race.ordered(w, lane, uint16(r.warp*warpSize+uint32(l)), r.clock) {
				return r.site
			}
		}
	}
	return nil
}

// readSource remembers that a copy of some lanes is over.
func (w *warp) readSource(lanes uint32, p *asyncCopy) {
	c := w.cta
	if len(c.reads) == maxSourceReads {
		c.omitted |= omitsSources
		return
	}
	c.reads = append(c.reads, sourceRead{p.from, p.read, lanes, w.id, c.race.clock[w.id][w.id], w.code.accesses[p.access].site})
}

// allPassed forgets what a barrier of the whole block has put in order.
func (c *cta) allPassed() { c.reads = c.reads[:0] }

// land carries out the write of a lane's part of a copy, unless it has been.
func (c *cta) land(p *asyncCopy, lane int) {
	if p.landed>>lane&1 == 0 {
		copy(c.shared[p.at[lane]:][:p.size], p.data[lane][:])
		p.landed |= 1 << lane
	}
}

// landByChance is landSome for some lanes.
func (w *warp) landByChance(mask uint32) {
	for m := mask; m != 0 && w.async.chance; m &= m - 1 {
		w.landSome(lowest(m))
	}
}

// landSome carries out, by chance, copies of the lane that may arrive at any moment.
func (w *warp) landSome(lane int) {
	if !w.async.chance {
		return
	}
	for i := range w.async.copies {
		if p := &w.async.list[i]; (p.lanes&^p.landed)>>lane&1 == 1 && w.cta.random()&3 == 0 {
			w.cta.land(p, lane)
		}
	}
}
