package compile

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/gpusim/arith"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// half is an instruction on packed halves as one on a single half.
func half(in *ptx.Inst) *ptx.Inst {
	one := *in
	one.Mods = slices.Clone(in.Mods)
	for i, m := range one.Mods {
		switch m {
		case "f16x2":
			one.Mods[i] = "f16"
		case "bf16x2":
			one.Mods[i] = "bf16"
		}
	}
	return &one
}

// comparePacked are the lanes for which a comparison holds in the lower and in the upper half.
func comparePacked(w *warp.Warp, f arith.Compare, a, b warp.Slot) (lo, hi uint32) {
	x, y := &w.R32[a.I], &w.R32[b.I]
	for m := w.Mask; m != 0; m &= m - 1 {
		i := simt.Lowest(m)
		if f(uint64(x[i]&0xffff), uint64(y[i]&0xffff)) {
			lo |= 1 << i
		}
		if f(uint64(x[i]>>16), uint64(y[i]>>16)) {
			hi |= 1 << i
		}
	}
	return lo, hi
}

// setpPacked gives one predicate for each half.
func (e *emitter) setpPacked() warp.Op {
	cmp, _, err := arith.Comparison(half(e.in.Inst))
	e.arity(3, 4)
	if err != nil && e.err == nil {
		e.err = err
	}
	pair, ok := e.arg(0).(*ptx.Pair)
	if e.err != nil || !ok {
		e.fail("wants two predicates p|q")
		return nil
	}
	a, b := e.src(e.in.Args[1], ptx.B32), e.src(e.in.Args[2], ptx.B32)
	with := e.combine(3)
	p, q := e.twoPredicates(pair)
	return func(w *warp.Warp) {
		lo, hi := comparePacked(w, cmp, a, b)
		if with != nil {
			lo, hi = with(w, lo), with(w, hi)
		}
		w.SetPred(p, lo)
		w.SetPred(q, hi)
	}
}

// setPacked writes 1.0 to each half where the comparison holds, or all ones if the result is an integer.
func (e *emitter) setPacked(to ptx.Type) warp.Op {
	one := half(e.in.Inst)
	at := slices.IndexFunc(one.Mods, func(m string) bool { return ptx.ParseType(m) != ptx.NoType })
	one.Mods = slices.Delete(one.Mods, at, at+1)
	cmp, _, err := arith.Comparison(one)
	yes := map[ptx.Type]uint32{ptx.F16x2: 0x3c00, ptx.BF16x2: 0x3f80, ptx.U32: 0xffff, ptx.S32: 0xffff}[to]
	if err != nil || yes == 0 {
		e.fail("not a form of set that is simulated")
		return nil
	}
	a, b := e.src(e.in.Args[1], ptx.B32), e.src(e.in.Args[2], ptx.B32)
	with := e.combine(3)
	d := e.dst(e.in.Args[0], ptx.B32)
	return func(w *warp.Warp) {
		lo, hi := comparePacked(w, cmp, a, b)
		if with != nil {
			lo, hi = with(w, lo), with(w, hi)
		}
		var out simt.Vec64
		for i := range out {
			out[i] = uint64(yes*(lo>>i&1) | yes<<16*(hi>>i&1))
		}
		w.Put(d, &out)
	}
}

// lop3 with a predicate tells whether any bit of the result is set, combined with another predicate.
func (e *emitter) lop3() warp.Op {
	if !e.in.Has("and") && !e.in.Has("or") {
		return e.arithmetic()
	}
	e.check("and or")
	e.arity(6, 6)
	pair, ok := e.arg(0).(*ptx.Pair)
	if e.err != nil || !ok || e.in.Type() != ptx.B32 {
		e.fail("wants a result and a predicate d|p")
		return nil
	}
	a, b, c := e.src(e.in.Args[1], ptx.B32), e.src(e.in.Args[2], ptx.B32), e.src(e.in.Args[3], ptx.B32)
	table, ok := e.in.Args[4].(*ptx.Imm)
	if !ok {
		e.fail("wants a constant table")
		return nil
	}
	with := e.combine(5)
	d := warp.Slot{I: -1}
	if _, sink := pair.A.(*ptx.Sink); !sink {
		d = e.dst(pair.A, ptx.B32)
	}
	p := e.dst(pair.B, ptx.Pred).I
	return func(w *warp.Warp) {
		x, y, z := *w.Wide(a, 0), *w.Wide(b, 1), *w.Wide(c, 2)
		var out simt.Vec64
		var any uint32
		for i := range out {
			out[i] = arith.Lop3(x[i], y[i], z[i], table.Bits) & 0xffffffff
			any |= uint32(simt.Bit(out[i] != 0)) << i
		}
		holds := with(w, any)
		if d.I >= 0 {
			w.Put(d, &out)
		}
		w.SetPred(p, holds)
	}
}
