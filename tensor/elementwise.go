package tensor

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// binary applies an elementwise op after broadcasting the operands and promoting their dtypes as PyTorch does.
func (t *Tensor) binary(code ir.Code, u *Tensor, p *ir.Params) *Tensor {
	t, u = matched(code.String(), t, u)
	in, out := [2]*Tensor{t, u}, [1]*Tensor{}
	run(join(code.String(), t, u), code, &noAttr, p, in[:], out[:])
	return out[0]
}

// matched is both operands of an elementwise op in one dtype and shape.
func matched(op string, t, u *Tensor) (*Tensor, *Tensor) {
	if t == nil || u == nil {
		givenAll(op, operandNames, t, u)
	}
	if t.typ == u.typ && t.typ != nil {
		return t, u
	}
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
	dt := inCommon("arithmetic", a, b)
	switch {
	case t.Rank() == 0 && u.Rank() > 0 && category(a) <= category(b):
		dt = b
	case u.Rank() == 0 && t.Rank() > 0 && category(b) <= category(a):
		dt = a
	}
	return t.Cast(dt), u.Cast(dt)
}

// inCommon is the dtype that values of two dtypes are promoted to.
func inCommon(op string, a, b dtype.DType) dtype.DType {
	dt := dtype.Promote(a, b)
	if dt == dtype.Invalid {
		raise(op, "convert with Cast", "%s and %s have no dtype in common: one of them is stored only", a, b)
	}
	return dt
}

