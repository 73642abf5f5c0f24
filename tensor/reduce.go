package tensor

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// axes is the bit set of the named dimensions, all when none is named.
func (t *Tensor) axes(op string, list []int) uint16 {
	if len(list) == 0 {
		return 1<<t.Rank() - 1
	}
	var set uint16
	for _, i := range list {
		bit := uint16(1) << t.axis(op, i)
		if set&bit != 0 {
			raise(op, "name each dimension once", "dimension %d twice in %v", i, list)
		}
		set |= bit
	}
	return set
}

func (t *Tensor) reduce(code ir.Code, axes []int) *Tensor {
	return t.apply1(code, ir.Attr{Axes: t.axes(code.String(), axes)}, ir.Params{})
}

// summed is t in the dtype that sums have: i64 for integers and bool.
func (t *Tensor) summed() *Tensor {
	if t.DType().IsFloat() {
		return t
	}
	return t.Cast(dtype.I64)
}

// Sum adds over the named dimensions, all when none is named. Integers add in i64.
func (t *Tensor) Sum(axes ...int) *Tensor { return t.summed().reduce(ir.Sum, axes) }

// Prod multiplies over the named dimensions.
func (t *Tensor) Prod(axes ...int) *Tensor { return t.summed().reduce(ir.Prod, axes) }

// Mean is the average over the named dimensions, of floating values. 16-bit values are added up in f32.
func (t *Tensor) Mean(axes ...int) *Tensor {
	t = t.floated()
	return t.widened().Sum(axes...).Scale(1 / float64(t.count("Mean", axes))).narrowed(t)
}

// widened is t in the dtype of its statistics: f32 for 16-bit values, whose sums overflow or lose the small terms.
// Types that are only stored stay, for the op to refuse.
func (t *Tensor) widened() *Tensor {
	if t.DType().IsStorage() {
		return t
	}
	return t.Cast(ir.Wide(t.DType()))
}

// narrowed undoes widened.
func (t *Tensor) narrowed(from *Tensor) *Tensor { return t.Cast(from.DType()) }

// Norm is the Euclidean norm over the named dimensions: the root of the sum of squares. At zero its gradient is zero.
func (t *Tensor) Norm(axes ...int) *Tensor {
	t = t.floated().cardsWide()
	sum := t.widened().Square().Sum(axes...)
	zero := sum.Eq(sum.ZerosLike())
	root := Where(zero, sum.FullLike(1), sum).Sqrt() // not of 0, where it has no slope
	return Where(zero, sum.ZerosLike(), root).narrowed(t)
}

// count is the number of elements that a reduction joins.
func (t *Tensor) count(op string, axes []int) int {
	set, n := t.axes(op, axes), 1
	for i, d := range t.Shape() {
		if set>>i&1 == 1 {
			n *= d
		}
	}
	return n
}

// Var is the variance over the named dimensions: squared distances from the mean over count-correction (1: unbiased).
func (t *Tensor) Var(correction int, axes ...int) *Tensor {
	t = t.floated()
	set, x := t.axes("Var", axes), t.widened()
	mean := x.Mean(axes...)
	d := x.Sub(mean.Reshape(keepShape(t.Shape(), set)...))
	return d.Square().Sum(axes...).Scale(1 / float64(max(t.count("Var", axes)-correction, 0))).narrowed(t)
}

// keepShape is a shape with size 1 in the dimensions of a bit set.
func keepShape(shape []int, set uint16) []int {
	out := make([]int, len(shape))
	for i, d := range shape {
		if out[i] = d; set>>i&1 == 1 {
			out[i] = 1
		}
	}
	return out
}

// Max is the largest value over the named dimensions; NaN wins.
func (t *Tensor) Max(axes ...int) *Tensor { return t.reduce(ir.ReduceMax, axes) }

// Min is the smallest value over the named dimensions; NaN wins.
func (t *Tensor) Min(axes ...int) *Tensor { return t.reduce(ir.ReduceMin, axes) }

// Any tells whether a value differs from 0 over the named dimensions: of no values, none does.
func (t *Tensor) Any(axes ...int) *Tensor { return t.quantified("Any", ir.ReduceMax, axes, 0) }

// All tells whether every value differs from 0 over the named dimensions: of no values, all do.
func (t *Tensor) All(axes ...int) *Tensor { return t.quantified("All", ir.ReduceMin, axes, 1) }

// quantified reduces truth values; without any, which have no extreme, the answer is known.
func (t *Tensor) quantified(op string, code ir.Code, axes []int, none float64) *Tensor {
	set := t.axes(op, axes)
	if t.count(op, axes) > 0 {
		return t.truth().apply1(code, ir.Attr{Axes: set}, ir.Params{})
	}
	var shape []int
	for i, d := range t.Shape() {
		if set>>i&1 == 0 {
			shape = append(shape, d)
		}
	}
	return t.env.full(ir.Dense(dtype.Bool, shape...), none)
}

// ArgMax is the i64 index of the largest value along a dimension, which it drops: the first of equals; NaN wins.
func (t *Tensor) ArgMax(axis int) *Tensor { return t.along(ir.ArgMax, axis) }

// ArgMin is the i64 index of the smallest value along a dimension, which it drops.
func (t *Tensor) ArgMin(axis int) *Tensor { return t.along(ir.ArgMin, axis) }

func (t *Tensor) along(code ir.Code, axis int) *Tensor {
	return t.counted().apply1(code, ir.Attr{Axis: int8(t.axis(code.String(), axis))}, ir.Params{})
}

// CumSum adds up along a dimension. Integers add in i64.
func (t *Tensor) CumSum(axis int) *Tensor { return t.summed().along(ir.CumSum, axis) }

// LogSumExp is log Σ eᵗ over one dimension, without overflow; over nothing, and over -Inf alone, -Inf.
func (t *Tensor) LogSumExp(axis int) *Tensor {
	t = t.floated().cardsWide()
	set := uint16(1) << t.axis("LogSumExp", axis)
	if t.Size() == 0 {
		return t.Exp().Sum(axis).Log()
	}
	top := t.quiet().Max(axis).Clamp(t.DType().Lowest(), t.DType().Max()) // what is infinite stays so, and all else of its row is 0
	keep := keepShape(t.Shape(), set)
	sum := t.Sub(top.Reshape(keep...)).Exp().Sum(axis)
	none := sum.EqScalar(0) // of -Inf alone, whose gradient is 0
	return Where(none, top.FullLike(-inf), Where(none, sum.FullLike(1), sum).Log().Add(top))
}
