package warp

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/numbers"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// A bulk copy is made by the asynchronous proxy at any moment between its issue and the end that threads wait for: of a
// phase of an mbarrier, or of a group. The simulator makes it at the latest moment, when somebody looks whether it is over;
// with a seed, at a moment that chance chooses.

// bulkCopy is a copy under way.
type bulkCopy struct {
	move func()
	// Completion by an mbarrier of the block whose list the copy is in, which gets so many bytes, or by a group of a lane.
	mbar  bool
	at    int
	bytes int64
	w     *Warp
	lane  int
	group int64
	site  *check.Site
	reads *check.Flight // of a group, of the bytes that it reads; nil where nothing is followed
}

// land makes the copies that are chosen and forgets them.
func (c *CTA) land(chosen func(b *bulkCopy) bool) {
	if len(c.bulk) == 0 {
		return
	}
	var now []*bulkCopy
	c.bulk = slices.DeleteFunc(c.bulk, func(b *bulkCopy) bool {
		if chosen(b) {
			now = append(now, b)
			return true
		}
		return false
	})
	for _, b := range now {
		b.move()
		if c.changed = true; b.mbar {
			c.completeBytes(b)
		} else if b.reads != nil {
			c.early = append(c.early, b)
		}
	}
}

// completeBytes tells an mbarrier of bytes that have arrived.
func (c *CTA) completeBytes(b *bulkCopy) {
	bar := Mbarrier{CTA: c, At: b.at, bytes: c.shared[b.at:][:8]}
	if bar.State = MbarrierState(numbers.Get(bar.bytes, 8)); !bar.State.valid() {
		b.w.CTA.Note(b.w, b.site, 1<<b.lane, check.Synccheck, "the mbarrier of a copy is gone before the copy has ended")
		return
	}
	c.setBytes(b.at, c.tx[b.at]-b.bytes)
	bar.settle(bar.State)
	b.w.brought(b.site, b.lane, &bar)
}

// landAt makes the copies that complete on an mbarrier.
func (c *CTA) landAt(at int) { c.land(func(b *bulkCopy) bool { return b.mbar && b.at == at }) }

// pendingAt is whether copies will complete on an mbarrier.
func (c *CTA) pendingAt(at int) bool {
	return slices.ContainsFunc(c.bulk, func(b *bulkCopy) bool { return b.mbar && b.at == at })
}

// landAll makes all copies of the block.
func (c *CTA) landAll() { c.land(func(*bulkCopy) bool { return true }) }

// landByChance makes some copies, with a seed.
func (c *CTA) landByChance() {
	if c.Launch.Seed != 0 {
		c.land(func(*bulkCopy) bool { return c.random()&3 == 0 })
	}
}

// CommitBulk ends the groups of some lanes.
func (w *Warp) CommitBulk() {
	if w.groups == nil {
		w.groups = new([simt.WarpSize]int64)
	}
	for m := w.Mask; m != 0; m &= m - 1 {
		w.groups[simt.Lowest(m)]++
	}
}

func (w *Warp) groupOf(lane int) int64 {
	if w.groups == nil {
		return 0
	}
	return w.groups[lane]
}

// WaitBulk waits for the groups of some lanes but the newest keep. Those who only wait for what is read may find what is
// written in place too.
func (w *Warp) WaitBulk(keep int64, read bool) {
	w.CTA.land(func(b *bulkCopy) bool {
		over := !b.mbar && b.w == w && w.Mask>>b.lane&1 == 1 && b.group < w.groupOf(b.lane)-keep
		if over && w.CTA.Race != nil {
			w.CTA.Race.See(b.reads, w.Id, 1<<b.lane)
		}
		return over
	})
	w.seeLanded(keep)
}

// seeLanded is for the copies that chance has made before somebody waited for them.
func (w *Warp) seeLanded(keep int64) {
	c := w.CTA
	if c.Race == nil {
		return
	}
	c.early = slices.DeleteFunc(c.early, func(b *bulkCopy) bool {
		over := b.w == w && w.Mask>>b.lane&1 == 1 && b.group < w.groupOf(b.lane)-keep
		if over {
			c.Race.See(b.reads, w.Id, 1<<b.lane)
		}
		return over
	})
}

