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
	Reason string
}

// The classes.
var (
	exact     = Row{Reason: "no arithmetic, or arithmetic that is exact in every dtype"}
	rounded   = Row{Result: 0.5, Terms: 0.5, Reason: "one rounding of an exact result; of 16-bit dtypes another in f32 before it"}
	combined  = Row{Result: 0.5, Terms: 1.5, Reason: "a product and a sum, fused or not, of parameters rounded to the dtype"}
	elemental = Row{Result: 0.5, Terms: 4, Reason: "polynomials and divisions with a few roundings; 4 ulps is what vector libraries ask of themselves"}
	powers    = Row{Result: 0.5, Terms: 4, Reason: "exp(y·log x) multiplies the error of its argument; the magnitude holds |y·log x|"}
	remainder = Row{Result: 0.5, Terms: 1, Reason: "x - y·⌊x/y⌋ of two rounded products"}
	sums      = Row{Result: 0.5, Terms: 2, Growth: 1, Reason: "rounding errors of n additions behave like a random walk"}
	factors   = Row{Result: 0.5, Terms: 2, Growth: 1, Reason: "each factor adds a rounding, relative to the result"}
	norms     = Row{Result: 0.5, Terms: 6, Growth: 1, Reason: "sums over a row, a root and three products"}
	softmaxes = Row{Result: 0.5, Terms: 6, Growth: 1, Reason: "exponentials of differences, their sum, and a quotient or logarithm"}
	attends   = Row{Result: 0.5, Terms: 8, Growth: 2, Reason: "two products around a softmax; the magnitude holds the scores, whose errors exp magnifies"}
	updates   = Row{Result: 0.5, Terms: 4, Reason: "a few products and sums per element; the magnitude holds each of them"}
)

// rows is the table.
var rows [ir.Codes]*Row

func init() {
	for _, class := range []struct {
		row   *Row
		codes []ir.Code
	}{
		{&exact, []ir.Code{ir.Reshape, ir.Permute, ir.Expand, ir.Slice, ir.Full, ir.Uniform, ir.Normal, ir.RandInt, ir.Copy, ir.Cast, ir.Neg, ir.Abs,
			ir.Sign, ir.Floor, ir.Ceil, ir.Round, ir.Trunc, ir.ReLU, ir.Not, ir.Maximum, ir.Minimum, ir.Eq, ir.Ne, ir.Lt, ir.Le, ir.And, ir.Or, ir.Xor,
			ir.Where, ir.ReduceMax, ir.ReduceMin, ir.ArgMax, ir.ArgMin, ir.MaxPool2d, ir.Gather, ir.Embedding, ir.Cat, ir.Pad, ir.ReLUGrad}},
		{&rounded, []ir.Code{ir.Iota, ir.Sqrt, ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Clamp}},
		{&combined, []ir.Code{ir.Affine, ir.Axpy, ir.Lerp, ir.Dropout}},
		{&elemental, []ir.Code{ir.Rsqrt, ir.Exp, ir.Expm1, ir.Log, ir.Log1p, ir.Sin, ir.Cos, ir.Tanh, ir.Sigmoid, ir.Erf, ir.GELU, ir.GELUTanh, ir.SiLU,
			ir.GELUGrad, ir.GELUTanhGrad, ir.SiLUGrad}},
		{&powers, []ir.Code{ir.Pow, ir.PowScalar}},
		{&remainder, []ir.Code{ir.Rem}},
		{&sums, []ir.Code{ir.Sum, ir.CumSum, ir.MatMul, ir.Linear, ir.Conv2d, ir.Conv2dGradInput, ir.Conv2dGradWeight, ir.MaxPool2dGrad, ir.AvgPool2d,
			ir.AvgPool2dGrad, ir.ScatterAdd, ir.EmbeddingGrad, ir.SumSquares}},
		{&factors, []ir.Code{ir.Prod}},
		{&norms, []ir.Code{ir.LayerNorm, ir.LayerNormGrad, ir.RMSNorm, ir.RMSNormGrad, ir.BatchNorm, ir.BatchNormGrad, ir.BatchNormEval}},
		{&softmaxes, []ir.Code{ir.Softmax, ir.LogSoftmax, ir.SoftmaxGrad, ir.LogSoftmaxGrad, ir.CrossEntropy, ir.CrossEntropyGrad}},
		{&attends, []ir.Code{ir.Attention, ir.AttentionGrad}},
		{&updates, []ir.Code{ir.SGD, ir.AdamW}},
	} {
		for _, code := range class.codes {
			rows[code] = class.row
		}
	}
}

// Tolerance returns the row of a code, false when it has none.
func Tolerance(code ir.Code) (Row, bool) {
	if int(code) >= len(rows) || rows[code] == nil {
		return Row{}, false
	}
	return *rows[code], true
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
	return Row{Result: 2*r.Result + 1, Terms: 4*r.Terms + 4 + own, Growth: 2 * r.Growth, Floor: 256, Reason: "each step of a lowering is rounded"}
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
	case ir.BatchNorm, ir.BatchNormGrad:
		n = in[0].Size()
	case ir.SumSquares:
		for _, t := range in {
			n += t.Size()
		}
	case ir.Attention, ir.AttentionGrad:
		n = op.In(0).Dim(-1) + op.In(1).Dim(2) + op.In(2).Dim(2)
	case ir.LayerNorm, ir.LayerNormGrad, ir.RMSNorm, ir.RMSNormGrad:
		n = in[0].Dim(0) + in[0].Dim(1)
	default:
		if len(in) > 0 && in[0].Rank() > 0 {
			n = in[0].Dim(-1)
		}
	}
	return float64(n)
}
