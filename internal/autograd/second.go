package autograd

import "github.com/warpline-ml/warpline/internal/ir"

// normTwice is the gradient of a norm's gradient, an op (g, x, mean, r, w) → dx, dw, db. With u = (x-mean)·r and v = g·w
// that op is
//
//	dx = r·(v - mean v - u·mean(v·u)), dw = Σ g·u, db = Σ g
//
// with means over the elements that share statistics and sums over those that share a weight. RMSNorm has no mean and no
// db. The gradients of dx, dw and db are hx, hw and hb; where none reached one it is nil.
type normTwice struct {
	ir.B
	c    Call
	over uint16 // dimensions of x over which the statistics are taken
	sums uint16 // dimensions over which those of the weight are
	mean int    // operands; -1: there is none
	stat int    // r, or the variance
	w    int

	r, d, u, hx, p ir.Value // r and d = x-mean broadcast against x; p is mean(hx·u)
}

func layerNormTwiceSave(op *ir.Op, want uint64) Saves { return normTwiceSave(op, want, 4) }

func rmsNormTwiceSave(op *ir.Op, want uint64) Saves { return normTwiceSave(op, want, 3) }

// batchNormTwiceSave: relu's result, operand 5, has no gradient.
func batchNormTwiceSave(op *ir.Op, want uint64) Saves {
	if want &^= 1 << 5; want == 0 {
		return nothing
	}
	return normTwiceSave(op, want, 4)
}

// normTwiceSave: the gradient g alone does not need itself, nor does the weight, operand w.
func normTwiceSave(op *ir.Op, want uint64, w int) Saves {
	all := uint64(1)<<op.NumIn() - 1
	if want == 1 || want == 1<<w {
		return Saves{In: all &^ want}
	}
	return Saves{In: all}
}

func layerNormTwice(b ir.B, c Call) []ir.Value {
	n := &normTwice{B: b, c: c, over: 1 << 1, sums: 1 << 0, mean: 2, stat: 3, w: 4, r: column(b, c.In(3))}
	grads, dr := n.grads()
	if wants(c, 3) {
		grads[3] = dr
	}
	return n.shaped(grads)
}

func rmsNormTwice(b ir.B, c Call) []ir.Value {
	n := &normTwice{B: b, c: c, over: 1 << 1, sums: 1 << 0, mean: -1, stat: 2, w: 3, r: column(b, c.In(2))}
	grads, dr := n.grads()
	if wants(c, 2) {
		grads[2] = dr
	}
	return n.shaped(grads)
}

// batchNormTwice: r is (variance + eps)^(-1/2). Where y, relu's result, is not above 0 the op takes g for 0.
func batchNormTwice(b ir.B, c Call) []ir.Value {
	if c.Op().NumIn() > 5 {
		return maskedTwice(b, c)
	}
	return batchNormPlainTwice(b, c)
}

func batchNormPlainTwice(b ir.B, c Call) []ir.Value {
	r := b.Unary(ir.Rsqrt, b.Affine(column(b, c.In(3)), 1, param(c, 0)))
	n := &normTwice{B: b, c: c, over: 0b101, sums: 0b101, mean: 2, stat: 3, w: 4, r: r}
	grads, dr := n.grads()
	if wants(c, 3) {
		grads[3] = b.Mul(b.Reshape(dr, r.Type().Shape()...), b.Scale(b.Mul(r, b.Mul(r, r)), -0.5))
	}
	return n.shaped(grads)
}

// maskedTwice takes the masked gradient for g: what reaches it, by the norm and as a result itself, goes through the mask.
func maskedTwice(b ir.B, c Call) []ir.Value {
	mask := func(g ir.Value) ir.Value { return b.Binary(ir.ReLUGrad, c.In(5), g) }
	m := maskedCall{Call: c}
	switch rest := c.Want(1) || c.Want(2) || c.Want(3) || c.Want(4); {
	case rest:
		m.g = mask(c.In(0))
	case !c.Want(0):
		return make([]ir.Value, c.Op().NumIn())
	}
	grads := batchNormPlainTwice(b, m)
	if wants(c, 0) {
		h := grads[0]
		if c.Op().Attr.Flag&ir.Residual != 0 {
			h = plus(b, h, c.Grad(3))
		}
		grads[0] = mask(h)
	}
	return grads
}

// maskedCall is a call with another operand 0.
type maskedCall struct {
	Call
	g ir.Value
}

// In is operand i.
func (m maskedCall) In(i int) ir.Value {
	if i == 0 {
		return m.g
	}
	return m.Call.In(i)
}