// finishBulk ends what lanes that exit have under way: a kernel is over when all that it copies is in place.
// Its shared memory is not there for so long.
func (w *Warp) finishBulk(lanes uint32) {
	c := w.CTA
	ends := func(b *bulkCopy) bool {
		is := !b.mbar && b.w == w && lanes>>b.lane&1 == 1
		if is {
			c.Note(w, b.site, 1<<b.lane, check.Synccheck, "its thread exits while the bulk copy may still be reading shared memory: nobody has waited for its group")
		}
		return is
	}
	c.land(ends)
	c.early = slices.DeleteFunc(c.early, ends)
}

// Bulk is a bulk copy as it is issued.
type Bulk struct {
	Site   *check.Site
	Global *check.Access // nil for one between blocks
	Shared *check.Access
	Bar    *check.Access // nil for a group
}

// unit is what addresses and sizes of bulk copies are multiples of.
const unit = 16

// aligned is whether an address of a bulk copy is a multiple of what it has to be.
func (w *Warp) aligned(a *check.Access, lane int, addr, to uint64) bool {
	if addr%to != 0 {
		w.badAccess(a, lane, a.Space, addr, memory.MisalignedAddress, "misaligned "+a.Verb()+" by a bulk copy", "")
		return false
	}
	return true
}

// sharedSpan is n bytes of shared memory, of which a lane of this block makes a copy.
func (w *Warp) sharedSpan(a *check.Access, lane int, addr uint64, n int) (c *CTA, p []byte, off int) {
	if !w.aligned(a, lane, addr, unit) {
		return nil, nil, 0
	}
	c, at := w.inCluster(a, lane, addr)
	if c == nil {
		return nil, nil, 0
	}
	if at > uint64(len(c.shared)) || uint64(len(c.shared))-at < uint64(n) {
		w.badSpan(a, lane, ptx.Shared, at, n, memory.LaunchFailed, sharedSize(c))
		return nil, nil, 0
	}
	if g := simt.FindGap(w.Code.SharedGaps, int64(at), n); g != nil {
		w.badSpan(a, lane, ptx.Shared, at, n, memory.LaunchFailed, g.Describe(int64(at)))
		return nil, nil, 0
	}
	return c, c.shared[at:][:n], int(at)
}

// badSpan is badAccess for n bytes.
func (w *Warp) badSpan(a *check.Access, lane int, space ptx.Space, addr uint64, n int, code memory.Code, alloc string) {
	wide := *a
	wide.Size = n
	w.badAccess(&wide, lane, space, addr, code, "out-of-bounds "+a.Verb(), alloc)
}

// globalSpan is n bytes of global memory after the checks; nil when the kernel was stopped.
func (w *Warp) globalSpan(a *check.Access, lane int, addr uint64, n int) []byte {
	wk := w.CTA.Worker
	al := wk.last
	if al == nil || addr < al.Lo || addr >= al.Hi {
		if al = w.CTA.Launch.Mem.Find(addr); al != nil {
			wk.last = al
		}
	}
	switch {
	case al == nil || al.Hi-addr < uint64(n):
		w.badSpan(a, lane, ptx.Global, addr, n, memory.IllegalAddress, "")
		return nil
	case al.Data == nil:
		w.badAccess(a, lane, ptx.Global, addr, memory.IllegalAddress, a.Verb()+" after free", al.String())
		return nil
	case a.Write && al.Constant:
		w.badAccess(a, lane, ptx.ConstSpace, addr, memory.IllegalAddress, a.Verb()+" to constant memory", al.String())
		return nil
	}
	if al.Tracked() {
		wide := *a
		wide.Size = n
		w.checkInit(&wide, lane, addr, al)
	}
	w.countSpan(a, addr, n)
	if g := w.CTA.global; g != nil {
		g.Bulk(w.CTA.Order, w.Id, lane, a, addr, n)
	}
	return al.Data[addr-al.Lo:][:n]
}

