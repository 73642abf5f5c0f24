package compile

import (
	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/flow"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/numbers"
	"github.com/warpline-ml/warpline/internal/ptx"
)

func (e *emitter) bra() warp.Op {
	e.check("uni")
	t := &warp.Terminator{Kind: warp.TermJump, P: -1, Site: e.site}
	if e.in.Guard != nil {
		t.Kind = warp.TermBranch
		t.P, t.Neg = e.guard()
	}
	e.term = t
	return nil
}

func (e *emitter) brx() warp.Op {
	e.check("idx uni")
	e.term = &warp.Terminator{Kind: warp.TermIndex, Index: e.src(e.arg(0), ptx.U32), Site: e.site}
	return nil
}

func (e *emitter) exit() warp.Op {
	e.check("")
	t := &warp.Terminator{Kind: warp.TermExit, P: -1, Site: e.site}
	if e.in.Guard != nil {
		t.P, t.Neg = e.guard()
	}
	e.term = t
	return nil
}

func (e *emitter) trap() warp.Op {
	e.check("")
	s := e.site
	return func(w *warp.Warp) {
		w.CTA.Stop(w, s, simt.Lowest(w.Mask), memory.IllegalInstruction, 0, "%s", s.Inst.Op)
	}
}

func (e *emitter) nanosleep() warp.Op {
	e.check("")
	e.arity(1, 1)
	if e.err == nil {
		e.src(e.in.Args[0], ptx.U32)
	}
	return e.nothing()
}

// fence orders memory accesses. Warps of a block run one at a time and see each other's writes at once, so it only matters
// for the checks of races.
func (e *emitter) fence() warp.Op {
	e.check("cta gl sys gpu cluster sc acq_rel acquire release")
	acquire, release := !e.in.Has("release"), !e.in.Has("acquire")
	scope := e.scope()
	return func(w *warp.Warp) {
		if o := w.CTA.Order; o != nil {
			o.Fence(w.Id, w.Mask, acquire, release, scope)
		}
	}
}

// scope is how far the instruction reaches: the device without a word, as for atomics and membar.gl.
func (e *emitter) scope() check.Scope {
	switch {
	case e.in.Has("cta"):
		return check.OfBlock
	case e.in.Has("cluster"):
		return check.OfCluster
	}
	return check.OfDevice
}

// hint is an instruction that only concerns caches.
func (e *emitter) hint() warp.Op {
	e.check("global local L1 L2 L2::evict_last L2::evict_normal L2::128B uniform tensormap const param")
	return e.nothing()
}

// policy makes a cache policy, whose bits nobody looks at.
func (e *emitter) policy() warp.Op {
	e.check("fractional range cvt L2 global L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged")
	if e.arg(0) == nil {
		return nil
	}
	d := e.dst(e.in.Args[0], ptx.B64)
	return func(w *warp.Warp) { w.Put(d, &simt.Vec64{}) }
}

// printfArgs are the result and the parameters of vprintf.
const printfArgs = 3

// builtin is a call of a function that the simulator provides.
func (e *emitter) builtin() warp.Op {
	c, _ := e.in.Call()
	s := e.site
	if sym, ok := c.Target.(*ptx.Sym); ok && sym.Name == "__assertfail" {
		if len(e.in.Passed) != 5 {
			e.fail("__assertfail has five parameters")
			return nil
		}
		args := e.in.Passed
		return func(w *warp.Warp) { assertFail(w, s, args) }
	}
	if len(e.in.Passed) != printfArgs {
		e.fail("vprintf has a result and two parameters")
		return nil
	}
	args := e.in.Passed
	return func(w *warp.Warp) {
		for m := w.Mask; m != 0 && w.CTA.Fault == nil; m &= m - 1 {
			printf(w, s, args, simt.Lowest(m))
		}
	}
}

// argumentOf is a parameter of a call in the caller's local memory.
func argumentOf(w *warp.Warp, p flow.Home, lane, size int) uint64 {
	off := lane*w.Code.Local + int(p.Off)
	return numbers.Get(w.Local[off:], size)
}

// readText reads a string that ends in NUL at a generic address.
func readText(w *warp.Warp, s *check.Site, lane int, addr uint64) string {
	const most = 4096
	var b []byte
	a := &check.Access{Site: s, Space: ptx.Generic, Size: 1}
	for len(b) < most {
		p := w.Ref(a, lane, addr+uint64(len(b)))
		if p == nil || p[0] == 0 {
			break
		}
		b = append(b, p[0])
	}
	return string(b)
}

func assertFail(w *warp.Warp, s *check.Site, args []flow.Home) {
	lane := simt.Lowest(w.Mask)
	msg, file := readText(w, s, lane, argumentOf(w, args[0], lane, 8)), readText(w, s, lane, argumentOf(w, args[1], lane, 8))
	w.CTA.Stop(w, s, lane, memory.Assert, 0, "%s:%d: assertion %q failed in %s", file, argumentOf(w, args[2], lane, 4), msg, readText(w, s, lane, argumentOf(w, args[3], lane, 8)))
}

// printf carries out vprintf for a lane: arguments lie in a buffer, each on its own alignment. The result is how many
// there were.
func printf(w *warp.Warp, s *check.Site, args []flow.Home, lane int) {
	format := readText(w, s, lane, argumentOf(w, args[1], lane, 8))
	at, n := argumentOf(w, args[2], lane, 8), 0
	next := func(size int) uint64 {
		at = uint64(simt.Align(int64(at), int64(size)))
		p := w.Ref(&check.Access{Site: s, Space: ptx.Generic, Size: size}, lane, at)
		at += uint64(size)
		n++
		if p == nil {
			return 0
		}
		return numbers.Get(p, size)
	}
	out := printfBytes(format, printfSource{next, func(addr uint64) string { return readText(w, s, lane, addr) }})
	w.CTA.Out = append(w.CTA.Out, out...)
	off := lane*w.Code.Local + int(args[0].Off)
	numbers.Put(w.Local[off:], 4, uint64(n))
}
