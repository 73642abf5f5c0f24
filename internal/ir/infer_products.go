package ir

import (
	"fmt"
	"math"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
)

func inferMatMul(o *Op) ([]*Type, error) {
	a, b := o.In(0), o.In(1)
	n := a.Rank()
	if err := sameDType(a, b); err != nil {
		return nil, err
	}
	if n < 2 || b.Rank() != n || !slices.Equal(a.shape[:n-2], b.shape[:n-2]) || a.Dim(-1) != b.Dim(-2) {
		return nil, fmt.Errorf("%v times %v: the last size of the first must be the last but one of the second, leading sizes equal", a.shape, b.shape)
	}
	var shape [MaxRank]int
	copy(shape[:], a.shape)
	shape[n-1] = b.Dim(-1)
	dt, err := sumsIn(o.Attr.DType, a.DType)
	if err != nil {
		return nil, err
	}
	return dense(dt, shape[:n]...)
}

// sumsIn is the dtype of sums of products: that of the operands, or their [Wide] one where it is asked for.
func sumsIn(want, dt dtype.DType) (dtype.DType, error) {
	if want == 0 || want == dt {
		return dt, nil
	}
	if !dt.IsFloat() || want != Wide(dt) {
		return dt, badDType("sums of %s in %s", dt, want)
	}
	return want, nil
}

// Conv names the attributes of a convolution or pooling.
type Conv struct{ StrideH, StrideW, PadH, PadW, DilationH, DilationW, Groups int }

// Attr packs the attributes of a convolution.
func (c Conv) Attr() Attr {
	return Attr{Dims: [MaxRank]int32{int32(c.StrideH), int32(c.StrideW), int32(c.PadH), int32(c.PadW), int32(c.DilationH), int32(c.DilationW), int32(c.Groups)}}
}

// Conv unpacks them.
func (a *Attr) Conv() Conv {
	d := &a.Dims
	return Conv{int(d[0]), int(d[1]), int(d[2]), int(d[3]), int(d[4]), int(d[5]), int(d[6])}
}

// Pool names the attributes of a pooling.
type Pool struct{ KernelH, KernelW, StrideH, StrideW, PadH, PadW int }

// Attr packs the attributes of a pooling.
func (p Pool) Attr() Attr {
	return Attr{Dims: [MaxRank]int32{int32(p.KernelH), int32(p.KernelW), int32(p.StrideH), int32(p.StrideW), int32(p.PadH), int32(p.PadW)}}
}

// Pool unpacks them.
func (a *Attr) Pool() Pool {
	d := &a.Dims
	return Pool{int(d[0]), int(d[1]), int(d[2]), int(d[3]), int(d[4]), int(d[5])}
}

// window is the number of places of a window of k (already dilated) over n padded elements.
func window(n, pad, k, stride int) (int, error) {
	if stride < 1 || pad < 0 || k < 1 {
		return 0, fmt.Errorf("window of %d, stride %d, padding %d", k, stride, pad)
	}
	if n+2*pad < k {
		return 0, fmt.Errorf("a window of %d over %d elements with padding %d", k, n, pad)
	}
	return (n+2*pad-k)/stride + 1, nil
}

// convShape is the result shape of x[n,c,h,w] with w[o,c/g,kh,kw].
func convShape(x, w []int, c Conv) ([]int, error) {
	if len(x) != 4 || len(w) != 4 {
		return nil, fmt.Errorf("input %v and weight %v must have 4 dimensions", x, w)
	}
	if c.Groups < 1 || c.DilationH < 1 || c.DilationW < 1 || w[0]%c.Groups != 0 || x[1] != w[1]*c.Groups {
		return nil, fmt.Errorf("input %v has %d channels; weight %v in %d groups of dilation %d×%d", x, x[1], w, c.Groups, c.DilationH, c.DilationW)
	}
	h, err := window(x[2], c.PadH, (w[2]-1)*c.DilationH+1, c.StrideH)
	if err != nil {
		return nil, err
	}
	v, err := window(x[3], c.PadW, (w[3]-1)*c.DilationW+1, c.StrideW)
	if err != nil {
		return nil, err
	}
	return []int{x[0], w[0], h, v}, nil
}

func inferConv(o *Op) ([]*Type, error) {
	x, w := o.In(0), o.In(1)
	if err := sameDType(o.Ins()...); err != nil {
		return nil, err
	}
	shape, err := convShape(x.shape, w.shape, o.Attr.Conv())
	if err != nil {
		return nil, err
	}
	if o.NumIn() == 3 && !slices.Equal(o.In(2).shape, w.shape[:1]) {
		return nil, fmt.Errorf("bias %v for %d channels", o.In(2).shape, w.shape[0])
	}
	return dense(x.DType, shape...)
}