// countSpan counts the sectors of n bytes.
func (w *Warp) countSpan(a *check.Access, addr uint64, n int) {
	if !w.CTA.Launch.Counters {
		return
	}
	t := &w.CTA.Worker.Traffic
	if a.Write {
		t.store(addr, n)
	}
	var sectors []uint64
	for s := addr / sectorBytes; s <= (addr+uint64(n)-1)/sectorBytes; s++ {
		sectors = append(sectors, s)
	}
	t.mark(sectors, w.CTA.bit)
	m := w.CTA.site(a.Site.Id)
	m.Sectors += uint64(len(sectors))
}

// countRequest counts a copy itself, and what it takes of shared memory.
func (w *Warp) countRequest(s *check.Site, n int) {
	if !w.CTA.Launch.Counters {
		return
	}
	m := w.CTA.site(s.Id)
	m.GlobalRequests++
	m.SharedRequests++
	m.Wavefronts += uint64(n+127) / 128
}

// wrote notes that bytes of shared memory have been written.
func (c *CTA) wrote(at, n int) {
	if c.written != nil {
		set(c.written[at:][:n])
	}
}

// readShared checks that bytes of shared memory have been written.
func (w *Warp) readShared(a *check.Access, lane int, c *CTA, at, n int) {
	if c.written == nil {
		return
	}
	wide := *a
	wide.Size = n
	w.checkWrittenIn(c, &wide, lane, at)
}

// flyOut checks and notes that a copy of a lane's group reads n bytes of shared memory of a block, and returns what it is part of.
func (w *Warp) flyOut(b *Bulk, lane int, c *CTA, at, n int) *check.Flight {
	if w.CTA.Race == nil || c != w.CTA {
		return nil
	}
	f := c.Race.NewFlight(b.Site, w.Id)
	read := *b.Shared
	read.Write = false
	c.Race.ReadAsync(f, w.Id, &read, lane, at, n)
	return f
}

// complete issues a copy and says how it ends: on an mbarrier of a block, or with the group of its lane.
func (w *Warp) complete(b *Bulk, lane int, on *CTA, bar Mbarrier, bytes int, reads *check.Flight, move func()) {
	p := &bulkCopy{move: move, w: w, lane: lane, site: b.Site, bytes: int64(bytes), reads: reads}
	to := w.CTA
	if b.Bar != nil {
		p.mbar, p.at, to = true, bar.At, on
	} else {
		p.group = w.groupOf(lane)
	}
	to.bulk = append(to.bulk, p)
	w.CTA.changed = true
}

// mbarrierOf is the mbarrier of a copy whose address is given.
func (w *Warp) mbarrierOf(b *Bulk, lane int, addr uint64) (Mbarrier, bool) {
	if b.Bar == nil {
		return Mbarrier{}, true
	}
	keep := w.Addr[lane]
	w.Addr[lane] = addr
	bar, ok := w.Mbarrier(b.Bar, lane)
	w.Addr[lane] = keep
	return bar, ok
}

// bulkSize checks that of a bulk copy.
func (w *Warp) bulkSize(b *Bulk, lane int, n uint64) bool {
	if n%unit != 0 || n > mostBytes {
		w.CTA.Stop(w, b.Site, lane, memory.IllegalInstruction, check.Memcheck, "a bulk copy of %d bytes; it copies multiples of 16 below 2^20", n)
		return false
	}
	return true
}

// LoadBulk copies n bytes from global to shared memory, of all blocks in the mask where it is not 0.
func (w *Warp) LoadBulk(b *Bulk, lane int, dst, src, n, bar uint64, mask uint32) {
	if !w.bulkSize(b, lane, n) || !w.aligned(b.Global, lane, src, unit) {
		return
	}
	from := w.globalSpanOrNone(b.Global, lane, src, int(n))
	if from == nil {
		return
	}
	w.countRequest(b.Site, int(n))
	w.eachTarget(b, lane, dst, int(n), int(n), bar, mask, func(c *CTA, to []byte, off int) func() {
		return func() {
			copy(to, from)
			c.wrote(off, len(to))
		}
	})
}

