package lower

import (
	"math"

	"github.com/warpline-ml/warpline/internal/ir"
)

// centred is x less its maximum over the last dimension. A row of -Inf throughout gives NaN, as in PyTorch.
func centred(b ir.B, x ir.Value) ir.Value {
	return b.Sub(x, b.Reduce(ir.ReduceMax, x, last(x), true))
}

func softmax(b ir.B, x ir.Value) ir.Value {
	if x.Type().Size() == 0 {
		return x
	}
	e := b.Unary(ir.Exp, centred(b, x))
	return b.Div(e, b.Sum(e, last(x), true))
}

func logSoftmax(b ir.B, x ir.Value) ir.Value {
	if x.Type().Size() == 0 {
		return x
	}
	d := centred(b, x)
	return b.Sub(d, b.Unary(ir.Log, b.Sum(b.Unary(ir.Exp, d), last(x), true)))
}

func softmaxGrad(b ir.B, y, g ir.Value) ir.Value {
	return b.Mul(y, b.Sub(g, b.Sum(b.Mul(g, y), last(y), true)))
}

func logSoftmaxGrad(b ir.B, y, g ir.Value) ir.Value {
	return b.Sub(g, b.Mul(b.Unary(ir.Exp, y), b.Sum(g, last(y), true)))
}

// logSumExp is m + log Σ exp(x-m) over the last dimension, kept as 1, with m the maximum: -Inf for a row of -Inf
// throughout or without elements.
func logSumExp(b ir.B, x ir.Value) ir.Value {
	if x.Type().Dim(-1) == 0 {
		return b.Unary(ir.Log, b.Sum(x, last(x), true))
	}
	m := b.Reduce(ir.ReduceMax, x, last(x), true)
	none := b.Binary(ir.Eq, m, like(b, m, math.Inf(-1)))
	m = b.Where(none, like(b, m, 0), m)
	return b.Add(m, b.Unary(ir.Log, b.Sum(b.Unary(ir.Exp, b.Sub(x, m)), last(x), true)))
}

// crossEntropy is lse - (1-ε)·x[label] - ε·mean(x), 0 where the label is the ignored one.
func crossEntropy(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	x, labels, smoothing := b.Widen(in[0]), in[1], param(p, 0)
	n := op.In(0).Dim(0)
	lse := b.Reshape(logSumExp(b, x), n)
	ignored := b.Binary(ir.Eq, labels, like(b, labels, param(p, 1)))
	safe := b.Where(ignored, like(b, labels, 0), labels)
	picked := b.Reshape(b.Gather(x, 1, column(b, safe)), n)
	loss := b.Sub(lse, b.Scale(picked, 1-smoothing))
	if smoothing != 0 {
		loss = b.Sub(loss, b.Scale(b.Reshape(mean(b, x, last(x)), n), smoothing))
	}
	return []ir.Value{b.Where(ignored, like(b, loss, 0), loss), lse}
}

// crossEntropyGrad is (exp(x-lse) - target)·g with target (1-ε)·[c = label] + ε/C, 0 where the label is ignored.
func crossEntropyGrad(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	x, labels, lse, g := b.Widen(in[0]), column(b, in[1]), column(b, in[2]), column(b, in[3])
	classes, smoothing := op.In(0).Dim(1), param(p, 0)
	hit := b.Cast(b.Binary(ir.Eq, b.Count(classes), labels), x.Type().DType)
	target := b.Affine(hit, 1-smoothing, smoothing/float64(classes))
	dx := b.Mul(b.Sub(b.Unary(ir.Exp, b.Sub(x, lse)), target), g)
	ignored := b.Binary(ir.Eq, labels, like(b, labels, param(p, 1)))
	return []ir.Value{b.Cast(b.Where(ignored, like(b, dx, 0), dx), op.In(0).DType)}
}