// grads are the gradients of the operands but the statistic, and that of r, nil when nothing that hangs on u is wanted.
func (n *normTwice) grads() (grads []ir.Value, dr ir.Value) {
	c := n.c
	n.begin()
	grads = make([]ir.Value, c.Op().NumIn())
	dv := n.Mul(n.r, n.Sub(n.centred(n.hx), n.Mul(n.u, n.p)))
	if wants(c, 0) {
		grads[0] = n.ofG(dv)
	}
	if n.weighted() && wants(c, n.w) {
		grads[n.w] = n.Sum(n.Mul(n.in(0), dv), n.sums, false)
	}
	if wants(c, 1) || n.mean > 0 && wants(c, n.mean) || wants(c, n.stat) {
		dr = n.throughU(grads)
	}
	return grads, dr
}

// begin computes what every gradient needs.
func (n *normTwice) begin() {
	n.d = n.in(1)
	if n.mean > 0 {
		n.d = n.Sub(n.d, column(n.B, n.c.In(n.mean)))
	}
	n.u = n.Mul(n.d, n.r)
	if n.hx = n.grad(0); n.hx == nil {
		n.hx = n.Zeros(n.u.Type())
	}
	n.p = n.average(n.Mul(n.hx, n.u))
}

// ofG is w·dv + hw·u + hb, where dv is the gradient of v.
func (n *normTwice) ofG(dv ir.Value) ir.Value {
	if n.weighted() {
		dv = n.Mul(dv, n.spread(n.in(n.w)))
	}
	if h := n.grad(1); h != nil {
		dv = n.Add(dv, n.Mul(n.u, n.spread(h)))
	}
	if h := n.grad(2); h != nil {
		dv = n.Add(dv, n.spread(h))
	}
	return dv
}

// throughU sets the gradients of x and its mean and returns that of r. The gradient of u is
// t = hw·g - r·(hx·mean(v·u) + mean(hx·u)·v).
func (n *normTwice) throughU(grads []ir.Value) (dr ir.Value) {
	v := n.in(0)
	if n.weighted() {
		v = n.Mul(v, n.spread(n.in(n.w)))
	}
	m := n.average(n.Mul(v, n.u))
	t := n.Mul(n.Unary(ir.Neg, n.r), n.Add(n.Mul(n.hx, m), n.Mul(n.p, v)))
	if h := n.grad(1); h != nil {
		t = n.Add(t, n.Mul(n.in(0), n.spread(h)))
	}
	dx := n.Mul(t, n.r)
	if wants(n.c, 1) {
		grads[1] = dx
	}
	if n.mean > 0 && wants(n.c, n.mean) {
		grads[n.mean] = n.Unary(ir.Neg, n.Sum(dx, n.over, false))
	}
	direct := n.Mul(n.hx, n.Sub(n.centred(v), n.Mul(n.u, m)))
	return n.Sum(n.Add(direct, n.Mul(t, n.d)), n.over, false)
}

func (n *normTwice) in(i int) ir.Value { return n.Widen(n.c.In(i)) }

func (n *normTwice) weighted() bool { return n.c.Op().NumIn() > n.w }

// grad is the gradient of result i, nil where none reached it. RMSNorm has no third.
func (n *normTwice) grad(i int) ir.Value {
	if i == 2 && n.mean < 0 {
		return nil
	}
	if h := n.c.Grad(i); h != nil {
		return n.Widen(h)
	}
	return nil
}

// average is the mean over what shares statistics, kept as 1.
func (n *normTwice) average(v ir.Value) ir.Value {
	sum := n.Sum(v, n.over, true)
	return n.Scale(sum, float64(sum.Type().Size())/float64(v.Type().Size()))
}

// centred takes the mean away, where the norm does.
func (n *normTwice) centred(v ir.Value) ir.Value {
	if n.mean < 0 {
		return v
	}
	return n.Sub(v, n.average(v))
}

// spread lets a weight, one number per column or per channel, broadcast against x.
func (n *normTwice) spread(w ir.Value) ir.Value {
	if n.sums == 1<<0 {
		return w
	}
	return column(n.B, w)
}

// shaped gives gradients their operands' shapes and dtypes.
func (n *normTwice) shaped(grads []ir.Value) []ir.Value {
	for i, g := range grads {
		if g != nil {
			t := n.c.Op().In(i)
			grads[i] = n.Cast(n.Reshape(g, t.Shape()...), t.DType)
		}
	}
	return grads
}
