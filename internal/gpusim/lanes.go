package gpusim

import (
	"math/bits"
	"slices"
	"unsafe"

	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/ptx"
)

//go:generate go run -C ../_asm . lanes ../gpusim

// The assembly is an interpreter of its own: it runs instructions of whole warps, one handler jumping to the next, until
// it meets one that must be done in Go, which is any that has no handler, or a memory access that is not plain: it leaves
// its domain before the instruction has done anything. The forms in Go define what each handler does, bit for bit.

// lanesOp is a handler; zz_lanes.go lists them.
type lanesOp uint32

// inst is an instruction of the assembly: a lanesOp, then operands.
type inst [8]uint32

// The places of operands, but for matrices.
const (
	atD   = 1
	atA   = 2
	atB   = 3
	atC   = 4
	atE   = 5 // the region of a memory access
	atX   = 6
	atImm = 7
)

// The places in each half of a branch: where it goes, and what to count.
const (
	atBlocks = 3
	atStart  = 4 // of the target in prog, in bytes
	atBlock  = 5 // the target
	atSteps  = 6
)

// atSkip is the place in a guard of the bytes of the program up to what follows the guarded instruction.
const atSkip = 3

// laneFrame is what the assembly works on. What it points to others keep alive; the arrays stand on cache lines.
type laneFrame struct {
	r, q, p uintptr // registers of the warp
	regions uintptr // the first of a []region
	shared  uintptr
	async   uintptr // an asyncState
	pc      uintptr // of the instruction that Go must do
	prog    uintptr // the first instruction
	chains  uintptr // how often each block's chain was begun
	block   int64   // whose chain is under way
	left    int64   // blocks before other lanes get a turn
	steps   int64   // instructions, by the chains that the assembly began
	jumps   int64   // branches that it took
	tag     uint32  // of the mma instructions that tile serves, 0 for none
	_       [3]uint32
	off     [warpSize]uint32
	tile    [256]float32 //lint:ignore U1000 the assembly keeps A of the last mma there, row by row
	columns [128]float32 //lint:ignore U1000 and B
}

// region is memory that an instruction may access: addresses from lo on, less than limit from it, at data.
type region struct {
	lo, limit uint64
	data      unsafe.Pointer
	alloc     *allocation // nil for shared memory
}

// sharedRegions are the regions of shared memory, by the logarithm of the size of an access. Those of instructions that
// access global memory follow.
const sharedRegions = 5

// engine is the assembly of a level.
type engine struct {
	run func(f *laneFrame, pc *inst)
	has *[numLanes]bool
}

// engineOf returns the assembly that may be used now, nil for none.
func engineOf(l cpufeat.Level) *engine { return engines[l] }

// aligned makes a slice that starts on a cache line.
func aligned[T any](n int) []T {
	if n == 0 {
		return nil
	}
	const line = 64
	var x T
	b := make([]byte, n*int(unsafe.Sizeof(x))+line)
	skip := -uintptr(unsafe.Pointer(&b[0])) & (line - 1)
	return unsafe.Slice((*T)(unsafe.Pointer(&b[skip])), n)
}

