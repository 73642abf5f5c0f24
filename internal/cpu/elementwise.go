package cpu

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// float and integer are the types that kernels compute in.
type float interface{ float32 | float64 }

type integer interface{ int64 | int32 | uint8 }

type number interface{ float | integer }

// pass computes dst[i] from x[i] and, where the op has one, y[i]. All have dst's length; dst may be x or y. p and q are
// the launch parameters.
type pass[D, T any] func(dst []D, x, y []T, p, q float64)

// Elements per parallel chunk, by the cost of one: a chunk takes 5 to 20 µs.
const (
	grainCheap = 1 << 14
	grainMath  = 1 << 12
)

// mapping runs a pass over operands of any strides and storage.
type mapping[D, T any] struct {
	pass   pass[D, T]
	chunks *loop[mapCall]
	n      int
	grain  int
	params int
	direct bool
	out    sink[D]
	x, y   source[T] // y may be nil
	even   [2]bool   // x, y is one element again and again
}

// mapped makes the kernel of a pass.
func mapped[D, T any](k *device.Kernel, f pass[D, T], grain int) run {
	op := &k.Op
	m := &mapping[D, T]{pass: f, grain: grain, params: op.Code.NumParams()}
	m.out = sinkOf[D](k.Out[0])
	m.x = sourceOf[T](op.In(0))
	m.direct = direct(k.Out[0]) && direct(op.Ins()...)
	if op.NumIn() > 1 {
		m.y = sourceOf[T](op.In(1))
	}
	for i, t := range op.Ins() {
		l := layoutOf(t)
		m.even[i] = l.rank == 1 && l.stride[0] == 0
	}
	return m.kernel(k)
}

func (m *mapping[D, T]) kernel(k *device.Kernel) run {
	m.n = k.Out[0].Size()
	m.chunks = newLoop(m.span)
	return m.run
}

// mapCall is what varies between launches.
type mapCall struct {
	args []device.Arg
	p, q float64
}

func (m *mapping[D, T]) run(args []device.Arg, p *device.Params) error {
	c := mapCall{args: args}
	if m.params > 0 {
		c.p, c.q = scalar(p, 0), scalar(p, 1)
	}
	switch {
	case m.n == 0:
	case m.n > m.grain:
		m.chunks.run(m.n, m.grain, c)
	default:
		m.span(&c, 0, m.n)
	}
	return nil
}

// span computes elements [lo, hi).
func (m *mapping[D, T]) span(c *mapCall, lo, hi int) {
	if !m.direct {
		m.tiles(c, lo, hi)
		return
	}
	var y []T
	if m.y != nil {
		y = values[T](c.args[2], m.n)[lo:hi]
	}
	m.pass(values[D](c.args[0], m.n)[lo:hi], values[T](c.args[1], m.n)[lo:hi], y, c.p, c.q)
}

func (m *mapping[D, T]) tiles(c *mapCall, lo, hi int) {
	s := borrow()
	defer s.giveBack()
	var x, y []T
	for first := true; lo < hi; lo, first = lo+tile, false {
		n := min(tile, hi-lo)
		if first || !m.even[0] {
			x = m.x.load(c.args[1], lo, slot[T](s, slotX, n), s)
		}
		if m.y != nil && (first || !m.even[1]) {
			y = m.y.load(c.args[2], lo, slot[T](s, slotY, n), s)
		}
		dst := m.out.begin(c.args[0], lo, slot[D](s, slotOut, n))
		m.pass(dst, x[:n], tail(y, 0, n), c.p, c.q)
		m.out.commit(c.args[0], lo, dst, s)
	}
}

// floatPasses are an op's passes over the floating-point types; the 16-bit ones use f32.
type floatPasses struct {
	grain int
	f32   pass[float32, float32]
	f64   pass[float64, float64]
}

func (f floatPasses) prepare(k *device.Kernel) (run, error) {
	switch dt := k.Op.In(0).DType; dt {
	case dtype.F32, dtype.F16, dtype.BF16:
		return mapped(k, f.f32, f.grain), nil
	case dtype.F64:
		return mapped(k, f.f64, f.grain), nil
	default:
		return nil, unsupported(&k.Op, dt)
	}
}

