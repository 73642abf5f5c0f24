package gpusim

import (
	"math/bits"

	"github.com/warpline-ml/warpline/internal/ptx"
)

func popcount(m uint32) int { return bits.OnesCount32(m) }

func (e *emitter) bra() op {
	e.check("uni")
	t := &terminator{kind: termJump, p: -1, site: e.site}
	if e.in.Guard != nil {
		t.kind = termBranch
		t.p, t.neg = e.guard()
	}
	e.term = t
	return nil
}

func (e *emitter) brx() op {
	e.check("idx uni")
	e.term = &terminator{kind: termIndex, index: e.src(e.arg(0), ptx.U32), site: e.site}
	return nil
}

func (e *emitter) exit() op {
	e.check("")
	t := &terminator{kind: termExit, p: -1, site: e.site}
	if e.in.Guard != nil {
		t.p, t.neg = e.guard()
	}
	e.term = t
	return nil
}

func (e *emitter) trap() op {
	e.check("")
	s := e.site
	return func(w *warp) { w.cta.stop(w, s, lowest(w.mask), IllegalInstruction, 0, "%s", s.in.Op) }
}

func (e *emitter) nanosleep() op {
	e.check("")
	e.arity(1, 1)
	if e.err == nil {
		e.src(e.in.Args[0], ptx.U32)
	}
	return e.nothing()
}

// fence orders memory accesses. Warps of a block run one at a time and see each other's writes at once, so it only matters
// for racecheck.
func (e *emitter) fence() op {
	e.check("cta gl sys gpu cluster sc acq_rel acquire release")
	acquire, release := !e.in.Has("release"), !e.in.Has("acquire")
	return func(w *warp) {
		if r := w.cta.race; r != nil {
			r.fence(w, w.mask, acquire, release)
		}
	}
}

// hint is an instruction that only concerns caches.
func (e *emitter) hint() op {
	e.check("global local L1 L2 L2::evict_last L2::evict_normal L2::128B uniform")
	return e.nothing()
}

// policy makes a cache policy, whose bits nobody looks at.
func (e *emitter) policy() op {
	e.check("fractional range cvt L2 global L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged")
	if e.arg(0) == nil {
		return nil
	}
	d := e.dst(e.in.Args[0], ptx.B64)
	return func(w *warp) { w.put(d, &vec64{}) }
}

// printfArgs are the result and the parameters of vprintf.
const printfArgs = 3

// builtin is a call of a function that the simulator provides.
func (e *emitter) builtin() op {
	c, _ := e.in.Call()
	s := e.site
	if sym, ok := c.Target.(*ptx.Sym); ok && sym.Name == "__assertfail" {
		if len(e.in.args) != 5 {
			e.fail("__assertfail has five parameters")
			return nil
		}
		return func(w *warp) { w.assertFail(s) }
	}
	if len(e.in.args) != printfArgs {
		e.fail("vprintf has a result and two parameters")
		return nil
	}
	return func(w *warp) {
		for m := w.mask; m != 0 && w.cta.fault == nil; m &= m - 1 {
			w.printf(s, lowest(m))
		}
	}
}

// argument is a parameter of a call in the caller's local memory.
func (w *warp) argument(s *site, lane, i, size int) uint64 {
	off := lane*w.code.kernel.Local + int(s.in.args[i].off)
	return decode(w.local[off:], size)
}

// text reads a string that ends in NUL at a generic address.
func (w *warp) text(s *site, lane int, addr uint64) string {
	const most = 4096
	var b []byte
	a := &access{site: s, space: ptx.Generic, size: 1}
	for len(b) < most {
		p := w.ref(a, lane, addr+uint64(len(b)))
		if p == nil || p[0] == 0 {
			break
		}
		b = append(b, p[0])
	}
	return string(b)
}

func (w *warp) assertFail(s *site) {
	lane := lowest(w.mask)
	msg, file := w.text(s, lane, w.argument(s, lane, 0, 8)), w.text(s, lane, w.argument(s, lane, 1, 8))
	w.cta.stop(w, s, lane, Assert, 0, "%s:%d: assertion %q failed in %s", file, w.argument(s, lane, 2, 4), msg, w.text(s, lane, w.argument(s, lane, 3, 8)))
}

// printf carries out vprintf for a lane: arguments lie in a buffer, each on its own alignment. The result is how many
// there were.
func (w *warp) printf(s *site, lane int) {
	format := w.text(s, lane, w.argument(s, lane, 1, 8))
	at, n := w.argument(s, lane, 2, 8), 0
	next := func(size int) uint64 {
		at = uint64(align(int64(at), int64(size)))
		p := w.ref(&access{site: s, space: ptx.Generic, size: size}, lane, at)
		at += uint64(size)
		n++
		if p == nil {
			return 0
		}
		return decode(p, size)
	}
	out := printfBytes(format, printfSource{next, func(addr uint64) string { return w.text(s, lane, addr) }})
	w.cta.out = append(w.cta.out, out...)
	off := lane*w.code.kernel.Local + int(s.in.args[0].off)
	encode(w.local[off:], 4, uint64(n))
}