// vectorNames maps instructions to handlers of the shape d = f(a, b, c), with the banks of d, a, b and c.
var vectorNames = func() map[string]lanesOp {
	m := map[string]lanesOp{
		"and.b32": lanesAnd32, "or.b32": lanesOr32, "xor.b32": lanesXor32, "shl.b32": lanesShl32, "shr.u32": lanesShr32, "shr.b32": lanesShr32,
		"shr.s32": lanesSar32, "min.s32": lanesMinS32, "max.s32": lanesMaxS32, "min.u32": lanesMinU32, "max.u32": lanesMaxU32,
		"and.b64": lanesAnd64, "or.b64": lanesOr64, "shl.b64": lanesShl64, "shr.u64": lanesShr64, "shr.b64": lanesShr64, "shr.s64": lanesSar64,
		"mul.wide.s32": lanesMulWideS, "mul.wide.u32": lanesMulWideU, "mad.wide.s32": lanesMadWideS, "mad.wide.u32": lanesMadWideU,
		"fma.rn.f32": lanesFmaF, "div.rn.f32": lanesDivF, "sqrt.rn.f32": lanesSqrtF, "max.f32": lanesMaxF, "min.f32": lanesMinF,
		"ex2.approx.f32": lanesExp2F, "cvt.rn.bf16x2.f32": lanesPairBF16, "neg.f32": lanesNegF, "abs.f32": lanesAbsF,
		"cvt.rn.f32.s32": lanesCvtS32F, "cvt.rn.f32.u32": lanesCvtU32F, "cvt.s64.s32": lanesSext64, "cvt.u64.s32": lanesSext64,
		"cvt.u64.u32": lanesZext64, "cvt.s64.u32": lanesZext64, "cvt.u32.u64": lanesTrunc32,
	}
	for _, x := range []struct {
		name      string
		o32, o64  lanesOp
		floating  lanesOp
		hasFloats bool
	}{{"add", lanesAdd32, lanesAdd64, lanesAddF, true}, {"sub", lanesSub32, lanesSub64, lanesSubF, true}, {"mul.lo", lanesMul32, lanesMul64, 0, false}} {
		for _, sign := range []string{"s", "u"} {
			m[x.name+"."+sign+"32"], m[x.name+"."+sign+"64"] = x.o32, x.o64
			m["mad.lo."+sign+"32"] = lanesMad32
		}
		if x.hasFloats {
			m[x.name+".f32"], m[x.name+".rn.f32"] = x.floating, x.floating
		}
	}
	m["mul.f32"], m["mul.rn.f32"] = lanesMulF, lanesMulF
	return m
}()

// vectorTest is a comparison: whether its operands are exchanged, and its result negated.
type vectorTest struct {
	op        lanesOp
	swap, not bool
}

var vectorTests = func() map[string]vectorTest {
	m := map[string]vectorTest{}
	integers := func(t string, eq, lt lanesOp) {
		m["setp.eq."+t], m["setp.ne."+t] = vectorTest{eq, false, false}, vectorTest{eq, false, true}
		if lt != 0 {
			m["setp.lt."+t], m["setp.ge."+t] = vectorTest{lt, false, false}, vectorTest{lt, false, true}
			m["setp.gt."+t], m["setp.le."+t] = vectorTest{lt, true, false}, vectorTest{lt, true, true}
		}
	}
	integers("b32", lanesEq32, 0)
	integers("s32", lanesEq32, lanesLtS32)
	integers("u32", lanesEq32, lanesLtU32)
	integers("b64", lanesEq64, 0)
	integers("s64", lanesEq64, lanesLtS64)
	integers("u64", lanesEq64, lanesLtU64)
	for _, u := range []string{"u32", "u64"} {
		for unsigned, plain := range map[string]string{"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"} {
			m["setp."+unsigned+"."+u] = m["setp."+plain+"."+u]
		}
	}
	for name, t := range map[string]vectorTest{
		"eq": {lanesEqF, false, false}, "neu": {lanesEqF, false, true}, "lt": {lanesLtF, false, false}, "geu": {lanesLtF, false, true},
		"gt": {lanesLtF, true, false}, "leu": {lanesLtF, true, true}, "le": {lanesLeF, false, false}, "gtu": {lanesLeF, false, true},
		"ge": {lanesLeF, true, false}, "ltu": {lanesLeF, true, true}, "nan": {lanesUnordF, false, false}, "num": {lanesUnordF, false, true},
		"equ": {lanesEquF, false, false}, "ne": {lanesEquF, false, true},
	} {
		m["setp."+name+".f32"] = t
	}
	return m
}()

// offset is the place of a slot in its bank, in bytes.
func (s slot) offset() uint32 {
	return uint32(s.i) * [banks]uint32{4 * warpSize, 8 * warpSize, 4}[s.bank]
}

// encode gives the instruction under way a form in assembly.
func (e *emitter) encode(op lanesOp, operands ...slot) *inst {
	if e.engine == nil || !e.engine.has[op] {
		return &inst{} // nobody sees it
	}
	x := inst{uint32(op)}
	for i, s := range operands {
		x[atD+i] = s.offset()
	}
	e.vector = append(e.vector[:0], x)
	return &e.vector[0]
}

// encodePlain encodes arithmetic by its name.
func (e *emitter) encodePlain(d slot, s []slot) {
	op, ok := vectorNames[e.in.Name()]
	if !ok || d.bank == bank32 && d.bits != 32 && d.bits != 64 {
		return
	}
	for _, x := range s {
		if x.bank == bank32 && x.bits != 32 && x.bits != 64 {
			return
		}
	}
	if want, ok := vectorBanks[op]; ok {
		if d.bank != want[0] || s[0].bank != want[1] {
			return
		}
	}
	e.encode(op, append([]slot{d}, s...)...)
}

