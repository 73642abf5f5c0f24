package gpusim

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// An mbarrier is 8 bytes of shared memory that threads arrive at and test: its phase is over when as many arrivals as were
// expected have come, and the next one begins. cuda::barrier and cuda::pipeline are made of it.

// mbarrierState is those bytes, and what an arrival returns: the pending and the expected arrivals, 20 bits each, the
// number of the phase, and a mark that no other data is likely to have.
type mbarrierState uint64

const (
	mbarrierMost  = 1<<20 - 1
	mbarrierMark  = mbarrierState(0xb6d) << 52
	mbarrierMarks = mbarrierState(0xfff) << 52
)

func newMbarrier(expected, phase uint64) mbarrierState {
	return mbarrierMark | mbarrierState(phase&0xfff<<40|expected<<20|expected)
}

func (s mbarrierState) pending() uint64  { return uint64(s & mbarrierMost) }
func (s mbarrierState) expected() uint64 { return uint64(s >> 20 & mbarrierMost) }
func (s mbarrierState) phase() uint64    { return uint64(s >> 40 & 0xfff) }
func (s mbarrierState) valid() bool      { return s&mbarrierMarks == mbarrierMark }

// arrive takes n arrivals off, for good if they are dropped. The caller has made sure that so many are pending.
func (s mbarrierState) arrive(n uint64, drop bool) (next mbarrierState, over bool) {
	next = s - mbarrierState(n)
	if drop {
		next -= mbarrierState(n << 20)
	}
	if next.pending() == 0 {
		return newMbarrier(next.expected(), next.phase()+1), true
	}
	return next, false
}

func (e *emitter) mbarrier() op {
	e.check("init inval arrive arrive_drop test_wait try_wait parity pending_count noComplete release acquire relaxed cta shared shared::cta")
	if e.err != nil {
		return nil
	}
	switch {
	case e.in.Has("pending_count"):
		e.arity(2, 2)
		if e.err != nil {
			return nil
		}
		s, d := e.src(e.in.Args[1], ptx.U64), e.dst(e.in.Args[0], ptx.B32)
		return generic(d, [4]slot{s, s, s, s}, func(a, _, _, _ uint64) uint64 { return mbarrierState(a).pending() })
	case e.in.Has("test_wait"), e.in.Has("try_wait"):
		return e.mbarrierWait()
	case e.in.Has("arrive"), e.in.Has("arrive_drop"):
		return e.mbarrierArrive()
	}
	e.arity(1, 2)
	a, addr := e.mbarrierAt(0)
	if e.in.Has("inval") {
		return e.eachLane(addr, func(w *warp, lane int) {
			if p, _ := w.mbarrier(a, lane); p != nil {
				encode(p, 8, 0)
			}
		})
	}
	a.write = true
	count := e.src(e.arg(1), ptx.U32)
	return e.eachLane(addr, func(w *warp, lane int) { w.initMbarrier(a, lane, w.get(count, lane)) })
}

// mbarrierAt compiles the address in operand i.
func (e *emitter) mbarrierAt(i int) (*access, op) {
	a, addr := e.memory(e.arg(i), 8, false)
	a.strong, a.atomic = false, false // what an mbarrier puts in order is kept in mbarrierOrder
	if a.space != ptx.Shared && a.space != ptx.Generic {
		e.fail("an mbarrier is in shared memory")
	}
	return a, addr
}

func (e *emitter) eachLane(addr op, f func(w *warp, lane int)) op {
	return func(w *warp) {
		addr(w)
		for m := w.mask; m != 0 && w.cta.fault == nil; m &= m - 1 {
			f(w, lowest(m))
		}
	}
}

