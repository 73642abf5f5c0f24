package autograd

import "github.com/warpline-ml/warpline/internal/ir"

func layerNormSave(op *ir.Op, want uint64) Saves { return normSave(op, want, 0b110) }

func rmsNormSave(op *ir.Op, want uint64) Saves { return normSave(op, want, 0b010) }

// normSave: the bias needs nothing, the weight the input and its statistics, the input also the weight.
func normSave(op *ir.Op, want, stats uint64) (s Saves) {
	if want&0b11 != 0 {
		s = Saves{In: needX.In, Out: stats}
	}
	if want&1 != 0 && op.NumIn() > 1 {
		s.In |= needY.In
	}
	return s
}

func layerNormGrad(b ir.B, c Call) []ir.Value { return normGrad(b, c, ir.LayerNormGrad, 2) }

func rmsNormGrad(b ir.B, c Call) []ir.Value { return normGrad(b, c, ir.RMSNormGrad, 1) }

// normGrad is the gradient of (x, w, b), the last two optional, by a fused op (g, x, stats…, w) → dx, dw, db.
func normGrad(b ir.B, c Call, code ir.Code, stats int) []ir.Value {
	n := c.Op().NumIn()
	grads := make([]ir.Value, n)
	if g := c.Grad(0); g != nil && !c.Want(0) && !(n > 1 && c.Want(1)) {
		grads[2] = b.Sum(g, 1<<0, false)
	} else if g != nil {
		in := []ir.Value{g, c.In(0)}
		for i := range stats {
			in = append(in, c.Out(1+i))
		}
		if n > 1 && c.Want(0) {
			in = append(in, c.In(1))
		}
		wanted(c, grads, b.Emit(code, ir.Attr{}, ir.Params{}, in...))
	}
	if wants(c, 0) {
		grads[0] = plus(b, grads[0], rowStatsGrad(b, c, stats))
	}
	return grads
}

// rowStatsGrad is the gradient of x by way of its rows' statistics, nil where none reached them: of the mean g/n, of
// r = (variance + eps)^(-1/2) -g·r³·(x-mean)/n. The mean of RMSNorm is 0.
func rowStatsGrad(b ir.B, c Call, stats int) (dx ir.Value) {
	n := float64(c.Op().In(0).Dim(1))
	if g := c.Grad(1); stats == 2 && g != nil {
		dx = b.Expand(b.Scale(column(b, g), 1/n), c.Op().In(0).Shape())
	}
	if g := c.Grad(stats); g != nil {
		d, r := b.Widen(c.In(0)), column(b, c.Out(stats))
		if stats == 2 {
			d = b.Sub(d, column(b, c.Out(1)))
		}
		slope := b.Mul(b.Scale(column(b, g), -1/n), b.Mul(r, b.Mul(r, r)))
		dx = plus(b, dx, b.Mul(d, slope))
	}
	if dx != nil {
		dx = b.Cast(dx, c.Op().In(0).DType)
	}
	return dx
}

// column gives v[n] a dimension after it, to broadcast along rows.
func column(b ir.B, v ir.Value) ir.Value { return b.Reshape(v, v.Type().Dim(0), 1) }

// plus adds gradients of which either may be nil.
func plus(b ir.B, x, y ir.Value) ir.Value {
	switch {
	case x == nil:
		return y
	case y == nil:
		return x
	}
	return b.Add(x, y)
}

// wanted copies those of the computed gradients that are wanted.
func wanted(c Call, grads, computed []ir.Value) []ir.Value {
	for i := range min(len(grads), len(computed)) {
		if wants(c, i) {
			grads[i] = computed[i]
		}
	}
	return grads
}

// batchNormSave: the bias needs nothing, nor does what was added; with an activation everything needs its result.
func batchNormSave(op *ir.Op, want uint64) (s Saves) {
	if want&0b11 != 0 {
		s = Saves{In: 0b011, Out: 0b110}
	}
	return s.acted(op)
}

// acted adds the result, where an activation's gradient needs it.
func (s Saves) acted(op *ir.Op) Saves {
	if op.Attr.Act == ir.ActReLU {
		s.Out |= 1 << 0
	}
	return s
}

// throughAct is the gradient of what the activation was applied to, nil where none reached the result.
func throughAct(b ir.B, c Call) ir.Value {
	g := c.Grad(0)
	if g != nil && c.Op().Attr.Act == ir.ActReLU {
		g = b.Binary(ir.ReLUGrad, c.Out(0), g)
	}
	return g
}

