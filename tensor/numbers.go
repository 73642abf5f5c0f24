package tensor

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// GtScalar tells where t > f, as bool. A number compares in t's dtype, a fraction with integers in float32; so in what follows.
func (t *Tensor) GtScalar(f float64) *Tensor { return t.Gt(t.against(f)) }

// GeScalar tells where t ≥ f, as bool.
func (t *Tensor) GeScalar(f float64) *Tensor { return t.Ge(t.against(f)) }

// LtScalar tells where t < f, as bool.
func (t *Tensor) LtScalar(f float64) *Tensor { return t.Lt(t.against(f)) }

// LeScalar tells where t ≤ f, as bool.
func (t *Tensor) LeScalar(f float64) *Tensor { return t.Le(t.against(f)) }

// EqScalar tells where t = f, as bool.
func (t *Tensor) EqScalar(f float64) *Tensor { return t.Eq(t.against(f)) }

// NeScalar tells where t ≠ f, as bool.
func (t *Tensor) NeScalar(f float64) *Tensor { return t.Ne(t.against(f)) }

// against is f as a value without dimensions, of the dtype in which it meets t.
func (t *Tensor) against(f float64) *Tensor {
	dt := t.DType()
	switch {
	case dt.IsFloat():
	case whole(f):
		dt = dtype.I64
	default:
		dt = dtype.F32
	}
	return t.env.full(ir.Dense(dt), f)
}

// IsNaN tells where t is no number, as bool.
func (t *Tensor) IsNaN() *Tensor {
	if !t.DType().IsFloat() {
		return t.everywhere(false)
	}
	return t.quiet().Ne(t.quiet())
}

// IsInf tells where t is infinite, of either sign, as bool.
func (t *Tensor) IsInf() *Tensor {
	if !t.DType().IsFloat() {
		return t.everywhere(false)
	}
	return t.quiet().Abs().EqScalar(inf)
}

// IsFinite tells where t is neither infinite nor NaN, as bool.
func (t *Tensor) IsFinite() *Tensor {
	if !t.DType().IsFloat() {
		return t.everywhere(true)
	}
	return t.quiet().Abs().LtScalar(inf)
}

func (t *Tensor) everywhere(v bool) *Tensor {
	number := 0.0
	if v {
		number = 1
	}
	return t.env.full(ir.Dense(dtype.Bool, t.Shape()...), number)
}

// NanToNum is t with nan in place of NaN, high of +Inf and low of -Inf. An infinite high or low stands for the dtype's
// largest or lowest number. What was replaced has no gradient.
func (t *Tensor) NanToNum(nan, high, low float64) *Tensor {
	dt := t.DType()
	if !dt.IsFloat() {
		return t.Clone()
	}
	if math.IsInf(high, 0) {
		high = dt.Max()
	}
	if math.IsInf(low, 0) {
		low = dt.Lowest()
	}
	return t.Env().Tidy(func(e *Env) *Tensor {
		t := t.inside(e)
		return t.MaskedFill(t.IsNaN(), nan).MaskedFill(t.quiet().EqScalar(inf), high).MaskedFill(t.quiet().EqScalar(-inf), low)
	})
}

// MaskedFill is t with v where mask, a bool that broadcasts with t, holds. Integers take integers only.
func (t *Tensor) MaskedFill(mask *Tensor, v float64) *Tensor {
	givenAll("MaskedFill", []string{"the value", "the mask"}, t, mask)
	if mask.DType() != dtype.Bool {
		raise("MaskedFill", "compare to get one", "the mask is %s, not bool", mask.DType())
	}
	if dt := t.DType(); !dt.IsFloat() && (!whole(v) || v < dt.Lowest() || v > dt.Max()) {
		raise("MaskedFill", "convert with Cast", "%v into %s", v, t.typ)
	}
	return Where(mask, t.Env().full(ir.Dense(t.DType()), v), t)
}

// Reciprocal is 1/t.
func (t *Tensor) Reciprocal() *Tensor { return t.floated().PowScalar(-1) }

// Frac is what Trunc leaves of t.
func (t *Tensor) Frac() *Tensor { return t.Sub(t.Trunc()) }

// NormP is the p-norm over the named dimensions, (Σ|t|ᵖ)^(1/p): of p = ∞ the largest |t|, of -∞ the smallest, of 0 the number
// of elements that are not 0. At zero its gradient is zero.
func (t *Tensor) NormP(p float64, axes ...int) *Tensor {
	t = t.floated().cardsWide()
	switch {
	case p != p:
		raise("NormP", "choose a number or an infinity", "the norm of order %v", p)
	case p == 0:
		return t.widened().quiet().NeScalar(0).Cast(t.DType()).Sum(axes...)
	case p == 1:
		return t.widened().Abs().Sum(axes...).narrowed(t)
	case p == 2:
		return t.Norm(axes...)
	case math.IsInf(p, 1):
		return t.Abs().Max(axes...)
	case math.IsInf(p, -1):
		return t.Abs().Min(axes...)
	}
	return t.Env().Tidy(func(e *Env) *Tensor {
		t := t.inside(e)
		sum := t.widened().powers(p).Sum(axes...)
		zero := sum.quiet().EqScalar(0)
		root := sum.MaskedFill(zero, 1).PowScalar(1 / p)
		return root.MaskedFill(zero, math.Pow(0, 1/p)).narrowed(t)
	})
}

// powers is |t|ᵖ, without a slope at 0.
func (t *Tensor) powers(p float64) *Tensor {
	zero := t.quiet().EqScalar(0)
	return t.Abs().MaskedFill(zero, 1).PowScalar(p).MaskedFill(zero, math.Pow(0, p))
}
