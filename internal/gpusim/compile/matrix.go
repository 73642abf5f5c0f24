package compile

import (
	"math"
	"strings"

	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/numbers"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// The products of matrices that the engine has no kernels with: wmma, and the shapes of mma.sync for small integers. They
// share one form, in which every fragment is a matrix and a place for each of its elements.

// layout is how a matrix lies in the registers of a warp. Elements are numbered by register, lane and place in the register.
type layout struct {
	rows, cols, registers int
	t                     ptx.Type
	at                    []int32 // row·cols + col, by element
}

// newLayout asks at for the place of element i of lane l.
func newLayout(rows, cols, registers int, t ptx.Type, at func(l, i int) (row, col int)) *layout {
	x := &layout{rows: rows, cols: cols, registers: registers, t: t}
	per := x.perRegister()
	for r := range registers {
		for l := range simt.WarpSize {
			for j := range per {
				row, col := at(l, r*per+j)
				x.at = append(x.at, int32(row*cols+col))
			}
		}
	}
	return x
}

// spread lays a matrix out by rows, so many elements to a lane, from the start again where lanes have room for more.
func spread(rows, cols, registers int, t ptx.Type) *layout {
	x := &layout{t: t}
	lane := registers * x.perRegister()
	return newLayout(rows, cols, registers, t, func(l, i int) (int, int) {
		e := (l*lane + i) % (rows * cols)
		return e / cols, e % cols
	})
}

// register is the type of a register that holds elements.
func (x *layout) register() ptx.Type {
	if x.t == ptx.F64 {
		return ptx.B64
	}
	return ptx.B32
}

func (x *layout) perRegister() int { return x.register().Bits() / x.t.Bits() }

// gather reads the matrix out of the lanes, by rows.
func (x *layout) gather(w *warp.Warp, regs []warp.Slot, value func(b uint64) float64) []float64 {
	out := make([]float64, x.rows*x.cols)
	bits := x.t.Bits()
	keep, n := uint64(math.MaxUint64)>>(64-bits), 0
	for _, s := range regs {
		for _, v := range w.Wide(s, 0) {
			for range x.perRegister() {
				out[x.at[n]] = value(v & keep)
				v >>= bits
				n++
			}
		}
	}
	return out
}

// scatter writes elements to the lanes.
func (x *layout) scatter(w *warp.Warp, regs []warp.Slot, element func(at int) uint64) {
	bits, n := x.t.Bits(), 0
	for _, s := range regs {
		var out simt.Vec64
		for l := range out {
			for j := range x.perRegister() {
				out[l] |= element(int(x.at[n])) << (j * bits)
				n++
			}
		}
		w.Put(s, &out)
	}
}

// matrixSlots are the registers of a fragment in operand i.
func (e *emitter) matrixSlots(i int, x *layout, write bool) (list []warp.Slot) {
	for _, o := range e.list(e.arg(i), x.registers) {
		if write {
			list = append(list, e.dst(o, x.register()))
		} else {
			list = append(list, e.src(o, x.register()))
		}
	}
	return list
}

// matrixValue reads an element; a bit is 0 or 1.
func matrixValue(t ptx.Type) func(b uint64) float64 {
	if t == ptx.B1 {
		return func(b uint64) float64 { return float64(b) }
	}
	if t == ptx.S4 {
		return func(b uint64) float64 { return float64(int64(b<<60) >> 60) }
	}
	return valueOf(t)
}

// matrixProduct is D = A·B + C with B given by columns.
type matrixProduct struct {
	a, b, c, d *layout
	block      int // products that are aligned together in the truncating model
	sat, xor   bool
}

// emit compiles the product of operands 1 and 2 and the sum with 3.
func (p *matrixProduct) emit(e *emitter) warp.Op {
	a, b, c := e.matrixSlots(1, p.a, false), e.matrixSlots(2, p.b, false), e.matrixSlots(3, p.c, false)
	d := e.matrixSlots(0, p.d, true)
	if e.err != nil {
		return nil
	}
	va, vb, vc := matrixValue(p.a.t), matrixValue(p.b.t), matrixValue(p.c.t)
	m := &mmaOp{shape: &mmaShape{block: p.block}, acc: p.d.t, sat: p.sat}
	k, n := p.a.cols, p.d.cols
	return e.waitAll(func(w *warp.Warp) {
		x, y, z := p.a.gather(w, a, va), p.b.gather(w, b, vb), p.c.gather(w, c, vc)
		sum := p.sum(m, w.CTA.Launch.Numerics)
		p.d.scatter(w, d, func(at int) uint64 {
			row, col := at/n, at%n
			return sum(x[row*k:][:k], y[col*k:][:k], z[at])
		})
	})
}

func (p *matrixProduct) sum(m *mmaOp, numerics warp.Numerics) func(a, b []float64, c float64) uint64 {
	if p.xor {
		return sumXor
	}
	return m.sum(numerics)
}

// sumXor counts the bits that differ.
func sumXor(a, b []float64, c float64) uint64 {
	n := int64(c)
	for i, x := range a {
		n += int64(simt.Bit(x != b[i]))
	}
	return uint64(n) & math.MaxUint32
}

// smallShapes are the forms of mma.sync for elements of 1, 4 and 8 bits beside those of mmaShapes: by shape and width, the
// registers of A and B. The layouts of the manual are all of one kind.
var smallShapes = map[string]struct{ m, k, a, b int }{
	"m8n8k16.8": {8, 16, 1, 1}, "m8n8k32.4": {8, 32, 1, 1}, "m16n8k32.4": {16, 32, 2, 1}, "m16n8k64.4": {16, 64, 4, 2},
	"m8n8k128.1": {8, 128, 1, 1}, "m16n8k128.1": {16, 128, 2, 1}, "m16n8k256.1": {16, 256, 4, 2},
}

// smallLayouts are the fragments: a register holds neighbours of a row of A, registers go down 8 rows first and then right.
func smallLayouts(m, k, a, b int, ta, tb ptx.Type) (x, y, z *layout) {
	per := 32 / ta.Bits()
	x = newLayout(m, k, a, ta, func(l, i int) (int, int) {
		r, down := i/per, m/8
		return l/4 + 8*(r%down), l%4*per + i%per + 4*per*(r/down)
	})
	y = newLayout(8, k, b, tb, func(l, i int) (int, int) { return l / 4, l%4*per + i%per + 4*per*(i/per) })
	z = newLayout(m, 8, m/4, ptx.S32, func(l, i int) (int, int) { return l/4 + 8*(i/2), 2*(l%4) + i%2 })
	return x, y, z
}

// product compiles mma.sync of small integers, and leaves the rest to mma.
func (e *emitter) product() warp.Op {
	shape := ""
	for _, m := range e.in.Mods {
		if strings.HasPrefix(m, "m") && strings.Contains(m, "n8k") {
			shape = m
		}
	}
	ts := e.in.Types()
	if len(ts) != 4 || ts[1].Bits() > 8 {
		return e.mma()
	}
	s, ok := smallShapes[shape+"."+map[int]string{1: "1", 4: "4", 8: "8"}[ts[1].Bits()]]
	if !ok {
		return e.mma()
	}
	e.check("sync aligned row col satfinite xor and popc " + shape)
	e.arity(4, 4)
	if ts[0] != ptx.S32 || ts[3] != ptx.S32 || ts[1].Bits() != ts[2].Bits() || ts[1].Kind() == ptx.KindFloat {
		e.fail("not a form of sm_80 that is simulated")
	}
	if e.err != nil {
		return nil
	}
	p := &matrixProduct{sat: e.in.Has("satfinite"), xor: e.in.Has("xor")}
	p.a, p.b, p.c = smallLayouts(s.m, s.k, s.a, s.b, ts[1], ts[2])
	p.d = p.c
	return p.emit(e)
}

// wmmaShape reads m, n and k.
func (e *emitter) wmmaShape() (m, n, k int) {
	for _, x := range e.in.Mods {
		switch x {
		case "m16n16k16":
			return 16, 16, 16
		case "m8n32k16":
			return 8, 32, 16
		case "m32n8k16":
			return 32, 8, 16
		case "m16n16k8":
			return 16, 16, 8
		case "m8n8k4":
			return 8, 8, 4
		case "m8n8k32":
			return 8, 8, 32
		case "m8n8k128":
			return 8, 8, 128
		}
	}
	e.fail("wants a shape")
	return 0, 0, 0
}

// wmmaFragment is a fragment of wmma: of elements by rows, of f16 in 8 registers whatever the shape, 4 for accumulators. The
// manual leaves the layout open.
func wmmaFragment(rows, cols int, t ptx.Type, factor bool) *layout {
	x := &layout{t: t}
	registers := max(1, rows*cols/simt.WarpSize/x.perRegister())
	if t == ptx.F16 && factor {
		registers = 8
	}
	return spread(rows, cols, registers, t)
}

func (e *emitter) wmma() warp.Op {
	const shapes = " m16n16k16 m8n32k16 m32n8k16 m16n16k8 m8n8k4 m8n8k32 m8n8k128"
	e.check("load store mma a b c d sync aligned row col global shared shared::cta satfinite rn xor and popc" + shapes)
	m, n, k := e.wmmaShape()
	ts := e.in.Types()
	if e.err != nil || len(ts) == 0 {
		e.fail("wants types")
		return nil
	}
	switch {
	case e.in.Has("mma"):
		return e.wmmaProduct(m, n, k, ts)
	case e.in.Has("store"):
		return e.wmmaAccess(wmmaFragment(m, n, ts[0], false), e.in.Has("col"), 0, 1)
	case e.in.Has("a"):
		return e.wmmaAccess(wmmaFragment(m, k, ts[0], true), e.in.Has("col"), 1, 0)
	case e.in.Has("b"): // kept by columns
		return e.wmmaAccess(wmmaFragment(n, k, ts[0], true), e.in.Has("row"), 1, 0)
	}
	return e.wmmaAccess(wmmaFragment(m, n, ts[0], false), e.in.Has("col"), 1, 0)
}

func (e *emitter) wmmaProduct(m, n, k int, ts []ptx.Type) warp.Op {
	e.arity(4, 4)
	a, b, acc := ptx.F16, ptx.F16, ts[len(ts)-1]
	if len(ts) == 4 {
		a, b = ts[1], ts[2]
	}
	p := &matrixProduct{a: wmmaFragment(m, k, a, true), b: wmmaFragment(n, k, b, true), c: wmmaFragment(m, n, acc, false),
		d: wmmaFragment(m, n, ts[0], false), block: min(k, 8), sat: e.in.Has("satfinite"), xor: e.in.Has("xor")}
	if a == ptx.TF32 {
		p.block = 4
	}
	if p.sat && ts[0] != ptx.S32 {
		e.fail(".satfinite of floats")
	}
	return p.emit(e)
}

// wmmaAccess compiles a load or a store of a fragment: across says that rows of the fragment are columns in memory, mem and
// regs are the operands. Elements of less than a byte are loaded by the register, which holds neighbours.
func (e *emitter) wmmaAccess(x *layout, across bool, mem, regs int) warp.Op {
	write := mem == 0
	e.arity(2, 3)
	per := 1
	if x.t.Bits() < 8 {
		per = x.perRegister()
	}
	size := x.t.Bits() * per / 8
	a, addr := e.memory(e.arg(mem), size, write)
	lead := int64(x.cols)
	if across {
		lead = int64(x.rows)
	}
	stride := e.constant(uint64(lead), ptx.U32)
	if len(e.in.Args) == 3 {
		stride = e.src(e.in.Args[2], ptx.U32)
	}
	r := e.matrixSlots(regs, x, !write)
	if e.err != nil {
		return nil
	}
	m := placement{x, a, stride, per, across}
	width := x.t.Bits()
	if write {
		return e.waitAll(func(w *warp.Warp) {
			addr(w)
			m.each(w, func(reg, lane, j int, p []byte) { numbers.Put(p, size, w.Get(r[reg], lane)>>(j*width)) })
		})
	}
	return e.waitAll(func(w *warp.Warp) {
		addr(w)
		out := make([]simt.Vec64, len(r))
		m.each(w, func(reg, lane, j int, p []byte) { out[reg][lane] |= numbers.Get(p, size) << (j * width) })
		for i, s := range r {
			w.Put(s, &out[i])
		}
	})
}

// placement is where the elements of a fragment of wmma are in memory.
type placement struct {
	*layout
	a      *check.Access
	stride warp.Slot // elements between rows, or columns
	per    int       // elements of one access
	across bool      // rows of the fragment are columns in memory
}

// each calls f for every access of the lanes that take part: the register and the lane whose elements from j on are at p.
// It stops where an access is refused.
func (m *placement) each(w *warp.Warp, f func(reg, lane, j int, p []byte)) {
	base, held := w.Addr, m.perRegister()
	for i := 0; i < len(m.at); i += m.per {
		lane := i / held % simt.WarpSize
		if w.Mask>>lane&1 == 0 {
			continue
		}
		row, col := int(m.at[i])/m.cols, int(m.at[i])%m.cols
		if m.across {
			row, col = col, row
		}
		element := uint64(row)*w.Get(m.stride, lane) + uint64(col)
		p := w.Ref(m.a, lane, base[lane]+element*uint64(m.t.Bits())/8)
		if p == nil {
			return
		}
		f(i/held/simt.WarpSize, lane, i%held, p)
	}
}
