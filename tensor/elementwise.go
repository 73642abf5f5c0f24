package tensor

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// binary applies an elementwise op after broadcasting the operands and promoting their dtypes as PyTorch does.
func (t *Tensor) binary(code ir.Code, u *Tensor, p ir.Params) *Tensor {
	t, u = matched(code.String(), t, u)
	return apply2(code, ir.Attr{}, p, t, u)
}

// matched is both operands of an elementwise op in one dtype and shape.
func matched(op string, t, u *Tensor) (*Tensor, *Tensor) {
	if t.DType() != u.DType() || !t.SameShape(u) {
		t, u = together(op, t, u)
		t, u = promoted(t, u)
	}
	if t.SameShape(u) {
		return t, u
	}
	shape, err := ir.Broadcast(t.Shape(), u.Shape())
	if err != nil {
		raise(op, "sizes must be equal, or 1 where one is repeated", "shapes %v and %v do not broadcast", t.Shape(), u.Shape())
	}
	return t.expand(shape), u.expand(shape)
}

// promoted casts both to the dtype of an operation between them. A value without dimensions does not widen one that has
// some, within its category.
func promoted(t, u *Tensor) (*Tensor, *Tensor) {
	a, b := t.DType(), u.DType()
	if a == b {
		return t, u
	}
	dt := dtype.Promote(a, b)
	switch {
	case t.Rank() == 0 && u.Rank() > 0 && category(a) <= category(b):
		dt = b
	case u.Rank() == 0 && t.Rank() > 0 && category(b) <= category(a):
		dt = a
	}
	return t.Cast(dt), u.Cast(dt)
}

// category orders dtypes: bool below integers below floats.
func category(d dtype.DType) int {
	switch {
	case d.IsFloat():
		return 2
	case d == dtype.Bool:
		return 0
	}
	return 1
}

// floated is t in a floating dtype: integers and bools become f32, as PyTorch's functions of real numbers do.
func (t *Tensor) floated() *Tensor {
	if t.DType().IsFloat() {
		return t
	}
	return t.Cast(dtype.F32)
}

// counted is t in a numeric dtype: bools become i64.
func (t *Tensor) counted() *Tensor {
	if t.DType() == dtype.Bool {
		return t.Cast(dtype.I64)
	}
	return t
}

// arithmetic is binary on numbers: two bools count as i64.
func (t *Tensor) arithmetic(code ir.Code, u *Tensor, p ir.Params) *Tensor {
	if t.DType() == dtype.Bool && u.DType() == dtype.Bool {
		t, u = t.counted(), u.counted()
	}
	return t.binary(code, u, p)
}

func (t *Tensor) unary(code ir.Code) *Tensor { return t.apply1(code, ir.Attr{}, ir.Params{}) }

// Add is t + u, broadcast.
func (t *Tensor) Add(u *Tensor) *Tensor { return t.arithmetic(ir.Add, u, ir.Params{}) }

// Sub is t - u, broadcast.
func (t *Tensor) Sub(u *Tensor) *Tensor { return t.arithmetic(ir.Sub, u, ir.Params{}) }

// Mul is t · u, broadcast.
func (t *Tensor) Mul(u *Tensor) *Tensor { return t.arithmetic(ir.Mul, u, ir.Params{}) }

// Div is t / u, broadcast; integers divide as f32.
func (t *Tensor) Div(u *Tensor) *Tensor {
	if !t.DType().IsFloat() && !u.DType().IsFloat() {
		t, u = t.floated(), u.floated()
	}
	return t.binary(ir.Div, u, ir.Params{})
}

// Pow is t to the power u, broadcast.
func (t *Tensor) Pow(u *Tensor) *Tensor { return t.floated().binary(ir.Pow, u.floated(), ir.Params{}) }

// Rem is the remainder of t / u with the sign of u, broadcast.
func (t *Tensor) Rem(u *Tensor) *Tensor { return t.arithmetic(ir.Rem, u, ir.Params{}) }

// Maximum is the larger of t and u, broadcast; NaN wins.
func (t *Tensor) Maximum(u *Tensor) *Tensor { return t.binary(ir.Maximum, u, ir.Params{}) }

// Minimum is the smaller of t and u, broadcast; NaN wins.
func (t *Tensor) Minimum(u *Tensor) *Tensor { return t.binary(ir.Minimum, u, ir.Params{}) }

// Lerp is t + f·(u-t), broadcast.
func (t *Tensor) Lerp(u *Tensor, f float64) *Tensor {
	return t.floated().binary(ir.Lerp, u.floated(), ir.Scalars(f))
}

