package autograd_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/lower/eager"
)

// testCase is one use of an op.
type testCase struct {
	code   ir.Code
	label  string
	attr   ir.Attr
	p      ir.Params
	args   []arg
	frozen []int // floating operands without a gradient
}

func (tc *testCase) name() string {
	if tc.label == "" {
		return tc.code.String()
	}
	return tc.code.String() + "/" + tc.label
}

// arg describes an operand.
type arg struct {
	shape []int
	fill  fill
	dt    dtype.DType // F64 when not set
	wide  bool        // keeps statistics' precision in 16-bit forms of the case
}

type fill func(r *rand.Rand, n int) []float64

// wide tells whether operand i keeps the precision of statistics.
func (tc *testCase) wide(i int) bool { return tc.args[i].wide }

// make draws the operands.
func (tc *testCase) make(r *rand.Rand) []ir.Value {
	in := make([]ir.Value, len(tc.args))
	for i, a := range tc.args {
		dt := a.dt
		if dt == dtype.Invalid {
			dt = dtype.F64
		}
		t := ir.Dense(dt, a.shape...)
		in[i] = eager.New(t, a.fill(r, t.Size()))
	}
	return in
}

func (tc *testCase) attrAs(dt dtype.DType) ir.Attr {
	a := tc.attr
	if a.Out != nil && a.Out.DType == dtype.F64 {
		a.Out = a.Out.As(dt)
	}
	return a
}

func each(f func(r *rand.Rand) float64) fill {
	return func(r *rand.Rand, n int) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = f(r)
		}
		return v
	}
}

var (
	normal   = each((*rand.Rand).NormFloat64)
	inside   = each(func(r *rand.Rand) float64 { return 1.6*r.Float64() - 0.8 })
	positive = each(func(r *rand.Rand) float64 { return 0.4 + r.Float64() })
	fraction = each(func(r *rand.Rand) float64 { return float64(r.IntN(5)-2) + 0.3 + 0.4*r.Float64() }) // away from integers and halves' ties
	sparse   = each(func(r *rand.Rand) float64 { return float64(min(r.IntN(4), 1)) * r.NormFloat64() })
	near1    = each(func(r *rand.Rand) float64 { return 0.96 + 0.08*r.Float64() })
	tame     = each(func(r *rand.Rand) float64 { return math.Pi*float64(r.IntN(5)-2) + 2.4*r.Float64() - 1.2 }) // away from odd multiples of π/2
)

// distinct draws numbers that differ by at least 0.06 among themselves. They are at least 0.01 from 0, ±0.1, ±0.2 and all
// multiples of 0.1.
func distinct(r *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i, k := range r.Perm(n) {
		v[i] = 0.1 * (float64(k-n/2) + 0.5 + 0.4*r.Float64())
	}
	return v
}

// offset is distinct numbers of which no one is within 0.005 of one of distinct.
func offset(r *rand.Rand, n int) []float64 {
	v := distinct(r, n)
	for i := range v {
		v[i] += 0.055
	}
	return v
}

// odd draws odd whole numbers: of an odd number of their products no sum is 0, where ReLU has its kink.
var odd = each(func(r *rand.Rand) float64 { return float64(2*r.IntN(4) - 3) })

func below(n int) fill {
	return each(func(r *rand.Rand) float64 { return float64(r.IntN(n)) })
}

func random(r *rand.Rand, t *ir.Type) ir.Value { return eager.New(t.AsDense(), normal(r, t.Size())) }

func of(f fill, shape ...int) arg { return arg{shape: shape, fill: f} }

func wideOf(f fill, shape ...int) arg { return arg{shape: shape, fill: f, wide: true} }

func index(n int, shape ...int) arg { return arg{shape: shape, fill: below(n), dt: dtype.I64} }

func mask(shape ...int) arg { return arg{shape: shape, fill: below(2), dt: dtype.Bool} }

func dims(v ...int32) (d [ir.MaxRank]int32) {
	copy(d[:], v)
	return d
}

func f64(shape ...int) *ir.Type { return ir.Dense(dtype.F64, shape...) }

