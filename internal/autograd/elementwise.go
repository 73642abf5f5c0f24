package autograd

import (
	"math"

	"github.com/warpline-ml/warpline/internal/ir"
)

func zeroGrad(b ir.B, c Call, _ ir.Value) ir.Value { return b.Zeros(c.Op().In(0)) }

func negGrad(b ir.B, _ Call, g ir.Value) ir.Value { return b.Unary(ir.Neg, g) }

func absGrad(b ir.B, g, x ir.Value) ir.Value { return b.Mul(g, b.Unary(ir.Sign, x)) }

func sqrtGrad(b ir.B, g, y ir.Value) ir.Value { return b.Div(g, b.Scale(y, 2)) }

func rsqrtGrad(b ir.B, g, y ir.Value) ir.Value {
	return b.Mul(b.Scale(g, -0.5), b.Mul(y, b.Mul(y, y)))
}

func expm1Grad(b ir.B, g, y ir.Value) ir.Value { return b.Mul(g, b.Affine(y, 1, 1)) }

func log1pGrad(b ir.B, g, x ir.Value) ir.Value { return b.Div(g, b.Affine(x, 1, 1)) }

func sinGrad(b ir.B, g, x ir.Value) ir.Value { return b.Mul(g, b.Unary(ir.Cos, x)) }

func cosGrad(b ir.B, g, x ir.Value) ir.Value { return b.Mul(b.Unary(ir.Neg, g), b.Unary(ir.Sin, x)) }

func tanhGrad(b ir.B, g, y ir.Value) ir.Value { return b.Mul(g, b.Affine(b.Mul(y, y), -1, 1)) }

func sigmoidGrad(b ir.B, g, y ir.Value) ir.Value {
	return b.Mul(b.Mul(g, y), b.Affine(y, -1, 1))
}

func erfGrad(b ir.B, g, x ir.Value) ir.Value {
	return b.Mul(g, b.Scale(b.Unary(ir.Exp, b.Unary(ir.Neg, b.Mul(x, x))), 2/math.Sqrt(math.Pi)))
}

func reluGrad(b ir.B, g, y ir.Value) ir.Value { return b.Binary(ir.ReLUGrad, y, g) }

func affineGrad(b ir.B, c Call, g ir.Value) ir.Value { return b.Scale(g, param(c, 0)) }

func lerpFromGrad(b ir.B, c Call, g ir.Value) ir.Value { return b.Scale(g, 1-param(c, 0)) }

// powScalarGrad is p·x^(p-1), and 0 for p = 0 even where x^(-1) is infinite.
func powScalarGrad(b ir.B, c Call, g ir.Value) ir.Value {
	switch p := param(c, 0); p {
	case 0:
		return b.Zeros(c.Op().In(0))
	case 2:
		return b.Mul(g, b.Scale(c.In(0), 2))
	default:
		slope := emit(b, ir.PowScalar, ir.Attr{}, ir.Scalars(p-1), c.In(0))
		return b.Mul(g, b.Scale(slope, p))
	}
}

// clampGrad passes g strictly within the bounds. An infinite bound bounds nothing.
func clampGrad(b ir.B, c Call, g ir.Value) ir.Value {
	v := c.In(0)
	dt := v.Type().DType
	if lo := param(c, 0); !math.IsInf(lo, -1) {
		g = b.Mask(b.Binary(ir.Lt, b.Number(dt, lo), v), g)
	}
	if hi := param(c, 1); !math.IsInf(hi, 1) {
		g = b.Mask(b.Binary(ir.Lt, v, b.Number(dt, hi)), g)
	}
	return g
}

func mulLeft(b ir.B, c Call, g ir.Value) ir.Value { return b.Mul(g, c.In(1)) }

func mulRight(b ir.B, c Call, g ir.Value) ir.Value { return b.Mul(g, c.In(0)) }

func divLeft(b ir.B, c Call, g ir.Value) ir.Value { return b.Div(g, c.In(1)) }

func divRight(b ir.B, c Call, g ir.Value) ir.Value {
	return b.Mul(b.Unary(ir.Neg, g), b.Div(b.Div(c.In(0), c.In(1)), c.In(1)))
}

// powBase is y·x^(y-1). Where y is 0 the exponent is replaced, so that 0·∞ does not arise.
func powBase(b ir.B, c Call, g ir.Value) ir.Value {
	v, e := c.In(0), c.In(1)
	dt := e.Type().DType
	safe := b.Where(b.Binary(ir.Eq, e, b.Number(dt, 0)), b.Number(dt, 1), e)
	return b.Mul(g, b.Mul(e, b.Binary(ir.Pow, v, b.Affine(safe, 1, -1))))
}

// powExponent is x^y·log(x), and 0 at base 0.
func powExponent(b ir.B, c Call, g ir.Value) ir.Value {
	v := c.In(0)
	dt := v.Type().DType
	zero := b.Binary(ir.Eq, v, b.Number(dt, 0))
	log := b.Unary(ir.Log, b.Where(zero, b.Number(dt, 1), v))
	return b.Where(zero, b.Number(dt, 0), b.Mul(g, b.Mul(c.Out(0), log)))
}

func remRight(b ir.B, c Call, g ir.Value) ir.Value {
	return b.Mul(b.Unary(ir.Neg, g), b.Unary(ir.Floor, b.Div(c.In(0), c.In(1))))
}

// larger passes g where operand i exceeds operand j, and half of it where they are equal. A NaN passes it to both.
func larger(i, j int) gradient {
	return func(b ir.B, c Call, g ir.Value) ir.Value {
		u, v := c.In(i), c.In(j)
		tie := b.Binary(ir.Eq, u, v)
		return b.Where(b.Binary(ir.Lt, u, v), b.Number(g.Type().DType, 0), b.Where(tie, b.Scale(g, 0.5), g))
	}
}

func whereTrue(b ir.B, c Call, g ir.Value) ir.Value { return b.Mask(c.In(0), g) }

func whereFalse(b ir.B, c Call, g ir.Value) ir.Value {
	return b.Where(c.In(0), b.Number(g.Type().DType, 0), g)
}
