package lower

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/ir"
)

// linearCrossEntropy is the loss of all logits x·wᵀ at once, in wide precision.
func linearCrossEntropy(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	x, w, labels := b.Widen(in[0]), b.Widen(in[1]), in[2]
	z := b.MatMul(x, b.Transpose(w))
	ce := ir.New(ir.CrossEntropy, ir.Attr{}, z.Type(), labels.Type())
	out := crossEntropy(b, &ce, p, []ir.Value{z, labels})
	loss, stats := out[0], out[1]
	if op.Attr.Flag&(ir.Mean|ir.Total) == 0 {
		return []ir.Value{loss}
	}
	one := like(b, loss, 1)
	ignored := b.Binary(ir.Eq, labels, like(b, labels, param(p, 1)))
	count := b.Sum(b.Where(ignored, like(b, loss, 0), one), 1<<0, false)
	each := b.Expand(one, labels.Type().Shape())
	whole := b.Sum(loss, 1<<0, false)
	if op.Attr.Flag&ir.Mean != 0 {
		whole = b.Div(whole, count)
	}
	return slices.Concat([]ir.Value{whole, count}, headGrads(b, op, p, x, w, z, labels, stats, each))
}

func linearCrossEntropyGrad(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	x, w, labels := b.Widen(in[0]), b.Widen(in[1]), in[2]
	z := b.MatMul(x, b.Transpose(w))
	m, s, _ := statistics(b, z)
	n := labels.Type().Dim(0)
	stats := b.Emit(ir.Cat, ir.Attr{}, ir.Params{}, b.Reshape(m, 1, n), b.Reshape(s, 1, n))[0]
	grads := headGrads(b, op, p, x, w, z, labels, stats, in[3])
	for i, g := range grads {
		grads[i] = b.Cast(g, op.In(0).DType)
	}
	return grads
}

// headGrads are the gradients of x and w that the op asks for, with a gradient g of each row's loss.
func headGrads(b ir.B, op *ir.Op, p *ir.Params, x, w, z, labels, stats, g ir.Value) (grads []ir.Value) {
	if op.Attr.Flag&(ir.GradX|ir.GradW) == 0 {
		return nil
	}
	ce := ir.New(ir.CrossEntropyGrad, ir.Attr{}, z.Type(), labels.Type(), stats.Type(), g.Type())
	d := crossEntropyGrad(b, &ce, p, []ir.Value{z, labels, stats, g})[0]
	if op.Attr.Flag&ir.GradX != 0 {
		grads = append(grads, b.MatMul(d, w))
	}
	if op.Attr.Flag&ir.GradW != 0 {
		grads = append(grads, b.MatMul(b.Transpose(d), x))
	}
	return grads
}
