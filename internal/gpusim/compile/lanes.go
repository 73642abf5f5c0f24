package compile

import (
	"math/bits"
	"slices"
	"unsafe"

	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/lanes"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// vectorNames maps instructions to handlers of the shape d = f(a, b, c), with the banks of d, a, b and c.
var vectorNames = func() map[string]lanes.Op {
	m := map[string]lanes.Op{
		"and.b32": lanes.And32, "or.b32": lanes.Or32, "xor.b32": lanes.Xor32, "shl.b32": lanes.Shl32, "shr.u32": lanes.Shr32, "shr.b32": lanes.Shr32,
		"shr.s32": lanes.Sar32, "min.s32": lanes.MinS32, "max.s32": lanes.MaxS32, "min.u32": lanes.MinU32, "max.u32": lanes.MaxU32,
		"and.b64": lanes.And64, "or.b64": lanes.Or64, "shl.b64": lanes.Shl64, "shr.u64": lanes.Shr64, "shr.b64": lanes.Shr64, "shr.s64": lanes.Sar64,
		"mul.wide.s32": lanes.MulWideS, "mul.wide.u32": lanes.MulWideU, "mad.wide.s32": lanes.MadWideS, "mad.wide.u32": lanes.MadWideU,
		"fma.rn.f32": lanes.FmaF, "div.rn.f32": lanes.DivF, "sqrt.rn.f32": lanes.SqrtF, "max.f32": lanes.MaxF, "min.f32": lanes.MinF,
		"ex2.approx.f32": lanes.Exp2F, "cvt.rn.bf16x2.f32": lanes.PairBF16, "neg.f32": lanes.NegF, "abs.f32": lanes.AbsF,
		"cvt.rn.f32.s32": lanes.CvtS32F, "cvt.rn.f32.u32": lanes.CvtU32F, "cvt.s64.s32": lanes.Sext64, "cvt.u64.s32": lanes.Sext64,
		"cvt.u64.u32": lanes.Zext64, "cvt.s64.u32": lanes.Zext64, "cvt.u32.u64": lanes.Trunc32,
	}
	for _, x := range []struct {
		name      string
		o32, o64  lanes.Op
		floating  lanes.Op
		hasFloats bool
	}{{"add", lanes.Add32, lanes.Add64, lanes.AddF, true}, {"sub", lanes.Sub32, lanes.Sub64, lanes.SubF, true}, {"mul.lo", lanes.Mul32, lanes.Mul64, 0, false}} {
		for _, sign := range []string{"s", "u"} {
			m[x.name+"."+sign+"32"], m[x.name+"."+sign+"64"] = x.o32, x.o64
			m["mad.lo."+sign+"32"] = lanes.Mad32
		}
		if x.hasFloats {
			m[x.name+".f32"], m[x.name+".rn.f32"] = x.floating, x.floating
		}
	}
	m["mul.f32"], m["mul.rn.f32"] = lanes.MulF, lanes.MulF
	return m
}()

// vectorTest is a comparison: whether its operands are exchanged, and its result negated.
type vectorTest struct {
	op        lanes.Op
	swap, not bool
}

var vectorTests = func() map[string]vectorTest {
	m := map[string]vectorTest{}
	integers := func(t string, eq, lt lanes.Op) {
		m["setp.eq."+t], m["setp.ne."+t] = vectorTest{eq, false, false}, vectorTest{eq, false, true}
		if lt != 0 {
			m["setp.lt."+t], m["setp.ge."+t] = vectorTest{lt, false, false}, vectorTest{lt, false, true}
			m["setp.gt."+t], m["setp.le."+t] = vectorTest{lt, true, false}, vectorTest{lt, true, true}
		}
	}
	integers("b32", lanes.Eq32, 0)
	integers("s32", lanes.Eq32, lanes.LtS32)
	integers("u32", lanes.Eq32, lanes.LtU32)
	integers("b64", lanes.Eq64, 0)
	integers("s64", lanes.Eq64, lanes.LtS64)
	integers("u64", lanes.Eq64, lanes.LtU64)
	for _, u := range []string{"u32", "u64"} {
		for unsigned, plain := range map[string]string{"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"} {
			m["setp."+unsigned+"."+u] = m["setp."+plain+"."+u]
		}
	}
	for name, t := range map[string]vectorTest{
		"eq": {lanes.EqF, false, false}, "neu": {lanes.EqF, false, true}, "lt": {lanes.LtF, false, false}, "geu": {lanes.LtF, false, true},
		"gt": {lanes.LtF, true, false}, "leu": {lanes.LtF, true, true}, "le": {lanes.LeF, false, false}, "gtu": {lanes.LeF, false, true},
		"ge": {lanes.LeF, true, false}, "ltu": {lanes.LeF, true, true}, "nan": {lanes.UnordF, false, false}, "num": {lanes.UnordF, false, true},
		"equ": {lanes.EquF, false, false}, "ne": {lanes.EquF, false, true},
	} {
		m["setp."+name+".f32"] = t
	}
	return m
}()

// encode gives the instruction under way a form in assembly.
func (e *emitter) encode(op lanes.Op, operands ...warp.Slot) *lanes.Inst {
	if e.engine == nil || !e.engine.Has[op] {
		return &lanes.Inst{} // nobody sees it
	}
	x := lanes.Inst{uint32(op)}
	for i, s := range operands {
		x[lanes.AtD+i] = s.Offset()
	}
	e.vector = append(e.vector[:0], x)
	return &e.vector[0]
}

// encodePlain encodes arithmetic by its name.
func (e *emitter) encodePlain(d warp.Slot, s []warp.Slot) {
	op, ok := vectorNames[e.in.Name()]
	if !ok || d.Bank == simt.Bank32 && d.Bits != 32 && d.Bits != 64 {
		return
	}
	for _, x := range s {
		if x.Bank == simt.Bank32 && x.Bits != 32 && x.Bits != 64 {
			return
		}
	}
	if want, ok := vectorBanks[op]; ok {
		if d.Bank != want[0] || s[0].Bank != want[1] {
			return
		}
	}
	e.encode(op, append([]warp.Slot{d}, s...)...)
}

// vectorBanks are the banks of d and a where cvt, whose registers may be wider than its types, leaves them open.
var vectorBanks = map[lanes.Op][2]simt.Bank{
	lanes.CvtS32F: {simt.Bank32, simt.Bank32}, lanes.CvtU32F: {simt.Bank32, simt.Bank32}, lanes.Sext64: {simt.Bank64, simt.Bank32}, lanes.Zext64: {simt.Bank64, simt.Bank32},
	lanes.Trunc32: {simt.Bank32, simt.Bank64},
}

// encodeTest encodes a comparison of two operands into one predicate.
func (e *emitter) encodeTest(p int32, a, b warp.Slot) {
	t, ok := vectorTests[e.in.Name()]
	if !ok || a.Bank != b.Bank {
		return
	}
	if t.swap {
		a, b = b, a
	}
	e.encode(t.op, warp.Slot{Bank: simt.BankPred, I: p, Bits: 1}, a, b)[lanes.AtImm] = mask(t.not)
}

// encodeGuard puts the guard before the form of the instruction under way: where it holds in all lanes or in none, the
// assembly goes on by itself. An access that is looked at in Go stays there.
func (e *emitter) encodeGuard() {
	p, neg := e.guard()
	if e.err != nil || len(e.vector) == 0 || !e.engine.Has[lanes.Guard] || e.looked() && (e.watch != nil || e.review != nil) {
		e.vector, e.watch, e.review = e.vector[:0], nil, nil
		return
	}
	g := lanes.Inst{uint32(lanes.Guard)}
	g[lanes.AtD], g[lanes.AtA], g[lanes.AtSkip] = warp.Slot{Bank: simt.BankPred, I: p, Bits: 1}.Offset(), mask(neg), uint32(1+len(e.vector))*uint32(unsafe.Sizeof(g))
	e.vector = slices.Insert(e.vector, 0, g)
}

// mask is all ones for true.
func mask(b bool) uint32 {
	if b {
		return simt.Full
	}
	return 0
}

// encodeLogic encodes an operation on predicates.
func (e *emitter) encodeLogic(d, a, b int32, na, nb bool) {
	op, known := map[string]lanes.Op{"and": lanes.AndP, "or": lanes.OrP, "xor": lanes.XorP, "not": lanes.AndP}[e.in.Op]
	if !known {
		return
	}
	if e.in.Op == "not" {
		na, nb = !na, !nb
	}
	x := e.encode(op, warp.Slot{Bank: simt.BankPred, I: d, Bits: 1}, warp.Slot{Bank: simt.BankPred, I: a, Bits: 1}, warp.Slot{Bank: simt.BankPred, I: b, Bits: 1})
	x[lanes.AtX], x[lanes.AtImm] = mask(na), mask(nb)
}

// encodeAccess encodes an access of memory to or from slots, at the address last compiled. The handlers for addresses of
// 32 and of 64 bits are given.
func (e *emitter) encodeAccess(a *check.Access, of32, of64 lanes.Op, regs ...warp.Slot) {
	if !e.locate(a) {
		return
	}
	op := of64
	if e.addr.Bank == simt.Bank32 {
		op = of32
	}
	x := e.encode(op)
	e.encodeAddress(x, a)
	for i, s := range regs {
		x[[...]int{lanes.AtD, lanes.AtB, lanes.AtC, lanes.AtX}[i]] = s.Offset()
	}
}

// locate gives an access its region. False is for those that only Go does.
func (e *emitter) locate(a *check.Access) bool {
	if e.engine == nil || a.Used != 0 || e.addrOff+1<<31 >= 1<<32 {
		return false
	}
	switch {
	case a.Space == ptx.Shared:
		a.Region = bits.TrailingZeros(uint(a.Size))
	case a.Space == ptx.Global && e.addr.Bank == simt.Bank64, a.Space == ptx.ConstSpace && e.addr.Bank == simt.Bank64:
		a.Region = e.code.Regions
		e.code.Regions++
	default:
		return false
	}
	return true
}

func (e *emitter) encodeAddress(x *lanes.Inst, a *check.Access) {
	x[lanes.AtA], x[lanes.AtE], x[lanes.AtImm] = e.addr.Offset(), uint32(a.Region)*uint32(unsafe.Sizeof(lanes.Region{})), uint32(e.addrOff)
}

// registers is whether slots are whole registers of a width.
func registers(list []warp.Slot, bits uint8) bool {
	return !slices.ContainsFunc(list, func(s warp.Slot) bool { return s.Bits != bits || s.Bank == simt.Bank64 != (bits == 64) })
}

// accessOps are the handlers of loads and stores for addresses of 32 and of 64 bits, by the bits and number of values.
type accessOps map[[2]int][2]lanes.Op

var loadOps = accessOps{
	{16, 1}: {lanes.LoadHalf32, lanes.LoadHalf64}, {32, 1}: {lanes.Load1x32, lanes.Load1x64}, {32, 2}: {lanes.Load2x32, lanes.Load2x64},
	{32, 4}: {lanes.Load4x32, lanes.Load4x64}, {64, 1}: {lanes.LoadLong32, lanes.LoadLong64},
}

var storeOps = accessOps{
	{16, 1}: {lanes.StoreHalf32, lanes.StoreHalf64}, {32, 1}: {lanes.Store1x32, lanes.Store1x64}, {32, 2}: {lanes.Store2x32, lanes.Store2x64},
	{32, 4}: {lanes.Store4x32, lanes.Store4x64}, {64, 1}: {lanes.StoreLong32, lanes.StoreLong64},
}

func (e *emitter) encodeLoad(a *check.Access, t ptx.Type, d []warp.Slot) {
	e.encodeValues(loadOps, a, t, d)
}

func (e *emitter) encodeStore(a *check.Access, t ptx.Type, s []warp.Slot) {
	e.encodeValues(storeOps, a, t, s)
}

func (e *emitter) encodeValues(ops accessOps, a *check.Access, t ptx.Type, regs []warp.Slot) {
	op, ok := ops[[2]int{t.Bits(), len(regs)}]
	if ok && registers(regs, uint8(t.Bits())) {
		e.encodeAccess(a, op[0], op[1], regs...)
	}
}

// matrixOps are the handlers of ldmatrix by the number of matrices: plain, then transposed, for addresses of 32 and 64 bits.
var matrixOps = map[int][]lanes.Op{
	2: {lanes.Matrix2x32, lanes.Matrix2x64, lanes.MatrixT2x32, lanes.MatrixT2x64},
	4: {lanes.Matrix4x32, lanes.Matrix4x64, lanes.MatrixT4x32, lanes.MatrixT4x64},
}

// mmaOps are the handlers of mma with float32 accumulators.
var mmaOps = map[string]lanes.Op{"m16n8k16.bf16": lanes.MmaBF16, "m16n8k16.f16": lanes.MmaF16, "m16n8k8.tf32": lanes.MmaTF32}

// encodeMMA encodes an mma. The handler writes a half of D before it reads the other half of C.
func (e *emitter) encodeMMA(shape string, m *mmaOp) {
	op, ok := mmaOps[shape]
	if !ok || m.acc != ptx.F32 || e.v.Modelled || e.engine == nil || !e.engine.Has[op] || overlap(m.d[:2], m.c[2:]) ||
		m.d[0] == m.c[1] && m.d[0] != m.c[0] || m.d[1] == m.c[0] && m.d[1] != m.c[1] {
		return
	}
	if !slices.Equal(e.tileOf, m.a) {
		e.tileOf = m.a
		e.tag++
	}
	e.vector = append(e.vector[:0], encodedMMA(op, e.tag, m.d, m.a, m.b, m.c)...)
}

// encodedMMA is an mma in assembly. Those with the same tag have the same A, which nothing changes between them.
func encodedMMA(op lanes.Op, tag uint32, matrices ...[]warp.Slot) []lanes.Inst {
	x := []lanes.Inst{{uint32(op)}, {}}
	place := 1
	for _, list := range matrices {
		for _, s := range list {
			x[place/len(x[0])][place%len(x[0])] = s.Offset()
			place++
		}
	}
	x[1][7] = tag
	return x
}

// forgetTile ends the sharing of A by mma instructions if the one under way writes a part of it.
func (e *emitter) forgetTile() {
	for _, r := range e.use.Defs {
		if slices.ContainsFunc(e.tileOf, func(s warp.Slot) bool { return s.Bank == e.bank[r] && s.I == e.slots[r] }) {
			e.tileOf = nil
		}
	}
}

func overlap(a, b []warp.Slot) bool {
	return slices.ContainsFunc(a, func(s warp.Slot) bool { return slices.Contains(b, s) })
}

// encodeCopy encodes cp.async of 16 bytes: the address last compiled is that of the source. With a seed a copy may arrive
// at once, which is decided in Go.
func (e *emitter) encodeCopy(to, from *check.Access, target warp.Slot, off uint64) {
	source, sourceOff := e.addr, e.addrOff
	if source.Bank != simt.Bank64 || !e.locate(from) {
		return
	}
	e.addr, e.addrOff = target, off
	if !e.locate(to) {
		return
	}
	op := lanes.Copy64
	if target.Bank == simt.Bank32 {
		op = lanes.Copy32
	}
	if !e.engine.Has[op] {
		return
	}
	first, second := lanes.Inst{uint32(op)}, lanes.Inst{}
	e.encodeAddress(&first, to)
	e.addr, e.addrOff = source, sourceOff
	e.encodeAddress(&second, from)
	e.vector = append(e.vector[:0], first, second)
}