// globalSpanOrNone is globalSpan of which nothing is left to find where n is 0.
func (w *Warp) globalSpanOrNone(a *check.Access, lane int, addr uint64, n int) []byte {
	if n == 0 {
		return []byte{}
	}
	return w.globalSpan(a, lane, addr, n)
}

// eachTarget issues a copy to shared memory, of all blocks in the mask where it is not 0: at the same place in each, with the
// mbarrier at the same place. It writes within n bytes and brings so many.
func (w *Warp) eachTarget(b *Bulk, lane int, dst uint64, n, bytes int, bar uint64, mask uint32, move func(c *CTA, to []byte, off int) func()) {
	if mask == 0 {
		w.target(b, lane, dst, n, bytes, bar, nil, move)
		return
	}
	for ; mask != 0 && w.CTA.Fault == nil; mask &= mask - 1 {
		r := uint64(simt.Lowest(mask))
		w.target(b, lane, MapRank(dst, r), n, bytes, MapRank(bar, r), nil, move)
	}
}

func (w *Warp) target(b *Bulk, lane int, dst uint64, n, bytes int, bar uint64, reads *check.Flight, move func(c *CTA, to []byte, off int) func()) {
	c, to, off := w.sharedSpan(b.Shared, lane, dst, n)
	m, ok := Mbarrier{}, c != nil
	if ok {
		w.begun(b.Shared, lane, c)
		m, ok = w.mbarrierOf(b, lane, bar)
	}
	if !ok {
		return
	}
	if m.CTA != c {
		w.CTA.Stop(w, b.Site, lane, memory.IllegalInstruction, check.Synccheck, "the mbarrier of a bulk copy is in another block's shared memory than its destination")
		return
	}
	if c.Race != nil {
		f := m.order().Flight(c.Race, b.Site, w.Id)
		m.order().Reads(reads)
		write := *b.Shared
		write.Write = true
		w.CTA.Race.WriteAsync(c.Race, f, w.Id, &write, lane, off, n)
	}
	w.complete(b, lane, c, m, bytes, reads, move(c, to, off))
}

// StoreBulk copies n bytes from shared to global memory, or combines them with what is there.
func (w *Warp) StoreBulk(b *Bulk, lane int, dst, src, n uint64, combine func(to, from []byte)) {
	if !w.bulkSize(b, lane, n) || !w.aligned(b.Global, lane, dst, unit) {
		return
	}
	c, from, off := w.sharedSpan(b.Shared, lane, src, int(n))
	if c == nil {
		return
	}
	to := w.globalSpanOrNone(b.Global, lane, dst, int(n))
	if to == nil {
		return
	}
	w.readShared(b.Shared, lane, c, off, int(n))
	w.countRequest(b.Site, int(n))
	w.complete(b, lane, nil, Mbarrier{}, 0, w.flyOut(b, lane, c, off, int(n)), func() { combine(to, from) })
}

// SendBulk copies n bytes from shared memory to that of a block of the cluster, or combines them with what is there.
func (w *Warp) SendBulk(b *Bulk, lane int, dst, src, n, bar uint64, combine func(to, from []byte)) {
	if !w.bulkSize(b, lane, n) {
		return
	}
	read := *b.Shared
	read.Write = false
	c, from, at := w.sharedSpan(&read, lane, src, int(n))
	if c == nil {
		return
	}
	w.readShared(&read, lane, c, at, int(n))
	w.countRequest(b.Site, int(n))
	w.target(b, lane, dst, int(n), int(n), bar, w.flyOut(b, lane, c, at, int(n)), func(c *CTA, to []byte, off int) func() {
		return func() {
			combine(to, from)
			c.wrote(off, len(to))
		}
	})
}

// End checks what a block leaves behind whose threads have all exited.
func (c *CTA) End() {
	if c.Fault != nil || !c.Launch.Code.Bulk {
		return
	}
	c.sameProducts()
	for _, b := range c.bulk {
		c.Note(b.w, b.site, 1<<b.lane, check.Synccheck, "the block ends while a bulk copy into its shared memory is under way: nobody has waited for it")
	}
}