func cases() []testCase {
	return slices.Concat(movementCases(), elementwiseCases(), reductionCases(), productCases(), fusedCases(), normCases())
}

func movementCases() []testCase {
	x := []arg{of(normal, 3, 1, 5)}
	all := []testCase{
		{code: ir.Reshape, attr: ir.Attr{Out: f64(5, 3)}, args: x},
		{code: ir.Permute, attr: ir.Attr{Dims: dims(2, 0, 1)}, args: x},
		{code: ir.Expand, attr: ir.Attr{Out: f64(2, 3, 7, 5)}, args: x},
		{code: ir.Slice, attr: ir.Attr{Axis: 2, Dims: dims(1, 2, 2)}, args: x},
		{code: ir.Slice, label: "end", attr: ir.Attr{Axis: 0, Dims: dims(2, 1, 1)}, args: x},
		{code: ir.Slice, label: "empty", attr: ir.Attr{Axis: 0, Dims: dims(3, 0, 1)}, args: x},
		{code: ir.Copy, args: x},
		{code: ir.Copy, label: "strided", attr: ir.Attr{Out: ir.Strided(dtype.F64, []int{3, 1, 5}, []int{1, 1, 3})}, args: x},
		{code: ir.Cast, attr: ir.Attr{DType: dtype.F64}, args: x},
		{code: ir.Gather, attr: ir.Attr{Axis: 1}, args: []arg{of(normal, 3, 5), index(5, 2, 7)}},
		{code: ir.ScatterAdd, attr: ir.Attr{Axis: 0}, args: []arg{of(normal, 3, 5), index(3, 7, 4), of(normal, 7, 4)}},
		{code: ir.Embedding, args: []arg{of(normal, 5, 3), index(5, 2, 7)}},
		{code: ir.EmbeddingGrad, attr: ir.Attr{Out: f64(5, 3)}, args: []arg{of(normal, 2, 7, 3), index(5, 2, 7)}},
		{code: ir.Cat, attr: ir.Attr{Axis: 1}, args: []arg{of(normal, 2, 3), of(normal, 2, 0), of(normal, 2, 5)}},
		{code: ir.Pad, attr: ir.Attr{Axis: 1, Dims: dims(2, 1, 2)}, p: ir.Scalars(1.5), args: []arg{of(normal, 2, 4)}},
		{code: ir.Pad, label: "one", attr: ir.Attr{Axis: 0, Dims: dims(0, 3, 1)}, p: ir.Scalars(0), args: []arg{of(normal, 1, 4)}},
		{code: ir.Sort, attr: ir.Attr{Axis: 1}, args: []arg{of(distinct, 2, 5, 3)}},
		{code: ir.Sort, label: "first", attr: ir.Attr{Axis: 1, Flag: ir.Descending, Dims: dims(2)}, args: []arg{of(distinct, 3, 5)}},
		{code: ir.Where, args: []arg{mask(3, 5), of(normal, 3, 5), of(normal, 3, 5)}},
	}
	return all
}

// elementwiseCases follow from the ops' rows: parameters to try, domains and kinks.
func elementwiseCases() []testCase {
	drop := ir.Scalars(0.4, 0)
	drop.Value[1] = 99
	all := []testCase{{code: ir.Dropout, p: drop, args: []arg{of(normal, 7)}}}
	for code := ir.Code(1); int(code) < ir.Codes; code++ {
		row := code.Row()
		if row.Group != ir.Elementwise || row.Gradient.Of == nil || code == ir.Where {
			continue
		}
		try := row.Try
		if row.Params == 0 {
			try = []ir.Params{{}}
		}
		for i, p := range try {
			tc := testCase{code: code, p: p}
			if i > 0 {
				tc.label = fmt.Sprint(i)
			}
			for j := range row.Gradient.Of {
				tc.args = append(tc.args, of(fillOf(row, j), 7))
				if row.Domain[j] == ir.Fixed {
					tc.frozen = append(tc.frozen, j)
				}
			}
			all = append(all, tc)
		}
	}
	return all
}

