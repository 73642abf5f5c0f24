package lower

import (
	"math"

	"github.com/warpline-ml/warpline/internal/ir"
)

// linear multiplies in the operands' own precision, as an engine would, and widens for bias and activation.
func linear(b ir.B, op *ir.Op, _ *ir.Params, in []ir.Value) []ir.Value {
	x, w := in[0], in[1]
	y := b.Widen(b.MatMul(b.Rows(x), b.Transpose(w)))
	if len(in) == 3 {
		y = b.Add(y, b.Widen(in[2]))
	}
	switch op.Attr.Act {
	case ir.ActReLU:
		y = b.Unary(ir.ReLU, y)
	case ir.ActGELU:
		y = gelu(b, y)
	case ir.ActGELUTanh:
		y = geluTanh(b, y)
	}
	shape := append([]int(nil), op.In(0).Shape()...)
	shape[len(shape)-1] = op.In(1).Dim(0)
	return []ir.Value{b.Reshape(b.Cast(y, op.In(0).DType), shape...)}
}

// cdf is the standard normal distribution function Φ(x) = (1 + erf(x/√2))/2.
func cdf(b ir.B, x ir.Value) ir.Value {
	return b.Affine(b.Unary(ir.Erf, b.Scale(x, math.Sqrt2/2)), 0.5, 0.5)
}

func gelu(b ir.B, x ir.Value) ir.Value { return b.Mul(x, cdf(b, x)) }

// geluGrad is g·(Φ(x) + x·φ(x)), φ the standard normal density.
func geluGrad(b ir.B, x, g ir.Value) ir.Value {
	density := b.Scale(b.Unary(ir.Exp, b.Scale(b.Mul(x, x), -0.5)), 1/math.Sqrt(2*math.Pi))
	return b.Mul(g, b.Add(cdf(b, x), b.Mul(x, density)))
}

// cubic is the coefficient of GELU's tanh form: tanh(√(2/π)·(x + 0.044715·x³)).
const cubic = 0.044715

var root2OverPi = math.Sqrt(2 / math.Pi)

// geluTanhInner is √(2/π)·(x + 0.044715·x³), given x².
func geluTanhInner(b ir.B, x, sq ir.Value) ir.Value {
	return b.Mul(x, b.Affine(sq, cubic*root2OverPi, root2OverPi))
}

func geluTanh(b ir.B, x ir.Value) ir.Value {
	t := b.Unary(ir.Tanh, geluTanhInner(b, x, b.Mul(x, x)))
	return b.Mul(x, b.Affine(t, 0.5, 0.5))
}

// geluTanhGrad is g·(1 + t + x·(1-t²)·u′)/2 with t = tanh u. Far from 0 that is 0 or g, also where x³ overflows.
func geluTanhGrad(b ir.B, x, g ir.Value) ir.Value {
	x = b.Binary(ir.Maximum, b.Binary(ir.Minimum, x, like(b, x, 30)), like(b, x, -30))
	sq := b.Mul(x, x)
	t := b.Unary(ir.Tanh, geluTanhInner(b, x, sq))
	inner := b.Affine(sq, 3*cubic*root2OverPi, root2OverPi)
	bend := b.Mul(b.Mul(x, inner), b.Affine(b.Mul(t, t), -1, 1))
	return b.Mul(g, b.Scale(b.Add(b.Affine(t, 1, 1), bend), 0.5))
}

func silu(b ir.B, x ir.Value) ir.Value { return b.Mul(x, b.Unary(ir.Sigmoid, x)) }

// siluGrad is g·s·(1 + x·(1-s)), s = sigmoid(x).
func siluGrad(b ir.B, x, g ir.Value) ir.Value {
	s := b.Unary(ir.Sigmoid, x)
	return b.Mul(b.Mul(g, s), b.Affine(b.Mul(x, b.Affine(s, -1, 1)), 1, 1))
}

func reluGrad(b ir.B, y, g ir.Value) ir.Value {
	return b.Mask(b.Binary(ir.Lt, like(b, y, 0), y), g)
}
