package warp

import (
	"encoding/binary"
	"slices"

	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/lanes"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

// Where accesses are checked or counted, the assembly still moves the data. A step in Go looks at the access of the whole
// warp: before a store (watch), whose data matters; after what the assembly has found to lie in one place and whose offsets
// it has left in the frame (review).

// reviewed counts the access at the offsets in the frame from a base on, and returns them.
func (w *Warp) reviewed(a *check.Access, base uint64, lanes int) []uint32 {
	off := w.CTA.Worker.frame.Off[:lanes]
	if w.CTA.Launch.Counters {
		for i, at := range off {
			w.Addr[i] = base + uint64(at)
		}
		w.Mask = simt.Full >> (simt.WarpSize - lanes)
		w.CountAccess(a)
		w.Mask = simt.Full
	}
	return off
}

// ReviewShared checks the loads of 16 bytes from shared memory that the first lanes have just done.
func (w *Warp) ReviewShared(a *check.Access, lanes int) {
	c := w.CTA
	off := w.reviewed(a, 0, lanes)
	if w.outside(a, off) {
		return
	}
	rest := simt.Full
	if c.Race != nil {
		rest = c.Race.ReadVectors(w.Id, a, off) // what was written as a whole is known
	}
	for i, at := range off {
		if rest>>i&1 == 0 {
			continue
		}
		if c.Race != nil {
			c.Race.Check(w.Id, &w.Data, a, i, int(at))
		}
		if c.written != nil && !vectorSet((*[check.VectorSize]byte)(c.written[at:])) {
			w.checkWritten(a, i, int(at))
		}
	}
}

// ReviewGlobal checks the loads of 16 bytes from global memory that the warp has just done.
func (w *Warp) ReviewGlobal(a *check.Access) {
	al := w.CTA.Worker.regions[a.Region].Alloc
	for i, at := range w.reviewed(a, al.Lo, simt.WarpSize) {
		w.Off[i], w.Addr[i] = int(at), al.Lo+uint64(at)
	}
	w.follow(a, al)
}

// ReviewCopy checks the copy that the assembly has just begun.
func (w *Warp) ReviewCopy(to, from *check.Access) {
	c := w.CTA
	p := &w.async.List[w.async.Copies-1]
	if c.Launch.Counters {
		for i, at := range &p.At {
			w.Addr[i] = uint64(at)
		}
		w.CountAccess(to)
	}
	al := c.Worker.regions[from.Region].Alloc
	off := w.reviewed(from, al.Lo, simt.WarpSize)
	if al.Tracked() || c.Race != nil || c.global != nil {
		for i, at := range off {
			w.Off[i], w.Addr[i] = int(at), al.Lo+uint64(at)
		}
		w.follow(from, al)
	}
	p.Access = int32(to.Id)
	if w.outside(to, p.At[:]) {
		return
	}
	if c.written != nil {
		for _, at := range &p.At {
			set(c.written[at:][:check.VectorSize])
		}
	}
	if c.Race == nil {
		return
	}
	for m := c.Race.CopyVectors(w.Id, to, &p.At); m != 0; m &= m - 1 {
		i := simt.Lowest(m)
		c.Race.Check(w.Id, &w.Data, to, i, int(p.At[i]))
		c.Race.MarkAsync(int(p.At[i]), check.VectorSize)
	}
	c.Worker.last = al
	w.sourceOf(p)
}

// sourceOf records the source of a copy by the whole warp, at the addresses in w.Addr.
func (w *Warp) sourceOf(p *lanes.AsyncCopy) {
	p.From, p.Read = w.Addr, wholeCopy
	w.CTA.watchSource(slices.Min(w.Addr[:]), 0)
	w.CTA.watchSource(slices.Max(w.Addr[:]), check.VectorSize)
}

// one looks at the active lanes one by one, up to a fault.
func (w *Warp) one(a *check.Access) {
	for m := w.Mask; m != 0; m &= m - 1 {
		if i := simt.Lowest(m); w.Ref(a, i, w.Addr[i]) == nil {
			return
		}
	}
}

// WatchShared checks accesses to shared memory.
func (w *Warp) WatchShared(a *check.Access, fill func(w *Warp, lane int)) {
	c := w.CTA
	if len(c.shared) < a.Size || !w.offsets(0, uint64(len(c.shared)-a.Size), uint64(a.Size-1)) || w.inGap(a.Size) {
		w.one(a)
		return
	}
	if c.Race == nil && c.written == nil && !c.talks(a) {
		return
	}
	for m := w.Mask; m != 0; m &= m - 1 {
		i := simt.Lowest(m)
		if fill != nil {
			fill(w, i)
		}
		if c.Race != nil {
			c.Race.Check(w.Id, &w.Data, a, i, w.Off[i])
		} else if c.talks(a) {
			c.Order.Talk(w.Id, a, i, w.Off[i])
		}
		if c.written != nil {
			w.checkWritten(a, i, w.Off[i])
		}
		if fill != nil { // the next lane may write the same
			copy(c.shared[w.Off[i]:], w.Data[:a.Size])
		}
	}
}

// inGap is whether an active lane's access, at w.Off, touches a gap between arrays.
func (w *Warp) inGap(size int) bool {
	gaps := w.Code.SharedGaps
	if len(gaps) == 0 {
		return false
	}
	for m := w.Mask; m != 0; m &= m - 1 {
		if simt.FindGap(gaps, int64(w.Off[simt.Lowest(m)]), size) != nil {
			return true
		}
	}
	return false
}

// outside stops the kernel if one of the first lanes accesses 16 bytes in a gap between arrays, by the assembly.
func (w *Warp) outside(a *check.Access, off []uint32) bool {
	if len(w.Code.SharedGaps) == 0 {
		return false
	}
	for i, at := range off {
		if simt.FindGap(w.Code.SharedGaps, int64(at), a.Size) != nil {
			w.refShared(a, i, uint64(at))
			return true
		}
	}
	return false
}

// checkWritten follows which bytes of shared memory have been written.
func (w *Warp) checkWritten(a *check.Access, lane, at int) {
	w.checkWrittenIn(w.CTA, a, lane, at)
}

// checkWrittenIn is checkWritten for the shared memory of a block of the cluster.
func (w *Warp) checkWrittenIn(c *CTA, a *check.Access, lane, at int) {
	written := c.written[at:][:a.Size]
	if !a.Write && a.Used == 0 && allSet(written) {
		return
	}
	if (!a.Write || a.Atomic) && unwritten(written, a.Used) >= 0 {
		w.CTA.noteAt(w, a.Site, lane, check.Initcheck, "read of shared memory that was never written", "shared", uint64(at), a.Size, sharedSize(c))
	}
	if a.Write {
		set(written)
	}
}

// ones is 8 bytes that have been written.
const ones = 0x0101010101010101

// vectorSet is allSet for a vector.
func vectorSet(p *[check.VectorSize]byte) bool {
	return binary.LittleEndian.Uint64(p[:])&binary.LittleEndian.Uint64(p[8:]) == ones
}

// allSet is whether all bytes are 1; false where that is not easily seen.
func allSet(p []byte) bool {
	for len(p) >= 8 {
		if binary.LittleEndian.Uint64(p) != ones {
			return false
		}
		p = p[8:]
	}
	for _, b := range p {
		if b != 1 {
			return false
		}
	}
	return true
}

func set(p []byte) {
	for len(p) >= 8 {
		binary.LittleEndian.PutUint64(p, ones)
		p = p[8:]
	}
	for i := range p {
		p[i] = 1
	}
}

// WatchGlobal checks accesses to global memory.
func (w *Warp) WatchGlobal(a *check.Access) {
	c := w.CTA
	first := w.Addr[simt.Lowest(w.Mask)]
	al := c.Worker.last
	if al == nil || first < al.Lo || first >= al.Hi {
		al = c.Launch.Mem.Find(first)
	}
	if al == nil || a.Write && al.Constant || len(al.Data) < a.Size || !w.offsets(al.Lo, uint64(len(al.Data)-a.Size), uint64(a.Size-1)) {
		w.one(a)
		return
	}
	c.Worker.last = al
	c.Worker.remember(a, al)
	w.follow(a, al)
}

// follow checks accesses in an allocation, at the addresses in w.Addr and offsets in w.Off.
func (w *Warp) follow(a *check.Access, al *memory.Allocation) {
	c := w.CTA
	if al.Tracked() {
		w.watchInit(a, al)
	}
	if c.global != nil {
		c.global.Warp(c.Order, w.Id, w.Mask, a, &w.Addr)
	}
	stale, source := c.Launch.Stale.Follows(a), a.Write && c.copied(al)
	if !stale && !source {
		return
	}
	for m := w.Mask; m != 0; m &= m - 1 {
		i := simt.Lowest(m)
		if stale {
			c.Launch.Stale.Touch(c.Index, w.Id*simt.WarpSize+uint32(i), a, al, w.Addr[i])
		}
		if source {
			w.checkSource(a, i, al, w.Addr[i])
		}
	}
}

// watchInit is checkInit for the active lanes, whose offsets are in w.Off; of those whose accesses follow each other, at
// once.
func (w *Warp) watchInit(a *check.Access, al *memory.Allocation) {
	if w.Mask != simt.Full || a.Used != 0 || a.Atomic {
		for m := w.Mask; m != 0; m &= m - 1 {
			i := simt.Lowest(m)
			w.checkInit(a, i, w.Addr[i], al)
		}
		return
	}
	for i := 0; i < simt.WarpSize; {
		from, first := i, w.Off[i]
		for i++; i < simt.WarpSize && w.Off[i] == w.Off[i-1]+a.Size; i++ {
		}
		span := al.Init[first:][:(i-from)*a.Size]
		switch {
		case a.Write:
			set(span)
		case !allSet(span):
			for ; from < i; from++ {
				w.checkInit(a, from, w.Addr[from], al)
			}
		}
	}
}

// wholeCopy is that each lane of a copy reads 16 bytes.
var wholeCopy = [simt.WarpSize]uint8(slices.Repeat([]uint8{16}, simt.WarpSize))