// fillOf draws operand i within its domain and away from the op's kinks. Bounds to try are
// multiples of a quarter.
func fillOf(row *ir.Row, i int) fill {
	switch row.Domain[i] {
	case ir.Positives:
		return positive
	case ir.Inside:
		return inside
	case ir.Above:
		return offsetBy(positive, 1)
	}
	switch row.Kink {
	case ir.AtZero:
		if i == 0 {
			return distinct
		}
	case ir.AtIntegers:
		return fraction
	case ir.AtHalves:
		return offsetBy(fraction, 0.5)
	case ir.AtBounds:
		return offsetBy(below(9), -3.9)
	case ir.AtTies:
		return [...]fill{distinct, offset}[i]
	case ir.AtQuotients:
		return [...]fill{fraction, near1}[i]
	case ir.AtPoles:
		return tame
	}
	return normal
}

func offsetBy(f fill, by float64) fill {
	return func(r *rand.Rand, n int) []float64 {
		v := f(r, n)
		for i := range v {
			v[i] += by
		}
		return v
	}
}

func reductionCases() []testCase {
	var all []testCase
	for code := ir.Code(1); int(code) < ir.Codes; code++ {
		if !code.Row().OverAxes() {
			continue
		}
		all = append(all,
			testCase{code: code, label: "last", attr: ir.Attr{Axes: 1 << 2}, args: []arg{of(distinct, 2, 3, 5)}},
			testCase{code: code, label: "outer kept", attr: ir.Attr{Axes: 0b101, Keep: true}, args: []arg{of(distinct, 2, 3, 5)}},
			testCase{code: code, label: "all", attr: ir.Attr{Axes: 0b11}, args: []arg{of(distinct, 1, 7)}},
			testCase{code: code, label: "none", attr: ir.Attr{}, args: []arg{of(distinct, 3)}},
			testCase{code: code, label: "number", attr: ir.Attr{}, args: []arg{of(distinct)}},
		)
	}
	all = append(all,
		testCase{code: ir.Prod, label: "zeros", attr: ir.Attr{Axes: 0b101}, args: []arg{of(sparse, 2, 3, 3)}},
		testCase{code: ir.Prod, label: "empty", attr: ir.Attr{Axes: 0b1}, args: []arg{of(normal, 0, 3)}},
		testCase{code: ir.Sum, label: "empty", attr: ir.Attr{Axes: 0b1}, args: []arg{of(normal, 0, 3)}},
		testCase{code: ir.CumSum, attr: ir.Attr{Axis: 1}, args: []arg{of(normal, 2, 7, 3)}},
		testCase{code: ir.SumSquares, args: []arg{of(normal, 2, 3), of(normal, 5), of(normal)}},
	)
	return all
}

