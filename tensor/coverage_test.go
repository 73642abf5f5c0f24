package tensor_test

import (
	"reflect"
	"slices"
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

// methods reach every code that a user's call launches, but for elementwise ops and reductions that have a
// method of their name.
var methods = map[ir.Code]func(s *subject){
	ir.Full: func(s *subject) { s.env.Ones(2) }, ir.Iota: func(s *subject) { s.env.Arange(3) },
	ir.Uniform: func(s *subject) { s.env.Rand(2) }, ir.Normal: func(s *subject) { s.env.Randn(2) }, ir.RandInt: func(s *subject) { s.env.RandInt(0, 2, 2) },
	ir.Copy: func(s *subject) { s.x.Clone() }, ir.Cast: func(s *subject) { s.x.Cast(dtype.F64) }, ir.Affine: func(s *subject) { s.x.Scale(2) }, ir.Dropout: func(s *subject) { s.x.Dropout(0.5) }, ir.Axpy: func(s *subject) { s.x.AddScaled(s.y, 2) }, ir.Lt: func(s *subject) { s.x.Gt(s.y) }, ir.Le: func(s *subject) { s.x.Ge(s.y) },
	ir.Where: func(s *subject) { tensor.Where(s.yes, s.x, s.y) }, ir.ReduceMax: func(s *subject) { s.x.Max(1) }, ir.ReduceMin: func(s *subject) { s.x.Min(1) },
	ir.ArgMax: func(s *subject) { s.x.ArgMax(1) }, ir.ArgMin: func(s *subject) { s.x.ArgMin(1) }, ir.CumSum: func(s *subject) { s.x.CumSum(1) },
	ir.MatMul: func(s *subject) { s.x.MatMul(s.y.Transpose(0, 1)) }, ir.Conv2d: func(s *subject) { s.img.Conv2d(s.w, nil, tensor.Conv{}) },
	ir.MaxPool2d: func(s *subject) { s.img.MaxPool2d(tensor.Pool{Kernel: [2]int{2, 2}}) }, ir.AvgPool2d: func(s *subject) { s.img.AvgPool2d(tensor.Pool{Kernel: [2]int{2, 2}}) },
	ir.Resample: func(s *subject) { s.x.Resample(tensor.Resampling{Axis: 1, Size: 6, Step: 0.5}) },
	ir.Gather:   func(s *subject) { s.x.Gather(1, s.idx) }, ir.ScatterAdd: func(s *subject) { s.x.ScatterAdd(1, s.idx, s.y) }, ir.Embedding: func(s *subject) { s.x.Embedding(s.labels) },
	ir.LastAt: func(s *subject) { s.x.Scatter(1, s.idx, s.y) },
	ir.Sort:   func(s *subject) { s.x.Sort(1, false) },
	ir.Cat:    func(s *subject) { tensor.Cat(0, s.x, s.y) }, ir.Pad: func(s *subject) { s.x.Pad(0, 1, 1, 0) }, ir.Linear: func(s *subject) { s.x.Linear(s.y, nil) },
	ir.Softmax: func(s *subject) { s.x.Softmax(1) }, ir.LogSoftmax: func(s *subject) { s.x.LogSoftmax(1) }, ir.CrossEntropy: func(s *subject) { s.x.CrossEntropy(s.labels, 0, -1) },
	ir.LinearCrossEntropy: func(s *subject) { s.x.LinearCrossEntropyTotal(s.y, s.labels, 0, -1) },
	ir.AddNorm:            func(s *subject) { s.x.AddLayerNorm(nil, s.env.Ones(3), s.env.Zeros(3), 1e-5) },
	ir.LayerNorm:          func(s *subject) { s.x.LayerNorm(s.env.Ones(3), nil, 1e-5) }, ir.RMSNorm: func(s *subject) { s.x.RMSNorm(s.env.Ones(3), 1e-5) },
	ir.BatchNorm: func(s *subject) { s.img.BatchNorm(s.b, s.b, 1e-5) }, ir.BatchNormEval: func(s *subject) { s.img.BatchNormEval(s.b, s.b, s.b, s.b, 1e-5) },
	ir.Attention:     func(s *subject) { tensor.Attention(s.img, s.img, s.img, tensor.Mask{Causal: true}) },
	ir.SelfAttention: func(s *subject) { tensor.SelfAttention(s.env.Ones(1, 2, 3, 1, 4), tensor.Mask{}) },
	ir.LSTMStep: func(s *subject) {
		tensor.LSTMStep(s.env.Ones(2, 8), s.env.Ones(2, 8), s.env.Ones(2, 2), nil)
	},
	ir.LSTMStepGrad: func(s *subject) {
		cell := s.env.Ones(2, 2)
		tensor.LSTMStepGrad(cell, cell, s.env.Ones(2, 8), cell, cell, s.env.Zeros(2, 8))
	},
	ir.SumSquares: func(s *subject) { tensor.SumSquares(s.x, s.y) },
	ir.GradNorm: func(s *subject) {
		one := func() *tensor.Tensor { return s.env.Ones() }
		tensor.GradNormInPlace(tensor.GradNormStep{Norm: one(), Scale: one(), Skip: s.env.FullOf(dtype.I64, 0), Counts: s.labels, Turn: s.labels.Clone()}, s.x)
	},
	ir.CastAll: func(s *subject) {
		p := tensor.NewParam(s.x)
		p.MatMul(s.y.In(s.env.Autocast(dtype.BF16)).Transpose(0, 1))
		tensor.CastAhead(list(p))()
	},
	ir.TrackMoments: func(s *subject) {
		tensor.TrackMomentsInPlace(s.b, s.b.Clone(), s.env.FullOf(dtype.I64, 0), s.b.Clone(), s.b.Clone(), 0.1, 1)
	},
	ir.LossScale: func(s *subject) {
		tensor.LossScaleInPlace(tensor.LossScaleStep{Scale: s.env.Ones(), Inverse: tensor.NewCell(s.env, 1), Good: s.env.FullOf(dtype.I64, 0)})
	},
	ir.SGD: func(s *subject) {
		tensor.SGDInPlace(tensor.SGDStep{LR: tensor.NewCell(s.env, 0)}, s.env.Ones(), list(s.x), list(s.y), nil)
	},
	ir.Adam8bit: func(s *subject) {
		codes := func() []*tensor.Tensor { return list(s.env.FullOf(dtype.U8, 0, s.x.Shape()...)) }
		step, table := tensor.AdamWStep{LR: tensor.NewCell(s.env, 0)}, s.env.FullOf(dtype.F64, 0, 512)
		tensor.Adam8bitInPlace(step, s.env.Ones(), table, list(s.x), list(s.y), tensor.Codes{First: codes(), Second: codes(), Largest1: list(s.env.Ones(1)), Largest2: list(s.env.Ones(1))}, list(s.env.FullOf(dtype.I64, 1)))
	},
	ir.AdamW: func(s *subject) {
		step := tensor.AdamWStep{LR: tensor.NewCell(s.env, 0)}
		tensor.AdamWInPlace(step, s.env.Ones(), list(s.x), list(s.y), list(s.x.Clone()), list(s.x.Clone()), list(s.env.FullOf(dtype.I64, 1)))
	},
}

// named is the method that has the name of an elementwise op or a reduction, whatever its case: its operands are tensors,
// its parameters numbers or dimensions.
func named(s *subject, code ir.Code) func(s *subject) {
	row := code.Row()
	x := reflect.ValueOf(s.x)
	if row.Class == ir.Bools {
		x = reflect.ValueOf(s.yes)
	}
	if row.Class == ir.Bits {
		x = reflect.ValueOf(s.idx)
	}
	for i := range x.NumMethod() {
		m := x.Type().Method(i)
		if row.Group != ir.Elementwise && !row.OverAxes() || !strings.EqualFold(m.Name, strings.ReplaceAll(row.Name, "_", "")) {
			continue
		}
		return func(*subject) {
			var args []reflect.Value
			for j := 1; j < m.Type.NumIn(); j++ {
				switch m.Type.In(j) {
				case x.Type():
					args = append(args, x)
				case reflect.TypeFor[[]int](): // dimensions
					args = append(args, reflect.ValueOf(1))
				default:
					args = append(args, reflect.ValueOf(0.5))
				}
			}
			x.Method(i).Call(args)
		}
	}
	return nil
}

// ruled is the update of an optimizer that is a rule.
func ruled(s *subject, code ir.Code) {
	r := code.Row().Rule
	var state, numbers [][]*tensor.Tensor
	for range r.State {
		state = append(state, list(s.x.Clone()))
	}
	for range r.Numbers {
		numbers = append(numbers, list(tensor.NewCell(s.env, 0.5)))
	}
	step := tensor.RuleStep{Rule: code.String(), LR: tensor.NewCell(s.env, 0), Settings: make([]float64, len(r.Settings))}
	tensor.RuleInPlace(step, s.env.Ones(), list(s.x), list(s.y), state, list(s.env.FullOf(dtype.I64, 1)), numbers...)
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
			call = named(s, c)
		}
		if r := c.Row().Rule; r != nil {
			call = func(s *subject) { ruled(s, c) }
		}
		if call == nil {
			if !strings.Contains(c.String(), "_grad") {
				t.Errorf("no method reaches %s", c)
			}
			continue
		}
		dev.launches = nil
		call(s)
		if dev.missing[c] && c.Fused() { // it was lowered
			continue
		}
		at := slices.IndexFunc(dev.launches, func(l string) bool { return strings.HasPrefix(l, c.String()+" ") })
		if at < 0 || at < len(dev.launches)-1 && c != ir.LastAt { // by whose places Scatter takes its values
			t.Errorf("the method for %s launches %q", c, dev.launches)
		}
	}
}
