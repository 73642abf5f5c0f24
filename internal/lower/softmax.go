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

// statistics are the largest element m of each row of x[n,c] and log Σ exp(x-m), as columns, with x-m. Of a row without
// elements both are -Inf.
func statistics(b ir.B, x ir.Value) (m, s, d ir.Value) {
	if x.Type().Dim(1) == 0 {
		none := b.Unary(ir.Log, b.Sum(x, last(x), true))
		return none, none, x
	}
	m = b.Reduce(ir.ReduceMax, x, last(x), true)
	d = b.Sub(x, m)
	return m, b.Unary(ir.Log, b.Sum(b.Unary(ir.Exp, d), last(x), true)), d
}

// crossEntropy is log Σ exp(x-m) - (1-ε)·(x[label]-m) - ε·mean(x-m), m the largest logit, 0 where the label is the ignored
// one.
func crossEntropy(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	x, labels, smoothing := b.Widen(in[0]), in[1], param(p, 0)
	n := op.In(0).Dim(0)
	m, s, d := statistics(b, x)
	ignored := b.Binary(ir.Eq, labels, like(b, labels, param(p, 1)))
	safe := b.Where(ignored, like(b, labels, 0), labels)
	picked := b.Gather(d, 1, column(b, safe))
	loss := b.Sub(s, b.Scale(picked, 1-smoothing))
	if smoothing != 0 {
		loss = b.Sub(loss, b.Scale(mean(b, d, last(x)), smoothing))
	}
	loss = b.Where(ignored, like(b, loss, 0), b.Reshape(loss, n))
	stats := b.Emit(ir.Cat, ir.Attr{}, ir.Params{}, b.Reshape(m, 1, n), b.Reshape(s, 1, n))[0]
	if op.Attr.Flag&ir.Mean == 0 {
		return []ir.Value{loss, stats}
	}
	one := like(b, loss, 1)
	count := b.Sum(b.Where(ignored, like(b, loss, 0), one), 1<<0, false)
	return []ir.Value{b.Div(b.Sum(loss, 1<<0, false), count), stats, count}
}

// crossEntropyGrad is (exp(x-m-s) - target)·g, m and s the statistics, with target (1-ε)·[c = label] + ε/C, 0 where the
// label is ignored; g is divided by the number of labels of a mean.
func crossEntropyGrad(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	x, labels, g := b.Widen(in[0]), column(b, in[1]), in[3]
	n, classes, smoothing := op.In(0).Dim(0), op.In(0).Dim(1), param(p, 0)
	if op.Attr.Flag&ir.Mean != 0 {
		g = b.Div(g, in[4])
	} else {
		g = column(b, g)
	}
	stat := func(i int) ir.Value { return b.Reshape(b.Slice(in[2], 0, i, 1, 1), n, 1) }
	hit := b.Cast(b.Binary(ir.Eq, b.Count(classes), labels), x.Type().DType)
	target := b.Affine(hit, 1-smoothing, smoothing/float64(classes))
	probable := b.Unary(ir.Exp, b.Sub(b.Sub(x, stat(0)), stat(1)))
	dx := b.Mul(b.Sub(probable, target), g)
	ignored := b.Binary(ir.Eq, labels, like(b, labels, param(p, 1)))
	return []ir.Value{b.Cast(b.Where(ignored, like(b, dx, 0), dx), op.In(0).DType)}
}
