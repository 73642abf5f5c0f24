package tensor

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Tan is the tangent.
func (t *Tensor) Tan() *Tensor { return t.floated().unary(ir.Tan) }

// Asin is the angle whose sine is t.
func (t *Tensor) Asin() *Tensor { return t.floated().unary(ir.Asin) }

// Acos is the angle whose cosine is t.
func (t *Tensor) Acos() *Tensor { return t.floated().unary(ir.Acos) }

// Atan is the angle whose tangent is t.
func (t *Tensor) Atan() *Tensor { return t.floated().unary(ir.Atan) }

// Atan2 is the angle of the point (u, t), from -π to π, broadcast.
func (t *Tensor) Atan2(u *Tensor) *Tensor { return t.real("Atan2", ir.Atan2, u) }

// real is a function of two real numbers: of integers in f32.
func (t *Tensor) real(op string, code ir.Code, u *Tensor) *Tensor {
	givenAll(op, operandNames, t, u)
	if !t.DType().IsFloat() && !u.DType().IsFloat() {
		t, u = t.floated(), u.floated()
	}
	return t.binary(code, u, &noParams)
}

// Sinh is the hyperbolic sine.
func (t *Tensor) Sinh() *Tensor { return t.floated().unary(ir.Sinh) }

// Cosh is the hyperbolic cosine.
func (t *Tensor) Cosh() *Tensor { return t.floated().unary(ir.Cosh) }

// Asinh is the inverse of [Tensor.Sinh].
func (t *Tensor) Asinh() *Tensor { return t.floated().unary(ir.Asinh) }

// Acosh is the inverse of [Tensor.Cosh], from 1 on.
func (t *Tensor) Acosh() *Tensor { return t.floated().unary(ir.Acosh) }

// Atanh is the inverse of [Tensor.Tanh].
func (t *Tensor) Atanh() *Tensor { return t.floated().unary(ir.Atanh) }

// Exp2 is 2ᵗ.
func (t *Tensor) Exp2() *Tensor { return t.floated().unary(ir.Exp2) }

// Log2 is the logarithm to base 2, exact for powers of 2.
func (t *Tensor) Log2() *Tensor { return t.floated().unary(ir.Log2) }

// Log10 is the logarithm to base 10.
func (t *Tensor) Log10() *Tensor { return t.floated().unary(ir.Log10) }

// Erfinv is the inverse of [Tensor.Erf].
func (t *Tensor) Erfinv() *Tensor { return t.floated().unary(ir.Erfinv) }

// Erfc is 1 - [Tensor.Erf], exact where that is near 1.
func (t *Tensor) Erfc() *Tensor { return t.floated().unary(ir.Erfc) }

// Sinc is sin(πt)/(πt), 1 at 0.
func (t *Tensor) Sinc() *Tensor { return t.floated().unary(ir.Sinc) }

// Xlogy is t·log(u), broadcast: 0 where t is 0, NaN where u is.
func (t *Tensor) Xlogy(u *Tensor) *Tensor { return t.real("Xlogy", ir.Xlogy, u) }

// Xlog1py is t·log(1+u), broadcast: 0 where t is 0, NaN where u is.
func (t *Tensor) Xlog1py(u *Tensor) *Tensor { return t.real("Xlog1py", ir.Xlog1py, u) }

// LogAddExp is log(eᵗ + eᵘ), broadcast, without overflow.
func (t *Tensor) LogAddExp(u *Tensor) *Tensor { return t.real("LogAddExp", ir.LogAddExp, u) }

// LogAddExp2 is log₂(2ᵗ + 2ᵘ), broadcast, without overflow.
func (t *Tensor) LogAddExp2(u *Tensor) *Tensor { return t.real("LogAddExp2", ir.LogAddExp2, u) }

// Hypot is √(t²+u²), broadcast, without overflow.
func (t *Tensor) Hypot(u *Tensor) *Tensor { return t.real("Hypot", ir.Hypot, u) }

// CopySign is |t| with the sign of u, also of a zero, broadcast; a NaN counts as positive.
func (t *Tensor) CopySign(u *Tensor) *Tensor { return t.real("CopySign", ir.CopySign, u) }

