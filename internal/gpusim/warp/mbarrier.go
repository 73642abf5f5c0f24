package warp

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// MbarrierState is those bytes, and what an arrival returns: the pending and the expected arrivals, 20 bits each, the
// number of the phase, and a mark that no other data is likely to have.
type MbarrierState uint64

const (
	mbarrierMost  = 1<<20 - 1
	mbarrierMark  = MbarrierState(0xb6d) << 52
	mbarrierMarks = MbarrierState(0xfff) << 52
)

func newMbarrier(expected, phase uint64) MbarrierState {
	return mbarrierMark | MbarrierState(phase&0xfff<<40|expected<<20|expected)
}

// Pending is how many arrivals the phase waits for.
func (s MbarrierState) Pending() uint64 { return uint64(s & mbarrierMost) }

func (s MbarrierState) expected() uint64 { return uint64(s >> 20 & mbarrierMost) }

// Phase is the number of the phase, which wraps around.
func (s MbarrierState) Phase() uint64 { return uint64(s >> 40 & 0xfff) }

func (s MbarrierState) valid() bool { return s&mbarrierMarks == mbarrierMark }

// arrive takes n arrivals off, for good if they are dropped. The caller has made sure that so many are pending.
func (s MbarrierState) arrive(n uint64, drop bool) (next MbarrierState, over bool) {
	next = s - MbarrierState(n)
	if drop {
		next -= MbarrierState(n << 20)
	}
	if next.Pending() == 0 {
		return newMbarrier(next.expected(), next.Phase()+1), true
	}
	return next, false
}

// OffsetOf is where in shared memory the lane's address is.
func (w *Warp) OffsetOf(lane int) int { return int(w.Addr[lane] & (memory.WindowSize - 1)) }

// Mbarrier is the bytes and the state at a lane's address; nil if the kernel was stopped.
func (w *Warp) Mbarrier(a *check.Access, lane int) ([]byte, MbarrierState) {
	p := w.mbarrierBytes(a, lane, true)
	if p == nil {
		return nil, 0
	}
	s := MbarrierState(simt.Decode(p, 8))
	if !s.valid() {
		w.CTA.Stop(w, a.Site, lane, memory.IllegalInstruction, check.Synccheck, "no mbarrier is initialised at shared address %#x", w.OffsetOf(lane))
		return nil, 0
	}
	if by := w.CTA.MbarrierAt(w.OffsetOf(lane)).Unknown(w.CTA.Race, w.Id, lane); by != nil {
		w.CTA.Note(w, a.Site, 1<<lane, check.Racecheck, fmt.Sprintf("use of an mbarrier without a barrier after its initialisation at PTX line %d", by.Inst.Pos.Line))
	}
	return p, s
}

// mbarrierBytes is memory at the lane's address; quiet accesses are not followed by the checks of data.
func (w *Warp) mbarrierBytes(a *check.Access, lane int, quiet bool) []byte {
	if a.Space == ptx.Generic && memory.SpaceAt(w.Addr[lane]) != ptx.Shared {
		w.badAccess(a, lane, memory.SpaceAt(w.Addr[lane]), w.Addr[lane], memory.IllegalAddress, "an mbarrier outside shared memory", "")
		return nil
	}
	w.Seen = quiet
	defer func() { w.Seen = false }()
	return w.Ref(a, lane, w.Addr[lane])
}

// InitMbarrier makes an mbarrier for so many arrivals at the lane's address.
func (w *Warp) InitMbarrier(a *check.Access, lane int, count uint64) {
	p := w.mbarrierBytes(a, lane, false)
	if p == nil {
		return
	}
	if count < 1 || count > mbarrierMost {
		w.CTA.Stop(w, a.Site, lane, memory.IllegalInstruction, check.Synccheck, "an mbarrier for %d arrivals; there can be 1 to %d", count, mbarrierMost)
		return
	}
	if MbarrierState(simt.Decode(p, 8)).valid() {
		w.CTA.Note(w, a.Site, 1<<lane, check.Synccheck, "an mbarrier is initialised that is in use")
	}
	simt.Encode(p, 8, uint64(newMbarrier(count, 0)))
	w.CTA.MbarrierAt(w.OffsetOf(lane)).Begin(w.CTA.Race, a.Site, w.Id, lane)
}

// ArriveAtMbarrier returns the state before, and whether the phase is over.
func (w *Warp) ArriveAtMbarrier(a *check.Access, lane int, n uint64, drop, relaxed bool) (before MbarrierState, over bool) {
	p, before := w.Mbarrier(a, lane)
	if p == nil {
		return before, false
	}
	if n < 1 || n > before.Pending() {
		w.CTA.Stop(w, a.Site, lane, memory.IllegalInstruction, check.Synccheck, "%d arrivals at an mbarrier whose phase waits for %d more of %d", n, before.Pending(), before.expected())
		return before, false
	}
	next, over := before.arrive(n, drop)
	simt.Encode(p, 8, uint64(next))
	o := w.CTA.MbarrierAt(w.OffsetOf(lane))
	o.Release(w.CTA.Race, w.Id, lane, relaxed)
	if over {
		o.End()
	}
	return before, over
}

// MbarrierAt is what racecheck knows of the mbarrier at an address.
func (c *CTA) MbarrierAt(addr int) *check.MbarrierOrder {
	if c.mbarriers == nil {
		c.mbarriers = map[int]*check.MbarrierOrder{}
	}
	o := c.mbarriers[addr]
	if o == nil {
		o = &check.MbarrierOrder{}
		c.mbarriers[addr] = o
	}
	return o
}
