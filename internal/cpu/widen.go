package cpu

import (
	"fmt"
	"slices"
	"sync"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// forFloats makes kernels for f32 and f64 into one for every floating dtype, chosen by the first operand. Operands
// must be row-major.
func forFloats(f32, f64 prepare) prepare {
	return inF32(func(k *device.Kernel) (run, error) {
		for _, t := range slices.Concat(k.Out, k.Op.Ins()) {
			if !t.IsDense() {
				return nil, fmt.Errorf("%s of %s, which is not row-major: %w", k.Op.Code, t, device.ErrUnsupported)
			}
		}
		return byFloat(k, f32, f64)
	})
}

func byFloat(k *device.Kernel, f32, f64 prepare) (run, error) {
	switch dt := k.Op.In(0).DType; dt {
	case dtype.F32:
		return f32(k)
	case dtype.F64:
		return f64(k)
	default:
		return nil, unsupported(&k.Op, dt)
	}
}

// byNumber is a kernel that adds or compares elements, for each type of the first operand that has an addition: bool has none.
type byNumber struct {
	f32, f64, i64, i32, u8 func(k *device.Kernel) run
}

func (f byNumber) prepare(k *device.Kernel) (run, error) {
	switch dt := k.Op.In(0).DType; dt {
	case dtype.F32:
		return f.f32(k), nil
	case dtype.F64:
		return f.f64(k), nil
	case dtype.I64:
		return f.i64(k), nil
	case dtype.I32:
		return f.i32(k), nil
	case dtype.U8:
		return f.u8(k), nil
	default:
		return nil, unsupported(&k.Op, dt)
	}
}

// inF32 makes p serve the 16-bit types: operands are widened to f32 in the workspace, the op runs in f32 as p has
// it, and results are rounded once at the end.
func inF32(p prepare) prepare {
	return func(k *device.Kernel) (run, error) {
		if !slices.ContainsFunc(slices.Concat(k.Out, k.Op.Ins()), narrow) {
			return p(k)
		}
		w, err := newWide(k, p)
		if err != nil {
			return nil, err
		}
		return w.run, nil
	}
}

func narrow(t *ir.Type) bool { return t.DType == dtype.F16 || t.DType == dtype.BF16 }

func widenType(t *ir.Type) *ir.Type {
	if t == nil || !narrow(t) {
		return t
	}
	return ir.Strided(dtype.F32, t.Shape(), t.Strides())
}

// wide is an op of 16-bit operands around the same op of f32.
type wide struct {
	inner     run
	outs      int
	types     []*ir.Type // of outputs and inputs, as the caller has them
	offset    []int64    // of each operand's f32 copy in the workspace; -1 without one
	tail      int64      // where the inner op's workspace begins
	innerTail bool       // it needs one
	args      sync.Pool  // of *[]device.Arg
	convert   *loop[conversion]
}

func newWide(k *device.Kernel, p prepare) (*wide, error) {
	in := make([]*ir.Type, k.Op.NumIn())
	for i, t := range k.Op.Ins() {
		in[i] = widenType(t)
	}
	attr := k.Op.Attr
	attr.Out = widenType(attr.Out)
	if attr.DType == dtype.F16 || attr.DType == dtype.BF16 {
		attr.DType = dtype.F32
	}
	inner := device.Kernel{Op: ir.New(k.Op.Code, attr, in...)}
	var err error
	if inner.Out, err = inner.Op.Infer(); err != nil {
		return nil, err
	}
	w := &wide{outs: len(k.Out), types: slices.Concat(k.Out, k.Op.Ins()), convert: newLoop(convertChunk)}
	if w.inner, err = p(&inner); err != nil {
		return nil, err
	}
	for _, t := range w.types {
		if !narrow(t) {
			w.offset = append(w.offset, -1)
			continue
		}
		w.offset = append(w.offset, w.tail)
		w.tail += aligned(4 * int64(t.Span()))
	}
	w.innerTail = inner.Workspace > 0
	k.Workspace = w.tail + inner.Workspace
	w.args.New = func() any {
		a := make([]device.Arg, len(w.types)+1)
		return &a
	}
	return w, nil
}

func (w *wide) run(args []device.Arg, p *device.Params) error {
	n := len(w.types)
	space := device.Arg{}
	if len(args) > n {
		space = args[n]
	}
	buf := w.args.Get().(*[]device.Arg)
	defer w.args.Put(buf)
	inner := *buf
	for i, off := range w.offset {
		if inner[i] = args[i]; off >= 0 {
			inner[i] = device.Arg{Mem: space.Mem, Offset: space.Offset + off}
		}
	}
	inner[n] = device.Arg{Mem: space.Mem, Offset: space.Offset + w.tail}
	w.move(args, inner, w.outs, n, true)
	used := inner[:n]
	if w.innerTail {
		used = inner
	}
	if err := w.inner(used, p); err != nil {
		return err
	}
	w.move(args, inner, 0, w.outs, false)
	return nil
}

// move converts the 16-bit operands from lo to hi, to f32 or back.
func (w *wide) move(args, inner []device.Arg, lo, hi int, widen bool) {
	for i := lo; i < hi; i++ {
		if w.offset[i] < 0 {
			continue
		}
		c := conversion{f32: workspace[float32](inner[i], 0, w.types[i].Span()), widen: widen}
		if w.types[i].DType == dtype.F16 {
			c.f16 = elems[dtype.Float16](args[i], w.types[i])
		} else {
			c.bf16 = elems[dtype.BFloat16](args[i], w.types[i])
		}
		w.convert.run(len(c.f32), 1<<14, c)
	}
}

// conversion is between f32 and whichever of the others is set.
type conversion struct {
	f32   []float32
	f16   []dtype.Float16
	bf16  []dtype.BFloat16
	widen bool
}

func convertChunk(c *conversion, lo, hi int) {
	switch {
	case c.widen && c.f16 != nil:
		convert(c.f32[lo:hi], c.f16[lo:hi])
	case c.widen:
		convert(c.f32[lo:hi], c.bf16[lo:hi])
	case c.f16 != nil:
		convert(c.f16[lo:hi], c.f32[lo:hi])
	default:
		convert(c.bf16[lo:hi], c.f32[lo:hi])
	}
}
