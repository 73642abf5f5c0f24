package autograd

import (
	"github.com/warpline-ml/warpline/internal/ir"
)

// gradOfG is the gradient of operand g of an op (v, g) that is linear and symmetric in it: the same op.
func gradOfG(b ir.B, c Call, g ir.Value) ir.Value { return b.Binary(c.Op().Code, c.In(0), g) }

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

// ofMean tells whether an op is of the mean of losses.
func ofMean(op *ir.Op) bool { return op.Attr.Flag&ir.Mean != 0 }

func crossEntropySave(op *ir.Op, _ uint64) Saves {
	s := Saves{In: 1<<0 | 1<<1, Out: 1 << 1}
	if ofMean(op) {
		s.Out |= 1 << 2
	}
	return s
}

func crossEntropyGrad(b ir.B, c Call) []ir.Value {
	grads := make([]ir.Value, 2)
	if !wants(c, 0) {
		return grads
	}
	if g := c.Grad(0); g != nil {
		in := []ir.Value{c.In(0), c.In(1), c.Out(1), g}
		if ofMean(c.Op()) {
			in = append(in, c.Out(2))
		}
		grads[0] = emit(b, ir.CrossEntropyGrad, c.Op().Attr, *c.Params(), in...)
	}
	if g := c.Grad(1); g != nil {
		grads[0] = plus(b, grads[0], b.Cast(statisticsGrad(b, b.Widen(c.In(0)), c.Out(1), g), c.Op().In(0).DType))
	}
	return grads
}

// statistic is row i of the statistics of rows, as a column: the largest logit m, or s = log Σ exp(x-m).
func statistic(b ir.B, stats ir.Value, i int) ir.Value {
	return b.Reshape(b.Slice(stats, 0, i, 1, 1), stats.Type().Dim(1), 1)
}

// probabilities are exp(x-m-s).
func probabilities(b ir.B, x, stats ir.Value) ir.Value {
	return b.Unary(ir.Exp, b.Sub(b.Sub(x, statistic(b, stats, 0)), statistic(b, stats, 1)))
}

// statisticsGrad is the gradient of x from that of its statistics: of m it goes to the largest, of s it is p less what goes
// there. Equal largest share it.
func statisticsGrad(b ir.B, x, stats, g ir.Value) ir.Value {
	largest := b.Cast(b.Binary(ir.Eq, x, statistic(b, stats, 0)), x.Type().DType)
	largest = b.Div(largest, b.Sum(largest, 1<<1, true))
	most, whole := statistic(b, g, 0), statistic(b, g, 1)
	return b.Add(b.Mul(probabilities(b, x, stats), whole), b.Mul(largest, b.Sub(most, whole)))
}

func crossEntropyTwiceSave(op *ir.Op, want uint64) (s Saves) {
	s.In = 1<<op.NumIn() - 1
	if want == 1<<3 { // the op is linear in g
		s.In &^= 1 << 3
	}
	return s
}

// crossEntropyTwice is the rule of (p - target)·g, p = exp(x-m-s), with g divided by the number of labels of a mean.
func crossEntropyTwice(b ir.B, c Call) []ir.Value {
	grads := make([]ir.Value, c.Op().NumIn())
	h := c.Grad(0)
	if h == nil {
		return grads
	}
	if wants(c, 0) || wants(c, 2) {
		slope := crossEntropySlope(b, c, h)
		if wants(c, 0) {
			grads[0] = b.Cast(slope, c.Op().In(0).DType)
		}
		if wants(c, 2) { // m and s come in alike
			each := b.Unary(ir.Neg, b.Sum(slope, 1<<1, false))
			grads[2] = b.Expand(b.Reshape(each, 1, each.Type().Dim(0)), c.Op().In(2).Shape())
		}
	}
	if wants(c, 3) {
		grads[3] = crossEntropyGradG(b, c, h)
	}
	if ofMean(c.Op()) && wants(c, 4) {
		n := c.In(4)
		none := b.Binary(ir.Eq, n, b.Number(n.Type().DType, 0)) // every label is ignored, and the sum below 0
		each := b.Div(c.In(3), b.Where(none, b.Number(n.Type().DType, 1), n))
		grads[4] = b.Unary(ir.Neg, b.Mul(crossEntropyGradG(b, c, h), each))
	}
	return grads
}

// crossEntropySlope is h·p·g: the gradient of the logits, and that of the statistics with the other sign, before it is
// summed. Rows with the ignored label are 0.
func crossEntropySlope(b ir.B, c Call, h ir.Value) ir.Value {
	labels, g := c.In(1), c.In(3)
	if ofMean(c.Op()) {
		g = b.Div(g, c.In(4))
	}
	p := probabilities(b, b.Widen(c.In(0)), c.In(2))
	ignored := b.Binary(ir.Eq, labels, b.Number(labels.Type().DType, param(c, 1)))
	rows := b.Where(ignored, b.Number(p.Type().DType, 0), g)
	return b.Mul(b.Widen(h), b.Mul(p, column(b, rows)))
}

// crossEntropyGradG is the gradient of g: the op is linear in it.
func crossEntropyGradG(b ir.B, c Call, h ir.Value) ir.Value {
	g := c.Op().In(3)
	in := []ir.Value{c.In(0), c.In(1), c.In(2), b.Expand(b.Number(g.DType, 1), g.Shape())}
	axes := uint16(1 << 1)
	if ofMean(c.Op()) {
		in, axes = append(in, c.In(4)), 1<<0|1<<1
	}
	unit := emit(b, ir.CrossEntropyGrad, c.Op().Attr, *c.Params(), in...)
	return b.Sum(b.Mul(b.Widen(h), b.Widen(unit)), axes, false)
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
