package lower

import "github.com/warpline-ml/warpline/internal/ir"

// gates are n of the four gates side by side, from one on.
func gates(b ir.B, x ir.Value, from, n int) ir.Value {
	h := x.Type().Dim(1) / 4
	return b.Slice(x, 1, from*h, n*h, 1)
}

func beside(b ir.B, parts ...ir.Value) ir.Value {
	return b.One(ir.Cat, ir.Attr{Axis: 1}, ir.Params{}, parts...)
}

func lstmStep(b ir.B, op *ir.Op, _ *ir.Params, in []ir.Value) []ir.Value {
	h := op.In(2).Dim(1)
	a := b.Add(b.Widen(in[0]), b.Widen(in[1]))
	both, g, o := b.Unary(ir.Sigmoid, gates(b, a, 0, 2)), b.Unary(ir.Tanh, gates(b, a, 2, 1)), b.Unary(ir.Sigmoid, gates(b, a, 3, 1))
	i, f := b.Slice(both, 1, 0, h, 1), b.Slice(both, 1, h, h, 1)
	c := b.Add(b.Mul(f, b.Widen(in[2])), b.Mul(i, g))
	return cast(b, op, b.Mul(o, b.Unary(ir.Tanh, c)), c, beside(b, both, g, o))
}

// slope is v·y·(1-y), the gradient of a sigmoid with the result y.
func slope(b ir.B, v, y ir.Value) ir.Value {
	v = b.Mul(v, y)
	return b.Sub(v, b.Mul(v, y))
}

// bend is v·(1-y²), the gradient of a tanh with the result y.
func bend(b ir.B, v, y ir.Value) ir.Value { return b.Sub(v, b.Mul(v, b.Mul(y, y))) }

func lstmStepGrad(b ir.B, op *ir.Op, _ *ir.Params, in []ir.Value) []ir.Value {
	dh, all, c := b.Widen(in[0]), b.Widen(in[2]), b.Widen(in[3])
	i, f, g, o := gates(b, all, 0, 1), gates(b, all, 1, 1), gates(b, all, 2, 1), gates(b, all, 3, 1)
	t := b.Unary(ir.Tanh, b.Widen(in[4]))
	d := b.Add(b.Widen(in[1]), bend(b, b.Mul(dh, o), t))
	return cast(b, op, beside(b, slope(b, b.Mul(d, g), i), slope(b, b.Mul(d, c), f), bend(b, b.Mul(d, i), g), slope(b, b.Mul(dh, t), o)), b.Mul(d, f))
}
