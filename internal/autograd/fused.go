package autograd

import (
	"math"

	"github.com/warpline-ml/warpline/internal/ir"
)

func geluGrad(b ir.B, g, x ir.Value) ir.Value { return b.Binary(ir.GELUGrad, x, g) }

func geluTanhGrad(b ir.B, g, x ir.Value) ir.Value { return b.Binary(ir.GELUTanhGrad, x, g) }

func siluGrad(b ir.B, g, x ir.Value) ir.Value { return b.Binary(ir.SiLUGrad, x, g) }

// gradOfG is the gradient of operand g of an op (v, g) that is linear and symmetric in it: the same op.
func gradOfG(b ir.B, c Call, g ir.Value) ir.Value { return b.Binary(c.Op().Code, c.In(0), g) }

// secondOrder is the gradient of x of an op (x, g) → f′(x)·g, from the second derivative f″.
func secondOrder(second func(b ir.B, x ir.Value) ir.Value) gradient {
	return func(b ir.B, c Call, g ir.Value) ir.Value {
		return b.Mul(b.Mul(g, c.In(1)), second(b, c.In(0)))
	}
}

// geluSecond is φ(x)·(2-x²), φ the standard normal density.
func geluSecond(b ir.B, x ir.Value) ir.Value {
	sq := b.Mul(x, x)
	density := b.Scale(b.Unary(ir.Exp, b.Scale(sq, -0.5)), 1/math.Sqrt(2*math.Pi))
	return b.Mul(density, b.Affine(sq, -1, 2))
}

// geluTanhSecond is (1-t²)·(u′ + x·u″/2 - x·t·u′²) with t = tanh u, u = √(2/π)·(x + 0.044715·x³).
func geluTanhSecond(b ir.B, x ir.Value) ir.Value {
	const cubic = 0.044715
	c := math.Sqrt(2 / math.Pi)
	sq := b.Mul(x, x)
	t := b.Unary(ir.Tanh, b.Mul(x, b.Affine(sq, c*cubic, c)))
	u1 := b.Affine(sq, 3*c*cubic, c)
	half := b.Scale(sq, 3*c*cubic) // x·u″/2
	bend := b.Mul(b.Mul(x, t), b.Mul(u1, u1))
	return b.Mul(b.Affine(b.Mul(t, t), -1, 1), b.Sub(b.Add(u1, half), bend))
}

// siluSecond is s·(1-s)·(2 + x·(1-2s)), s = sigmoid(x).
func siluSecond(b ir.B, x ir.Value) ir.Value {
	s := b.Unary(ir.Sigmoid, x)
	slope := b.Mul(s, b.Affine(s, -1, 1))
	return b.Mul(slope, b.Affine(b.Mul(x, b.Affine(s, -2, 1)), 1, 2))
}

func softmaxGrad(b ir.B, g, y ir.Value) ir.Value { return b.Binary(ir.SoftmaxGrad, y, g) }

func logSoftmaxGrad(b ir.B, g, y ir.Value) ir.Value { return b.Binary(ir.LogSoftmaxGrad, y, g) }

// overLast sums over the last dimension and keeps it.
func overLast(b ir.B, v ir.Value) ir.Value { return b.Sum(v, 1<<v.Type().Rank()>>1, true) }

// softmaxGradY is the gradient of y in y·(g - Σ g·y): with h the gradient of the result, h·(g - Σ g·y) - g·Σ h·y.
func softmaxGradY(b ir.B, c Call, h ir.Value) ir.Value {
	y, g := c.In(0), c.In(1)
	first := b.Mul(h, b.Sub(g, overLast(b, b.Mul(g, y))))
	return b.Sub(first, b.Mul(g, overLast(b, b.Mul(h, y))))
}

// logSoftmaxGradY is the gradient of y in g - eʸ·Σ g: -h·eʸ·Σ g.
func logSoftmaxGradY(b ir.B, c Call, h ir.Value) ir.Value {
	return b.Mul(b.Mul(b.Unary(ir.Neg, h), b.Unary(ir.Exp, c.In(0))), overLast(b, c.In(1)))
}

// logSoftmaxGradG is the gradient of g in g - eʸ·Σ g: h - Σ h·eʸ.
func logSoftmaxGradG(b ir.B, c Call, h ir.Value) ir.Value {
	return b.Sub(h, overLast(b, b.Mul(h, b.Unary(ir.Exp, c.In(0)))))
}

func crossEntropyGrad(b ir.B, c Call, g ir.Value) ir.Value {
	return emit(b, ir.CrossEntropyGrad, ir.Attr{}, *c.Params(), c.In(0), c.In(1), c.Out(1), g)
}

// crossEntropyGradX is the gradient of the logits in (p - target)·g, p = exp(x - lse), rows with the ignored label 0.
// It counts the way through lse, which carries no gradient of its own, as part of x.
func crossEntropyGradX(b ir.B, c Call, h ir.Value) ir.Value {
	v, labels, n := b.Widen(c.In(0)), c.In(1), c.Op().In(0).Dim(0)
	p := b.Unary(ir.Exp, b.Sub(v, b.Reshape(c.In(2), n, 1)))
	ignored := b.Binary(ir.Eq, labels, b.Number(labels.Type().DType, param(c, 1)))
	rows := b.Where(ignored, b.Number(v.Type().DType, 0), c.In(3))
	dx := b.Binary(ir.SoftmaxGrad, p, b.Mul(b.Widen(h), b.Reshape(rows, n, 1)))
	return b.Cast(dx, c.Op().In(0).DType)
}

// crossEntropyGradG is the gradient of g: the op is linear in it.
func crossEntropyGradG(b ir.B, c Call, h ir.Value) ir.Value {
	ones := b.Expand(b.Number(c.Op().In(3).DType, 1), c.Op().In(3).Shape())
	unit := emit(b, ir.CrossEntropyGrad, ir.Attr{}, *c.Params(), c.In(0), c.In(1), c.In(2), ones)
	return b.Sum(b.Mul(b.Widen(h), b.Widen(unit)), 1<<1, false)
}

func sumSquaresSave(_ *ir.Op, want uint64) Saves { return Saves{In: want} }

func sumSquaresGrad(b ir.B, c Call) []ir.Value {
	grads := make([]ir.Value, c.Op().NumIn())
	twice := b.Scale(c.Grad(0), 2)
	for i := range grads {
		if wants(c, i) {
			v := c.In(i)
			grads[i] = b.Cast(b.Mul(b.Cast(v, twice.Type().DType), twice), v.Type().DType)
		}
	}
	return grads
}
