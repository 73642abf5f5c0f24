package gpusim

import (
	"math"
	"math/bits"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// emitters are the opcodes that are more than operands in, one result out.
var emitters map[string]func(e *emitter) op

func init() {
	emitters = map[string]func(e *emitter) op{
		"mov": (*emitter).mov, "cvta": (*emitter).cvta, "isspacep": (*emitter).isspacep, "testp": (*emitter).testp,
		"setp": (*emitter).setp, "lop3": (*emitter).lop3, "set": (*emitter).set, "selp": (*emitter).selp,
		"addc": (*emitter).carry, "subc": (*emitter).carry, "madc": (*emitter).carry,
		"bra": (*emitter).bra, "brx": (*emitter).brx, "exit": (*emitter).exit, "trap": (*emitter).trap, "brkpt": (*emitter).trap,
		"call": (*emitter).builtin, "nanosleep": (*emitter).nanosleep, "pmevent": (*emitter).nothing,
		"ld": (*emitter).load, "ldu": (*emitter).load, "st": (*emitter).store, "atom": (*emitter).atom, "red": (*emitter).atom,
		"prefetch": (*emitter).hint, "prefetchu": (*emitter).hint, "discard": (*emitter).hint, "applypriority": (*emitter).hint,
		"membar": (*emitter).fence, "fence": (*emitter).fence, "createpolicy": (*emitter).policy,
		"cp": (*emitter).cp, "bar": (*emitter).bar, "barrier": (*emitter).bar,
		"shfl": (*emitter).shfl, "vote": (*emitter).vote, "match": (*emitter).match, "redux": (*emitter).redux,
		"activemask": (*emitter).activemask, "elect": (*emitter).elect,
		"ldmatrix": (*emitter).ldmatrix, "movmatrix": (*emitter).movmatrix, "mma": (*emitter).product, "wmma": (*emitter).wmma,
		"alloca": (*emitter).alloca, "stacksave": (*emitter).stacksave, "stackrestore": (*emitter).stackrestore,
		"mbarrier": (*emitter).mbarrier,
	}
	for _, name := range []string{"add", "sub", "mad"} {
		emitters[name] = func(e *emitter) op {
			if e.in.Has("cc") {
				return e.carry()
			}
			return e.arithmetic()
		}
	}
}

func (e *emitter) nothing() op { return func(*warp) {} }

// check refuses modifiers that are not listed, as allow does.
func (e *emitter) check(mods string) {
	if err := allow(e.in.Inst, mods); err != nil && e.err == nil {
		e.err = err
	}
}

// mov copies a register, a constant or an address, packs a vector into a register or unpacks one.
func (e *emitter) mov() op {
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
		d := e.dst(e.in.Args[0], t).i
		return func(w *warp) { w.setPred(d, w.pred(s, neg)) }
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
func (e *emitter) copy(d, s slot) op {
	switch {
	case d.bank == bank64 && s.bank == bank64:
		e.encode(lanesMov64, d, s)
	case d.bank == bank32 && s.bank == bank32 && d.bits == 32:
		e.encode(lanesMov32, d, s)
	}
	return copyOp(d, s)
}

func copyOp(d, s slot) op {
	switch {
	case d.bank == bank64 && s.bank == bank64:
		return alu64(d, s, s, s, func(d, a, _, _ *vec64) { *d = *a })
	case d.bank == bank32 && s.bank == bank32 && d.bits == 32:
		return alu32(d, s, s, s, func(d, a, _, _ *vec32) { *d = *a })
	}
	return generic(d, [4]slot{s, s, s, s}, func(a, _, _, _ uint64) uint64 { return a })
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

func (e *emitter) pack(t ptx.Type, v *ptx.Vec) op {
	part := e.elements(t, v)
	var s []slot
	for _, x := range v.Elems {
		s = append(s, e.src(x, part))
	}
	d := e.dst(e.in.Args[0], t)
	if e.err != nil {
		return nil
	}
	width := part.Bits()
	keep := uint64(1)<<width - 1
	return func(w *warp) {
		var out vec64
		for j, x := range s {
			a := w.wide(x, 0)
			for i := range out {
				out[i] |= a[i] & keep << (j * width)
			}
		}
		w.put(d, &out)
	}
}

func (e *emitter) unpack(t ptx.Type, v *ptx.Vec) op {
	part := e.elements(t, v)
	s := e.src(e.in.Args[1], t)
	var d []slot
	for _, x := range v.Elems {
		d = append(d, e.dst(x, part))
	}
	if e.err != nil {
		return nil
	}
	width := part.Bits()
	keep := uint64(1)<<width - 1
	return func(w *warp) {
		in := *w.wide(s, 0) // a part may share the register's slot
		for j, x := range d {
			var out vec64
			for i := range out {
				out[i] = in[i] >> (j * width) & keep
			}
			w.put(x, &out)
		}
	}
}

// window is the start of a space in generic addressing.
func window(s ptx.Space) uint64 {
	switch s {
	case ptx.Shared:
		return sharedBase
	case ptx.Local:
		return localBase
	case ptx.Param:
		return paramBase
	}
	return 0
}

// cvta converts between an address in a space and a generic one.
func (e *emitter) cvta() op {
	e.check("to global shared shared::cta local const param param::entry")
	e.arity(2, 2)
	if e.err != nil || e.in.Type() != ptx.U64 {
		e.fail("wants .u64")
		return nil
	}
	base := window(e.in.Space())
	if e.in.Has("to") {
		base = -base
	}
	s, d := e.src(e.in.Args[1], ptx.U64), e.dst(e.in.Args[0], ptx.U64)
	if base == 0 {
		return e.copy(d, s)
	}
	e.encode(lanesAdd64, d, s, e.constant(base, ptx.U64))
	return alu64(d, s, s, s, func(d, a, _, _ *vec64) {
		for i := range d {
			d[i] = a[i] + base
		}
	})
}

// spaceAt is the space that a generic address is in.
func spaceAt(addr uint64) ptx.Space {
	switch {
	case addr >= sharedBase && addr < sharedBase+windowSize:
		return ptx.Shared
	case addr >= localBase && addr < localBase+windowSize:
		return ptx.Local
	case addr >= paramBase && addr < paramBase+windowSize:
		return ptx.Param
	}
	return ptx.Global
}

func (e *emitter) isspacep() op {
	e.check("global shared shared::cta local const param param::entry")
	e.arity(2, 2)
	if e.err != nil {
		return nil
	}
	space := e.in.Space()
	s, d := e.src(e.in.Args[1], ptx.U64), e.dst(e.in.Args[0], ptx.Pred)
	return func(w *warp) {
		w.setPred(d.i, w.compare(func(a, _ uint64) bool { return w.spaceOf(a) == space }, s, s))
	}
}

// spaceOf is spaceAt that tells constant memory, which has no window of its own, from global memory.
func (w *warp) spaceOf(addr uint64) ptx.Space {
	space := spaceAt(addr)
	if space == ptx.Global {
		if al := w.cta.grid.dev.find(addr); al != nil && al.constant {
			return ptx.ConstSpace
		}
	}
	return space
}

// predicate sets a predicate by a comparison in each lane.
func (e *emitter) predicate(d slot, f compare, a, b slot) op {
	return func(w *warp) { w.setPred(d.i, w.compare(f, a, b)) }
}

func (e *emitter) testp() op {
	class := ""
	for _, m := range e.in.Mods {
		if testps[m] != nil {
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
	ff, is, least := formatOf(t), testps[class], 0x1p-126
	if t == ptx.F64 {
		least = 0x1p-1022
	}
	s, d := e.src(e.in.Args[1], t), e.dst(e.in.Args[0], ptx.Pred)
	return e.predicate(d, func(a, _ uint64) bool { return is(ff.float(a), least) }, s, s)
}

// combine is the boolean operation of setp and set with a third operand: nil without.
func (e *emitter) combine(arg int) func(w *warp, m uint32) uint32 {
	if len(e.in.Args) <= arg {
		return nil
	}
	for _, m := range []string{"and", "or", "xor"} {
		if e.in.Has(m) {
			c, neg := e.pred(e.in.Args[arg])
			f := maskLogic[m]
			return func(w *warp, v uint32) uint32 { return f(v, w.pred(c, neg)) }
		}
	}
	e.fail("a third operand without .and, .or, .xor")
	return nil
}

func (e *emitter) setp() op {
	if packed(e.in.Type()) {
		return e.setpPacked()
	}
	cmp, t, err := comparison(e.in.Inst)
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
		test = func(w *warp) uint32 { return w.compare(cmp, a, b) }
	}
	switch {
	case with == nil && q < 0:
		e.encodeTest(p, a, b)
		return func(w *warp) { w.setPred(p, test(w)) }
	case with == nil:
		return func(w *warp) {
			m := test(w)
			w.setPred(p, m)
			w.setPred(q, ^m)
		}
	}
	return func(w *warp) {
		m := test(w)
		y, n := with(w, m), with(w, ^m)
		w.setPred(p, y)
		if q >= 0 {
			w.setPred(q, n)
		}
	}
}

// twoPredicates is a destination p or p|q; q is -1 where absent.
func (e *emitter) twoPredicates(o ptx.Operand) (p, q int32) {
	if pair, ok := o.(*ptx.Pair); ok {
		return e.dst(pair.A, ptx.Pred).i, e.dst(pair.B, ptx.Pred).i
	}
	return e.dst(o, ptx.Pred).i, -1
}

// set writes all ones or 1.0 where a comparison holds.
func (e *emitter) set() op {
	e.arity(3, 4)
	ts := e.in.Types()
	if e.err != nil || len(ts) != 2 {
		e.fail("wants two types")
		return nil
	}
	if packed(ts[1]) {
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
	cmp, t, err := comparison(&plain)
	yes := map[ptx.Type]uint64{ptx.U32: math.MaxUint32, ptx.S32: math.MaxUint32, ptx.F32: 0x3f800000,
		ptx.U16: math.MaxUint16, ptx.S16: math.MaxUint16, ptx.F16: 0x3c00, ptx.BF16: 0x3f80}[ts[0]]
	if err != nil || yes == 0 {
		e.fail("not a form of set that is simulated")
		return nil
	}
	a, b := e.src(e.in.Args[1], t), e.src(e.in.Args[2], t)
	with := e.combine(3)
	d := e.dst(e.in.Args[0], ts[0])
	return func(w *warp) {
		m := w.compare(cmp, a, b)
		if with != nil {
			m = with(w, m)
		}
		var out vec64
		for ; m != 0; m &= m - 1 {
			out[lowest(m)] = yes
		}
		w.put(d, &out)
	}
}

func (e *emitter) selp() op {
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
	if d.bank == bank64 {
		e.encode(lanesSel64, d, a, b, slot{bankPred, p, 1})[atImm] = mask(neg)
		return func(w *warp) { blend64(&w.q[d.i], &w.q[a.i], &w.q[b.i], w.pred(p, neg), w.mask) }
	}
	if d.bits == 32 {
		e.encode(lanesSel32, d, a, b, slot{bankPred, p, 1})[atImm] = mask(neg)
	}
	return func(w *warp) { blend32(&w.r[d.i], &w.r[a.i], &w.r[b.i], w.pred(p, neg), w.mask) }
}

// blend32 writes a where pick is set and b elsewhere, in the lanes of mask.
func blend32(d, a, b *vec32, pick, mask uint32) {
	for m := mask & pick; m != 0; m &= m - 1 {
		i := lowest(m)
		d[i] = a[i]
	}
	for m := mask &^ pick; m != 0; m &= m - 1 {
		i := lowest(m)
		d[i] = b[i]
	}
}

func blend64(d, a, b *vec64, pick, mask uint32) {
	for m := mask & pick; m != 0; m &= m - 1 {
		i := lowest(m)
		d[i] = a[i]
	}
	for m := mask &^ pick; m != 0; m &= m - 1 {
		i := lowest(m)
		d[i] = b[i]
	}
}

// carry is add, sub, mad with .cc and addc, subc, madc: arithmetic of numbers longer than a register. Each lane has a
// carry bit, in w.cc.
func (e *emitter) carry() op {
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
	mul := product(e.in.Inst, t)
	var s [3]slot
	for i := range n {
		s[i] = e.src(e.in.Args[1+i], t)
	}
	d := e.dst(e.in.Args[0], t)
	sets, last, mad, sub, width := e.in.Has("cc"), s[n-1], base == "mad", base == "sub", t.Bits()
	return func(w *warp) {
		a, b, c := w.wide(s[0], 0), w.wide(s[1], 1), w.wide(last, 2)
		var out vec64
		var cc uint32
		for i := range out {
			x, y := a[i], b[i]
			if mad {
				x, y = mul(a[i], b[i]), c[i]
			}
			var in uint64
			if takes {
				in = uint64(w.cc >> i & 1)
			}
			r, o := addCarry(x, y, in, sub, width)
			out[i] = r
			cc |= uint32(o) << i
		}
		w.put(d, &out)
		if sets {
			w.cc = w.cc&^w.mask | cc&w.mask
		}
	}
}

func addCarry(x, y, in uint64, sub bool, n int) (r, out uint64) {
	if n == 32 {
		x, y = x<<32>>32, y<<32>>32
		if sub {
			r = x - y - in
		} else {
			r = x + y + in
		}
		return r, r >> 32 & 1
	}
	if sub {
		return bits.Sub64(x, y, in)
	}
	return bits.Add64(x, y, in)
}