func productCases() []testCase {
	conv := ir.Conv{StrideH: 2, StrideW: 1, PadH: 1, PadW: 2, DilationH: 1, DilationW: 2, Groups: 2}.Attr()
	convInto := func(shape ...int) ir.Attr {
		a := conv
		a.Out = f64(shape...)
		return a
	}
	pool := ir.Pool{KernelH: 2, KernelW: 3, StrideH: 2, StrideW: 1, PadH: 1, PadW: 1}.Attr()
	poolInto := pool
	poolInto.Out = f64(2, 3, 5, 4)
	shrunk := ir.Resampling{Axis: 1, Size: 4, Curve: ir.CubicWindows, Step: 9.0 / 4}.Attr()
	shrunk.Out = f64(2, 9)
	plain := ir.Conv{StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, Groups: 1}.Attr()
	g := of(normal, 1, 4, 3, 4) // of x[1,4,5,4] with w[4,2,3,3]
	x, w := of(normal, 1, 4, 5, 4), of(normal, 4, 2, 3, 3)
	all := []testCase{
		{code: ir.MatMul, args: []arg{of(normal, 3, 5), of(normal, 5, 2)}},
		{code: ir.MatMul, label: "batch", args: []arg{of(normal, 2, 1, 3), of(normal, 2, 3, 4)}},
		{code: ir.MatMul, label: "no inner", args: []arg{of(normal, 2, 0), of(normal, 0, 3)}},
		{code: ir.Conv2d, attr: conv, args: []arg{x, w}},
		{code: ir.Conv2d, label: "bias", attr: plain, args: []arg{of(normal, 2, 1, 3, 3), of(normal, 2, 1, 2, 3), of(normal, 2)}},
		{code: ir.Conv2dGradInput, attr: convInto(1, 4, 5, 4), args: []arg{g, w}},
		{code: ir.Conv2dGradWeight, attr: convInto(4, 2, 3, 3), args: []arg{g, x}},
		{code: ir.MaxPool2d, attr: pool, args: []arg{of(distinct, 2, 3, 5, 4)}},
		{code: ir.MaxPool2dGrad, attr: poolInto, args: []arg{of(normal, 2, 3, 3, 4), index(20, 2, 3, 3, 4)}},
		{code: ir.AvgPool2d, attr: pool, args: []arg{of(normal, 2, 3, 5, 4)}},
		{code: ir.Resample, attr: ir.Resampling{Axis: 1, Size: 7, Curve: ir.Cubics, Step: 5.0 / 7}.Attr(), args: []arg{of(normal, 2, 5, 3)}},
		{code: ir.ResampleGrad, attr: shrunk, args: []arg{of(normal, 2, 4)}},
		{code: ir.AvgPool2dGrad, attr: poolInto, args: []arg{of(normal, 2, 3, 3, 4)}},
	}
	all = append(all, testCase{code: ir.BiasGrad, args: []arg{of(normal, 3, 4)}})
	for _, act := range ir.Acts() {
		f, bias := normal, normal
		if act != ir.NoAct && act != ir.ActReLU {
			all = append(all,
				testCase{code: ir.Linear, label: act.String() + " before", attr: ir.Attr{Act: act, Flag: ir.Before}, args: []arg{of(f, 3, 5), of(f, 2, 5), of(bias, 2)}},
				testCase{code: ir.BiasGrad, label: act.String(), attr: ir.Attr{Act: act}, args: []arg{of(normal, 3, 4), of(normal, 3, 4)}})
		}
		if act == ir.ActReLU {
			f, bias = odd, fraction
		}
		all = append(all,
			testCase{code: ir.Linear, label: act.String(), attr: ir.Attr{Act: act}, args: []arg{of(f, 2, 3, 5), of(f, 2, 5), of(bias, 2)}},
			testCase{code: ir.Linear, label: act.String() + " vector", attr: ir.Attr{Act: act}, args: []arg{of(f, 5), of(f, 3, 5)}})
	}
	return all
}

func fusedCases() []testCase {
	ce := ir.Scalars(0, -100)
	smooth := ir.Scalars(0.2, 2)
	grad := []arg{of(normal, 4, 5), index(5, 4), wideOf(normal, 2, 4), wideOf(normal, 4)}
	mean, two := ir.Attr{Flag: ir.Mean}, wideOf(func(*rand.Rand, int) []float64 { return []float64{2} })
	ofMean := append(slices.Clone(grad[:3]), wideOf(normal), two)
	all := []testCase{
		{code: ir.Softmax, args: []arg{of(normal, 2, 1, 5)}},
		{code: ir.Softmax, label: "number", args: []arg{of(normal)}},
		{code: ir.LogSoftmax, args: []arg{of(normal, 3, 5)}},
		{code: ir.SoftmaxGrad, args: []arg{of(positive, 3, 5), of(normal, 3, 5)}},
		{code: ir.LogSoftmaxGrad, args: []arg{of(normal, 3, 5), of(normal, 3, 5)}},
		{code: ir.CrossEntropy, p: ce, args: []arg{of(normal, 4, 5), index(5, 4)}},
		{code: ir.CrossEntropy, label: "smoothing ignored", p: smooth, args: []arg{of(normal, 7, 3), index(3, 7)}},
		{code: ir.CrossEntropy, label: "mean", attr: mean, p: ce, args: []arg{of(normal, 4, 5), index(5, 4)}},
		{code: ir.CrossEntropy, label: "mean smoothing ignored", attr: mean, p: smooth, args: []arg{of(normal, 7, 3), index(3, 7)}},
	}
	return append(append(all, headCases(ce, smooth)...), testCase{code: ir.CrossEntropyGrad, p: smooth, args: grad},
		testCase{code: ir.CrossEntropyGrad, label: "mean", attr: mean, p: smooth, args: ofMean})
}

