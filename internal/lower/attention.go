package lower

import "github.com/warpline-ml/warpline/internal/ir"

// attention with its scores materialised. A row that sees no key gives zeros and a log-sum-exp of -Inf.
func attention(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	scores := b.Scores(in[0], in[1], optional(in, 3), param(p, 0), op.Attr.Causal)
	lse := b.Reshape(logSumExp(b, scores), op.In(0).Shape()[:3]...)
	o := b.MatMul(b.Weights(scores, lse), b.Widen(in[2]))
	return []ir.Value{b.Cast(o, op.In(0).DType), lse}
}

// attentionGrad: with p the weights, dv = pᵀ·g, ds = p·(g·vᵀ - Σ g·o), dq = scale·ds·k, dk = scale·dsᵀ·q.
func attentionGrad(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
	g, o, lse, scale := b.Widen(in[0]), b.Widen(in[4]), in[5], param(p, 0)
	q, k, v := b.Widen(in[1]), b.Widen(in[2]), b.Widen(in[3])
	weights := b.Weights(b.Scores(q, k, optional(in, 6), scale, op.Attr.Causal), lse)
	along := b.Sum(b.Mul(g, o), last(g), true)
	ds := b.Scale(b.Mul(weights, b.Sub(b.MatMul(g, b.Transpose(v)), along)), scale)
	return cast(b, op, b.MatMul(ds, k), b.MatMul(b.Transpose(ds), q), b.MatMul(b.Transpose(weights), g))
}

// optional is operand i, or nil when it is not there.
func optional(in []ir.Value, i int) ir.Value {
	if i < len(in) {
		return in[i]
	}
	return nil
}