// ofOneDType promotes operands to one dtype.
func ofOneDType(op string, in ...*Tensor) []*Tensor {
	in = allInside(op, in...)
	dt := in[0].DType()
	for _, t := range in[1:] {
		dt = inCommon(op, dt, t.DType())
	}
	for i, t := range in {
		in[i] = t.Cast(dt)
	}
	return in
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
func (t *Tensor) arithmetic(code ir.Code, u *Tensor, p *ir.Params) *Tensor {
	if t == nil || u == nil {
		givenAll(code.String(), operandNames, t, u)
	}
	if t.DType() == dtype.Bool && u.DType() == dtype.Bool {
		t, u = t.counted(), u.counted()
	}
	return t.binary(code, u, p)
}

func (t *Tensor) unary(code ir.Code) *Tensor { return t.apply1(code, ir.Attr{}, ir.Params{}) }

// Add is t + u, broadcast.
func (t *Tensor) Add(u *Tensor) *Tensor { return t.arithmetic(ir.Add, u, &noParams) }

// Sub is t - u, broadcast.
func (t *Tensor) Sub(u *Tensor) *Tensor { return t.arithmetic(ir.Sub, u, &noParams) }

// Mul is t · u, broadcast.
func (t *Tensor) Mul(u *Tensor) *Tensor { return t.arithmetic(ir.Mul, u, &noParams) }

// Div is t / u, broadcast; integers divide as f32.
func (t *Tensor) Div(u *Tensor) *Tensor {
	if !t.DType().IsFloat() && !u.DType().IsFloat() {
		t, u = t.floated(), u.floated()
	}
	return t.binary(ir.Div, u, &noParams)
}

// Pow is t to the power u, broadcast. Integers stay integers, which wrap; a negative exponent leaves what 1/t is cut to.
func (t *Tensor) Pow(u *Tensor) *Tensor {
	if !t.DType().IsFloat() && !u.DType().IsFloat() {
		return t.counted().powInt(u.counted())
	}
	return t.binary(ir.Pow, u, &noParams)
}

// powInt is Pow of integers, by squaring: a step for each bit of the exponent.
func (t *Tensor) powInt(u *Tensor) *Tensor {
	t, u = matched("pow", t, u)
	return joinAll("pow", []*Tensor{t, u}).Tidy(func(e *Env) *Tensor {
		t, u := t.inside(e), u.inside(e)
		number := func(v float64) *Tensor { return e.full(ir.Dense(t.DType()), v) }
		zero, one, two := number(0), number(1), number(2)
		left, power, result := u.Maximum(zero), t.Clone(), t.FullLike(1)
		bits := 8*t.DType().Size() - 1
		if t.DType() == dtype.U8 {
			bits = 8
		}
		for range bits {
			e.Tidy(func(e *Env) *Tensor {
				left := left.inside(e)
				result.MulInPlace(Where(left.Rem(two).Ne(zero), power, one))
				left.CopyInPlace(left.binary(ir.Div, two, &noParams))
				power.MulInPlace(power)
				return nil
			})
		}
		if t.DType() == dtype.U8 {
			return result
		}
		odd := u.Rem(two).Ne(zero)
		inverse := Where(t.Eq(one).Or(t.Eq(number(-1)).And(odd)), t, Where(t.Eq(number(-1)), one, zero))
		return Where(u.Lt(zero), inverse, result)
	})
}

// FloorDiv is t / u rounded down, broadcast, exact also where the quotient is not. Integers stay integers; the quotient
// by the integer 0 is 0. Its gradient is 0, as that of PyTorch's div with rounding_mode="floor".
func (t *Tensor) FloorDiv(u *Tensor) *Tensor {
	if t.DType().IsFloat() || u.DType().IsFloat() {
		return t.binary(ir.FloorDiv, u, &noParams)
	}
	t, u = matched("floor_div", t.counted(), u.counted())
	return t.floorDivInt(u)
}

// floorDivInt is the truncated quotient, less 1 where the remainders differ: by u where the signs do and one is left, by 0
// elsewhere. Sums that wrap cancel, so it is exact up to the limits.
func (t *Tensor) floorDivInt(u *Tensor) *Tensor {
	return joinAll("floor_div", []*Tensor{t, u}).Tidy(func(e *Env) *Tensor {
		t, u := t.inside(e), u.inside(e)
		quotient := t.binary(ir.Div, u, &noParams)
		truncated := t.Sub(quotient.Mul(u))
		return quotient.Sub(t.Rem(u).Sub(truncated).binary(ir.Div, u, &noParams))
	})
}

// Rem is the remainder of t / u with the sign of u, broadcast.
func (t *Tensor) Rem(u *Tensor) *Tensor { return t.arithmetic(ir.Rem, u, &noParams) }

// Maximum is the larger of t and u, broadcast; NaN wins.
func (t *Tensor) Maximum(u *Tensor) *Tensor { return t.binary(ir.Maximum, u, &noParams) }

// Minimum is the smaller of t and u, broadcast; NaN wins.
func (t *Tensor) Minimum(u *Tensor) *Tensor { return t.binary(ir.Minimum, u, &noParams) }

// Lerp is t + f·(u-t), broadcast: t at 0, u at 1.
func (t *Tensor) Lerp(u *Tensor, f float64) *Tensor {
	t, u = t.floated(), u.floated()
	if fromFar(f) {
		t, u, f = u, t, 1-f
	}
	p := ir.Scalars(f)
	return t.binary(ir.Lerp, u, &p)
}

// fromFar tells whether to interpolate from the second value, which is nearer: t + (u-t) need not be u.
func fromFar(f float64) bool { return f >= 0.5 }

// AddScaled is t + f·u, broadcast; integers times a fraction become f32.
func (t *Tensor) AddScaled(u *Tensor, f float64) *Tensor {
	if !whole(f) && !t.DType().IsFloat() && !u.DType().IsFloat() {
		t, u = t.floated(), u.floated()
	}
	p := ir.Scalars(f)
	return t.arithmetic(ir.Axpy, u, &p)
}

// Eq tells where t = u, as bool.
func (t *Tensor) Eq(u *Tensor) *Tensor { return t.binary(ir.Eq, u, &noParams) }

// Ne tells where t ≠ u, as bool.
func (t *Tensor) Ne(u *Tensor) *Tensor { return t.binary(ir.Ne, u, &noParams) }

// Lt tells where t < u, as bool.
func (t *Tensor) Lt(u *Tensor) *Tensor { return t.binary(ir.Lt, u, &noParams) }

// Le tells where t ≤ u, as bool.
func (t *Tensor) Le(u *Tensor) *Tensor { return t.binary(ir.Le, u, &noParams) }

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
func (t *Tensor) And(u *Tensor) *Tensor { return t.truth().binary(ir.And, u.truth(), &noParams) }

// Or is logical or; numbers count as true where they are not 0.
func (t *Tensor) Or(u *Tensor) *Tensor { return t.truth().binary(ir.Or, u.truth(), &noParams) }

// Xor is logical exclusive or; numbers count as true where they are not 0.
func (t *Tensor) Xor(u *Tensor) *Tensor { return t.truth().binary(ir.Xor, u.truth(), &noParams) }

// Not is logical not; numbers count as true where they are not 0.
func (t *Tensor) Not() *Tensor { return t.truth().unary(ir.Not) }

func (t *Tensor) truth() *Tensor { return t.Cast(dtype.Bool) }

// Where is x where cond holds, else y, broadcast.
func Where(cond, x, y *Tensor) *Tensor {
	givenAll("where", []string{"the condition", "the first value", "the second value"}, cond, x, y)
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
func (t *Tensor) Scale(f float64) *Tensor { return t.affine(f, math.Copysign(0, -1)) } // -0 + -0 is -0

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

// PowScalar is t to the power p. Integers to a whole power stay integers; one below 0 is an error, as they have no
// inverse.
func (t *Tensor) PowScalar(p float64) *Tensor {
	if !t.DType().IsFloat() && whole(p) {
		return t.counted().powWhole(p)
	}
	return t.floated().apply1(ir.PowScalar, ir.Attr{}, ir.Scalars(p))
}

// powWhole is PowScalar of integers, by squaring.
func (t *Tensor) powWhole(p float64) *Tensor {
	if p < 0 {
		raise("PowScalar", "convert with Cast", "%s to the power %v", t.typ, p)
	}
	return t.env.Tidy(func(e *Env) *Tensor {
		power := t.inside(e).Clone()
		result := power.FullLike(1)
		for n := uint64(p); n > 0; n >>= 1 {
			if n&1 == 1 {
				result.MulInPlace(power)
			}
			if n > 1 {
				power.MulInPlace(power)
			}
		}
		return result
	})
}

// Clamp limits values to [lo, hi]; a bound beyond the dtype's range bounds nothing. Integers within bounds that are no
// integers become f32.
func (t *Tensor) Clamp(lo, hi float64) *Tensor {
	t = t.counted()
	if lo != math.Trunc(lo) || hi != math.Trunc(hi) {
		t = t.floated()
	}
	return t.apply1(ir.Clamp, ir.Attr{}, ir.Scalars(lo, hi))
}

// Square is t·t.
func (t *Tensor) Square() *Tensor {
	t = t.cardsWide()
	return t.Mul(t)
}

// Neg is -t.
func (t *Tensor) Neg() *Tensor { return t.counted().unary(ir.Neg) }

// Abs is |t|.
func (t *Tensor) Abs() *Tensor { return t.counted().unary(ir.Abs) }

// Sign is -1, 0 or 1.
func (t *Tensor) Sign() *Tensor { return t.counted().unary(ir.Sign) }

// Floor rounds down.
func (t *Tensor) Floor() *Tensor { return t.rounded(ir.Floor) }

// Ceil rounds up.
func (t *Tensor) Ceil() *Tensor { return t.rounded(ir.Ceil) }

// Round rounds to the nearest integer, halves to even.
func (t *Tensor) Round() *Tensor { return t.rounded(ir.Round) }

// Trunc rounds towards zero.
func (t *Tensor) Trunc() *Tensor { return t.rounded(ir.Trunc) }

// rounded copies integers, which are round.
func (t *Tensor) rounded(code ir.Code) *Tensor {
	if !t.DType().IsFloat() {
		return t.counted().Clone()
	}
	return t.unary(code)
}

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

// Softsign is t/(1+|t|).
func (t *Tensor) Softsign() *Tensor { return t.floated().unary(ir.Softsign) }

// Mish is t·tanh(log(1+eᵗ)).
func (t *Tensor) Mish() *Tensor { return t.floated().unary(ir.Mish) }

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
	params.Value[1] = uint64(t.env.number())
	return t.floated().apply1(ir.Dropout, ir.Attr{}, params)
}
