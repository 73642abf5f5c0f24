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

// without lists the codes that have no gradient rule, and why.
var without = map[ir.Code]string{
	ir.Full: creation, ir.Iota: creation, ir.Uniform: creation, ir.Normal: creation, ir.RandInt: creation,
	ir.Not: boolean, ir.And: boolean, ir.Or: boolean, ir.Xor: boolean,
	ir.Eq: boolean, ir.Ne: boolean, ir.Lt: boolean, ir.Le: boolean,
	ir.ArgMax: indices, ir.ArgMin: indices,
	ir.LayerNormGrad: once, ir.RMSNormGrad: once, ir.BatchNormGrad: once, ir.AttentionGrad: once,
	ir.SGD: update, ir.AdamW: update,
}

const (
	creation = "has no operands"
	boolean  = "its result is bool"
	indices  = "its result is indices"
	once     = "second derivatives of norms and attention are not offered"
	update   = "an optimizer's update is not differentiated"
)

// testCase is one use of an op.
type testCase struct {
	code   ir.Code
	label  string
	attr   ir.Attr
	p      ir.Params
	args   []arg
	frozen []int                                  // floating operands without a gradient
	second bool                                   // check second derivatives too
	derive func(b ir.B, in []ir.Value) []ir.Value // sets operands that are functions of others
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

// make draws the operands.
// wide tells whether operand i keeps the precision of statistics.
func (tc *testCase) wide(i int) bool { return tc.args[i].wide }

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
	return tc.derived(in)
}

func (tc *testCase) derived(in []ir.Value) []ir.Value {
	if tc.derive == nil {
		return in
	}
	return tc.derive(ir.B{Builder: eager.Builder{}}, in)
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
	positive = each(func(r *rand.Rand) float64 { return 0.4 + r.Float64() })
	fraction = each(func(r *rand.Rand) float64 { return float64(r.IntN(5)-2) + 0.3 + 0.4*r.Float64() }) // away from integers and halves' ties
	sparse   = each(func(r *rand.Rand) float64 { return float64(min(r.IntN(4), 1)) * r.NormFloat64() })
	near1    = each(func(r *rand.Rand) float64 { return 0.96 + 0.08*r.Float64() })
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
		{code: ir.Where, args: []arg{mask(3, 5), of(normal, 3, 5), of(normal, 3, 5)}},
	}
	for i := range all {
		all[i].second = true
	}
	return all
}

func elementwiseCases() []testCase {
	var all []testCase
	add := func(p ir.Params, fills []fill, codes ...ir.Code) {
		for _, code := range codes {
			tc := testCase{code: code, p: p, second: true}
			for _, f := range fills {
				tc.args = append(tc.args, of(f, 7))
			}
			all = append(all, tc)
		}
	}
	none := ir.Params{}
	add(none, []fill{normal}, ir.Neg, ir.Exp, ir.Expm1, ir.Sin, ir.Cos, ir.Tanh, ir.Sigmoid, ir.Erf, ir.GELU, ir.GELUTanh, ir.SiLU)
	add(none, []fill{distinct}, ir.Abs, ir.Sign, ir.ReLU)
	add(none, []fill{fraction}, ir.Floor, ir.Ceil, ir.Trunc)
	add(none, []fill{offsetBy(fraction, 0.5)}, ir.Round)
	add(none, []fill{positive}, ir.Sqrt, ir.Rsqrt, ir.Log, ir.Log1p)
	add(ir.Scalars(-1.7, 0.3), []fill{normal}, ir.Affine)
	add(ir.Scalars(-0.2, 0.2), []fill{distinct}, ir.Clamp)
	for _, p := range []float64{0, 1, 2, 3, -1.5, 0.5} {
		add(ir.Scalars(p), []fill{positive}, ir.PowScalar)
		all[len(all)-1].label = fmt.Sprint(p)
	}
	drop := ir.Scalars(0.4, 0)
	drop.Value[1] = 99
	add(drop, []fill{normal}, ir.Dropout)
	add(ir.Scalars(0.7), []fill{normal, normal}, ir.Axpy, ir.Lerp)
	add(none, []fill{normal, normal}, ir.Add, ir.Sub, ir.Mul, ir.GELUGrad, ir.GELUTanhGrad, ir.SiLUGrad)
	add(none, []fill{normal, positive}, ir.Div)
	add(none, []fill{positive, normal}, ir.Pow)
	add(none, []fill{fraction, near1}, ir.Rem)
	add(none, []fill{distinct, offset}, ir.Maximum, ir.Minimum)
	add(none, []fill{distinct, normal}, ir.ReLUGrad)
	all[len(all)-1].frozen = []int{0}
	return all
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
	for _, code := range []ir.Code{ir.Sum, ir.Prod, ir.ReduceMax, ir.ReduceMin} {
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
	for i := range all {
		all[i].second = true
	}
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
		{code: ir.AvgPool2dGrad, attr: poolInto, args: []arg{of(normal, 2, 3, 3, 4)}},
	}
	for _, act := range []ir.Act{ir.NoAct, ir.ActReLU, ir.ActGELU, ir.ActGELUTanh} {
		f, bias := normal, normal
		if act == ir.ActReLU {
			f, bias = odd, fraction
		}
		all = append(all,
			testCase{code: ir.Linear, label: act.String(), attr: ir.Attr{Act: act}, args: []arg{of(f, 2, 3, 5), of(f, 2, 5), of(bias, 2)}},
			testCase{code: ir.Linear, label: act.String() + " vector", attr: ir.Attr{Act: act}, args: []arg{of(f, 5), of(f, 3, 5)}})
	}
	for i := range all {
		all[i].second = true
	}
	return all
}