// vectorBanks are the banks of d and a where cvt, whose registers may be wider than its types, leaves them open.
var vectorBanks = map[lanesOp][2]bankID{
	lanesCvtS32F: {bank32, bank32}, lanesCvtU32F: {bank32, bank32}, lanesSext64: {bank64, bank32}, lanesZext64: {bank64, bank32},
	lanesTrunc32: {bank32, bank64},
}

// encodeTest encodes a comparison of two operands into one predicate.
func (e *emitter) encodeTest(p int32, a, b slot) {
	t, ok := vectorTests[e.in.Name()]
	if !ok || a.bank != b.bank {
		return
	}
	if t.swap {
		a, b = b, a
	}
	e.encode(t.op, slot{bankPred, p, 1}, a, b)[atImm] = mask(t.not)
}

// encodeGuard puts the guard before the form of the instruction under way: where it holds in all lanes or in none, the
// assembly goes on by itself. An access that is looked at in Go stays there.
func (e *emitter) encodeGuard() {
	p, neg := e.guard()
	if e.err != nil || len(e.vector) == 0 || !e.engine.has[lanesGuard] || e.v.watched && (e.watch != nil || e.review != nil) {
		e.vector, e.watch, e.review = e.vector[:0], nil, nil
		return
	}
	g := inst{uint32(lanesGuard)}
	g[atD], g[atA], g[atSkip] = slot{bankPred, p, 1}.offset(), mask(neg), uint32(1+len(e.vector))*uint32(unsafe.Sizeof(g))
	e.vector = slices.Insert(e.vector, 0, g)
}

// mask is all ones for true.
func mask(b bool) uint32 {
	if b {
		return full
	}
	return 0
}

// encodeLogic encodes an operation on predicates.
func (e *emitter) encodeLogic(d, a, b int32, na, nb bool) {
	op, known := map[string]lanesOp{"and": lanesAndP, "or": lanesOrP, "xor": lanesXorP, "not": lanesAndP}[e.in.Op]
	if !known {
		return
	}
	if e.in.Op == "not" {
		na, nb = !na, !nb
	}
	x := e.encode(op, slot{bankPred, d, 1}, slot{bankPred, a, 1}, slot{bankPred, b, 1})
	x[atX], x[atImm] = mask(na), mask(nb)
}

// encodeAccess encodes an access of memory to or from slots, at the address last compiled. The handlers for addresses of
// 32 and of 64 bits are given.
func (e *emitter) encodeAccess(a *access, of32, of64 lanesOp, regs ...slot) {
	if !e.locate(a) {
		return
	}
	op := of64
	if e.addr.bank == bank32 {
		op = of32
	}
	x := e.encode(op)
	e.encodeAddress(x, a)
	for i, s := range regs {
		x[[...]int{atD, atB, atC, atX}[i]] = s.offset()
	}
}

// locate gives an access its region. False is for those that only Go does.
func (e *emitter) locate(a *access) bool {
	if e.engine == nil || a.used != 0 || e.addrOff+1<<31 >= 1<<32 {
		return false
	}
	switch {
	case a.space == ptx.Shared:
		a.region = bits.TrailingZeros(uint(a.size))
	case a.space == ptx.Global && e.addr.bank == bank64, a.space == ptx.ConstSpace && e.addr.bank == bank64:
		a.region = e.code.regions
		e.code.regions++
	default:
		return false
	}
	return true
}

func (e *emitter) encodeAddress(x *inst, a *access) {
	x[atA], x[atE], x[atImm] = e.addr.offset(), uint32(a.region)*uint32(unsafe.Sizeof(region{})), uint32(e.addrOff)
}

// registers is whether slots are whole registers of a width.
func registers(list []slot, bits uint8) bool {
	return !slices.ContainsFunc(list, func(s slot) bool { return s.bits != bits || s.bank == bank64 != (bits == 64) })
}

// accessOps are the handlers of loads and stores for addresses of 32 and of 64 bits, by the bits and number of values.
type accessOps map[[2]int][2]lanesOp

