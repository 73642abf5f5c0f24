package autograd

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/ir"
)

// attentionSave: every gradient needs all operands and both results.
func attentionSave(op *ir.Op, _ uint64) Saves { return Saves{In: 1<<op.NumIn() - 1, Out: 0b11} }

func attentionGrad(b ir.B, c Call) []ir.Value {
	n := c.Op().NumIn()
	grads := make([]ir.Value, n)
	g := c.Grad(0)
	if g != nil && (wants(c, 0) || wants(c, 1) || wants(c, 2)) {
		in := []ir.Value{g, c.In(0), c.In(1), c.In(2), c.Out(0), c.Out(1)}
		if n == 4 {
			in = append(in, c.In(3))
		}
		wanted(c, grads, b.Emit(ir.AttentionGrad, c.Op().Attr, *c.Params(), in...))
	}
	if g != nil && n == 4 && wants(c, 3) {
		grads[3] = maskGrad(b, c, g)
	}
	if h := c.Grad(1); h != nil {
		lseGrad(b, c, h, grads)
	}
	return grads
}

// lseGrad adds the gradients by way of the log-sum-exp of the scores, whose derivatives are the weights p.
func lseGrad(b ir.B, c Call, h ir.Value, grads []ir.Value) {
	var mask ir.Value
	if len(grads) == 4 {
		mask = c.In(3)
	}
	q, k := b.Widen(c.In(0)), b.Widen(c.In(1))
	p := b.Weights(b.Scores(c.In(0), c.In(1), mask, param(c, 0), c.Op().Attr.Causal), c.Out(1))
	ds := b.Mul(p, alongKeys(b, h))
	scaled := b.Scale(ds, param(c, 0))
	for i, f := range [...]func() ir.Value{
		0: func() ir.Value { return b.MatMul(scaled, k) },
		1: func() ir.Value { return b.MatMul(b.Transpose(scaled), q) },
		3: func() ir.Value { return ds },
	} {
		if f != nil && i < len(grads) && wants(c, i) {
			grads[i] = plus(b, grads[i], b.Cast(f(), c.Op().In(i).DType))
		}
	}
}

// alongKeys gives v[b,h,t] a dimension after it, to broadcast along the keys.
func alongKeys(b ir.B, v ir.Value) ir.Value {
	return b.Reshape(v, append(slices.Clone(v.Type().Shape()), 1)...)
}

// maskGrad is the gradient of a floating mask: p·(g·vᵀ - Σ g·o) with the attention weights p computed again.
func maskGrad(b ir.B, c Call, g ir.Value) ir.Value {
	scores := b.Scores(c.In(0), c.In(1), c.In(3), param(c, 0), c.Op().Attr.Causal)
	p := b.Weights(scores, c.Out(1))
	w := b.Widen(g)
	dp := b.MatMul(w, b.Transpose(b.Widen(c.In(2))))
	ds := b.Mul(p, b.Sub(dp, overLast(b, b.Mul(w, b.Widen(c.Out(0))))))
	return b.Cast(ds, c.Op().In(3).DType)
}

// twice is one use of the gradient of an [ir.AttentionGrad]: operands (g, q, k, v, o, lse, optionally mask) in wide
// precision. With p the weights, dp = g·vᵀ and D = Σ g·o the op is dq = scale·ds·k, dk = scale·dsᵀ·q and dv = pᵀ·g,
// where ds = p·(dp - D).
type twice struct {
	ir.B
	c     Call
	scale float64
	p     ir.Value
	a     ir.Value // the gradient that reached ds
	pa    ir.Value // that of dp: p·a
}

// attentionTwiceSave: what hangs on the scores needs all operands; g, v and o need none of themselves.
func attentionTwiceSave(op *ir.Op, want uint64) Saves {
	all := uint64(1)<<op.NumIn() - 1
	const g, q, k, v, o, lse, mask = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 5, 1 << 6
	if want&(q|k|lse|mask) != 0 {
		return Saves{In: all}
	}
	need := all & (q | k | lse | mask)
	if want&g != 0 {
		need |= v | o
	}
	if want&(v|o) != 0 {
		need |= g
	}
	return Saves{In: need}
}

