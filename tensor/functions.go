package tensor

import "github.com/warpline-ml/warpline/internal/ir"

// Tan is the tangent.
func (t *Tensor) Tan() *Tensor { return t.floated().unary(ir.Tan) }

// Asin is the angle whose sine is t.
func (t *Tensor) Asin() *Tensor { return t.floated().unary(ir.Asin) }

// Acos is the angle whose cosine is t.
func (t *Tensor) Acos() *Tensor { return t.floated().unary(ir.Acos) }

// Atan is the angle whose tangent is t.
func (t *Tensor) Atan() *Tensor { return t.floated().unary(ir.Atan) }

// Atan2 is the angle of the point (u, t), from -π to π, broadcast.
func (t *Tensor) Atan2(u *Tensor) *Tensor {
	givenAll("Atan2", operandNames, t, u)
	if !t.DType().IsFloat() && !u.DType().IsFloat() {
		t, u = t.floated(), u.floated()
	}
	return t.binary(ir.Atan2, u, &noParams)
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