var loadOps = accessOps{
	{16, 1}: {lanesLoadHalf32, lanesLoadHalf64}, {32, 1}: {lanesLoad1x32, lanesLoad1x64}, {32, 2}: {lanesLoad2x32, lanesLoad2x64},
	{32, 4}: {lanesLoad4x32, lanesLoad4x64}, {64, 1}: {lanesLoadLong32, lanesLoadLong64},
}

var storeOps = accessOps{
	{16, 1}: {lanesStoreHalf32, lanesStoreHalf64}, {32, 1}: {lanesStore1x32, lanesStore1x64}, {32, 2}: {lanesStore2x32, lanesStore2x64},
	{32, 4}: {lanesStore4x32, lanesStore4x64}, {64, 1}: {lanesStoreLong32, lanesStoreLong64},
}

func (e *emitter) encodeLoad(a *access, t ptx.Type, d []slot)  { e.encodeValues(loadOps, a, t, d) }
func (e *emitter) encodeStore(a *access, t ptx.Type, s []slot) { e.encodeValues(storeOps, a, t, s) }

func (e *emitter) encodeValues(ops accessOps, a *access, t ptx.Type, regs []slot) {
	op, ok := ops[[2]int{t.Bits(), len(regs)}]
	if ok && registers(regs, uint8(t.Bits())) {
		e.encodeAccess(a, op[0], op[1], regs...)
	}
}

// matrixOps are the handlers of ldmatrix by the number of matrices: plain, then transposed, for addresses of 32 and 64 bits.
var matrixOps = map[int][]lanesOp{
	2: {lanesMatrix2x32, lanesMatrix2x64, lanesMatrixT2x32, lanesMatrixT2x64},
	4: {lanesMatrix4x32, lanesMatrix4x64, lanesMatrixT4x32, lanesMatrixT4x64},
}

// mmaOps are the handlers of mma with float32 accumulators.
var mmaOps = map[string]lanesOp{"m16n8k16.bf16": lanesMmaBF16, "m16n8k16.f16": lanesMmaF16, "m16n8k8.tf32": lanesMmaTF32}

// encodeMMA encodes an mma. The handler writes a half of D before it reads the other half of C.
func (e *emitter) encodeMMA(shape string, m *mmaOp) {
	op, ok := mmaOps[shape]
	if !ok || m.acc != ptx.F32 || e.v.modelled || e.engine == nil || !e.engine.has[op] || overlap(m.d[:2], m.c[2:]) ||
		m.d[0] == m.c[1] && m.d[0] != m.c[0] || m.d[1] == m.c[0] && m.d[1] != m.c[1] {
		return
	}
	e.vector = append(e.vector[:0], inst{uint32(op)}, inst{})
	place := 1
	for _, list := range [][]slot{m.d, m.a, m.b, m.c} {
		for _, s := range list {
			e.vector[place/len(inst{})][place%len(inst{})] = s.offset()
			place++
		}
	}
	if !slices.Equal(e.tileOf, m.a) {
		e.tileOf = m.a
		e.tag++
	}
	e.vector[1][7] = e.tag
}

// forgetTile ends the sharing of A by mma instructions if the one under way writes a part of it.
func (e *emitter) forgetTile() {
	for _, r := range e.use.defs {
		if slices.ContainsFunc(e.tileOf, func(s slot) bool { return s.bank == e.bank[r] && s.i == e.slots[r] }) {
			e.tileOf = nil
		}
	}
}

func overlap(a, b []slot) bool {
	return slices.ContainsFunc(a, func(s slot) bool { return slices.Contains(b, s) })
}

// encodeCopy encodes cp.async of 16 bytes: the address last compiled is that of the source. With a seed a copy may arrive
// at once, which is decided in Go.
func (e *emitter) encodeCopy(to, from *access, target slot, off uint64) {
	source, sourceOff := e.addr, e.addrOff
	if source.bank != bank64 || !e.locate(from) {
		return
	}
	e.addr, e.addrOff = target, off
	if !e.locate(to) {
		return
	}
	op := lanesCopy64
	if target.bank == bank32 {
		op = lanesCopy32
	}
	if !e.engine.has[op] {
		return
	}
	first, second := inst{uint32(op)}, inst{}
	e.encodeAddress(&first, to)
	e.addr, e.addrOff = source, sourceOff
	e.encodeAddress(&second, from)
	e.vector = append(e.vector[:0], first, second)
}
