package conform

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Row is the accuracy asked of a class of ops: an element may be off by
//
//	Result·ε(result)·|want| + (Terms + Growth·√n)·ε(computed)·magnitude
//
// and by Floor of the smallest subnormals of the result's dtype, 2 where Floor is 0. ε(result) is the spacing of the result's dtype at 1,
// ε(computed) that of f32 for 16-bit dtypes and of the dtype itself for others, n the number of terms of an element,
// and magnitude the sum of their absolute values.
type Row struct {
	Result float64
	Terms  float64
	Growth float64
	Floor  float64
	Near   bool // of integers the magnitude is what they may be off by; else they are exact
	Reason string
}

// exact is the row of what has no error at all.
var exact = Row{Reason: "no arithmetic, or arithmetic that is exact in every dtype"}

// classes has the figures of each class that the rows of ops name.
var classes = map[ir.Tolerance]Row{
	ir.Exact:     exact,
	ir.Rounded:   {Result: 0.5, Terms: 0.5, Reason: "one rounding of an exact result; of 16-bit dtypes another in f32 before it"},
	ir.Combined:  {Result: 0.5, Terms: 1.5, Reason: "a product and a sum, fused or not, of parameters rounded to the dtype"},
	ir.Elemental: {Result: 0.5, Terms: 4, Reason: "polynomials and divisions with a few roundings; 4 ulps is what vector libraries ask of themselves"},
	ir.Stepwise:  {Result: 0.5, Terms: 2, Reason: "the magnitude holds the error of each step of the value, 4 ulps of a function and 1 of arithmetic, as later steps carry it on; the reference has as much"},
	ir.RuleSteps: {Result: 0.5, Terms: 2, Reason: "as of stepwise values, with the rounding of numbers that are computed once for a parameter"},
	ir.Powers:    {Result: 0.5, Terms: 4, Reason: "exp(y·log x) multiplies the error of its argument; the magnitude holds |y·log x|"},
	ir.Remainder: {Result: 0.5, Terms: 1, Reason: "x - y·⌊x/y⌋ of two rounded products"},
	ir.Sums:      {Result: 0.5, Terms: 2, Growth: 1, Reason: "rounding errors of n additions behave like a random walk"},
	ir.Factors:   {Result: 0.5, Terms: 2, Growth: 1, Reason: "each factor adds a rounding, relative to the result"},
	ir.Norms:     {Result: 0.5, Terms: 6, Growth: 1, Reason: "sums over a row, a root and three products"},
	ir.Softmaxes: {Result: 0.5, Terms: 6, Growth: 1, Reason: "exponentials of differences, their sum, and a quotient or logarithm"},
	ir.Attends:   {Result: 0.5, Terms: 8, Growth: 2, Reason: "two products around a softmax; the magnitude holds the scores, whose errors exp magnifies"},
	ir.Coded:     {Result: 0.5, Terms: 6, Near: true, Reason: "as updated; codes may be another of those that are near"},
	ir.Updated:   {Result: 0.5, Terms: 4, Reason: "a few products and sums per element; the magnitude holds each of them"},
}

// Tolerance returns the row of a code, false when it has none.
func Tolerance(code ir.Code) (Row, bool) {
	r, ok := classes[code.Row().Tolerance]
	return r, ok
}

// limit is a row for the results of one dtype and length.
type limit struct{ own, terms, floor float64 }

func (r *Row) limit(dt dtype.DType, n float64) limit {
	if *r == exact {
		return limit{}
	}
	terms := (r.Terms + r.Growth*math.Sqrt(n)) * ir.Wide(dt).Epsilon()
	return limit{r.Result * dt.Epsilon(), terms, max(r.Floor, 2) * dt.SmallestSubnormal()}
}

// allowed is the error that an element may have.
func (l *limit) allowed(want, magnitude float64) float64 {
	if *l == (limit{}) {
		return 0
	}
	return l.own*math.Abs(want) + l.terms*magnitude + l.floor
}

