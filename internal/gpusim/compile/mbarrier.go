package compile

import (
	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// An mbarrier is 8 bytes of shared memory that threads arrive at and test: its phase is over when as many arrivals as were
// expected have come, and as many bytes of copies, and the next one begins. cuda::barrier and cuda::pipeline are made of it.

func (e *emitter) mbarrier() warp.Op {
	e.check("init inval arrive arrive_drop test_wait try_wait parity pending_count noComplete expect_tx complete_tx release acquire relaxed cta cluster shared shared::cta shared::cluster")
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
		return generic(d, [4]warp.Slot{s, s, s, s}, func(a, _, _, _ uint64) uint64 { return warp.MbarrierState(a).Pending() })
	case e.in.Has("test_wait"), e.in.Has("try_wait"):
		return e.mbarrierWait()
	case e.in.Has("arrive"), e.in.Has("arrive_drop"):
		return e.mbarrierArrive()
	}
	e.arity(1, 2)
	a, addr := e.mbarrierAt(0)
	if e.in.Has("inval") {
		return e.eachLane(addr, func(w *warp.Warp, lane int) { w.InvalMbarrier(a, lane) })
	}
	n := e.src(e.arg(1), ptx.U32)
	switch {
	case e.in.Has("expect_tx"):
		return e.eachLane(addr, func(w *warp.Warp, lane int) { w.ExpectBytes(a, lane, int64(w.Get(n, lane))) })
	case e.in.Has("complete_tx"):
		return e.eachLane(addr, func(w *warp.Warp, lane int) { w.ExpectBytes(a, lane, -int64(w.Get(n, lane))) })
	}
	a.Write = true
	return e.eachLane(addr, func(w *warp.Warp, lane int) { w.InitMbarrier(a, lane, w.Get(n, lane)) })
}

// mbarrierAt compiles the address in operand i.
func (e *emitter) mbarrierAt(i int) (*check.Access, warp.Op) {
	a, addr := e.memory(e.arg(i), 8, false)
	e.code.Signals = true             // fences are part of relaxed arrivals
	a.Strong, a.Atomic = false, false // what an mbarrier puts in order is kept in mbarrierOrder
	if a.Scope = check.OfCluster; e.in.Has("cta") {
		a.Scope = check.OfBlock // that of the default too, which libraries leave it at all the same
	}
	if a.Space != ptx.Shared && a.Space != ptx.Generic {
		e.fail("an mbarrier is in shared memory")
	}
	return a, addr
}

func (e *emitter) eachLane(addr warp.Op, f func(w *warp.Warp, lane int)) warp.Op {
	return func(w *warp.Warp) {
		addr(w)
		for m := w.Mask; m != 0 && w.CTA.Fault == nil; m &= m - 1 {
			f(w, simt.Lowest(m))
		}
	}
}

func (e *emitter) mbarrierArrive() warp.Op {
	e.arity(2, 3)
	a, addr := e.mbarrierAt(1)
	count := e.constant(1, ptx.U32)
	if len(e.in.Args) == 3 {
		count = e.src(e.in.Args[2], ptx.U32)
	}
	d := e.dst(e.arg(0), ptx.B64)
	drop, last, relaxed := e.in.Has("arrive_drop"), !e.in.Has("noComplete"), e.in.Has("relaxed")
	if e.in.Has("expect_tx") {
		return e.eachLane(addr, func(w *warp.Warp, lane int) {
			w.Set(d, lane, uint64(w.ArriveExpecting(a, lane, w.Get(count, lane), drop, relaxed)))
		})
	}
	return e.eachLane(addr, func(w *warp.Warp, lane int) {
		before, over := w.ArriveAtMbarrier(a, lane, w.Get(count, lane), drop, relaxed)
		if over && !last {
			w.CTA.Note(w, a.Site, 1<<lane, check.Synccheck, "an arrival with .noComplete ends the phase of the mbarrier")
		}
		w.Set(d, lane, uint64(before))
	})
}

// mbarrierWait tests whether the phase of a state, or that of a parity, is over. A warp of which no lane goes on lets others run.
func (e *emitter) mbarrierWait() warp.Op {
	e.arity(3, 4)
	a, addr := e.mbarrierAt(1)
	byParity, relaxed := e.in.Has("parity"), e.in.Has("relaxed")
	t := ptx.U64
	if byParity {
		t = ptx.U32
	}
	which, d := e.src(e.arg(2), t), e.dst(e.arg(0), ptx.Pred)
	return func(w *warp.Warp) {
		addr(w)
		var over uint32
		all, alike := w.Mask, w.CTA.Order == nil && sameIn(w, which)
		if alike { // one look serves all lanes
			w.Mask &= -w.Mask
		}
		for m := w.Mask; m != 0; m &= m - 1 {
			lane := simt.Lowest(m)
			v := w.Get(which, lane)
			is, ok := w.TestMbarrier(a, lane, relaxed, func(s warp.MbarrierState) bool {
				if byParity {
					return s.Phase()&1 != v&1
				}
				return s.Phase() != warp.MbarrierState(v).Phase()
			})
			if !ok {
				w.Mask = all
				return
			}
			over |= uint32(simt.Bit(is)) << lane
		}
		if w.Mask = all; alike && over != 0 {
			over = all
		}
		w.SetPred(d.I, over)
		if over == 0 {
			w.Yield()
		}
	}
}

// sameIn is whether the active lanes have one address, and one value in a slot.
func sameIn(w *warp.Warp, s warp.Slot) bool {
	first := simt.Lowest(w.Mask)
	for m := w.Mask; m != 0; m &= m - 1 {
		if i := simt.Lowest(m); w.Addr[i] != w.Addr[first] || w.Get(s, i) != w.Get(s, first) {
			return false
		}
	}
	return true
}

// asyncArrive is cp.async.mbarrier.arrive: an arrival when the lane's copies are over. They end here, which is one of the
// moments at which hardware may end them. Without .noinc the phase waits for one more arrival, which this is.
func (e *emitter) asyncArrive() warp.Op {
	e.check("async mbarrier arrive noinc shared shared::cta")
	e.arity(1, 1)
	a, addr := e.mbarrierAt(0)
	counted := e.in.Has("noinc")
	return func(w *warp.Warp) {
		addr(w)
		w.FinishAsync(w.Mask, -1)
		for m := w.Mask; m != 0 && w.CTA.Fault == nil; m &= m - 1 {
			lane := simt.Lowest(m)
			if counted {
				w.ArriveAtMbarrier(a, lane, 1, false, false)
			} else {
				w.KnowAtMbarrier(a, lane)
			}
		}
	}
}
