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
	g := c.Grad(0)
	if g == nil {
		return grads
	}
	if !c.Want(0) && !(n > 1 && c.Want(1)) {
		grads[2] = b.Sum(g, 1<<0, false)
		return grads
	}
	in := []ir.Value{g, c.In(0)}
	for i := range stats {
		in = append(in, c.Out(1+i))
	}
	if n > 1 && c.Want(0) {
		in = append(in, c.In(1))
	}
	return wanted(c, grads, b.Emit(code, ir.Attr{}, ir.Params{}, in...))
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

// batchNormSave: the bias needs nothing.
func batchNormSave(_ *ir.Op, want uint64) Saves {
	if want&0b11 == 0 {
		return nothing
	}
	return Saves{In: 0b011, Out: 0b110}
}

func batchNormGrad(b ir.B, c Call) []ir.Value {
	grads := make([]ir.Value, 3)
	g := c.Grad(0)
	if g == nil {
		return grads
	}
	if !c.Want(0) && !c.Want(1) {
		grads[2] = overChannels(b, b.Widen(g))
		return grads
	}
	return wanted(c, grads, b.Emit(ir.BatchNormGrad, ir.Attr{}, *c.Params(), g, c.In(0), c.Out(1), c.Out(2), c.In(1)))
}

// overChannels sums v[n,c,s] to [c].
func overChannels(b ir.B, v ir.Value) ir.Value { return b.Sum(v, 0b101, false) }

// channels gives v[c] a dimension after it, to broadcast against [n,c,s].
func channels(b ir.B, v ir.Value) ir.Value { return b.Reshape(v, v.Type().Dim(0), 1) }

// The partials of BatchNormEval: y = (x-mean)·r·w + b with r = (var+eps)^(-1/2).

func evalRstd(b ir.B, c Call) ir.Value { return b.Unary(ir.Rsqrt, b.Affine(c.In(2), 1, param(c, 0))) }

// evalSlope is r·w[c].
func evalSlope(b ir.B, c Call) ir.Value { return b.Mul(evalRstd(b, c), c.In(3)) }

// evalMoment is Σ g·(x-mean) per channel.
func evalMoment(b ir.B, c Call, g ir.Value) ir.Value {
	return overChannels(b, b.Mul(b.Widen(g), b.Sub(b.Widen(c.In(0)), channels(b, c.In(1)))))
}

func evalX(b ir.B, c Call, g ir.Value) ir.Value {
	return b.Cast(b.Mul(b.Widen(g), channels(b, evalSlope(b, c))), g.Type().DType)
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

// attentionSave: every gradient needs all operands and both results.
func attentionSave(op *ir.Op, _ uint64) Saves { return Saves{In: 1<<op.NumIn() - 1, Out: 0b11} }

func attentionGrad(b ir.B, c Call) []ir.Value {
	n := c.Op().NumIn()
	grads := make([]ir.Value, n)
	g := c.Grad(0)
	if g == nil {
		return grads
	}
	if wants(c, 0) || wants(c, 1) || wants(c, 2) {
		in := []ir.Value{g, c.In(0), c.In(1), c.In(2), c.Out(0), c.Out(1)}
		if n == 4 {
			in = append(in, c.In(3))
		}
		wanted(c, grads, b.Emit(ir.AttentionGrad, c.Op().Attr, *c.Params(), in...))
	}
	if n == 4 && wants(c, 3) {
		grads[3] = maskGrad(b, c, g)
	}
	return grads
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