// lowered is the row for a lowering: its steps are rounded one by one, some in the operands' own dtype, and one that is
// subnormal may be multiplied later.
func (r *Row) lowered(dt dtype.DType) Row {
	own := dt.Epsilon() / ir.Wide(dt).Epsilon() // 1 except for 16-bit dtypes
	return Row{Near: r.Near, Result: 2*r.Result + 1, Terms: 4*r.Terms + 4 + own, Growth: 2 * r.Growth, Floor: 256, Reason: "each step of a lowering is rounded"}
}

// length is the number of terms of an element, as their rounding errors count. Those of equal terms do not behave like a
// random walk but go one way: n of them count as n² that do.
func length(op *ir.Op) float64 {
	n := terms(op)
	if equalTerms(op) {
		return n * n
	}
	return n
}

// equalTerms reports whether operands repeat along what is summed.
func equalTerms(op *ir.Op) bool {
	in := op.Ins()
	switch op.Code {
	case ir.Sum, ir.Prod:
		for i, d := range in[0].Shape() {
			if op.Attr.Axes>>i&1 == 1 && d > 1 && in[0].Strides()[i] == 0 {
				return true
			}
		}
	case ir.MatMul:
		x, y := in[0].Strides(), in[1].Strides()
		return x[len(x)-1] == 0 && y[len(y)-2] == 0
	}
	return false
}

// terms is the number of terms of an element.
func terms(op *ir.Op) float64 {
	var n int
	switch in := op.Ins(); op.Code {
	case ir.Sum, ir.Prod:
		n = 1
		for i, d := range in[0].Shape() {
			if op.Attr.Axes>>i&1 == 1 {
				n *= d
			}
		}
	case ir.BiasGrad:
		n = in[0].Dim(0)
	case ir.CumSum:
		n = in[0].Dim(int(op.Attr.Axis))
	case ir.MatMul, ir.Linear:
		n = in[0].Dim(-1)
	case ir.Conv2d:
		n = in[1].Size() / max(in[1].Dim(0), 1)
	case ir.Conv2dGradInput:
		n = in[1].Size()
	case ir.Conv2dGradWeight, ir.EmbeddingGrad, ir.MaxPool2dGrad:
		n = in[0].Size()
	case ir.ScatterAdd:
		n = in[2].Dim(int(op.Attr.Axis))
	case ir.AvgPool2d, ir.AvgPool2dGrad:
		n = op.Attr.Pool().KernelH * op.Attr.Pool().KernelW
	case ir.Resample:
		r := op.Attr.Resampling()
		n = r.Taps(in[0].Dim(r.Axis))
	case ir.ResampleGrad:
		r := op.Attr.Resampling()
		n = in[0].Dim(r.Axis) + r.Taps(op.Attr.Out.Dim(r.Axis)) // each weight is divided by a sum of as many
	case ir.BatchNorm, ir.BatchNormGrad:
		n = in[0].Size()
	case ir.SumSquares, ir.GradNorm:
		for _, t := range in {
			n += t.Size()
		}
	case ir.Attention, ir.AttentionGrad:
		n = op.In(0).Dim(-1) + op.In(1).Dim(2) + op.In(2).Dim(2)
	case ir.SelfAttention, ir.SelfAttentionGrad:
		n = op.In(0).Dim(-1) + 2*op.In(0).Dim(1)
	case ir.LinearCrossEntropy, ir.LinearCrossEntropyGrad:
		n = in[0].Dim(0) + in[0].Dim(1) + in[1].Dim(0)
	case ir.LayerNorm, ir.LayerNormGrad, ir.AddNorm, ir.AddNormGrad, ir.RMSNorm, ir.RMSNormGrad:
		n = in[0].Dim(0) + in[0].Dim(1)
	default:
		if len(in) > 0 && in[0].Rank() > 0 {
			n = in[0].Dim(-1)
		}
	}
	return float64(n)
}
