package lower

import "github.com/warpline-ml/warpline/internal/ir"

// flat drops the dimensions of size 1 that mean kept.
func flat(b ir.B, x ir.Value) ir.Value { return b.Reshape(x, x.Type().Size()) }

// standardise returns (x-mean)·rstd over the dimensions of a bit set, with mean, variance and rstd, all wide and the
// statistics kept as 1. The variance is computed in a second pass over x-mean.
func standardise(b ir.B, x ir.Value, axes uint16, eps float64) (y, mu, v, rstd ir.Value) {
	mu = mean(b, x, axes)
	d := b.Sub(x, mu)
	v = mean(b, b.Mul(d, d), axes)
	rstd = b.Unary(ir.Rsqrt, b.Affine(v, 1, eps))
	return b.Mul(d, rstd), mu, v, rstd
}

func layerNorm(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	out := layerNormOf(b, p, in)
	out[0] = b.Cast(out[0], op.In(0).DType)
	return out
}

// layerNormOf is LayerNorm with a wide result.
func layerNormOf(b ir.B, p *ir.Params, in []ir.Value) []ir.Value {
	y, mu, _, rstd := standardise(b, b.Widen(in[0]), 1<<1, param(p, 0))
	if len(in) > 1 {
		y = b.Mul(y, b.Widen(in[1]))
	}
	if len(in) > 2 {
		y = b.Add(y, b.Widen(in[2]))
	}
	return []ir.Value{y, flat(b, mu), flat(b, rstd)}
}

func addNorm(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	x, dt := in[0], op.In(0).DType
	if len(in) == 4 {
		x = b.Add(x, b.Cast(in[3], dt))
	}
	out := layerNormOf(b, p, []ir.Value{x, in[1], in[2]})
	if op.Attr.DType != 0 {
		dt = op.Attr.DType
	}
	if out[0] = b.Cast(out[0], dt); len(in) == 4 {
		out = append(out, x)
	}
	return out
}

func addNormGrad(b ir.B, op *ir.Op, _ *ir.Params, in []ir.Value) []ir.Value {
	wide := normSums(b, []ir.Value{in[1], in[0], in[2], in[3], in[4]})
	if len(in) == 6 {
		wide[0] = b.Add(wide[0], b.Widen(in[5]))
	}
	out := make([]ir.Value, 3)
	for i, v := range wide {
		out[i] = b.Cast(v, op.In(0).DType)
	}
	if op.Attr.DType != 0 {
		out = append(out, b.Cast(wide[0], op.Attr.DType))
	}
	return out
}

func rmsNorm(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	x := b.Widen(in[0])
	rstd := b.Unary(ir.Rsqrt, b.Affine(mean(b, b.Mul(x, x), 1<<1), 1, param(p, 0)))
	y := b.Mul(x, rstd)
	if len(in) > 1 {
		y = b.Mul(y, b.Widen(in[1]))
	}
	return []ir.Value{b.Cast(y, op.In(0).DType), flat(b, rstd)}
}

func layerNormGrad(b ir.B, op *ir.Op, _ *ir.Params, in []ir.Value) []ir.Value {
	return cast(b, op, normSums(b, in)...)
}

// normSums are dx, dw and db of LayerNormGrad's operands, wide.
func normSums(b ir.B, in []ir.Value) []ir.Value {
	g, rstd := b.Widen(in[0]), column(b, in[3])
	y := b.Mul(b.Sub(b.Widen(in[1]), column(b, in[2])), rstd)
	gw := g
	if len(in) > 4 {
		gw = b.Mul(g, b.Widen(in[4]))
	}
	dx := b.Sub(b.Sub(gw, mean(b, gw, 1<<1)), b.Mul(y, mean(b, b.Mul(gw, y), 1<<1)))
	return []ir.Value{b.Mul(rstd, dx), b.Sum(b.Mul(g, y), 1<<0, false), b.Sum(g, 1<<0, false)}
}

func rmsNormGrad(b ir.B, op *ir.Op, _ *ir.Params, in []ir.Value) []ir.Value {
	g, rstd := b.Widen(in[0]), column(b, in[2])
	y := b.Mul(b.Widen(in[1]), rstd)
	gw := g
	if len(in) > 3 {
		gw = b.Mul(g, b.Widen(in[3]))
	}
	dx := b.Sub(gw, b.Mul(y, mean(b, b.Mul(gw, y), 1<<1)))
	return cast(b, op, b.Mul(rstd, dx), b.Sum(b.Mul(g, y), 1<<0, false))
}

// cast converts results to the dtype of operand 0.
func cast(b ir.B, op *ir.Op, out ...ir.Value) []ir.Value {
	for i, v := range out {
		out[i] = b.Cast(v, op.In(0).DType)
	}
	return out
}

// perChannel is the bit set of the dimensions of x[n,c,s] over which batch normalisation takes its statistics.
const perChannel = 0b101

func batchNorm(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	y, mu, v, _ := standardise(b, b.Widen(in[0]), perChannel, param(p, 0))
	y = b.Add(b.Mul(y, column(b, in[1])), column(b, in[2]))
	return []ir.Value{b.Cast(joined(b, op, y, in[3:]), op.In(0).DType), flat(b, mu), flat(b, v)}
}

// joined adds what is to be added, if anything, and applies the activation.
func joined(b ir.B, op *ir.Op, y ir.Value, residual []ir.Value) ir.Value {
	if len(residual) > 0 {
		y = b.Add(y, b.Widen(residual[0]))
	}
	if op.Attr.Act == ir.ActReLU {
		y = b.Unary(ir.ReLU, y)
	}
	return y
}

func batchNormGrad(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	g := b.Widen(in[0])
	if len(in) > 5 {
		g = b.Where(b.Binary(ir.Le, b.Widen(in[5]), like(b, g, 0)), like(b, g, 0), g)
	}
	rstd := b.Unary(ir.Rsqrt, b.Affine(column(b, in[3]), 1, param(p, 0)))
	y := b.Mul(b.Sub(b.Widen(in[1]), column(b, in[2])), rstd)
	dx := b.Sub(b.Sub(g, mean(b, g, perChannel)), b.Mul(y, mean(b, b.Mul(g, y), perChannel)))
	dx = b.Mul(dx, b.Mul(rstd, column(b, in[4])))
	out := []ir.Value{b.Cast(dx, op.In(0).DType), b.Sum(b.Mul(g, y), perChannel, false), b.Sum(g, perChannel, false)}
	if op.Attr.Flag&ir.Residual != 0 {
		out = append(out, b.Cast(g, op.In(0).DType))
	}
	return out
}

func batchNormEval(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	rstd := b.Unary(ir.Rsqrt, b.Affine(in[2], 1, param(p, 0)))
	y := b.Mul(b.Sub(b.Widen(in[0]), column(b, in[1])), column(b, b.Mul(rstd, in[3])))
	y = b.Add(y, column(b, in[4]))
	return []ir.Value{b.Cast(joined(b, op, y, in[5:]), op.In(0).DType)}
}
