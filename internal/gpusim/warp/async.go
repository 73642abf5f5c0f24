package warp

import (
	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/lanes"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// A copy by cp.async reads its source and writes shared memory at any moment between its issue and its wait. The
// simulator reads at the issue and writes at the latest moment; with a seed, the write falls on one of the moments
// between. Under racecheck the bytes at both ends are watched in the meantime.

// CommitAsync ends the groups of some lanes.
func (w *Warp) CommitAsync(mask uint32) {
	s := &w.async
	w.landByChance(mask)
	if s.Groups == nil && mask == simt.Full {
		s.Group++
		return
	}
	if s.Groups == nil {
		s.Groups = new([simt.WarpSize]int64)
		s.Admit()
		for i := range s.Groups {
			s.Groups[i] = s.Group
		}
	}
	for m := mask; m != 0; m &= m - 1 {
		s.Groups[simt.Lowest(m)]++
	}
}

// pendAsync records a copy, with those of other lanes by the same instruction where their groups agree.
func (w *Warp) pendAsync(to *check.Access, lane int, target, from uint64, read int, data *[16]byte) {
	s := &w.async
	var c *lanes.AsyncCopy
	if s.Groups == nil && w.Mask&(1<<lane-1) != 0 {
		c = &s.List[s.Copies-1]
	} else {
		c = s.Add()
		c.Group, c.Lanes, c.Landed, c.Size, c.Access = s.Of(lane), 0, 0, uint32(to.Size), int32(to.Id)
	}
	c.At[lane], c.Data[lane], c.From[lane], c.Read[lane] = uint32(target), *data, from, uint8(read)
	c.Lanes |= 1 << lane
	if !s.Odd && (to.Size != 16 || w.Mask != simt.Full) {
		s.Odd = true
		s.Admit()
	}
}

// FinishAsync completes the copies of some lanes but for their newest keep groups.
func (w *Warp) FinishAsync(mask uint32, keep int64) {
	s := &w.async
	w.landByChance(mask)
	kept := int64(0)
	for i := range s.Copies {
		c := &s.List[i]
		if c.Lanes == simt.Full && c.Landed == 0 && c.Size == 16 && mask == simt.Full && s.Groups == nil && c.Group < s.Group-keep {
			w.arriveAll(c)
			continue
		}
		for m := c.Lanes & mask; m != 0; m &= m - 1 {
			if lane := simt.Lowest(m); c.Group < s.Of(lane)-keep {
				w.arriveAsync(c, lane)
			}
		}
		if c.Lanes == 0 {
			continue
		}
		if kept < i {
			s.List[kept] = *c
		}
		kept++
	}
	if s.Copies = kept; kept == 0 && s.Odd {
		s.Odd = false
		s.Admit()
	}
}

// arriveAll ends a copy of 16 bytes by the whole warp.
func (w *Warp) arriveAll(c *lanes.AsyncCopy) {
	shared := w.CTA.shared
	for i, at := range &c.At {
		*(*[16]byte)(shared[at:]) = c.Data[i]
	}
	if r := w.CTA.Race; r != nil {
		r.ArrivedVectors(w.Id, &c.At)
		w.readSource(simt.Full, c)
	}
	c.Lanes = 0
}

// arriveAsync ends a lane's part of a copy.
func (w *Warp) arriveAsync(c *lanes.AsyncCopy, lane int) {
	w.CTA.put(c, lane)
	c.Lanes &^= 1 << lane
	if w.CTA.Race != nil {
		w.CTA.Race.Arrived(w.Id, lane, int(c.At[lane]), int(c.Size))
		w.readSource(1<<lane, c)
	}
}

// copySpan is the span of an allocation that copies under way read, for a quick look before the copies are searched.
type copySpan struct {
	alloc  *memory.Allocation
	lo, hi uint64
}

// sourceRead is lanes' parts of a copy that they have waited for: others may write its source only behind a barrier.
type sourceRead struct {
	from  [simt.WarpSize]uint64
	read  [simt.WarpSize]uint8
	lanes uint32
	warp  uint32
	clock uint32
	site  *check.Site
}

// maxSourceReads bounds what a block remembers between barriers.
const maxSourceReads = 1 << 13

// watchSource widens the span of the source's allocation.
func (c *CTA) watchSource(addr uint64, size int) {
	al := c.Worker.last // found by the read of the source just before
	for i := range c.sources {
		if s := &c.sources[i]; s.alloc == al {
			s.lo, s.hi = min(s.lo, addr), max(s.hi, addr+uint64(size))
			return
		}
	}
	c.sources = append(c.sources, copySpan{al, addr, addr + uint64(size)})
}

// copied is whether copies read of an allocation.
func (c *CTA) copied(al *memory.Allocation) bool {
	for i := range c.sources {
		if c.sources[i].alloc == al {
			return true
		}
	}
	return false
}

// checkSource looks whether a write meets bytes that a copy may still read.
func (w *Warp) checkSource(a *check.Access, lane int, al *memory.Allocation, addr uint64) {
	end := addr + uint64(a.Size)
	for _, s := range w.CTA.sources {
		if s.alloc != al || addr >= s.hi || end <= s.lo {
			continue
		}
		if by := w.readerOf(lane, addr, end); by != nil {
			w.CTA.noteBoth(w, a.Site, by, lane, check.Racecheck, "write of bytes that cp.async may still be reading", "global", addr, a.Size, al.String())
		}
		return
	}
}

// readerOf finds a copy that reads of [lo, hi) and that the lane cannot know to be over.
func (w *Warp) readerOf(lane int, lo, hi uint64) *check.Site {
	c := w.CTA
	for _, v := range c.warps {
		for i := range v.async.Copies {
			p := &v.async.List[i]
			for m := p.Lanes; m != 0; m &= m - 1 {
				if l := simt.Lowest(m); p.From[l] < hi && p.From[l]+uint64(p.Read[l]) > lo {
					return v.Code.Accesses[p.Access].Site
				}
			}
		}
	}
	for i := range c.reads {
		r := &c.reads[i]
		for m := r.lanes; m != 0; m &= m - 1 {
			l := simt.Lowest(m)
			if r.from[l] < hi && r.from[l]+uint64(r.read[l]) > lo && !c.Race.Ordered(w.Id, lane, uint16(r.warp*simt.WarpSize+uint32(l)), r.clock) {
				return r.site
			}
		}
	}
	return nil
}

// readSource remembers that a copy of some lanes is over.
func (w *Warp) readSource(lanes uint32, p *lanes.AsyncCopy) {
	c := w.CTA
	if len(c.reads) == maxSourceReads {
		c.Omitted |= check.OmitsSources
		return
	}
	c.reads = append(c.reads, sourceRead{p.From, p.Read, lanes, w.Id, c.Race.Now(w.Id), w.Code.Accesses[p.Access].Site})
}

// allPassed forgets what a barrier of the whole block has put in order.
func (c *CTA) allPassed() { c.reads = c.reads[:0] }

// put carries out the write of a lane's part of a copy, unless it has been.
func (c *CTA) put(p *lanes.AsyncCopy, lane int) {
	if p.Landed>>lane&1 == 0 {
		copy(c.shared[p.At[lane]:][:p.Size], p.Data[lane][:])
		p.Landed |= 1 << lane
	}
}

// landByChance is landSome for some lanes.
func (w *Warp) landByChance(mask uint32) {
	for m := mask; m != 0 && w.async.Chance; m &= m - 1 {
		w.landSome(simt.Lowest(m))
	}
}

// landSome carries out, by chance, copies of the lane that may arrive at any moment.
func (w *Warp) landSome(lane int) {
	if !w.async.Chance {
		return
	}
	for i := range w.async.Copies {
		if p := &w.async.List[i]; (p.Lanes&^p.Landed)>>lane&1 == 1 && w.CTA.random()&3 == 0 {
			w.CTA.put(p, lane)
		}
	}
}

// IssueAsync starts a copy of n bytes, followed by zeros up to the size of the destination.
func (w *Warp) IssueAsync(to, from *check.Access, lane int, target uint64, n int) {
	if n > to.Size {
		w.badAccess(from, lane, ptx.Global, w.Addr[lane], memory.LaunchFailed, "cp.async with more source bytes than it copies", "")
		return
	}
	var data [16]byte
	if !w.readAsync(from, lane, data[:n]) {
		return
	}
	if w.Ref(to, lane, target) == nil {
		return
	}
	if w.CTA.Race != nil {
		w.CTA.Race.MarkAsync(int(target), to.Size)
		if n > 0 {
			w.CTA.watchSource(w.Addr[lane], n)
		}
	}
	w.pendAsync(to, lane, target, w.Addr[lane], n, &data)
	w.landSome(lane)
}

// readAsync reads the source of a copy, which is aligned to the whole size even where only a part of it is read.
func (w *Warp) readAsync(from *check.Access, lane int, data []byte) bool {
	at := w.Addr[lane]
	switch {
	case len(data) == 0:
		return true
	case at&uint64(from.Size-1) != 0:
		w.badAccess(from, lane, ptx.Global, at, memory.MisalignedAddress, "misaligned read", "")
		return false
	case len(data) < from.Size:
		bytes := *from // it escapes, and most copies are whole
		bytes.Size = 1
		from = &bytes
	}
	for i := 0; i < len(data); i += from.Size {
		p := w.Ref(from, lane, at+uint64(i))
		if p == nil {
			return false
		}
		copy(data[i:], p)
	}
	return true
}