func inferConvGradInput(o *Op) ([]*Type, error) {
	if err := o.wantOut(); err != nil {
		return nil, err
	}
	return convGrad(o, o.Attr.Out, o.In(1), o.In(0))
}

func inferConvGradWeight(o *Op) ([]*Type, error) {
	if err := o.wantOut(); err != nil {
		return nil, err
	}
	return convGrad(o, o.In(1), o.Attr.Out, o.In(0))
}

func convGrad(o *Op, x, w, g *Type) ([]*Type, error) {
	shape, err := convShape(x.shape, w.shape, o.Attr.Conv())
	if err != nil {
		return nil, err
	}
	if !slices.Equal(shape, g.shape) {
		return nil, fmt.Errorf("gradient %v of a result %v", g.shape, shape)
	}
	if err := sameDType(o.In(0), o.In(1), o.Attr.Out); err != nil {
		return nil, err
	}
	return one(o.Attr.Out)
}

func sameDType(ts ...*Type) error {
	for _, t := range ts[1:] {
		if t.DType != ts[0].DType {
			return badDType("operands of dtypes %s and %s", ts[0].DType, t.DType)
		}
	}
	return nil
}

func poolShape(x []int, p Pool) ([]int, error) {
	if len(x) != 4 {
		return nil, fmt.Errorf("input %v must have 4 dimensions", x)
	}
	if min(p.PadH, p.PadW) < 0 || 2*p.PadH > p.KernelH || 2*p.PadW > p.KernelW {
		return nil, fmt.Errorf("padding %d×%d is not from 0 to half of the window %d×%d", p.PadH, p.PadW, p.KernelH, p.KernelW)
	}
	h, err := window(x[2], p.PadH, p.KernelH, p.StrideH)
	if err != nil {
		return nil, err
	}
	w, err := window(x[3], p.PadW, p.KernelW, p.StrideW)
	if err != nil {
		return nil, err
	}
	return []int{x[0], x[1], h, w}, nil
}

func inferMaxPool(o *Op) ([]*Type, error) {
	shape, err := poolShape(o.In(0).shape, o.Attr.Pool())
	if err != nil {
		return nil, err
	}
	out, err := dense(o.In(0).DType, shape...)
	if err != nil {
		return nil, err
	}
	return append(out, Dense(dtype.I64, shape...)), nil
}

func inferAvgPool(o *Op) ([]*Type, error) {
	shape, err := poolShape(o.In(0).shape, o.Attr.Pool())
	if err != nil {
		return nil, err
	}
	return dense(o.In(0).DType, shape...)
}

func inferMaxPoolGrad(o *Op) ([]*Type, error) {
	if o.In(1).DType != dtype.I64 || !o.In(0).SameShape(o.In(1)) {
		return nil, fmt.Errorf("gradient %s with places %s", o.In(0), o.In(1))
	}
	return poolGrad(o)
}

func inferAvgPoolGrad(o *Op) ([]*Type, error) { return poolGrad(o) }

func poolGrad(o *Op) ([]*Type, error) {
	if err := o.wantOut(); err != nil {
		return nil, err
	}
	shape, err := poolShape(o.Attr.Out.shape, o.Attr.Pool())
	if err != nil {
		return nil, err
	}
	return gradOf(o, shape)
}

// gradOf is the type of x, whose result's shape the first operand must have.
func gradOf(o *Op, shape []int) ([]*Type, error) {
	if !slices.Equal(shape, o.In(0).shape) || o.In(0).DType != o.Attr.Out.DType {
		return nil, fmt.Errorf("gradient %s of a result %v", o.In(0), shape)
	}
	return one(o.Attr.Out)
}

func wantIndices(t *Type) error {
	if t.DType != dtype.I64 {
		return badDType("indices are %s, not i64", t.DType)
	}
	return nil
}

// gatherShapes checks that idx has x's rank and fits in x everywhere but along the axis.
func gatherShapes(o *Op, x, idx *Type) error {
	if err := o.wantAxis(x); err != nil {
		return err
	}
	if err := wantIndices(idx); err != nil {
		return err
	}
	if idx.Rank() != x.Rank() {
		return fmt.Errorf("indices %v for %v: as many dimensions are needed", idx.shape, x.shape)
	}
	for i, d := range idx.shape {
		if i != int(o.Attr.Axis) && d > x.shape[i] {
			return fmt.Errorf("indices %v exceed %v in dimension %d", idx.shape, x.shape, i)
		}
	}
	return nil
}