// Fmod is the remainder of t / u with the sign of t, broadcast; [Tensor.Rem] has that of u. Integers stay integers; by the
// integer 0 it is t.
func (t *Tensor) Fmod(u *Tensor) *Tensor {
	givenAll("Fmod", operandNames, t, u)
	if t.DType().IsFloat() || u.DType().IsFloat() {
		return t.binary(ir.Fmod, u, &noParams)
	}
	t, u = matched("Fmod", t.counted(), u.counted())
	return joinAll("Fmod", []*Tensor{t, u}).Tidy(func(e *Env) *Tensor {
		t, u := t.inside(e), u.inside(e)
		return t.Sub(t.binary(ir.Div, u, &noParams).Mul(u))
	})
}

// LDExp is t·2ᵘ, broadcast; the power is in u's dtype, of integers in t's.
func (t *Tensor) LDExp(u *Tensor) *Tensor {
	givenAll("LDExp", operandNames, t, u)
	if t.DType().IsFloat() && !u.DType().IsFloat() {
		u = u.Cast(t.DType())
	}
	return t.Mul(u.Exp2())
}

// FloatPower is t to the power u in f64, broadcast.
func (t *Tensor) FloatPower(u *Tensor) *Tensor {
	givenAll("FloatPower", operandNames, t, u)
	return t.Cast(dtype.F64).Pow(u.Cast(dtype.F64))
}

// SignBit tells where t is negative, -0 too, as bool.
func (t *Tensor) SignBit() *Tensor {
	t = t.quiet()
	if !t.DType().IsFloat() {
		return t.counted().LtScalar(0)
	}
	return Where(t.EqScalar(0), t.Reciprocal(), t).LtScalar(0)
}

// Heaviside is 0 of negative numbers, 1 of positive ones and at = u at 0, broadcast, of NaN 0. It has no gradient.
func (t *Tensor) Heaviside(u *Tensor) *Tensor {
	givenAll("Heaviside", operandNames, t, u)
	t, u = promoted(t.quiet(), u.quiet())
	return Where(t.Eq(t.env.full(ir.Dense(t.DType()), 0)), u, t.GtScalar(0).Cast(t.DType()))
}

// Fmax is the larger of t and u, broadcast; of a number and NaN the number.
func (t *Tensor) Fmax(u *Tensor) *Tensor { return t.number("Fmax", u, (*Tensor).Maximum) }

// Fmin is the smaller of t and u, broadcast; of a number and NaN the number.
func (t *Tensor) Fmin(u *Tensor) *Tensor { return t.number("Fmin", u, (*Tensor).Minimum) }

// number is f of numbers, and of a NaN the other operand.
func (t *Tensor) number(op string, u *Tensor, f func(t, u *Tensor) *Tensor) *Tensor {
	givenAll(op, operandNames, t, u)
	return Where(u.IsNaN(), t, Where(t.IsNaN(), u, f(t, u)))
}

// LerpTensor is t + w·(u-t), broadcast, as [Tensor.Lerp] by a number for each element: t at 0, u at 1.
func (t *Tensor) LerpTensor(u, w *Tensor) *Tensor {
	givenAll("LerpTensor", []string{"the first value", "the second value", "the weight"}, t, u, w)
	t, u, w = t.floated(), u.floated(), w.floated()
	return joinAll("LerpTensor", []*Tensor{t, u, w}).Tidy(func(e *Env) *Tensor {
		t, u, w := t.inside(e), u.inside(e), w.inside(e)
		rise := u.Sub(t)
		return Where(w.quiet().LtScalar(0.5), t.Add(w.Mul(rise)), u.Sub(rise.Mul(w.Neg().AddScalar(1))))
	})
}

// Lgamma is log |Γ(t)|.
func (t *Tensor) Lgamma() *Tensor { return t.gamma(ir.Lgamma) }

// Digamma is the derivative of [Tensor.Lgamma].
func (t *Tensor) Digamma() *Tensor { return t.gamma(ir.Digamma) }

// Trigamma is the derivative of [Tensor.Digamma], PyTorch's polygamma(1, t).
func (t *Tensor) Trigamma() *Tensor { return t.gamma(ir.Trigamma) }

// gamma widens 16-bit values: the second derivatives have poles of high orders on their way.
func (t *Tensor) gamma(code ir.Code) *Tensor {
	t = t.floated()
	return t.widened().unary(code).narrowed(t)
}