func (e *emitter) mbarrierArrive() op {
	e.arity(2, 3)
	a, addr := e.mbarrierAt(1)
	count := e.constant(1, ptx.U32)
	if len(e.in.Args) == 3 {
		count = e.src(e.in.Args[2], ptx.U32)
	}
	d := e.dst(e.arg(0), ptx.B64)
	drop, last, relaxed := e.in.Has("arrive_drop"), !e.in.Has("noComplete"), e.in.Has("relaxed")
	return e.eachLane(addr, func(w *warp, lane int) {
		before, over := w.arriveAtMbarrier(a, lane, w.get(count, lane), drop, relaxed)
		if over && !last {
			w.cta.note(w, a.site, 1<<lane, Synccheck, "an arrival with .noComplete ends the phase of the mbarrier")
		}
		w.set(d, lane, uint64(before))
	})
}

// mbarrierWait tests whether the phase of a state, or that of a parity, is over.
func (e *emitter) mbarrierWait() op {
	e.arity(3, 4)
	a, addr := e.mbarrierAt(1)
	byParity, relaxed := e.in.Has("parity"), e.in.Has("relaxed")
	t := ptx.U64
	if byParity {
		t = ptx.U32
	}
	which, d := e.src(e.arg(2), t), e.dst(e.arg(0), ptx.Pred)
	return func(w *warp) {
		addr(w)
		var over uint32
		for m := w.mask; m != 0; m &= m - 1 {
			lane := lowest(m)
			p, s := w.mbarrier(a, lane)
			if p == nil {
				return
			}
			v := w.get(which, lane)
			if byParity && s.phase()&1 != v&1 || !byParity && s.phase() != mbarrierState(v).phase() {
				over |= 1 << lane
				w.cta.mbarrierAt(w.offsetOf(lane)).acquire(w, lane, relaxed)
			}
		}
		w.setPred(d.i, over)
	}
}

// offsetOf is where in shared memory the lane's address is.
func (w *warp) offsetOf(lane int) int { return int(w.addr[lane] & (windowSize - 1)) }

// mbarrier is the bytes and the state at a lane's address; nil if the kernel was stopped.
func (w *warp) mbarrier(a *access, lane int) ([]byte, mbarrierState) {
	p := w.mbarrierBytes(a, lane, true)
	if p == nil {
		return nil, 0
	}
	s := mbarrierState(decode(p, 8))
	if !s.valid() {
		w.cta.stop(w, a.site, lane, IllegalInstruction, Synccheck, "no mbarrier is initialised at shared address %#x", w.offsetOf(lane))
		return nil, 0
	}
	if o := w.cta.mbarrierAt(w.offsetOf(lane)); w.cta.race != nil && o.by != nil && !w.cta.race.ordered(w, lane, o.thread, o.at) {
		w.cta.note(w, a.site, 1<<lane, Racecheck, fmt.Sprintf("use of an mbarrier without a barrier after its initialisation at PTX line %d", o.by.in.Pos.Line))
	}
	return p, s
}

// mbarrierBytes is memory at the lane's address; quiet accesses are not followed by the checks of data.
func (w *warp) mbarrierBytes(a *access, lane int, quiet bool) []byte {
	if a.space == ptx.Generic && spaceAt(w.addr[lane]) != ptx.Shared {
		w.badAccess(a, lane, spaceAt(w.addr[lane]), w.addr[lane], IllegalAddress, "an mbarrier outside shared memory", "")
		return nil
	}
	w.seen = quiet
	defer func() { w.seen = false }()
	return w.ref(a, lane, w.addr[lane])
}

func (w *warp) initMbarrier(a *access, lane int, count uint64) {
	p := w.mbarrierBytes(a, lane, false)
	if p == nil {
		return
	}
	if count < 1 || count > mbarrierMost {
		w.cta.stop(w, a.site, lane, IllegalInstruction, Synccheck, "an mbarrier for %d arrivals; there can be 1 to %d", count, mbarrierMost)
		return
	}
	if mbarrierState(decode(p, 8)).valid() {
		w.cta.note(w, a.site, 1<<lane, Synccheck, "an mbarrier is initialised that is in use")
	}
	encode(p, 8, uint64(newMbarrier(count, 0)))
	o := w.cta.mbarrierAt(w.offsetOf(lane))
	*o = mbarrierOrder{}
	if r := w.cta.race; r != nil {
		o.by, o.thread, o.at = a.site, uint16(w.id*warpSize+uint32(lane)), r.clock[w.id][w.id]
	}
}