func inferGather(o *Op) ([]*Type, error) {
	if err := gatherShapes(o, o.In(0), o.In(1)); err != nil {
		return nil, err
	}
	return one(o.In(1).As(o.In(0).DType))
}

func inferScatterAdd(o *Op) ([]*Type, error) {
	x, idx, src := o.In(0), o.In(1), o.In(2)
	if err := gatherShapes(o, x, idx); err != nil {
		return nil, err
	}
	if !src.SameShape(idx) || src.DType != x.DType {
		return nil, fmt.Errorf("source %s for indices %v into %s", src, idx.shape, x)
	}
	return same(o)
}

// inferLastAt: without keys there is no order to turn around.
func inferLastAt(o *Op) ([]*Type, error) {
	idx, out := o.In(o.NumIn()-1), o.Attr.Out
	if out == nil || out.DType != dtype.I64 {
		return nil, fmt.Errorf("places go to a type of i64, not %v", out)
	}
	if err := gatherShapes(o, out, idx); err != nil {
		return nil, err
	}
	if o.NumIn() == 1 && o.Attr.Flag != 0 || !o.In(0).SameShape(idx) {
		return nil, fmt.Errorf("keys %s in %v order for indices %v", o.In(0), o.Attr.Flag, idx.shape)
	}
	return []*Type{out.AsDense(), out.As(dtype.Bool).AsDense()}, nil
}

func inferSort(o *Op) ([]*Type, error) {
	x := o.In(0)
	if err := o.wantAxis(x); err != nil {
		return nil, err
	}
	axis, k := o.Attr.Axis, int(o.Attr.Dims[0])
	if n := x.shape[axis]; k < 0 || k > n || n > math.MaxUint32 {
		return nil, fmt.Errorf("the first %d of %d", k, n)
	}
	shape := slices.Clone(x.Shape())
	if k > 0 {
		shape[axis] = k
	}
	return []*Type{Dense(x.DType, shape...), Dense(dtype.I64, shape...)}, nil
}

func inferEmbedding(o *Op) ([]*Type, error) {
	w, idx := o.In(0), o.In(1)
	if err := wantIndices(idx); err != nil {
		return nil, err
	}
	if w.Rank() != 2 || idx.Rank() >= MaxRank {
		return nil, fmt.Errorf("table %v with indices %v", w.shape, idx.shape)
	}
	return dense(w.DType, append(slices.Clone(idx.shape), w.shape[1])...)
}

func inferEmbeddingGrad(o *Op) ([]*Type, error) {
	if err := o.wantOut(); err != nil {
		return nil, err
	}
	g, idx, w := o.In(0), o.In(1), o.Attr.Out
	if err := wantIndices(idx); err != nil {
		return nil, err
	}
	if w.Rank() != 2 || g.DType != w.DType || !slices.Equal(g.shape, append(slices.Clone(idx.shape), w.shape[1])) {
		return nil, fmt.Errorf("gradient %s at indices %v of a table %s", g, idx.shape, w)
	}
	return one(w)
}

func inferCat(o *Op) ([]*Type, error) {
	first := o.In(0)
	if err := o.wantAxis(first); err != nil {
		return nil, err
	}
	shape := slices.Clone(first.shape)
	for _, t := range o.Ins()[1:] {
		if t.DType != first.DType || t.Rank() != first.Rank() {
			return nil, fmt.Errorf("%s joined with %s", first, t)
		}
		for i, d := range t.shape {
			if i != int(o.Attr.Axis) && d != first.shape[i] {
				return nil, fmt.Errorf("%v joined with %v along dimension %d", first.shape, t.shape, o.Attr.Axis)
			}
		}
		shape[o.Attr.Axis] += t.shape[o.Attr.Axis]
	}
	return dense(first.DType, shape...)
}

func inferPad(o *Op) ([]*Type, error) {
	x := o.In(0)
	if err := o.wantAxis(x); err != nil {
		return nil, err
	}
	before, after, between := int(o.Attr.Dims[0]), int(o.Attr.Dims[1]), int(o.Attr.Dims[2])
	if before < 0 || after < 0 || between < 0 {
		return nil, fmt.Errorf("negative padding %d, %d, %d", before, after, between)
	}
	shape := slices.Clone(x.shape)
	d := shape[o.Attr.Axis]
	shape[o.Attr.Axis] = before + d + max(d-1, 0)*between + after
	return dense(x.DType, shape...)
}