func fusedCases() []testCase {
	ce := ir.Scalars(0, -100)
	smooth := ir.Scalars(0.2, 2)
	grad := []arg{of(normal, 4, 5), index(5, 4), wideOf(normal, 4), wideOf(normal, 4)}
	all := []testCase{
		{code: ir.Softmax, args: []arg{of(normal, 2, 1, 5)}},
		{code: ir.Softmax, label: "number", args: []arg{of(normal)}},
		{code: ir.LogSoftmax, args: []arg{of(normal, 3, 5)}},
		{code: ir.SoftmaxGrad, args: []arg{of(positive, 3, 5), of(normal, 3, 5)}},
		{code: ir.LogSoftmaxGrad, args: []arg{of(normal, 3, 5), of(normal, 3, 5)}},
		{code: ir.CrossEntropy, p: ce, args: []arg{of(normal, 4, 5), index(5, 4)}},
		{code: ir.CrossEntropy, label: "smoothing ignored", p: smooth, args: []arg{of(normal, 7, 3), index(3, 7)}},
	}
	for i := range all {
		all[i].second = true
	}
	return append(all, testCase{code: ir.CrossEntropyGrad, p: smooth, args: grad, frozen: []int{2}, derive: deriveLSE})
}

// deriveLSE sets operand 2 to the log-sum-exp of operand 0.
func deriveLSE(b ir.B, in []ir.Value) []ir.Value {
	out := slices.Clone(in)
	out[2] = b.Emit(ir.CrossEntropy, ir.Attr{}, ir.Scalars(0, -100), in[0], in[1])[1]
	return out
}

func normCases() []testCase {
	eps := ir.Scalars(1e-3)
	x, v := of(normal, 3, 5), of(normal, 5)
	planes, c := of(normal, 3, 2, 5), wideOf(normal, 2)
	q, k, val := of(normal, 1, 2, 3, 4), of(normal, 1, 2, 5, 4), of(normal, 1, 2, 5, 3)
	scale := ir.Scalars(0.7)
	return []testCase{
		{code: ir.LayerNorm, label: "plain", p: eps, args: []arg{x}},
		{code: ir.LayerNorm, label: "weight", p: eps, args: []arg{x, v}},
		{code: ir.LayerNorm, p: eps, args: []arg{x, v, v}},
		{code: ir.RMSNorm, label: "plain", p: eps, args: []arg{x}},
		{code: ir.RMSNorm, p: eps, args: []arg{x, v}},
		{code: ir.BatchNorm, p: eps, args: []arg{planes, c, c}},
		{code: ir.BatchNormEval, p: eps, args: []arg{planes, c, wideOf(positive, 2), c, c}, second: true},
		{code: ir.Attention, p: scale, args: []arg{q, k, val}},
		{code: ir.Attention, label: "causal", p: scale, attr: ir.Attr{Causal: true}, args: []arg{q, k, val}},
		{code: ir.Attention, label: "bool", p: scale, args: []arg{q, k, val, {shape: []int{1, 2, 3, 5}, fill: halfHidden, dt: dtype.Bool}}},
		{code: ir.Attention, label: "additive", p: scale, attr: ir.Attr{Causal: true}, args: []arg{q, k, val, of(normal, 1, 2, 3, 5)}},
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
