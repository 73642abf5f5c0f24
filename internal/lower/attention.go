package lower

import "github.com/warpline-ml/warpline/internal/ir"

// attention with its scores materialised. A row that sees no key gives zeros and a log-sum-exp of -Inf.
func attention(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	o, lse := attended(b, op, p, in[:3], optional(in, 3))
	return []ir.Value{b.Cast(o, op.In(0).DType), lse}
}

func selfAttention(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	o, lse := attended(b, op, p, b.Heads(in[0]), optional(in, 1))
	return []ir.Value{b.Cast(b.HeadsInside(o), op.In(0).DType), lse}
}

// attended is attention's results, the first in wide precision.
func attended(b ir.B, op *ir.Op, p *ir.Params, qkv []ir.Value, mask ir.Value) (o, lse ir.Value) {
	scores := b.Scores(qkv[0], qkv[1], mask, param(p, 0), op.Attr.Causal)
	lse = b.Reshape(logSumExp(b, scores), qkv[0].Type().Shape()[:3]...)
	return b.MatMul(b.Weights(scores, lse), b.Widen(qkv[2])), lse
}

func attentionGrad(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	return cast(b, op, attendedGrad(b, op, p, in[0], in[1:4], in[4], in[5], optional(in, 6))...)
}

func selfAttentionGrad(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	grads := attendedGrad(b, op, p, b.HeadsInside(in[0]), b.Heads(in[1]), b.HeadsInside(in[2]), in[3], optional(in, 4))
	return cast(b, op, b.Packed(grads))
}

// attendedGrad: with p the weights, dv = pᵀ·g, ds = p·(g·vᵀ - Σ g·o), dq = scale·ds·k, dk = scale·dsᵀ·q.
func attendedGrad(b ir.B, op *ir.Op, p *ir.Params, g ir.Value, qkv []ir.Value, o, lse, mask ir.Value) []ir.Value {
	scale := param(p, 0)
	g, o = b.Widen(g), b.Widen(o)
	q, k, v := b.Widen(qkv[0]), b.Widen(qkv[1]), b.Widen(qkv[2])
	weights := b.Weights(b.Scores(q, k, mask, scale, op.Attr.Causal), lse)
	along := b.Sum(b.Mul(g, o), last(g), true)
	ds := b.Scale(b.Mul(weights, b.Sub(b.MatMul(g, b.Transpose(v)), along)), scale)
	return []ir.Value{b.MatMul(ds, k), b.MatMul(b.Transpose(ds), q), b.MatMul(b.Transpose(weights), g)}
}

// optional is operand i, or nil when it is not there.
func optional(in []ir.Value, i int) ir.Value {
	if i < len(in) {
		return in[i]
	}
	return nil
}
