// Package lower decomposes fused ops into primitives: a table of functions over [ir.Op]. An engine that has no kernel
// for a fused op runs its lowering instead; the float64 reference checks both forms against each other.
//
// Statistics, losses and what leads to them are computed in [ir.Wide] precision. Updates (SGD, AdamW) give new values,
// which the caller puts in the place of the old ones.
package lower

import (
	"math"

	"github.com/warpline-ml/warpline/internal/ir"
)

// Rule builds an op's results from its operands with simpler ops.
type Rule func(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value

// rules has those by hand; those of elementwise ops are added from their rows.
var rules = [ir.Codes]Rule{
	ir.Linear:           linear,
	ir.BiasGrad:         biasGrad,
	ir.Softmax:          unary(softmax),
	ir.LogSoftmax:       unary(logSoftmax),
	ir.SoftmaxGrad:      binary(softmaxGrad),
	ir.LogSoftmaxGrad:   binary(logSoftmaxGrad),
	ir.CrossEntropy:     crossEntropy,
	ir.CrossEntropyGrad: crossEntropyGrad,
	ir.LayerNorm:        layerNorm,
	ir.LayerNormGrad:    layerNormGrad,
	ir.AddNorm:          addNorm,
	ir.AddNormGrad:      addNormGrad,
	ir.RMSNorm:          rmsNorm,
	ir.RMSNormGrad:      rmsNormGrad,
	ir.BatchNorm:        batchNorm,
	ir.BatchNormGrad:    batchNormGrad,
	ir.BatchNormEval:    batchNormEval,
	ir.Attention:        attention,
	ir.AttentionGrad:    attentionGrad,
	ir.Sort:             sort,
	ir.LastAt:           lastAt,
	ir.SumSquares:       sumSquares,
	ir.CastAll:          castAll,
	ir.TrackMoments:     trackMoments,
	ir.GradNorm:         gradNorm,
	ir.LossScale:        lossScale,
	ir.SGD:              sgd,
	ir.AdamW:            adamW,
	ir.Adam8bit:         adam8bit,

	ir.SelfAttention:     selfAttention,
	ir.SelfAttentionGrad: selfAttentionGrad,

	ir.LinearCrossEntropy:     linearCrossEntropy,
	ir.LinearCrossEntropyGrad: linearCrossEntropyGrad,

	ir.LSTMStep:     lstmStep,
	ir.LSTMStepGrad: lstmStepGrad,
}

func init() {
	for code := ir.Invalid + 1; int(code) < ir.Codes; code++ {
		if code.Row().Value != "" {
			rules[code] = written(code)
		}
	}
}

// written is the decomposition of an elementwise op into the steps of its value.
func written(code ir.Code) Rule {
	e, err := code.ValueExpr(func(ir.Code) bool { return false })
	if err != nil {
		panic("lower: " + code.String() + ": " + err.Error()) // a mistake in the row
	}
	return func(b ir.B, op *ir.Op, p *ir.Params, in []ir.Value) []ir.Value {
		var wide [2]ir.Value
		for i, v := range in {
			wide[i] = b.Widen(v)
		}
		y := b.Expr(e, wide[0].Type(), p, func(n ir.Name) ir.Value { return wide[n-ir.NameX] })
		return []ir.Value{b.Cast(y, op.In(0).DType)}
	}
}

// Of returns the decomposition of a code, or nil when it is a primitive.
func Of(code ir.Code) Rule { return rules[code] }

// unary is the rule of a function of one operand, computed in wide precision.
func unary(f func(b ir.B, x ir.Value) ir.Value) Rule {
	return func(b ir.B, op *ir.Op, _ *ir.Params, in []ir.Value) []ir.Value {
		return []ir.Value{b.Cast(f(b, b.Widen(in[0])), op.In(0).DType)}
	}
}

// binary is the rule of a function of two operands, computed in wide precision.
func binary(f func(b ir.B, x, y ir.Value) ir.Value) Rule {
	return func(b ir.B, op *ir.Op, _ *ir.Params, in []ir.Value) []ir.Value {
		return []ir.Value{b.Cast(f(b, b.Widen(in[0]), b.Widen(in[1])), op.In(0).DType)}
	}
}

// param is launch parameter i as a number.
func param(p *ir.Params, i int) float64 { return math.Float64frombits(p.Value[i]) }

// like is a number of x's dtype.
func like(b ir.B, x ir.Value, v float64) ir.Value { return b.Number(x.Type().DType, v) }

// column gives x[n] a dimension after it, to broadcast along rows.
func column(b ir.B, x ir.Value) ir.Value { return b.Reshape(x, x.Type().Dim(0), 1) }

// last is the bit set of the last dimension, empty for a single number.
func last(x ir.Value) uint16 { return 1 << x.Type().Rank() >> 1 }

// mean is the mean over the dimensions of a bit set, kept as 1.
func mean(b ir.B, x ir.Value, axes uint16) ir.Value {
	n := 1
	for i, d := range x.Type().Shape() {
		if axes>>i&1 == 1 {
			n *= d
		}
	}
	return b.Scale(b.Sum(x, axes, true), 1/float64(n))
}