// arriveAtMbarrier returns the state before, and whether the phase is over.
func (w *warp) arriveAtMbarrier(a *access, lane int, n uint64, drop, relaxed bool) (before mbarrierState, over bool) {
	p, before := w.mbarrier(a, lane)
	if p == nil {
		return before, false
	}
	if n < 1 || n > before.pending() {
		w.cta.stop(w, a.site, lane, IllegalInstruction, Synccheck, "%d arrivals at an mbarrier whose phase waits for %d more of %d", n, before.pending(), before.expected())
		return before, false
	}
	next, over := before.arrive(n, drop)
	encode(p, 8, uint64(next))
	o := w.cta.mbarrierAt(w.offsetOf(lane))
	o.release(w, lane, relaxed)
	if over {
		o.end()
	}
	return before, over
}

// asyncArrive is cp.async.mbarrier.arrive: an arrival when the lane's copies are over. They end here, which is one of the
// moments at which hardware may end them. Without .noinc the phase waits for one more arrival, which this is.
func (e *emitter) asyncArrive() op {
	e.check("async mbarrier arrive noinc shared shared::cta")
	e.arity(1, 1)
	a, addr := e.mbarrierAt(0)
	counted := e.in.Has("noinc")
	return func(w *warp) {
		addr(w)
		w.finishAsync(w.mask, -1)
		for m := w.mask; m != 0 && w.cta.fault == nil; m &= m - 1 {
			lane := lowest(m)
			if counted {
				w.arriveAtMbarrier(a, lane, 1, false, false)
			} else if p, _ := w.mbarrier(a, lane); p != nil {
				w.cta.mbarrierAt(w.offsetOf(lane)).release(w, lane, false)
			}
		}
	}
}

// mbarrierOrder is what racecheck knows of an mbarrier: what those threads had done that arrived in this phase, and what all
// had who arrived in phases that are over; and who initialised it.
type mbarrierOrder struct {
	arrived, over view // arrived is the mbarrier's own

	by     *site
	thread uint16
	at     uint32
}

func (c *cta) mbarrierAt(addr int) *mbarrierOrder {
	if c.mbarriers == nil {
		c.mbarriers = map[int]*mbarrierOrder{}
	}
	o := c.mbarriers[addr]
	if o == nil {
		o = &mbarrierOrder{}
		c.mbarriers[addr] = o
	}
	return o
}

// release adds what a lane knows to what waiting for the phase tells: all of it, or by a relaxed arrival what it knew at its
// last fence. What other lanes of its warp did is not part of it, unless bar.warp.sync or the like told the lane.
func (o *mbarrierOrder) release(w *warp, lane int, relaxed bool) {
	r := w.cta.race
	if r == nil {
		return
	}
	r.any = true
	if o.arrived == nil {
		o.arrived = make(view, len(r.known))
	}
	if !relaxed {
		r.addTo(o.arrived, w, lane)
		r.tick(w)
		return
	}
	for i, clock := range r.told[w.id*warpSize+uint32(lane)] {
		o.arrived[i] = max(o.arrived[i], clock)
	}
}

// end is that of the phase.
func (o *mbarrierOrder) end() { o.over, o.arrived = union(o.over, o.arrived), nil }

// acquire tells a lane what those did who arrived in phases that are over; if it is relaxed, the lane's next fence does.
func (o *mbarrierOrder) acquire(w *warp, lane int, relaxed bool) {
	r := w.cta.race
	if r == nil || o.over == nil {
		return
	}
	r.any = true // a barrier of the block may have come between
	to := r.known
	if relaxed {
		to = r.read
	}
	t := w.id*warpSize + uint32(lane)
	to[t] = union(to[t], o.over)
}