func headCases(ce, smooth ir.Params) (all []testCase) {
	labels := arg{shape: []int{4}, dt: dtype.I64, fill: func(*rand.Rand, int) []float64 { return []float64{1, 2, 0, 4} }} // of no label that counts the mean is NaN
	args := []arg{of(normal, 4, 2), of(normal, 5, 2), labels}
	rows := append(slices.Clone(args), wideOf(normal, 4))
	for _, p := range []ir.Params{ce, smooth} {
		all = append(all, testCase{code: ir.LinearCrossEntropy, p: p, args: args})
		for _, grads := range []ir.Flag{0, ir.GradX, ir.GradW, ir.GradX | ir.GradW} {
			a := ir.Attr{}
			for _, form := range []ir.Flag{ir.Mean, ir.Total} {
				a.Flag = form | grads
				all = append(all, testCase{code: ir.LinearCrossEntropy, label: a.Flag.String(), attr: a, p: p, args: args})
			}
			if a.Flag = grads; grads != 0 {
				all = append(all, testCase{code: ir.LinearCrossEntropyGrad, label: a.Flag.String(), attr: a, p: p, args: rows})
			}
		}
	}
	return all
}

func normCases() []testCase {
	eps := ir.Scalars(1e-3)
	x, v := of(normal, 3, 5), of(normal, 5)
	planes, c := of(normal, 3, 2, 5), wideOf(normal, 2)
	stat, rstd := wideOf(normal, 3), wideOf(positive, 3)
	q, k, val := of(normal, 1, 2, 3, 4), of(normal, 1, 2, 5, 4), of(normal, 1, 2, 5, 3)
	g, lse := of(normal, 1, 2, 3, 3), wideOf(offsetBy(positive, 6), 1, 2, 3) // weights below 1, as attention has them: differences of larger ones say little
	qkv, inside, own := of(normal, 1, 5, 3, 2, 4), of(normal, 1, 5, 2, 4), wideOf(offsetBy(positive, 6), 1, 2, 5)
	scale, relu := ir.Scalars(0.7), ir.Attr{Act: ir.ActReLU}
	return []testCase{
		{code: ir.LayerNorm, label: "plain", p: eps, args: []arg{x}},
		{code: ir.LayerNorm, label: "weight", p: eps, args: []arg{x, v}},
		{code: ir.LayerNorm, p: eps, args: []arg{x, v, v}},
		{code: ir.AddNorm, label: "alone", p: eps, args: []arg{x, v, v}},
		{code: ir.AddNorm, p: eps, args: []arg{x, v, v, x}},
		{code: ir.AddNormGrad, label: "alone", args: []arg{x, x, stat, rstd, v}},
		{code: ir.AddNormGrad, args: []arg{x, x, stat, rstd, v, x}},
		{code: ir.LSTMStep, args: []arg{of(normal, 3, 20), of(normal, 3, 20), x}},
		{code: ir.LSTMStepGrad, args: []arg{x, x, of(normal, 3, 20), x, x}},
		{code: ir.RMSNorm, label: "plain", p: eps, args: []arg{x}},
		{code: ir.RMSNorm, p: eps, args: []arg{x, v}},
		{code: ir.LayerNormGrad, label: "plain", args: []arg{x, x, stat, rstd}},
		{code: ir.LayerNormGrad, args: []arg{x, x, stat, rstd, v}},
		{code: ir.RMSNormGrad, label: "plain", args: []arg{x, x, rstd}},
		{code: ir.RMSNormGrad, args: []arg{x, x, rstd, v}},
		{code: ir.BatchNorm, p: eps, args: []arg{planes, c, c}},
		{code: ir.BatchNormGrad, p: eps, args: []arg{planes, planes, c, wideOf(positive, 2), c}},
		{code: ir.BatchNormEval, p: eps, args: []arg{planes, c, wideOf(positive, 2), c, c}},
		{code: ir.BatchNorm, label: "added", p: eps, args: []arg{planes, c, c, planes}},
		{code: ir.BatchNorm, label: "relu", attr: relu, p: eps, args: []arg{planes, c, c}},
		{code: ir.BatchNorm, label: "added relu", attr: relu, p: eps, args: []arg{planes, c, c, planes}},
		{code: ir.BatchNormGrad, label: "relu", p: eps, args: []arg{planes, planes, c, wideOf(positive, 2), c, planes}},
		{code: ir.BatchNormGrad, label: "added relu", attr: ir.Attr{Flag: ir.Residual}, p: eps, args: []arg{planes, planes, c, wideOf(positive, 2), c, planes}},
		{code: ir.BatchNormEval, label: "added relu", attr: relu, p: eps, args: []arg{planes, c, wideOf(positive, 2), c, c, planes}},
		{code: ir.Attention, p: scale, args: []arg{q, k, val}},
		{code: ir.Attention, label: "causal", p: scale, attr: ir.Attr{Causal: true}, args: []arg{q, k, val}},
		{code: ir.Attention, label: "bool", p: scale, args: []arg{q, k, val, {shape: []int{1, 2, 3, 5}, fill: halfHidden, dt: dtype.Bool}}},
		{code: ir.Attention, label: "additive", p: scale, attr: ir.Attr{Causal: true}, args: []arg{q, k, val, of(normal, 1, 2, 3, 5)}},
		{code: ir.AttentionGrad, p: scale, args: []arg{g, q, k, val, g, lse}},
		{code: ir.AttentionGrad, label: "causal", p: scale, attr: ir.Attr{Causal: true}, args: []arg{g, q, k, val, g, lse}},
		{code: ir.AttentionGrad, label: "bool", p: scale, args: []arg{g, q, k, val, g, lse, {shape: []int{1, 2, 3, 5}, fill: halfHidden, dt: dtype.Bool}}},
		{code: ir.AttentionGrad, label: "additive", p: scale, attr: ir.Attr{Causal: true}, args: []arg{g, q, k, val, g, lse, of(normal, 1, 2, 3, 5)}},
		{code: ir.SelfAttention, p: scale, args: []arg{qkv}},
		{code: ir.SelfAttention, label: "causal", p: scale, attr: ir.Attr{Causal: true}, args: []arg{qkv}},
		{code: ir.SelfAttention, label: "bool", p: scale, args: []arg{qkv, {shape: []int{1, 2, 5, 5}, fill: halfHidden, dt: dtype.Bool}}},
		{code: ir.SelfAttention, label: "additive", p: scale, attr: ir.Attr{Causal: true}, args: []arg{qkv, of(normal, 1, 2, 5, 5)}},
		{code: ir.SelfAttentionGrad, p: scale, args: []arg{inside, qkv, inside, own}},
		{code: ir.SelfAttentionGrad, label: "causal", p: scale, attr: ir.Attr{Causal: true}, args: []arg{inside, qkv, inside, own}},
		{code: ir.SelfAttentionGrad, label: "bool", p: scale, args: []arg{inside, qkv, inside, own, {shape: []int{1, 2, 5, 5}, fill: halfHidden, dt: dtype.Bool}}},
		{code: ir.SelfAttentionGrad, label: "additive", p: scale, attr: ir.Attr{Causal: true}, args: []arg{inside, qkv, inside, own, of(normal, 1, 2, 5, 5)}},
		{code: ir.Attention, label: "hidden row", p: scale, args: []arg{q, k, val, of(hiddenRow, 1, 2, 3, 5)}, frozen: []int{3}},
	}
}

// halfHidden is a random mask whose first five elements, one row of the case, are false.
func halfHidden(r *rand.Rand, n int) []float64 {
	v := below(2)(r, n)
	clear(v[:5])
	return v
}

// hiddenRow is an additive mask whose first row hides all keys.
func hiddenRow(r *rand.Rand, n int) []float64 {
	v := normal(r, n)
	for i := range 5 {
		v[i] = math.Inf(-1)
	}
	return v
}
