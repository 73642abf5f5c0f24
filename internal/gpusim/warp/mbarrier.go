package warp

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/numbers"
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
func (s MbarrierState) arrive(n uint64, drop bool) MbarrierState {
	s -= MbarrierState(n)
	if drop {
		s -= MbarrierState(n << 20)
	}
	return s
}

// Mbarrier is one in the shared memory of a block of the cluster. The bytes that its phase waits for are beside it, since its
// own 8 bytes have no room for them.
type Mbarrier struct {
	CTA   *CTA
	At    int
	bytes []byte
	State MbarrierState
}

// order is what racecheck knows of the mbarrier.
func (b *Mbarrier) order() *check.MbarrierOrder { return b.CTA.mbarrierAt(b.At) }

// settle stores a state, or the next phase where all arrivals and bytes are there. It reports whether the phase is over.
func (b *Mbarrier) settle(s MbarrierState) (over bool) {
	if over = s.Pending() == 0 && b.CTA.tx[b.At] == 0; over {
		s = newMbarrier(s.expected(), s.Phase()+1)
		if b.CTA.Order != nil {
			b.order().End()
		}
	}
	numbers.Put(b.bytes, 8, uint64(s))
	b.State, b.CTA.changed = s, true
	return over
}

// Mbarrier finds the one at a lane's address; false if the kernel was stopped.
func (w *Warp) Mbarrier(a *check.Access, lane int) (b Mbarrier, ok bool) {
	if !w.mbarrierBytes(a, lane, true, &b) {
		return b, false
	}
	if b.State = MbarrierState(numbers.Get(b.bytes, 8)); !b.State.valid() {
		w.CTA.Stop(w, a.Site, lane, memory.IllegalInstruction, check.Synccheck, "no mbarrier is initialised at shared address %#x", b.At)
		return b, false
	}
	if w.CTA.Order == nil {
		return b, true
	}
	if by := b.order().Unknown(b.CTA.Order, w.CTA.Order, w.Id, lane); by != nil {
		w.CTA.Note(w, a.Site, 1<<lane, check.Racecheck, fmt.Sprintf("use of an mbarrier without a barrier after its initialisation at PTX line %d", by.Inst.Pos.Line))
	}
	return b, true
}

// mbarrierBytes is memory at the lane's address; quiet accesses are not followed by the checks of data.
func (w *Warp) mbarrierBytes(a *check.Access, lane int, quiet bool, b *Mbarrier) bool {
	addr := w.Addr[lane]
	if a.Space == ptx.Generic {
		if memory.SpaceAt(addr) != ptx.Shared {
			w.badAccess(a, lane, memory.SpaceAt(addr), addr, memory.IllegalAddress, "an mbarrier outside shared memory", "")
			return false
		}
		addr -= memory.Window(ptx.Shared)
	}
	w.Seen = quiet
	defer func() { w.Seen = false }()
	if b.bytes = w.Ref(a, lane, w.Addr[lane]); b.bytes == nil {
		return false
	}
	c, off := w.inCluster(a, lane, addr)
	b.CTA, b.At = c, int(off)
	return true
}

// InitMbarrier makes an mbarrier for so many arrivals at the lane's address.
func (w *Warp) InitMbarrier(a *check.Access, lane int, count uint64) {
	var b Mbarrier
	if !w.mbarrierBytes(a, lane, false, &b) {
		return
	}
	if count < 1 || count > mbarrierMost {
		w.CTA.Stop(w, a.Site, lane, memory.IllegalInstruction, check.Synccheck, "an mbarrier for %d arrivals; there can be 1 to %d", count, mbarrierMost)
		return
	}
	if MbarrierState(numbers.Get(b.bytes, 8)).valid() {
		w.CTA.Note(w, a.Site, 1<<lane, check.Synccheck, "an mbarrier is initialised that is in use")
	}
	numbers.Put(b.bytes, 8, uint64(newMbarrier(count, 0)))
	b.CTA.setBytes(b.At, 0)
	if b.CTA.Order != nil {
		b.order().Begin(b.CTA.Order, a.Site, w.Id, lane)
	}
}

// InvalMbarrier ends the one at the lane's address.
func (w *Warp) InvalMbarrier(a *check.Access, lane int) {
	b, ok := w.Mbarrier(a, lane)
	if !ok {
		return
	}
	if b.CTA.pendingAt(b.At) {
		w.CTA.Note(w, a.Site, 1<<lane, check.Synccheck, "an mbarrier ends that copies under way will complete on")
	}
	numbers.Put(b.bytes, 8, 0)
}

// ArriveAtMbarrier returns the state before, and whether the phase is over.
func (w *Warp) ArriveAtMbarrier(a *check.Access, lane int, n uint64, drop, relaxed bool) (before MbarrierState, over bool) {
	b, ok := w.Mbarrier(a, lane)
	if !ok {
		return before, false
	}
	before = b.State
	if n < 1 || n > before.Pending() {
		w.CTA.Stop(w, a.Site, lane, memory.IllegalInstruction, check.Synccheck, "%d arrivals at an mbarrier whose phase waits for %d more of %d%s", n, before.Pending(), before.expected(), b.missingBytes())
		return before, false
	}
	w.release(a, &b, lane, relaxed)
	over = b.settle(before.arrive(n, drop))
	w.brought(a.Site, lane, &b)
	return before, over
}

