package compile

import (
	"math"
	"strings"

	"github.com/warpline-ml/warpline/internal/gpusim/arith"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// fragment is how a matrix lies in the registers of a warp: element i of lane l stands at at(l, i). Elements are numbered
// from the lowest bits of the first register on.
type fragment struct {
	registers int
	bits      int // of an element
	at        func(l, i int) (row, col int)
}

func (f *fragment) registerBits() int { return max(f.bits, 32) }

// mmaShape is a form of mma.sync: D = A·B + C, A of m×k, B of k×n. The layouts know m and n.
type mmaShape struct {
	k       int
	a, b, c fragment
	block   int  // products that are aligned together in the truncating model
	narrow  bool // and with fewer bits, as those of 8 bits are
}

// pairsC is the layout of accumulators: pairs of columns, rows g and g+8.
func pairsC(l, i int) (int, int) { return l/4 + 8*(i>>1), 2*(l%4) + i&1 }

// The layouts of the manual, with g = l/4 and q = l%4; B is given as (n, k).
var (
	a16k16 = fragment{4, 16, func(l, i int) (int, int) { return l/4 + 8*(i>>1&1), 2*(l%4) + i&1 + 8*(i>>2) }}
	b16k16 = fragment{2, 16, func(l, i int) (int, int) { return l / 4, 2*(l%4) + i&1 + 8*(i>>1) }}
	a16k8  = fragment{2, 16, func(l, i int) (int, int) { return l/4 + 8*(i>>1), 2*(l%4) + i&1 }}
	b16k8  = fragment{1, 16, func(l, i int) (int, int) { return l / 4, 2*(l%4) + i }}
	a32k8  = fragment{4, 32, func(l, i int) (int, int) { return l/4 + 8*(i&1), l%4 + 4*(i>>1) }}
	b32k8  = fragment{2, 32, func(l, i int) (int, int) { return l / 4, l%4 + 4*i }}
	a32k4  = fragment{2, 32, func(l, i int) (int, int) { return l/4 + 8*i, l % 4 }}
	b32k4  = fragment{1, 32, func(l, i int) (int, int) { return l / 4, l % 4 }}
	a8k32  = fragment{4, 8, func(l, i int) (int, int) { return l/4 + 8*(i>>2&1), 4*(l%4) + i&3 + 16*(i>>3) }}
	b8k32  = fragment{2, 8, func(l, i int) (int, int) { return l / 4, 4*(l%4) + i&3 + 16*(i>>2) }}
	a8k16  = fragment{2, 8, func(l, i int) (int, int) { return l/4 + 8*(i>>2), 4*(l%4) + i&3 }}
	b8k16  = fragment{1, 8, func(l, i int) (int, int) { return l / 4, 4*(l%4) + i }}
	a64k4  = fragment{1, 64, func(l, i int) (int, int) { return l / 4, l % 4 }}
	c64    = fragment{2, 64, func(l, i int) (int, int) { return l / 4, 2*(l%4) + i }}
	c32    = fragment{4, 32, pairsC}
	c16    = fragment{2, 16, pairsC}
)

// mmaShapes is by shape and type of A.
var mmaShapes = map[string]*mmaShape{
	"m16n8k16.f16": {16, a16k16, b16k16, c32, 8, false}, "m16n8k16.bf16": {16, a16k16, b16k16, c32, 8, false},
	"m16n8k8.f16": {8, a16k8, b16k8, c32, 8, false}, "m16n8k8.bf16": {8, a16k8, b16k8, c32, 8, false},
	"m16n8k8.tf32": {8, a32k8, b32k8, c32, 4, false}, "m16n8k4.tf32": {4, a32k4, b32k4, c32, 4, false},
	"m16n8k32.s8": {32, a8k32, b8k32, c32, 0, false}, "m16n8k32.u8": {32, a8k32, b8k32, c32, 0, false},
	"m16n8k16.s8": {16, a8k16, b8k16, c32, 0, false}, "m16n8k16.u8": {16, a8k16, b8k16, c32, 0, false},
	"m16n8k32.e4m3": {32, a8k32, b8k32, c32, 16, true}, "m16n8k32.e5m2": {32, a8k32, b8k32, c32, 16, true},
	"m8n8k4.f64": {4, a64k4, a64k4, c64, 0, false},
}

// mma compiles mma.sync with row-major A and column-major B.
func (e *emitter) mma() warp.Op {
	if e.in.Has("sp") {
		e.fail("a sparse operand; mma.sync with its zeros written out does without")
		return nil
	}
	shape := ""
	for _, m := range e.in.Mods {
		if strings.HasPrefix(m, "m") && strings.Contains(m, "n8k") {
			shape = m
		}
	}
	e.check("sync aligned row col satfinite rn " + shape)
	e.arity(4, 4)
	ts := e.in.Types()
	if e.err != nil || len(ts) != 4 || !e.in.Has("row") || !e.in.Has("col") {
		e.fail("wants .row.col and four types")
		return nil
	}
	s := mmaShapes[shape+"."+ts[1].String()]
	if s == nil || !mmaTypes(s, ts, e.in.Has("satfinite")) {
		e.fail("not a form of sm_80 that is simulated")
		return nil
	}
	sh := *s
	cType := ptx.F32
	switch {
	case ts[0] == ptx.F16:
		sh.c, cType = c16, ptx.F16
	case ts[0] != ptx.F32:
		cType = ts[0]
	}
	reg := ptx.B32
	if cType == ptx.F64 {
		reg = ptx.B64
	}
	a, b, c := e.fragment(1, &sh.a, reg), e.fragment(2, &sh.b, reg), e.fragment(3, &sh.c, reg)
	var d []warp.Slot
	for _, o := range e.list(e.in.Args[0], sh.c.registers) {
		d = append(d, e.dst(o, reg))
	}
	if e.err != nil {
		return nil
	}
	m := &mmaOp{&sh, valueOf(ts[1]), valueOf(ts[2]), valueOf(cType), cType, e.in.Has("satfinite"), a, b, c, d,
		[3][]uint16{sh.a.positions(), sh.b.positions(), sh.c.positions()}}
	e.encodeMMA(shape+"."+ts[1].String(), m)
	return e.waitAll(m.run)
}

// mmaTypes checks the types of D, A, B and C.
func mmaTypes(s *mmaShape, ts []ptx.Type, sat bool) bool {
	integer := ts[1].Kind() != ptx.KindFloat
	switch {
	case integer:
		return ts[0] == ptx.S32 && ts[3] == ptx.S32 && (ts[2] == ptx.S8 || ts[2] == ptx.U8)
	case sat || ts[0] != ts[3] || ts[1] != ts[2] && ts[1].Bits() > 8:
		return false
	case ts[1].Bits() == 8:
		return ts[2].Bits() == 8 && ts[2].Kind() == ptx.KindFloat && (ts[0] == ptx.F32 || ts[0] == ptx.F16)
	case ts[1] == ptx.F64:
		return ts[0] == ptx.F64
	case ts[1] == ptx.F16:
		return ts[0] == ptx.F32 || ts[0] == ptx.F16
	}
	return ts[0] == ptx.F32
}

func (e *emitter) fragment(i int, f *fragment, reg ptx.Type) []warp.Slot {
	var s []warp.Slot
	for _, o := range e.list(e.in.Args[i], f.registers) {
		s = append(s, e.src(o, reg))
	}
	return s
}

// valueOf reads an element; integers are exact in float64.
func valueOf(t ptx.Type) func(b uint64) float64 {
	switch f := arith.FormatOf(t); f {
	case nil:
	case arith.BF16:
		return func(b uint64) float64 { return float64(arith.FromBits(uint32(b) << 16)) }
	case arith.F32:
		return func(b uint64) float64 { return float64(arith.FromBits(uint32(b))) }
	default:
		return f.Float
	}
	ext := arith.Extend(t)
	return func(b uint64) float64 { return float64(int64(ext(b))) }
}

type mmaOp struct {
	shape                  *mmaShape
	valueA, valueB, valueC func(b uint64) float64
	acc                    ptx.Type
	sat                    bool
	a, b, c, d             []warp.Slot
	at                     [3][]uint16 // of A, B, C: where each element stands in a tile, by register, lane and place
}

// positions lists where the elements of a fragment stand.
func (f *fragment) positions() []uint16 {
	per := f.registerBits() / f.bits
	var out []uint16
	for r := range f.registers {
		for l := range simt.WarpSize {
			for j := range per {
				row, col := f.at(l, r*per+j)
				out = append(out, uint16(row*warp.TileRow+col))
			}
		}
	}
	return out
}

// gather reads a matrix out of the lanes.
func (f *fragment) gather(w *warp.Warp, regs []warp.Slot, at []uint16, value func(b uint64) float64, t *warp.Tile) {
	per := f.registerBits() / f.bits
	keep := uint64(math.MaxUint64) >> (64 - f.bits)
	n := 0
	for _, s := range regs {
		for _, x := range w.Wide(s, 0) {
			for range per {
				t[at[n]&(16*warp.TileRow-1)] = value(x & keep)
				n++
				x >>= f.bits
			}
		}
	}
}

func (m *mmaOp) run(w *warp.Warp) {
	t := &w.CTA.Worker.Tiles
	m.shape.a.gather(w, m.a, m.at[0], m.valueA, &t[0])
	m.shape.b.gather(w, m.b, m.at[1], m.valueB, &t[1])
	m.shape.c.gather(w, m.c, m.at[2], m.valueC, &t[2])
	sum := m.sum(w.CTA.Launch.Numerics)
	if m.acc == ptx.F32 && w.CTA.Launch.Numerics == warp.Float32 {
		chains(t, m.shape.k)
		sum = func(_, _ []float64, c float64) uint64 { return uint64(arith.Canon32(float32(c))) }
	}
	f := &m.shape.c
	per, k, at := f.registerBits()/f.bits, m.shape.k, m.at[2]
	n := 0
	for _, s := range m.d {
		var out simt.Vec64
		for l := range out {
			for j := range per {
				row, col := int(at[n]/warp.TileRow), int(at[n]%warp.TileRow)
				out[l] |= sum(t[0][row*warp.TileRow:][:k], t[1][col*warp.TileRow:][:k], t[2][at[n]]) << (j * f.bits)
				n++
			}
		}
		w.Put(s, &out)
	}
}

// sum is the sum of the products of a row and a column, and c.
func (m *mmaOp) sum(numerics warp.Numerics) func(a, b []float64, c float64) uint64 {
	switch {
	case m.acc == ptx.S32:
		return m.sumInt
	case m.acc == ptx.F64:
		return sumF64
	case numerics == warp.Truncating:
		return m.sumTruncating
	case numerics == warp.Float32 && m.acc == ptx.F32:
		return sumF32
	}
	return m.sumExact
}

// sumInt is exact, then wraps to 32 bits or saturates.
func (m *mmaOp) sumInt(a, b []float64, c float64) uint64 {
	s := int64(c)
	for i, x := range a {
		s += int64(x * b[i])
	}
	if m.sat {
		return arith.ClampS32(s) & math.MaxUint32
	}
	return uint64(s) & math.MaxUint32
}

// sumF64 is a chain of fused multiply-adds, as the unit for double precision has.
func sumF64(a, b []float64, c float64) uint64 {
	for i, x := range a {
		c = math.FMA(x, b[i], c)
	}
	return arith.Canon64(math.Float64bits(c))
}

// sumF32 is a chain of fused multiply-adds. A product of two numbers of at most 12 bits is exact in float64, and its sum
// with a float32 can be rounded to float64 before float32: more than twice the bits make the second rounding harmless
// (Figueroa, "When is double rounding innocuous?", SIGNUM Newsletter 30(3)).
func sumF32(a, b []float64, c float64) uint64 {
	s := float32(c)
	b = b[:len(a)]
	for i, x := range a {
		s = float32(float64(s) + x*b[i])
	}
	return uint64(arith.Canon32(s))
}

// chains is sumF32 for all of 16 rows of A and 8 columns of B, to C: four sums at a time, for one has to wait for itself.
func chains(t *[3]warp.Tile, k int) {
	for row := range 16 {
		a := t[0][row*warp.TileRow:][:k]
		for col := 0; col < 8; col += 4 {
			b0, b1, b2, b3 := t[1][col*warp.TileRow:][:k], t[1][(col+1)*warp.TileRow:][:k], t[1][(col+2)*warp.TileRow:][:k], t[1][(col+3)*warp.TileRow:][:k]
			c := t[2][row*warp.TileRow+col:][:4]
			s0, s1, s2, s3 := float32(c[0]), float32(c[1]), float32(c[2]), float32(c[3])
			for i, x := range a {
				s0 = float32(float64(s0) + x*b0[i])
				s1 = float32(float64(s1) + x*b1[i])
				s2 = float32(float64(s2) + x*b2[i])
				s3 = float32(float64(s3) + x*b3[i])
			}
			c[0], c[1], c[2], c[3] = float64(s0), float64(s1), float64(s2), float64(s3)
		}
	}
}

// sumExact adds exact products in float64, in four chains, and rounds once at the end.
func (m *mmaOp) sumExact(a, b []float64, c float64) uint64 {
	var s0, s1, s2, s3 float64
	b = b[:len(a)]
	for i := 0; i+3 < len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	s := (s0 + s1) + (s2 + s3) + c
	if m.acc == ptx.F32 {
		return uint64(arith.Canon32(float32(s)))
	}
	return arith.F16.Round(s, arith.RN)
}

// sumTruncating adds blocks of products to the accumulator as A100 and H100 do: all terms are aligned to the greatest
// exponent and cut off below its 24th bit, then the sum is cut to float32 (Fasi et al., "Numerical behavior of NVIDIA
// tensor cores", PeerJ CS 7:e330).
func (m *mmaOp) sumTruncating(a, b []float64, c float64) uint64 {
	for i := 0; i < len(a); i += m.shape.block {
		n := min(m.shape.block, len(a)-i)
		var terms [17]float64
		for j := range n {
			terms[j] = a[i+j] * b[i+j]
		}
		terms[n] = c
		c = truncatedSum(terms[:n+1], m.kept())
	}
	return arith.FormatOf(m.acc).Round(c, arith.RN)
}

// kept is the bits below the greatest exponent that the truncating model keeps: of 8-bit floats H100 keeps 13 (DeepSeek-V3,
// arXiv:2412.19437, section 3.3.2).
func (m *mmaOp) kept() int {
	if m.shape.narrow {
		return 13
	}
	return 24
}

func truncatedSum(terms []float64, bits int) float64 {
	greatest := math.Inf(-1)
	var plain float64
	for _, t := range terms {
		plain += t
		if t != 0 {
			greatest = max(greatest, float64(math.Ilogb(t)))
		}
	}
	if plain != plain || math.IsInf(plain, 0) || math.IsInf(greatest, 0) {
		return plain
	}
	unit := math.Ldexp(1, int(max(greatest-float64(bits), -1000)))
	var s float64
	for _, t := range terms {
		s += math.Trunc(t / unit)
	}
	return arith.F32.Float(arith.F32.Round(s*unit, arith.RZ))
}