func batchNormGrad(b ir.B, c Call) []ir.Value {
	grads := make([]ir.Value, c.Op().NumIn())
	switch {
	case c.Grad(0) == nil:
	case c.Want(0) || c.Want(1):
		wanted(c, grads, batchNormFused(b, c))
	default:
		g := throughAct(b, c)
		wanted(c, grads, []ir.Value{nil, nil, overChannels(b, b.Widen(g)), g})
	}
	if wants(c, 0) {
		grads[0] = plus(b, grads[0], channelStatsGrad(b, c))
	}
	return grads
}

// batchNormFused is the gradients of all operands by the fused op. Without an activation, g is that of what was added.
func batchNormFused(b ir.B, c Call) []ir.Value {
	in := []ir.Value{c.Grad(0), c.In(0), c.Out(1), c.Out(2), c.In(1)}
	if c.Op().Attr.Act == ir.NoAct {
		return append(b.Emit(ir.BatchNormGrad, ir.Attr{}, *c.Params(), in...), c.Grad(0))
	}
	var attr ir.Attr
	if c.Op().NumIn() > 3 && wants(c, 3) {
		attr.Flag = ir.Residual
	}
	return b.Emit(ir.BatchNormGrad, attr, *c.Params(), append(in, c.Out(0))...)
}

// channelStatsGrad is the gradient of x by way of its channels' statistics, nil where none reached them: of the mean
// g/n, of the variance 2g·(x-mean)/n.
func channelStatsGrad(b ir.B, c Call) (dx ir.Value) {
	t := c.Op().In(0)
	n := float64(t.Dim(0) * t.Dim(2))
	if g := c.Grad(1); g != nil {
		dx = b.Expand(b.Scale(column(b, g), 1/n), t.Shape())
	}
	if g := c.Grad(2); g != nil {
		dx = plus(b, dx, b.Mul(b.Sub(b.Widen(c.In(0)), column(b, c.Out(1))), b.Scale(column(b, g), 2/n)))
	}
	if dx != nil {
		dx = b.Cast(dx, t.DType)
	}
	return dx
}

// overChannels sums v[n,c,s] to [c].
func overChannels(b ir.B, v ir.Value) ir.Value { return b.Sum(v, 0b101, false) }

// batchNormEval is the rule of BatchNormEval: the partials of what its activation is applied to.
var batchNormEval = func() *Rule {
	inner := of(partial{Saves{In: 0b01100}, evalX}, partial{Saves{In: 0b01100}, evalMean}, partial{Saves{In: 0b01111}, evalVar},
		partial{Saves{In: 0b00111}, evalWeight}, partial{nothing, evalBias}, partial{nothing, pass})
	return &Rule{
		Save: func(op *ir.Op, want uint64) Saves { return inner.Save(op, want).acted(op) },
		Grad: func(b ir.B, c Call) []ir.Value { return inner.Grad(b, actedCall{c, throughAct(b, c)}) },
	}
}()

// actedCall is a call whose result's gradient went through the activation.
type actedCall struct {
	Call
	g ir.Value
}

// Grad is that gradient.
func (c actedCall) Grad(int) ir.Value { return c.g }

// The partials of BatchNormEval: y = (x-mean)·r·w + b with r = (var+eps)^(-1/2).

func evalRstd(b ir.B, c Call) ir.Value { return b.Unary(ir.Rsqrt, b.Affine(c.In(2), 1, param(c, 0))) }

// evalSlope is r·w[c].
func evalSlope(b ir.B, c Call) ir.Value { return b.Mul(evalRstd(b, c), c.In(3)) }

// evalMoment is Σ g·(x-mean) per channel.
func evalMoment(b ir.B, c Call, g ir.Value) ir.Value {
	return overChannels(b, b.Mul(b.Widen(g), b.Sub(b.Widen(c.In(0)), column(b, c.In(1)))))
}

func evalX(b ir.B, c Call, g ir.Value) ir.Value {
	return b.Cast(b.Mul(b.Widen(g), column(b, evalSlope(b, c))), g.Type().DType)
}

func evalMean(b ir.B, c Call, g ir.Value) ir.Value {
	return b.Unary(ir.Neg, b.Mul(evalBias(b, c, g), evalSlope(b, c)))
}

func evalVar(b ir.B, c Call, g ir.Value) ir.Value {
	r := evalRstd(b, c)
	return b.Mul(b.Scale(evalMoment(b, c, g), -0.5), b.Mul(evalSlope(b, c), b.Mul(r, r)))
}

func evalWeight(b ir.B, c Call, g ir.Value) ir.Value {
	return b.Mul(evalMoment(b, c, g), evalRstd(b, c))
}

func evalBias(b ir.B, _ Call, g ir.Value) ir.Value { return overChannels(b, b.Widen(g)) }
