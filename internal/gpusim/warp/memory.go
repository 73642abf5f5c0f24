package warp

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// Ref is the bytes that a lane accesses, after all checks; nil when the kernel was stopped.
func (w *Warp) Ref(a *check.Access, lane int, addr uint64) []byte {
	space := a.Space
	if space == ptx.Generic {
		space = memory.SpaceAt(addr)
		addr -= memory.Window(space)
	}
	if addr&uint64(a.Size-1) != 0 {
		w.badAccess(a, lane, space, addr, memory.MisalignedAddress, "misaligned "+a.Verb(), "")
		return nil
	}
	switch space {
	case ptx.Shared:
		return w.refShared(a, lane, addr)
	case ptx.Local:
		return w.refBytes(a, lane, space, addr, w.Local[lane*w.Code.Local:][:w.Code.Local])
	case ptx.Param:
		return w.refBytes(a, lane, space, addr, w.CTA.Launch.Params)
	}
	return w.refGlobal(a, lane, addr)
}

func (w *Warp) badAccess(a *check.Access, lane int, space ptx.Space, addr uint64, code memory.Code, msg, alloc string) {
	c := w.CTA
	if c.Fault != nil {
		return
	}
	c.Stop(w, a.Site, lane, code, check.Memcheck, "%s", msg)
	f := &c.Fault.Finding
	if space == ptx.Shared {
		addr = c.plain(addr)
	}
	f.Space, f.Addr, f.Size, f.Alloc = space.String(), addr, a.Size, alloc
	if space == ptx.Global && alloc == "" {
		f.Alloc = c.Launch.Mem.Nearest(addr)
	}
}

// refBytes is an access to local memory or parameters.
func (w *Warp) refBytes(a *check.Access, lane int, space ptx.Space, addr uint64, mem []byte) []byte {
	if addr > uint64(len(mem)) || uint64(len(mem))-addr < uint64(a.Size) || space == ptx.Param && a.Write {
		w.badAccess(a, lane, space, addr, memory.LaunchFailed, "out-of-bounds "+a.Verb(), "")
		return nil
	}
	if space == ptx.Local {
		if g := simt.FindGap(w.Code.LocalGaps, int64(addr), a.Size); g != nil {
			w.badAccess(a, lane, space, addr, memory.LaunchFailed, "out-of-bounds "+a.Verb(), g.Describe(int64(addr)))
			return nil
		}
	}
	return mem[addr:][:a.Size]
}

// plain is a shared address as it is without gaps.
func (c *CTA) plain(addr uint64) uint64 { return c.Launch.Code.plain(addr) }

// Within is what mapa made an address of: that in its block, without gaps, and the block's rank.
func (k *Code) Within(addr uint64) (off, rank uint64) {
	return k.plain(addr & (memory.WindowSize - 1)), addr>>RankShift - 1
}

func (k *Code) plain(addr uint64) uint64 {
	for _, g := range slices.Backward(k.SharedGaps) {
		if int64(addr) >= g.Hi {
			return addr - uint64(g.Shift)
		}
	}
	return addr
}

func (w *Warp) refGlobal(a *check.Access, lane int, addr uint64) []byte {
	wk := w.CTA.Worker
	al := wk.last
	if al == nil || addr < al.Lo || addr >= al.Hi {
		if al = w.CTA.Launch.Mem.Find(addr); al != nil {
			wk.last = al
		}
	}
	switch {
	case al == nil || al.Hi-addr < uint64(a.Size):
		w.badAccess(a, lane, ptx.Global, addr, memory.IllegalAddress, "out-of-bounds "+a.Verb(), "")
		return nil
	case al.Data == nil:
		w.badAccess(a, lane, ptx.Global, addr, memory.IllegalAddress, a.Verb()+" after free", al.String())
		return nil
	}
	if a.Write && al.Constant {
		w.badAccess(a, lane, ptx.ConstSpace, addr, memory.IllegalAddress, a.Verb()+" to constant memory", al.String())
		return nil
	}
	if w.Seen {
		return al.Data[addr-al.Lo:][:a.Size]
	}
	if al.Tracked() {
		w.checkInit(a, lane, addr, al)
	}
	if w.CTA.Launch.Stale.Follows(a) {
		w.CTA.Launch.Stale.Touch(w.CTA.Index, w.Id*simt.WarpSize+uint32(lane), a, al, addr)
	}
	if a.Write && len(w.CTA.sources) > 0 {
		w.checkSource(a, lane, al, addr)
	}
	if g := w.CTA.global; g != nil {
		g.Lane(w.CTA.Order, w.Id, lane, a, addr)
	}
	return al.Data[addr-al.Lo:][:a.Size]
}

// checkInit follows which bytes of an allocation have been written.
func (w *Warp) checkInit(a *check.Access, lane int, addr uint64, al *memory.Allocation) {
	written := al.Init[addr-al.Lo:][:a.Size]
	if !a.Write && allSet(written) {
		return
	}
	if !a.Write || a.Atomic {
		if i := unwritten(written, a.Used); i >= 0 {
			w.CTA.noteAt(w, a.Site, lane, check.Initcheck, "read of memory that was never written", "global", addr, a.Size, al.String())
		}
	}
	if a.Write {
		for i := range written {
			written[i] = 1
		}
	}
}

// unwritten is the first byte that matters and was not written, or -1.
func unwritten(written []byte, used uint32) int {
	for i, b := range written {
		if b == 0 && (used == 0 || used>>i&1 == 1) {
			return i
		}
	}
	return -1
}

// talks is whether an access to shared memory may order others, where these are looked at but not it.
func (c *CTA) talks(a *check.Access) bool { return a.Strong && c.Order != nil && c.Race == nil }

func (w *Warp) refShared(a *check.Access, lane int, addr uint64) []byte {
	c := w.CTA
	if addr >= memory.WindowSize {
		return w.refRemote(a, lane, addr)
	}
	if addr > uint64(len(c.shared)) || uint64(len(c.shared))-addr < uint64(a.Size) {
		w.badAccess(a, lane, ptx.Shared, addr, memory.LaunchFailed, "out-of-bounds "+a.Verb(), sharedSize(c))
		return nil
	}
	if g := simt.FindGap(w.Code.SharedGaps, int64(addr), a.Size); g != nil {
		w.badAccess(a, lane, ptx.Shared, addr, memory.LaunchFailed, "out-of-bounds "+a.Verb(), g.Describe(int64(addr)))
		return nil
	}
	if c.Race != nil && !w.Seen {
		c.Race.Check(w.Id, &w.Data, a, lane, int(addr))
	} else if c.talks(a) && !w.Seen {
		c.Order.Talk(w.Id, a, lane, int(addr))
	}
	if c.written != nil && !w.Seen {
		w.checkWritten(a, lane, int(addr))
	}
	return c.shared[addr:][:a.Size]
}
