package autograd

import "github.com/warpline-ml/warpline/internal/ir"

// lstmGates are the gates i, f, g and o of a step.
func lstmGates(b ir.B, x ir.Value) (y [4]ir.Value) {
	h := x.Type().Dim(1) / 4
	for k := range y {
		y[k] = b.Slice(x, 1, k*h, h, 1)
	}
	return y
}

func beside(b ir.B, parts ...ir.Value) ir.Value {
	return emit(b, ir.Cat, ir.Attr{Axis: 1}, ir.Params{}, parts...)
}

// lstmSlopes are the gradients of gates by what they are the sigmoid or, the third, tanh of.
func lstmSlopes(b ir.B, y [4]ir.Value) (s [4]ir.Value) {
	for k, v := range y {
		if s[k] = b.Sub(v, b.Mul(v, v)); k == 2 {
			s[k] = b.Affine(b.Mul(v, v), -1, 1)
		}
	}
	return s
}

// lstmStepSave: the gates, and the cell before and after.
func lstmStepSave(*ir.Op, uint64) Saves { return Saves{In: 1 << 2, Out: 1<<1 | 1<<2} }

func lstmStepGrad(b ir.B, c Call) []ir.Value {
	or := func(g ir.Value) ir.Value {
		if g == nil {
			return b.Full(c.Op().In(2), 0)
		}
		return g
	}
	var da, dc ir.Value
	if c.Grad(0) != nil || c.Grad(1) != nil {
		out := b.Emit(ir.LSTMStepGrad, ir.Attr{}, ir.Params{}, or(c.Grad(0)), or(c.Grad(1)), c.Out(2), c.In(2), c.Out(1))
		da, dc = out[0], out[1]
	}
	if g := c.Grad(2); g != nil {
		s := lstmSlopes(b, lstmGates(b, c.Out(2)))
		da = plus(b, da, b.Mul(g, beside(b, s[:]...)))
	}
	return wanted(c, make([]ir.Value, 3), []ir.Value{da, da, dc})
}

func lstmStepTwiceSave(*ir.Op, uint64) Saves { return Saves{In: 1<<5 - 1} }

// lstmStepTwice is the gradient of a gradient: with t = tanh c', q = o·(1-t²) and d = dc' + dh·q that is
//
//	d·g·i·(1-i), d·c·f·(1-f), d·i·(1-g²), dh·t·o·(1-o);  dc = d·f
//
// The gradients of these are u, of each gate, and v.
func lstmStepTwice(b ir.B, c Call) []ir.Value {
	mul := func(x ir.Value, more ...ir.Value) ir.Value {
		for _, y := range more {
			x = b.Mul(x, y)
		}
		return x
	}
	dh, cell := c.In(0), c.In(3)
	y := lstmGates(b, c.In(2))
	i, f, g, o, s := y[0], y[1], y[2], y[3], lstmSlopes(b, y)
	t := b.Unary(ir.Tanh, c.In(4))
	e := b.Affine(b.Mul(t, t), -1, 1)
	q := b.Mul(o, e)
	d := b.Add(c.In(1), b.Mul(dh, q))
	all, v := c.Grad(0), c.Grad(1)
	if all == nil {
		all = b.Full(c.Op().In(2), 0)
	}
	if v == nil {
		v = b.Full(c.Op().In(0), 0)
	}
	u := lstmGates(b, all)
	twice := func(k int) ir.Value { return b.Affine(y[k], -2, 1) } // the slope of a sigmoid's slope
	dd := b.Add(b.Add(mul(u[0], g, s[0]), mul(u[1], cell, s[1])), b.Add(mul(u[2], i, s[2]), mul(v, f)))
	out := mul(u[3], s[3])
	gates := [...]ir.Value{
		b.Add(mul(u[0], d, g, twice(0)), mul(u[2], d, s[2])),
		b.Add(mul(u[1], d, cell, twice(1)), mul(v, d)),
		b.Sub(mul(u[0], d, s[0]), b.Scale(mul(u[2], d, i, g), 2)),
		b.Add(mul(dd, dh, e), mul(u[3], dh, t, twice(3))),
	}
	dt := b.Mul(dh, b.Sub(out, b.Scale(mul(dd, o, t), 2)))
	return wanted(c, make([]ir.Value, 5), []ir.Value{b.Add(b.Mul(dd, q), b.Mul(out, t)), dd, beside(b, gates[:]...), mul(u[1], d, s[1]), b.Mul(dt, e)})
}