// AddScaled is t + f·u, broadcast; integers times a fraction become f32.
func (t *Tensor) AddScaled(u *Tensor, f float64) *Tensor {
	if !whole(f) && !t.DType().IsFloat() && !u.DType().IsFloat() {
		t, u = t.floated(), u.floated()
	}
	return t.arithmetic(ir.Axpy, u, ir.Scalars(f))
}

// Eq tells where t = u, as bool.
func (t *Tensor) Eq(u *Tensor) *Tensor { return t.binary(ir.Eq, u, ir.Params{}) }

// Ne tells where t ≠ u, as bool.
func (t *Tensor) Ne(u *Tensor) *Tensor { return t.binary(ir.Ne, u, ir.Params{}) }

// Lt tells where t < u, as bool.
func (t *Tensor) Lt(u *Tensor) *Tensor { return t.binary(ir.Lt, u, ir.Params{}) }

// Le tells where t ≤ u, as bool.
func (t *Tensor) Le(u *Tensor) *Tensor { return t.binary(ir.Le, u, ir.Params{}) }

// Gt tells where t > u, as bool.
func (t *Tensor) Gt(u *Tensor) *Tensor { return t.reversed("gt", ir.Lt, u) }

// Ge tells where t ≥ u, as bool.
func (t *Tensor) Ge(u *Tensor) *Tensor { return t.reversed("ge", ir.Le, u) }

// reversed is the comparison of u with t; errors name what the program called.
func (t *Tensor) reversed(op string, code ir.Code, u *Tensor) *Tensor {
	t, u = matched(op, t, u)
	return apply2(code, ir.Attr{}, ir.Params{}, u, t)
}

// And is logical and; numbers count as true where they are not 0.
func (t *Tensor) And(u *Tensor) *Tensor { return t.truth().binary(ir.And, u.truth(), ir.Params{}) }

// Or is logical or; numbers count as true where they are not 0.
func (t *Tensor) Or(u *Tensor) *Tensor { return t.truth().binary(ir.Or, u.truth(), ir.Params{}) }

// Xor is logical exclusive or; numbers count as true where they are not 0.
func (t *Tensor) Xor(u *Tensor) *Tensor { return t.truth().binary(ir.Xor, u.truth(), ir.Params{}) }

// Not is logical not; numbers count as true where they are not 0.
func (t *Tensor) Not() *Tensor { return t.truth().unary(ir.Not) }

func (t *Tensor) truth() *Tensor { return t.Cast(dtype.Bool) }

// Where is x where cond holds, else y, broadcast.
func Where(cond, x, y *Tensor) *Tensor {
	in := allInside("where", cond, x, y)
	cond = in[0]
	x, y = promoted(in[1], in[2])
	shape, err := ir.Broadcast(x.Shape(), y.Shape())
	if err == nil {
		shape, err = ir.Broadcast(shape, cond.Shape())
	}
	if err != nil {
		raise("where", "sizes must be equal, or 1 where one is repeated", "shapes %v, %v and %v do not broadcast", cond.Shape(), x.Shape(), y.Shape())
	}
	return apply(ir.Where, ir.Attr{}, ir.Params{}, cond.truth().expand(shape), x.expand(shape), y.expand(shape))[0]
}

// Scale is f·t.
func (t *Tensor) Scale(f float64) *Tensor { return t.affine(f, 0) }

// AddScalar is t + f.
func (t *Tensor) AddScalar(f float64) *Tensor { return t.affine(1, f) }

// affine keeps the dtype when the numbers fit it: integers times a fraction become f32.
func (t *Tensor) affine(a, b float64) *Tensor {
	t = t.counted()
	if !whole(a) || !whole(b) {
		t = t.floated()
	}
	return t.apply1(ir.Affine, ir.Attr{}, ir.Scalars(a, b))
}

// whole reports whether f is an integer that i64 has.
func whole(f float64) bool { return f == math.Trunc(f) && math.Abs(f) < 1<<63 }

// PowScalar is t to the power p.
func (t *Tensor) PowScalar(p float64) *Tensor {
	return t.floated().apply1(ir.PowScalar, ir.Attr{}, ir.Scalars(p))
}

// Clamp limits values to [lo, hi]. Integers within bounds that are no integers become f32.
func (t *Tensor) Clamp(lo, hi float64) *Tensor {
	t = t.counted()
	if !t.DType().IsFloat() && (math.IsInf(lo, -1) || math.IsInf(hi, 1)) {
		return t.bounded(lo, hi)
	}
	if !whole(lo) || !whole(hi) {
		t = t.floated()
	}
	return t.apply1(ir.Clamp, ir.Attr{}, ir.Scalars(lo, hi))
}

