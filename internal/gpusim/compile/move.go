package compile

import (
	"math"

	"github.com/warpline-ml/warpline/internal/gpusim/arith"
	"github.com/warpline-ml/warpline/internal/gpusim/lanes"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// emitters are the opcodes that are more than operands in, one result out.
var emitters map[string]func(e *emitter) warp.Op

func init() {
	emitters = map[string]func(e *emitter) warp.Op{
		"mov": (*emitter).mov, "cvta": (*emitter).cvta, "isspacep": (*emitter).isspacep, "testp": (*emitter).testp,
		"setp": (*emitter).setp, "lop3": (*emitter).lop3, "set": (*emitter).set, "selp": (*emitter).selp,
		"addc": (*emitter).carry, "subc": (*emitter).carry, "madc": (*emitter).carry,
		"bra": (*emitter).bra, "brx": (*emitter).brx, "exit": (*emitter).exit, "trap": (*emitter).trap, "brkpt": (*emitter).trap,
		"call": (*emitter).builtin, "nanosleep": (*emitter).nanosleep, "pmevent": (*emitter).nothing,
		"ld": (*emitter).load, "ldu": (*emitter).load, "st": (*emitter).store, "atom": (*emitter).atom, "red": (*emitter).atom,
		"prefetch": (*emitter).hint, "prefetchu": (*emitter).hint, "discard": (*emitter).hint, "applypriority": (*emitter).hint,
		"membar": (*emitter).fence, "fence": (*emitter).fenceOf, "createpolicy": (*emitter).policy,
		"cp": (*emitter).cp, "bar": (*emitter).bar, "barrier": (*emitter).bar,
		"shfl": (*emitter).shfl, "vote": (*emitter).vote, "match": (*emitter).match, "redux": (*emitter).redux,
		"activemask": (*emitter).activemask, "elect": (*emitter).elect,
		"ldmatrix": (*emitter).ldmatrix, "movmatrix": (*emitter).movmatrix, "mma": (*emitter).product, "wmma": (*emitter).wmma,
		"alloca": (*emitter).alloca, "stacksave": (*emitter).stacksave, "stackrestore": (*emitter).stackrestore,
		"mbarrier": (*emitter).mbarrier, "mapa": (*emitter).mapa, "getctarank": (*emitter).getctarank, "stmatrix": (*emitter).stmatrix,
		"setmaxnreg": (*emitter).setmaxnreg, "wgmma": (*emitter).wgmma, "griddepcontrol": (*emitter).griddepcontrol, "tensormap": (*emitter).tensormap,
	}
	for _, name := range []string{"add", "sub", "mad"} {
		emitters[name] = func(e *emitter) warp.Op {
			if e.in.Has("cc") {
				return e.carry()
			}
			return e.arithmetic()
		}
	}
}

func (e *emitter) nothing() warp.Op { return func(*warp.Warp) {} }

// check refuses modifiers that are not listed, as allow does.
func (e *emitter) check(mods string) {
	if err := arith.Allow(e.in.Inst, mods); err != nil && e.err == nil {
		e.err = err
	}
}

// mov copies a register, a constant or an address, packs a vector into a register or unpacks one.
func (e *emitter) mov() warp.Op {
	e.check("")
	e.arity(2, 2)
	if e.err != nil {
		return nil
	}
	t := e.in.Type()
	from, pack := e.in.Args[1].(*ptx.Vec)
	to, unpack := e.in.Args[0].(*ptx.Vec)
	switch {
	case t == ptx.NoType || t.Bits() > 64 || pack && unpack:
		e.fail("a move of this type")
		return nil
	case t == ptx.Pred:
		s, neg := e.pred(e.in.Args[1])
		d := e.dst(e.in.Args[0], t).I
		return func(w *warp.Warp) { w.SetPred(d, w.Pred(s, neg)) }
	case pack:
		return e.pack(t, from)
	case unpack:
		return e.unpack(t, to)
	}
	s := e.src(e.in.Args[1], t)
	d := e.dst(e.in.Args[0], t)
	if e.err != nil {
		return nil
	}
	return e.copy(d, s)
}

// copy copies a slot, narrowed to the destination.
func (e *emitter) copy(d, s warp.Slot) warp.Op {
	switch {
	case d.Bank == simt.Bank64 && s.Bank == simt.Bank64:
		e.encode(lanes.Mov64, d, s)
	case d.Bank == simt.Bank32 && s.Bank == simt.Bank32 && d.Bits == 32:
		e.encode(lanes.Mov32, d, s)
	}
	return copyOp(d, s)
}

func copyOp(d, s warp.Slot) warp.Op {
	switch {
	case d.Bank == simt.Bank64 && s.Bank == simt.Bank64:
		return alu64(d, s, s, s, func(d, a, _, _ *simt.Vec64) { *d = *a })
	case d.Bank == simt.Bank32 && s.Bank == simt.Bank32 && d.Bits == 32:
		return alu32(d, s, s, s, func(d, a, _, _ *simt.Vec32) { *d = *a })
	}
	return generic(d, [4]warp.Slot{s, s, s, s}, func(a, _, _, _ uint64) uint64 { return a })
}

// elements are the parts of a vector operand, of equal width.
func (e *emitter) elements(t ptx.Type, v *ptx.Vec) ptx.Type {
	n := len(v.Elems)
	part := map[int]ptx.Type{8: ptx.B8, 16: ptx.B16, 32: ptx.B32}[t.Bits()/max(n, 1)]
	if n != 2 && n != 4 || part == ptx.NoType {
		e.fail("%d parts of .%s", n, t)
	}
	return part
}

func (e *emitter) pack(t ptx.Type, v *ptx.Vec) warp.Op {
	part := e.elements(t, v)
	var s []warp.Slot
	for _, x := range v.Elems {
		s = append(s, e.src(x, part))
	}
	d := e.dst(e.in.Args[0], t)
	if e.err != nil {
		return nil
	}
	width := part.Bits()
	keep := uint64(1)<<width - 1
	return func(w *warp.Warp) {
		var out simt.Vec64
		for j, x := range s {
			a := w.Wide(x, 0)
			for i := range out {
				out[i] |= a[i] & keep << (j * width)
			}
		}
		w.Put(d, &out)
	}
}

func (e *emitter) unpack(t ptx.Type, v *ptx.Vec) warp.Op {
	part := e.elements(t, v)
	s := e.src(e.in.Args[1], t)
	var d []warp.Slot
	for _, x := range v.Elems {
		d = append(d, e.dst(x, part))
	}
	if e.err != nil {
		return nil
	}
	width := part.Bits()
	keep := uint64(1)<<width - 1
	return func(w *warp.Warp) {
		in := *w.Wide(s, 0) // a part may share the register's slot
		for j, x := range d {
			var out simt.Vec64
			for i := range out {
				out[i] = in[i] >> (j * width) & keep
			}
			w.Put(x, &out)
		}
	}
}

// cvta converts between an address in a space and a generic one.
func (e *emitter) cvta() warp.Op {
	e.check("to global shared shared::cta shared::cluster local const param param::entry")
	e.arity(2, 2)
	if e.err != nil || e.in.Type() != ptx.U64 {
		e.fail("wants .u64")
		return nil
	}
	base := memory.Window(e.in.Space())
	if e.in.Has("to") {
		base = -base
	}
	s, d := e.src(e.in.Args[1], ptx.U64), e.dst(e.in.Args[0], ptx.U64)
	if base == 0 {
		return e.copy(d, s)
	}
	e.encode(lanes.Add64, d, s, e.constant(base, ptx.U64))
	return alu64(d, s, s, s, func(d, a, _, _ *simt.Vec64) {
		for i := range d {
			d[i] = a[i] + base
		}
	})
}

func (e *emitter) isspacep() warp.Op {
	e.check("global shared shared::cta shared::cluster local const param param::entry")
	e.arity(2, 2)
	if e.err != nil {
		return nil
	}
	space, cluster := e.in.Space(), e.in.Has("shared::cluster")
	if cluster {
		space = ptx.Shared
	}
	s, d := e.src(e.in.Args[1], ptx.U64), e.dst(e.in.Args[0], ptx.Pred)
	return func(w *warp.Warp) {
		w.SetPred(d.I, w.Compare(func(a, _ uint64) bool {
			return spaceOf(w, a) == space && (space != ptx.Shared || cluster || a-memory.Window(ptx.Shared) < memory.WindowSize)
		}, s, s))
	}
}

// spaceOf is spaceAt that tells constant memory, which has no window of its own, from global memory.
func spaceOf(w *warp.Warp, addr uint64) ptx.Space {
	space := memory.SpaceAt(addr)
	if space == ptx.Global {
		if al := w.CTA.Launch.Mem.Find(addr); al != nil && al.Constant {
			return ptx.ConstSpace
		}
	}
	return space
}

// predicate sets a predicate by a comparison in each lane.
func (e *emitter) predicate(d warp.Slot, f arith.Compare, a, b warp.Slot) warp.Op {
	return func(w *warp.Warp) { w.SetPred(d.I, w.Compare(f, a, b)) }
}

func (e *emitter) testp() warp.Op {
	class := ""
	for _, m := range e.in.Mods {
		if arith.Testps[m] != nil {
			class = m
		}
	}
	t := e.in.Type()
	e.check(class)
	e.arity(2, 2)
	if class == "" || t != ptx.F32 && t != ptx.F64 {
		e.fail("wants a class and .f32 or .f64")
	}
	if e.err != nil {
		return nil
	}
	ff, is, least := arith.FormatOf(t), arith.Testps[class], 0x1p-126
	if t == ptx.F64 {
		least = 0x1p-1022
	}
	s, d := e.src(e.in.Args[1], t), e.dst(e.in.Args[0], ptx.Pred)
	return e.predicate(d, func(a, _ uint64) bool { return is(ff.Float(a), least) }, s, s)
}

// combine is the boolean operation of setp and set with a third operand: nil without.
func (e *emitter) combine(arg int) func(w *warp.Warp, m uint32) uint32 {
	if len(e.in.Args) <= arg {
		return nil
	}
	for _, m := range []string{"and", "or", "xor"} {
		if e.in.Has(m) {
			c, neg := e.pred(e.in.Args[arg])
			f := maskLogic[m]
			return func(w *warp.Warp, v uint32) uint32 { return f(v, w.Pred(c, neg)) }
		}
	}
	e.fail("a third operand without .and, .or, .xor")
	return nil
}

func (e *emitter) setp() warp.Op {
	if arith.Packed(e.in.Type()) {
		return e.setpPacked()
	}
	cmp, t, err := arith.Comparison(e.in.Inst)
	if err != nil {
		e.err = err
		return nil
	}
	e.arity(3, 4)
	if e.err != nil {
		return nil
	}
	a, b := e.src(e.in.Args[1], t), e.src(e.in.Args[2], t)
	with := e.combine(3)
	p, q := e.twoPredicates(e.in.Args[0])
	if e.err != nil {
		return nil
	}
	test := e.fastCompare(a, b)
	if test == nil {
		test = func(w *warp.Warp) uint32 { return w.Compare(cmp, a, b) }
	}
	switch {
	case with == nil && q < 0:
		e.encodeTest(p, a, b)
		return func(w *warp.Warp) { w.SetPred(p, test(w)) }
	case with == nil:
		return func(w *warp.Warp) {
			m := test(w)
			w.SetPred(p, m)
			w.SetPred(q, ^m)
		}
	}
	return func(w *warp.Warp) {
		m := test(w)
		y, n := with(w, m), with(w, ^m)
		w.SetPred(p, y)
		if q >= 0 {
			w.SetPred(q, n)
		}
	}
}

// twoPredicates is a destination p or p|q; q is -1 where absent.
func (e *emitter) twoPredicates(o ptx.Operand) (p, q int32) {
	if pair, ok := o.(*ptx.Pair); ok {
		return e.dst(pair.A, ptx.Pred).I, e.dst(pair.B, ptx.Pred).I
	}
	return e.dst(o, ptx.Pred).I, -1
}

// set writes all ones or 1.0 where a comparison holds.
func (e *emitter) set() warp.Op {
	e.arity(3, 4)
	ts := e.in.Types()
	if e.err != nil || len(ts) != 2 {
		e.fail("wants two types")
		return nil
	}
	if arith.Packed(ts[1]) {
		return e.setPacked(ts[0])
	}
	plain := *e.in.Inst
	plain.Mods = nil
	dropped := false
	for _, m := range e.in.Mods {
		if !dropped && ptx.ParseType(m) == ts[0] {
			dropped = true
			continue
		}
		plain.Mods = append(plain.Mods, m)
	}
	cmp, t, err := arith.Comparison(&plain)
	yes := map[ptx.Type]uint64{ptx.U32: math.MaxUint32, ptx.S32: math.MaxUint32, ptx.F32: 0x3f800000,
		ptx.U16: math.MaxUint16, ptx.S16: math.MaxUint16, ptx.F16: 0x3c00, ptx.BF16: 0x3f80}[ts[0]]
	if err != nil || yes == 0 {
		e.fail("not a form of set that is simulated")
		return nil
	}
	a, b := e.src(e.in.Args[1], t), e.src(e.in.Args[2], t)
	with := e.combine(3)
	d := e.dst(e.in.Args[0], ts[0])
	return func(w *warp.Warp) {
		m := w.Compare(cmp, a, b)
		if with != nil {
			m = with(w, m)
		}
		var out simt.Vec64
		for ; m != 0; m &= m - 1 {
			out[simt.Lowest(m)] = yes
		}
		w.Put(d, &out)
	}
}

func (e *emitter) selp() warp.Op {
	e.check("")
	e.arity(4, 4)
	t := e.in.Type()
	if e.err != nil || t.Bits() < 16 || t.Bits() > 64 {
		e.fail("wants a type of 16 to 64 bits")
		return nil
	}
	a, b := e.src(e.in.Args[1], t), e.src(e.in.Args[2], t)
	p, neg := e.pred(e.in.Args[3])
	d := e.dst(e.in.Args[0], t)
	if e.err != nil {
		return nil
	}
	if d.Bank == simt.Bank64 {
		e.encode(lanes.Sel64, d, a, b, warp.Slot{Bank: simt.BankPred, I: p, Bits: 1})[lanes.AtImm] = mask(neg)
		return func(w *warp.Warp) { blend64(&w.R64[d.I], &w.R64[a.I], &w.R64[b.I], w.Pred(p, neg), w.Mask) }
	}
	if d.Bits == 32 {
		e.encode(lanes.Sel32, d, a, b, warp.Slot{Bank: simt.BankPred, I: p, Bits: 1})[lanes.AtImm] = mask(neg)
	}
	return func(w *warp.Warp) { blend32(&w.R32[d.I], &w.R32[a.I], &w.R32[b.I], w.Pred(p, neg), w.Mask) }
}

// blend32 writes a where pick is set and b elsewhere, in the lanes of mask.
func blend32(d, a, b *simt.Vec32, pick, mask uint32) {
	for m := mask & pick; m != 0; m &= m - 1 {
		i := simt.Lowest(m)
		d[i] = a[i]
	}
	for m := mask &^ pick; m != 0; m &= m - 1 {
		i := simt.Lowest(m)
		d[i] = b[i]
	}
}

func blend64(d, a, b *simt.Vec64, pick, mask uint32) {
	for m := mask & pick; m != 0; m &= m - 1 {
		i := simt.Lowest(m)
		d[i] = a[i]
	}
	for m := mask &^ pick; m != 0; m &= m - 1 {
		i := simt.Lowest(m)
		d[i] = b[i]
	}
}

// carry is add, sub, mad with .cc and addc, subc, madc: arithmetic of numbers longer than a register. Each lane has a
// carry bit, in w.CC. All use one adder, as ptxas assembles them: subtraction adds the complement and a one, which subc
// takes from the carry. So the carry of sub.cc is 1 where nothing is borrowed.
func (e *emitter) carry() warp.Op {
	e.check("cc lo hi")
	t := e.in.Type()
	base := map[string]string{"addc": "add", "subc": "sub", "madc": "mad"}[e.in.Op]
	takes := base != ""
	if !takes {
		base = e.in.Op
	}
	n := map[string]int{"add": 2, "sub": 2, "mad": 3}[base]
	e.arity(n+1, n+1)
	if e.err != nil || t.Bits() < 32 || t.Bits() > 64 || t.Kind() == ptx.KindFloat || base == "mad" && e.in.Has("lo") == e.in.Has("hi") {
		e.fail("wants .u32, .s32, .u64 or .s64")
		return nil
	}
	mul := arith.Product(e.in.Inst, t)
	var s [3]warp.Slot
	for i := range n {
		s[i] = e.src(e.in.Args[1+i], t)
	}
	d := e.dst(e.in.Args[0], t)
	sets, last, mad, sub, width := e.in.Has("cc"), s[n-1], base == "mad", base == "sub", t.Bits()
	first := simt.Bit(sub)
	return func(w *warp.Warp) {
		a, b, c := w.Wide(s[0], 0), w.Wide(s[1], 1), w.Wide(last, 2)
		var out simt.Vec64
		var cc uint32
		for i := range out {
			x, y := a[i], b[i]
			if mad {
				x, y = mul(a[i], b[i]), c[i]
			}
			if sub {
				y = ^y
			}
			in := first
			if takes {
				in = uint64(w.Cc >> i & 1)
			}
			r, o := arith.AddCarry(x, y, in, width)
			out[i] = r
			cc |= uint32(o) << i
		}
		w.Put(d, &out)
		if sets {
			w.Cc = w.Cc&^w.Mask | cc&w.Mask
		}
	}
}