// ArriveExpecting is an arrival that first makes the phase wait for bytes.
func (w *Warp) ArriveExpecting(a *check.Access, lane int, bytes uint64, drop, relaxed bool) (before MbarrierState) {
	if !w.ExpectBytes(a, lane, int64(bytes)) {
		return 0
	}
	before, _ = w.ArriveAtMbarrier(a, lane, 1, drop, relaxed)
	return before
}

// release is what an arrival tells those who wait.
func (w *Warp) release(a *check.Access, b *Mbarrier, lane int, relaxed bool) {
	if b.CTA.Order == nil {
		return
	}
	if b.CTA == w.CTA {
		b.order().Release(w.CTA.Order, w.Id, lane, relaxed)
	} else {
		relaxed = relaxed || a.Scope < check.OfCluster
		if !relaxed {
			w.CTA.Order.Visit(b.CTA.Order, w.Id, a, lane)
		}
		b.order().ReleaseFrom(b.CTA.Order, w.CTA.Order, w.Id, lane, relaxed)
	}
}

// KnowAtMbarrier tells those who wait what a lane did, without an arrival.
func (w *Warp) KnowAtMbarrier(a *check.Access, lane int) {
	if b, ok := w.Mbarrier(a, lane); ok {
		w.release(a, &b, lane, false)
	}
}

// Yield ends the turn of a warp that waits for others, in the assembly too.
func (w *Warp) Yield() {
	w.yield = true
	w.CTA.Worker.frame.Left = 0
}

// mostBytes is how many bytes a phase may wait for.
const mostBytes = 1<<20 - 1

// ExpectBytes makes the phase of the mbarrier at the lane's address wait for bytes, or for fewer.
func (w *Warp) ExpectBytes(a *check.Access, lane int, n int64) bool {
	b, ok := w.Mbarrier(a, lane)
	if !ok {
		return false
	}
	if total := b.CTA.tx[b.At] + n; total > mostBytes || total < -mostBytes {
		w.CTA.Stop(w, a.Site, lane, memory.IllegalInstruction, check.Synccheck, "an mbarrier that waits for %d bytes; it counts up to %d", total, mostBytes)
		return false
	}
	b.CTA.setBytes(b.At, b.CTA.tx[b.At]+n)
	if n < 0 {
		b.settle(b.State)
		w.brought(a.Site, lane, &b)
	}
	return true
}

// brought looks whether copies have brought more than a phase expects whose arrivals are all there.
func (w *Warp) brought(s *check.Site, lane int, b *Mbarrier) {
	if tx := b.CTA.tx[b.At]; tx < 0 && b.State.Pending() == 0 {
		w.CTA.Note(w, s, 1<<lane, check.Synccheck, fmt.Sprintf("all arrivals of a phase of the mbarrier at shared address %#x are there, and copies have brought %d bytes more than it expects: it never ends", b.At, -tx))
	}
}

// missingBytes is what the phase waits for beside arrivals.
func (b *Mbarrier) missingBytes() string {
	switch tx := b.CTA.tx[b.At]; {
	case tx > 0:
		return fmt.Sprintf(", and for %d bytes", tx)
	case tx < 0:
		return fmt.Sprintf(", and has %d bytes more than it expects", -tx)
	}
	return ""
}

func (c *CTA) setBytes(at int, n int64) {
	if c.tx == nil {
		if n == 0 {
			return
		}
		c.tx = map[int]int64{}
	}
	if n == 0 {
		delete(c.tx, at)
	} else {
		c.tx[at] = n
	}
}

// stuck is the last wait for an mbarrier that was not over.
type stuck struct {
	w    *Warp
	a    *check.Access
	lane int
	b    Mbarrier
}

// TestMbarrier is whether the phase that over tells from others is over, for a lane that waits for it.
func (w *Warp) TestMbarrier(a *check.Access, lane int, relaxed bool, over func(s MbarrierState) bool) (is, ok bool) {
	b, ok := w.Mbarrier(a, lane)
	if !ok {
		return false, false
	}
	if !over(b.State) {
		b.CTA.landAt(b.At)
		b.State = MbarrierState(numbers.Get(b.bytes, 8))
	}
	if !over(b.State) {
		w.CTA.stuck = stuck{w, a, lane, b}
		return false, true
	}
	if w.CTA.Order != nil {
		b.order().Acquire(w.CTA.Order, w.Id, lane, relaxed)
	}
	return true, true
}

// String is what is waited for.
func (s *stuck) String() string {
	now := MbarrierState(numbers.Get(s.b.bytes, 8))
	return fmt.Sprintf("threads wait for the mbarrier at shared address %#x, whose phase waits for %d more arrivals of %d%s", s.b.At, now.Pending(), now.expected(), s.b.missingBytes())
}

// mbarrierAt is what racecheck knows of the mbarrier at an address.
func (c *CTA) mbarrierAt(addr int) *check.MbarrierOrder {
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