func attentionTwice(b ir.B, c Call) []ir.Value {
	op := c.Op()
	var mask ir.Value
	if op.NumIn() == 7 {
		mask = c.In(6)
	}
	t := &twice{B: b, c: c, scale: param(c, 0)}
	t.p = b.Weights(b.Scores(c.In(1), c.In(2), mask, t.scale, op.Attr.Causal), c.In(5))
	t.a = t.ofScores()
	t.pa = b.Mul(t.p, t.a)
	grads := make([]ir.Value, op.NumIn())
	if wants(c, 0) {
		grads[0] = t.ofG()
	}
	if wants(c, 3) {
		grads[3] = b.MatMul(b.Transpose(t.pa), t.in(0))
	}
	if wants(c, 4) {
		grads[4] = b.Mul(b.Unary(ir.Neg, overLast(b, t.pa)), t.in(0))
	}
	if wants(c, 1) || wants(c, 2) || wants(c, 5) || len(grads) == 7 && wants(c, 6) {
		t.throughWeights(grads)
	}
	for i, g := range grads {
		if g != nil {
			grads[i] = b.Cast(g, op.In(i).DType)
		}
	}
	return grads
}

func (t *twice) in(i int) ir.Value { return t.Widen(t.c.In(i)) }

// grad is the gradient of result i, nil where none reached it.
func (t *twice) grad(i int) ir.Value {
	if h := t.c.Grad(i); h != nil {
		return t.Widen(h)
	}
	return nil
}

// ofScores is scale·(hq·kᵀ + q·hkᵀ), 0 where no gradient reached dq and dk.
func (t *twice) ofScores() (a ir.Value) {
	if h := t.grad(0); h != nil {
		a = t.MatMul(h, t.Transpose(t.in(2)))
	}
	if h := t.grad(1); h != nil {
		a = plus(t.B, a, t.MatMul(t.in(1), t.Transpose(h)))
	}
	if a == nil {
		return t.Zeros(t.p.Type())
	}
	return t.Scale(a, t.scale)
}

// ofG is (p·a)·v - o·Σ p·a + p·hv.
func (t *twice) ofG() ir.Value {
	g := t.Sub(t.MatMul(t.pa, t.in(3)), t.Mul(overLast(t.B, t.pa), t.in(4)))
	if h := t.grad(2); h != nil {
		g = t.Add(g, t.MatMul(t.p, h))
	}
	return g
}

// throughWeights sets the gradients of q, k, lse and a mask: those of the scores are s = p·(a·(dp - D) + g·hvᵀ).
func (t *twice) throughWeights(grads []ir.Value) {
	g, q, k := t.in(0), t.in(1), t.in(2)
	rest := t.Sub(t.MatMul(g, t.Transpose(t.in(3))), overLast(t.B, t.Mul(g, t.in(4))))
	ofP := t.Mul(t.a, rest)
	if h := t.grad(2); h != nil {
		ofP = t.Add(ofP, t.MatMul(g, t.Transpose(h)))
	}
	s, ds := t.Mul(t.p, ofP), t.Mul(t.p, rest)
	if wants(t.c, 1) {
		dq := t.MatMul(s, k)
		if h := t.grad(1); h != nil {
			dq = t.Add(dq, t.MatMul(ds, h))
		}
		grads[1] = t.Scale(dq, t.scale)
	}
	if wants(t.c, 2) {
		dk := t.MatMul(t.Transpose(s), q)
		if h := t.grad(0); h != nil {
			dk = t.Add(dk, t.MatMul(t.Transpose(ds), h))
		}
		grads[2] = t.Scale(dk, t.scale)
	}
	if wants(t.c, 5) {
		grads[5] = t.Unary(ir.Neg, t.Reshape(overLast(t.B, s), t.c.Op().In(5).Shape()...))
	}
	if len(grads) == 7 && wants(t.c, 6) {
		grads[6] = s
	}
}
