package tensor_test

import (
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/tensor"
)

// subject is what the methods below are called on: one of each kind of value.
type subject struct {
	env              *tensor.Env
	x, y, img, w, b  *tensor.Tensor // [2,3], [2,3], [1,2,4,4], [2,2,3,3], [2]
	idx, labels, yes *tensor.Tensor // i64[2,3], i64[2], bool[2,3]
}

// methods reach every code that a user's call launches.
var methods = map[ir.Code]func(s *subject){
	ir.Full: func(s *subject) { s.env.Ones(2) }, ir.Iota: func(s *subject) { s.env.Arange(3) },
	ir.Uniform: func(s *subject) { s.env.Rand(2) }, ir.Normal: func(s *subject) { s.env.Randn(2) }, ir.RandInt: func(s *subject) { s.env.RandInt(0, 2, 2) },
	ir.Copy: func(s *subject) { s.x.Clone() }, ir.Cast: func(s *subject) { s.x.Cast(dtype.F64) },
	ir.Neg: func(s *subject) { s.x.Neg() }, ir.Abs: func(s *subject) { s.x.Abs() }, ir.Sign: func(s *subject) { s.x.Sign() },
	ir.Floor: func(s *subject) { s.x.Floor() }, ir.Ceil: func(s *subject) { s.x.Ceil() }, ir.Round: func(s *subject) { s.x.Round() }, ir.Trunc: func(s *subject) { s.x.Trunc() },
	ir.Sqrt: func(s *subject) { s.x.Sqrt() }, ir.Rsqrt: func(s *subject) { s.x.Rsqrt() }, ir.Exp: func(s *subject) { s.x.Exp() }, ir.Expm1: func(s *subject) { s.x.Expm1() },
	ir.Log: func(s *subject) { s.x.Log() }, ir.Log1p: func(s *subject) { s.x.Log1p() }, ir.Sin: func(s *subject) { s.x.Sin() }, ir.Cos: func(s *subject) { s.x.Cos() },
	ir.Tanh: func(s *subject) { s.x.Tanh() }, ir.Sigmoid: func(s *subject) { s.x.Sigmoid() }, ir.Erf: func(s *subject) { s.x.Erf() }, ir.ReLU: func(s *subject) { s.x.ReLU() },
	ir.Not: func(s *subject) { s.yes.Not() }, ir.Affine: func(s *subject) { s.x.Scale(2) }, ir.PowScalar: func(s *subject) { s.x.PowScalar(3) },
	ir.Clamp: func(s *subject) { s.x.Clamp(0, 1) }, ir.Dropout: func(s *subject) { s.x.Dropout(0.5) }, ir.Axpy: func(s *subject) { s.x.AddScaled(s.y, 2) }, ir.Lerp: func(s *subject) { s.x.Lerp(s.y, 0.5) },
	ir.Add: func(s *subject) { s.x.Add(s.y) }, ir.Sub: func(s *subject) { s.x.Sub(s.y) }, ir.Mul: func(s *subject) { s.x.Mul(s.y) }, ir.Div: func(s *subject) { s.x.Div(s.y) },
	ir.Pow: func(s *subject) { s.x.Pow(s.y) }, ir.Rem: func(s *subject) { s.x.Rem(s.y) }, ir.Maximum: func(s *subject) { s.x.Maximum(s.y) }, ir.Minimum: func(s *subject) { s.x.Minimum(s.y) },
	ir.Eq: func(s *subject) { s.x.Eq(s.y) }, ir.Ne: func(s *subject) { s.x.Ne(s.y) }, ir.Lt: func(s *subject) { s.x.Gt(s.y) }, ir.Le: func(s *subject) { s.x.Ge(s.y) },
	ir.And: func(s *subject) { s.yes.And(s.yes) }, ir.Or: func(s *subject) { s.yes.Or(s.yes) }, ir.Xor: func(s *subject) { s.yes.Xor(s.yes) },
	ir.Where: func(s *subject) { tensor.Where(s.yes, s.x, s.y) },
	ir.Sum:   func(s *subject) { s.x.Sum(1) }, ir.Prod: func(s *subject) { s.x.Prod(1) }, ir.ReduceMax: func(s *subject) { s.x.Max(1) }, ir.ReduceMin: func(s *subject) { s.x.Min(1) },
	ir.ArgMax: func(s *subject) { s.x.ArgMax(1) }, ir.ArgMin: func(s *subject) { s.x.ArgMin(1) }, ir.CumSum: func(s *subject) { s.x.CumSum(1) },
	ir.MatMul: func(s *subject) { s.x.MatMul(s.y.Transpose(0, 1)) }, ir.Conv2d: func(s *subject) { s.img.Conv2d(s.w, nil, tensor.Conv{}) },
	ir.MaxPool2d: func(s *subject) { s.img.MaxPool2d(tensor.Pool{Kernel: [2]int{2, 2}}) }, ir.AvgPool2d: func(s *subject) { s.img.AvgPool2d(tensor.Pool{Kernel: [2]int{2, 2}}) },
	ir.Gather: func(s *subject) { s.x.Gather(1, s.idx) }, ir.ScatterAdd: func(s *subject) { s.x.ScatterAdd(1, s.idx, s.y) }, ir.Embedding: func(s *subject) { s.x.Embedding(s.labels) },
	ir.Cat: func(s *subject) { tensor.Cat(0, s.x, s.y) }, ir.Pad: func(s *subject) { s.x.Pad(0, 1, 1, 0) }, ir.Linear: func(s *subject) { s.x.Linear(s.y, nil) },
	ir.GELU: func(s *subject) { s.x.GELU() }, ir.GELUTanh: func(s *subject) { s.x.GELUTanh() }, ir.SiLU: func(s *subject) { s.x.SiLU() },
	ir.Softmax: func(s *subject) { s.x.Softmax(1) }, ir.LogSoftmax: func(s *subject) { s.x.LogSoftmax(1) }, ir.CrossEntropy: func(s *subject) { s.x.CrossEntropy(s.labels, 0, -1) },
	ir.LayerNorm: func(s *subject) { s.x.LayerNorm(s.env.Ones(3), nil, 1e-5) }, ir.RMSNorm: func(s *subject) { s.x.RMSNorm(s.env.Ones(3), 1e-5) },
	ir.BatchNorm: func(s *subject) { s.img.BatchNorm(s.b, s.b, 1e-5) }, ir.BatchNormEval: func(s *subject) { s.img.BatchNormEval(s.b, s.b, s.b, s.b, 1e-5) },
	ir.Attention:  func(s *subject) { tensor.Attention(s.img, s.img, s.img, tensor.Mask{Causal: true}) },
	ir.SumSquares: func(s *subject) { tensor.SumSquares(s.x, s.y) },
	ir.SGD:        func(s *subject) { tensor.SGDInPlace(tensor.SGDStep{}, s.env.Ones(), list(s.x), list(s.y), nil) },
	ir.AdamW: func(s *subject) {
		tensor.AdamWInPlace(tensor.AdamWStep{Step: 1}, s.env.Ones(), list(s.x), list(s.y), list(s.x.Clone()), list(s.x.Clone()))
	},
}

func list(t *tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{t} }

// TestMethodsReachEveryCode runs each method on a device that notes what it launches. Codes of gradients are reached by
// Backward, and views are never launched.
func TestMethodsReachEveryCode(t *testing.T) {
	env, err := tensor.Fresh("spy")
	if err != nil {
		t.Fatal(err)
	}
	dev := last
	dev.lacks = ir.Invalid
	s := &subject{env: env, x: env.Rand(2, 3), y: env.Rand(2, 3), img: env.Rand(1, 2, 4, 4), w: env.Rand(2, 2, 3, 3), b: env.Ones(2),
		idx: env.RandInt(0, 3, 2, 3), labels: env.RandInt(0, 2, 2), yes: env.FullOf(dtype.Bool, 1, 2, 3)}
	for c := ir.Full; int(c) < ir.Codes; c++ {
		call := methods[c]
		if call == nil {
			if !strings.Contains(c.String(), "_grad") {
				t.Errorf("no method reaches %s", c)
			}
			continue
		}
		dev.launches = nil
		call(s)
		if n := len(dev.launches); n == 0 || !strings.HasPrefix(dev.launches[n-1], c.String()+" ") {
			t.Errorf("the method for %s launches %q", c, dev.launches)
		}
	}
}
