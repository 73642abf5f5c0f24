package autograd

import (
	"math"

	"github.com/warpline-ml/warpline/internal/ir"
)

// headOperands are the flags that ask for the gradients of x and w, by operand.
var headOperands = [2]ir.Flag{ir.GradX, ir.GradW}

// headResults are the results of a LinearCrossEntropy that hold the gradients of x and w; 0: it has none.
func headResults(op *ir.Op) (at [2]int) {
	next := 2
	for i, flag := range headOperands {
		if op.Attr.Flag&flag != 0 {
			at[i], next = next, next+1
		}
	}
	return at
}

// linearCrossEntropySave: the gradients that the op has computed are all that a first derivative needs; a second one, and
// that of losses apart, compute the logits again.
func linearCrossEntropySave(op *ir.Op, want uint64) Saves {
	s := Saves{In: 0b111}
	if ofMean(op) {
		s.Out |= 1 << 1
	}
	for i, at := range headResults(op) {
		if at > 0 && want>>i&1 == 1 {
			s.Out |= 1 << at
		}
	}
	return s
}

func linearCrossEntropyGrad(b ir.B, c Call) []ir.Value {
	grads := make([]ir.Value, 3)
	if g := c.Grad(0); g != nil {
		if ofMean(c.Op()) { // without a label that counts every gradient is 0, though the mean is NaN
			g = b.Div(g, emit(b, ir.Clamp, ir.Attr{}, ir.Scalars(1, math.Inf(1)), c.Out(1)))
		}
		headOnce(b, c, g, grads)
	}
	var h [2]ir.Value
	for i, at := range headResults(c.Op()) {
		if at > 0 {
			h[i] = c.Grad(at)
		}
	}
	newHeadTwice(b, c, nil, h[0], h[1]).add(c, grads)
	return grads
}

// headOnce are the gradients of the loss: those that the op has computed, times that of the sum, or those of each row's loss.
func headOnce(b ir.B, c Call, g ir.Value, grads []ir.Value) {
	op := c.Op()
	var flags ir.Flag
	for i, at := range headResults(op) {
		switch {
		case !wants(c, i):
		case at > 0:
			grads[i] = b.Cast(b.Mul(c.Out(at), g), op.In(i).DType)
		default:
			flags |= headOperands[i]
		}
	}
	if flags == 0 {
		return
	}
	in := []ir.Value{c.In(0), c.In(1), c.In(2), b.Expand(g, c.In(2).Type().Shape())}
	out := b.Emit(ir.LinearCrossEntropyGrad, ir.Attr{Flag: flags}, *c.Params(), in...)
	for i, flag := range headOperands {
		if flags&flag != 0 {
			grads[i], out = out[0], out[1:]
		}
	}
}

func linearCrossEntropyTwiceSave(*ir.Op, uint64) Saves { return Saves{In: 0b1111} }

func linearCrossEntropyTwice(b ir.B, c Call) []ir.Value {
	grads := make([]ir.Value, 4)
	var h [2]ir.Value
	next := 0
	for i, flag := range headOperands {
		if c.Op().Attr.Flag&flag != 0 {
			h[i], next = c.Grad(next), next+1
		}
	}
	newHeadTwice(b, c, c.In(3), h[0], h[1]).add(c, grads)
	return grads
}

// headTwice is the gradient of dx = g·D·w and dw = (g·D)ᵀ·x, where D = softmax(x·wᵀ) - target and g weighs its rows. With
// the gradients hx and hw of the two, and M = hx·wᵀ + x·hwᵀ, Σ hx·dx + Σ hw·dw is Σ g·D·M, and the gradient of the logits
// Q = g·p·(M - Σ p·M), p the softmax. All of it is in wide precision, and holds all logits.
type headTwice struct {
	ir.B
	x, w, g ir.Value // g is a column
	hx, hw  ir.Value // nil where there is none
	d, q, m ir.Value // D, Q and M
}

// newHeadTwice computes what the gradients have in common; g may be nil, for 1. It returns nil where no gradient came.
func newHeadTwice(b ir.B, c Call, g, hx, hw ir.Value) *headTwice {
	if hx == nil && hw == nil {
		return nil
	}
	t := &headTwice{B: b, x: b.Widen(c.In(0)), w: b.Widen(c.In(1))}
	labels := c.In(2)
	one := b.Expand(b.Number(t.x.Type().DType, 1), labels.Type().Shape())
	if g == nil {
		g = one
	}
	if hx != nil {
		t.hx = b.Widen(hx)
		t.m = b.MatMul(t.hx, b.Transpose(t.w))
	}
	if hw != nil {
		t.hw = b.Widen(hw)
		t.m = plus(b, t.m, b.MatMul(t.x, b.Transpose(t.hw)))
	}
	z := b.MatMul(t.x, b.Transpose(t.w))
	stats := b.Emit(ir.CrossEntropy, ir.Attr{}, *c.Params(), z, labels)[1]
	t.d = emit(b, ir.CrossEntropyGrad, ir.Attr{}, *c.Params(), z, labels, stats, one)
	t.g = column(b, g)
	ignored := b.Binary(ir.Eq, labels, b.Number(labels.Type().DType, param(c, 1)))
	counted := column(b, b.Where(ignored, b.Number(g.Type().DType, 0), g))
	p := probabilities(b, z, stats)
	t.q = b.Mul(b.Mul(p, b.Sub(t.m, overLast(b, b.Mul(p, t.m)))), counted)
	return t
}

// add adds the gradients that are wanted to those there are.
func (t *headTwice) add(c Call, grads []ir.Value) {
	if t == nil {
		return
	}
	for i, f := range []func() ir.Value{0: t.ofX, 1: t.ofW, 3: t.ofG} {
		if i < len(grads) && f != nil && wants(c, i) {
			grads[i] = plus(t.B, grads[i], t.Cast(f(), c.Op().In(i).DType))
		}
	}
}

// ofX is Q·w + g·D·hw.
func (t *headTwice) ofX() ir.Value {
	dx := t.MatMul(t.q, t.w)
	if t.hw != nil {
		dx = t.Add(dx, t.MatMul(t.Mul(t.d, t.g), t.hw))
	}
	return dx
}

// ofW is Qᵀ·x + (g·D)ᵀ·hx.
func (t *headTwice) ofW() ir.Value {
	dw := t.MatMul(t.Transpose(t.q), t.x)
	if t.hx != nil {
		dw = t.Add(dw, t.MatMul(t.Transpose(t.Mul(t.d, t.g)), t.hx))
	}
	return dw
}

// ofG is Σ D·M by rows.
func (t *headTwice) ofG() ir.Value { return t.Sum(t.Mul(t.d, t.m), 1<<1, false) }