// numberPasses are an op's passes over all types but bool.
type numberPasses struct {
	floatPasses
	integerPasses
}

func (f numberPasses) prepare(k *device.Kernel) (run, error) {
	if k.Op.In(0).DType.IsFloat() {
		return f.floatPasses.prepare(k)
	}
	return f.integerPasses.prepare(k)
}

// integerPasses are an op's passes over integers.
type integerPasses struct {
	i64 pass[int64, int64]
	i32 pass[int32, int32]
	u8  pass[uint8, uint8]
}

func (f integerPasses) prepare(k *device.Kernel) (run, error) {
	switch dt := k.Op.In(0).DType; dt {
	case dtype.I64:
		return mapped(k, f.i64, grainCheap), nil
	case dtype.I32:
		return mapped(k, f.i32, grainCheap), nil
	case dtype.U8:
		return mapped(k, f.u8, grainCheap), nil
	default:
		return nil, unsupported(&k.Op, dt)
	}
}

// extremePasses are numberPasses with those of bool, whose bytes are 0 and 1, as those of u8.
type extremePasses struct{ numberPasses }

func (f extremePasses) prepare(k *device.Kernel) (run, error) {
	if k.Op.In(0).DType == dtype.Bool {
		return mapped(k, f.u8, f.grain), nil
	}
	return f.numberPasses.prepare(k)
}

// comparePasses are the passes of a comparison.
type comparePasses struct {
	f32 pass[bool, float32]
	f64 pass[bool, float64]
	i64 pass[bool, int64]
	i32 pass[bool, int32]
	u8  pass[bool, uint8]
}

func (f comparePasses) prepare(k *device.Kernel) (run, error) {
	switch dt := k.Op.In(0).DType; dt {
	case dtype.F32, dtype.F16, dtype.BF16:
		return mapped(k, f.f32, grainCheap), nil
	case dtype.F64:
		return mapped(k, f.f64, grainCheap), nil
	case dtype.I64:
		return mapped(k, f.i64, grainCheap), nil
	case dtype.I32:
		return mapped(k, f.i32, grainCheap), nil
	case dtype.U8, dtype.Bool:
		return mapped(k, f.u8, grainCheap), nil
	default:
		return nil, unsupported(&k.Op, dt)
	}
}

// boolPass is the pass of an op on truth values.
type boolPass pass[bool, bool]

func (f boolPass) prepare(k *device.Kernel) (run, error) {
	if dt := k.Op.In(0).DType; dt != dtype.Bool {
		return nil, unsupported(&k.Op, dt)
	}
	return mapped(k, pass[bool, bool](f), grainCheap), nil
}

// choice is Where.
type choice[T any] struct {
	chunks *loop[mapCall]
	n      int
	c      source[bool]
	x, y   source[T]
}

func choose[T any](k *device.Kernel) run {
	op := &k.Op
	w := &choice[T]{nil, k.Out[0].Size(), nativeOf[bool](op.In(0)), nativeOf[T](op.In(1)), nativeOf[T](op.In(2))}
	w.chunks = newLoop(w.span)
	return w.run
}

func (w *choice[T]) run(args []device.Arg, _ *device.Params) error {
	c := mapCall{args: args}
	if w.n > grainCheap {
		w.chunks.run(w.n, grainCheap, c)
	} else {
		w.span(&c, 0, w.n)
	}
	return nil
}

func (w *choice[T]) span(call *mapCall, lo, hi int) {
	s := borrow()
	defer s.giveBack()
	args := call.args
	out := values[T](args[0], w.n)
	for ; lo < hi; lo += tile {
		n := min(tile, hi-lo)
		c := w.c.load(args[1], lo, slot[bool](s, slotC, n), s)
		x := w.x.load(args[2], lo, slot[T](s, slotX, n), s)
		y := w.y.load(args[3], lo, slot[T](s, slotY, n), s)
		choosePass(out[lo:lo+n], c, x, y)
	}
}

func init() {
	offer(bySize{choose[uint8], choose[uint16], choose[uint32], choose[uint64]}.prepare, ir.Where)
}