// bounded is Clamp of integers, which have no infinity, by at most one bound.
func (t *Tensor) bounded(lo, hi float64) *Tensor {
	bound := hi
	if math.IsInf(hi, 1) {
		bound = lo
	}
	switch {
	case math.IsInf(bound, 0):
		return t
	case !whole(bound):
		return t.floated().Clamp(lo, hi)
	case bound == lo:
		return t.Maximum(t.env.full(ir.Dense(t.DType()), lo))
	}
	return t.Minimum(t.env.full(ir.Dense(t.DType()), hi))
}

// Square is t·t.
func (t *Tensor) Square() *Tensor { return t.Mul(t) }

// Neg is -t.
func (t *Tensor) Neg() *Tensor { return t.counted().unary(ir.Neg) }

// Abs is |t|.
func (t *Tensor) Abs() *Tensor { return t.counted().unary(ir.Abs) }

// Sign is -1, 0 or 1.
func (t *Tensor) Sign() *Tensor { return t.counted().unary(ir.Sign) }

// Floor rounds down.
func (t *Tensor) Floor() *Tensor { return t.floated().unary(ir.Floor) }

// Ceil rounds up.
func (t *Tensor) Ceil() *Tensor { return t.floated().unary(ir.Ceil) }

// Round rounds to the nearest integer, halves to even.
func (t *Tensor) Round() *Tensor { return t.floated().unary(ir.Round) }

// Trunc rounds towards zero.
func (t *Tensor) Trunc() *Tensor { return t.floated().unary(ir.Trunc) }

// Sqrt is the square root.
func (t *Tensor) Sqrt() *Tensor { return t.floated().unary(ir.Sqrt) }

// Rsqrt is 1/√t.
func (t *Tensor) Rsqrt() *Tensor { return t.floated().unary(ir.Rsqrt) }

// Exp is eᵗ.
func (t *Tensor) Exp() *Tensor { return t.floated().unary(ir.Exp) }

// Expm1 is eᵗ-1, exact for small t.
func (t *Tensor) Expm1() *Tensor { return t.floated().unary(ir.Expm1) }

// Log is the natural logarithm.
func (t *Tensor) Log() *Tensor { return t.floated().unary(ir.Log) }

// Log1p is log(1+t), exact for small t.
func (t *Tensor) Log1p() *Tensor { return t.floated().unary(ir.Log1p) }

// Sin is the sine.
func (t *Tensor) Sin() *Tensor { return t.floated().unary(ir.Sin) }

// Cos is the cosine.
func (t *Tensor) Cos() *Tensor { return t.floated().unary(ir.Cos) }

// Tanh is the hyperbolic tangent.
func (t *Tensor) Tanh() *Tensor { return t.floated().unary(ir.Tanh) }

// Sigmoid is 1/(1+e⁻ᵗ).
func (t *Tensor) Sigmoid() *Tensor { return t.floated().unary(ir.Sigmoid) }

// Erf is the error function.
func (t *Tensor) Erf() *Tensor { return t.floated().unary(ir.Erf) }

// ReLU is max(t, 0).
func (t *Tensor) ReLU() *Tensor { return t.counted().unary(ir.ReLU) }

// GELU is t·Φ(t), Φ the normal distribution function.
func (t *Tensor) GELU() *Tensor { return t.floated().unary(ir.GELU) }

// GELUTanh is GELU's approximation by tanh, as GPT-2 has it.
func (t *Tensor) GELUTanh() *Tensor { return t.floated().unary(ir.GELUTanh) }

// SiLU is t·sigmoid(t).
func (t *Tensor) SiLU() *Tensor { return t.floated().unary(ir.SiLU) }

// Cast converts to another dtype: to the nearest value, halves to even; towards zero into integers.
func (t *Tensor) Cast(dt dtype.DType) *Tensor {
	if t.DType() == dt {
		return t
	}
	if !dt.Valid() {
		raise("Cast", "choose one of package dtype's", "the target dtype is %s", dt)
	}
	return t.apply1(ir.Cast, ir.Attr{DType: dt}, ir.Params{})
}

// Dropout zeroes each element with probability p while training and scales the rest by 1/(1-p); p = 1 leaves none.
func (t *Tensor) Dropout(p float64) *Tensor {
	if !(p >= 0 && p <= 1) { // NaN is refused too
		raise("Dropout", "0 ≤ p ≤ 1", "probability %v", p)
	}
	if p == 0 || !t.Env().Training() {
		return t
	}
	params := ir.Scalars(p, 0)
	params.Value[1] = uint64(t.env.draw())
	return t.floated().apply1(ir.Dropout, ir.Attr{}, params)
}
