package lower_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/lower"
	"github.com/warpline-ml/warpline/internal/lower/eager"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// primitives is a builder that refuses fused ops.
type primitives struct{ ir.Builder }

func (p primitives) Emit(code ir.Code, attr ir.Attr, params ir.Params, in ...ir.Value) []ir.Value {
	if code.Fused() {
		panic(fmt.Sprintf("a lowering emitted %s", code))
	}
	return p.Builder.Emit(code, attr, params, in...)
}

// TestLowerings compares each lowering with the reference of the fused op, and its result types with the shape rule in
// each floating dtype.
func TestLowerings(t *testing.T) {
	rng := testutil.Rand(t)
	checked := map[ir.Code]bool{}
	for i, tc := range cases() {
		checked[tc.code] = true
		t.Run(fmt.Sprintf("%s/%d", tc.code, i), func(t *testing.T) {
			in := tc.make(rng)
			want := eager.Builder{}.Emit(tc.code, tc.attr, tc.p, in...)
			op := ir.New(tc.code, tc.attr, eager.Types(in)...)
			got := lower.Of(tc.code)(ir.B{Builder: primitives{eager.Builder{}}}, &op, &tc.p, in)
			if len(got) != len(want) {
				t.Fatalf("%d results, want %d", len(got), len(want))
			}
			for i := range want {
				if g, w := got[i].Type(), want[i].Type(); g.DType != w.DType || !g.SameShape(w) {
					t.Errorf("result %d is %s, want %s", i, g, w)
				}
				testutil.Close(t, eager.Data(got[i]), eager.Data(want[i]), 1e-10, 1e-12)
			}
			for _, dt := range []dtype.DType{dtype.F32, dtype.F16, dtype.BF16} {
				rule := tc.code.Row().Rule
				if tc.code == ir.LossScale || tc.code == ir.Adam8bit || rule != nil && len(rule.Numbers) > 0 || tc.code.Row().Class == ir.Wides && dt != dtype.F32 {
					break // whose operands have one dtype each
				}
				checkTypes(t, &tc, in, dt)
			}
		})
	}
	for code := ir.Code(1); int(code) < ir.Codes; code++ {
		if has := lower.Of(code) != nil; has != code.Fused() || has != checked[code] {
			t.Errorf("%s: fused %t, lowered %t, checked %t", code, code.Fused(), has, checked[code])
		}
	}
}

func checkTypes(t *testing.T, tc *testCase, in []ir.Value, dt dtype.DType) {
	in = eager.Retype(in, dt, tc.wide)
	op := ir.New(tc.code, tc.attr, eager.Types(in)...)
	want, err := op.Infer()
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range lower.Of(tc.code)(ir.B{Builder: eager.TypesOnly{}}, &op, &tc.p, in) {
		if v.Type().DType != want[i].DType || !v.Type().SameShape(want[i]) {
			t.Errorf("%s: result %d is %s, want %s", dt, i, v.Type(), want[i])
		}
	}
}

// TestHidden pins what fully masked rows give, apart from the reference.
func TestHidden(t *testing.T) {
	b := ir.B{Builder: eager.Builder{}}
	inf := math.Inf(-1)
	q := eager.New(ir.Dense(dtype.F64, 1, 1, 2, 1), []float64{1, 2})
	k := eager.New(ir.Dense(dtype.F64, 1, 1, 2, 1), []float64{3, 4})
	mask := eager.New(ir.Dense(dtype.F64, 1, 1, 2, 2), []float64{inf, inf, 0, inf})
	in := []ir.Value{q, k, k, mask}
	p := ir.Scalars(1)
	op := ir.New(ir.Attention, ir.Attr{}, eager.Types(in)...)
	out := lower.Of(ir.Attention)(b, &op, &p, in)
	testutil.Close(t, eager.Data(out[0]), []float64{0, 3}, 0, 0)
	testutil.Close(t, eager.Data(out[1]), []float64{inf, 6}, 0, 0)

	g := b.Full(out[0].Type(), 1)
	in = []ir.Value{g, q, k, k, out[0], out[1], mask}
	op = ir.New(ir.AttentionGrad, ir.Attr{}, eager.Types(in)...)
	grads := lower.Of(ir.AttentionGrad)(b, &op, &p, in)
	testutil.Close(t, eager.Data(grads[0]), []float64{0, 0}, 0, 0)
	testutil.Close(t, eager.Data(grads[2]), []float64{1, 0}, 0, 0)
}

// testCase is one use of a fused op.
type testCase struct {
	code ir.Code
	attr ir.Attr
	p    ir.Params
	args []arg
}

type arg struct {
	shape []int
	dt    dtype.DType // F64 when not set
	wide  bool        // keeps statistics' precision in 16-bit forms of the case
	fill  func(r *rand.Rand) float64
}

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
		v := make([]float64, t.Size())
		for j := range v {
			v[j] = a.fill(r)
		}
		in[i] = eager.New(t, v)
	}
	return in
}

func num(shape ...int) arg { return arg{shape: shape, fill: (*rand.Rand).NormFloat64} }

func stat(shape ...int) arg { return arg{shape: shape, fill: (*rand.Rand).NormFloat64, wide: true} }

func positive(shape ...int) arg {
	return arg{shape: shape, fill: func(r *rand.Rand) float64 { return 0.3 + r.Float64() }}
}

func inside(shape ...int) arg {
	return arg{shape: shape, fill: func(r *rand.Rand) float64 { return 1.8*r.Float64() - 0.9 }}
}

func above(shape ...int) arg {
	return arg{shape: shape, fill: func(r *rand.Rand) float64 { return 1.3 + r.Float64() }}
}

func variance(shape ...int) arg {
	a := positive(shape...)
	a.wide = true
	return a
}

func index(n int, shape ...int) arg {
	return arg{shape: shape, dt: dtype.I64, fill: func(r *rand.Rand) float64 { return float64(r.IntN(n)) }}
}

func seen(shape ...int) arg {
	return arg{shape: shape, dt: dtype.Bool, fill: func(r *rand.Rand) float64 { return float64(min(r.IntN(3), 1)) }}
}

// masking is an additive mask that hides about half of the keys, now and then all of a short row.
func masking(shape ...int) arg {
	return arg{shape: shape, fill: func(r *rand.Rand) float64 {
		if r.IntN(2) == 0 {
			return math.Inf(-1)
		}
		return r.NormFloat64()
	}}
}

func cases() []testCase {
	var all []testCase
	all = append(all, testCase{ir.BiasGrad, ir.Attr{}, ir.Params{}, []arg{num(3, 7)}})
	for _, act := range ir.Acts() {
		if act != ir.NoAct {
			all = append(all, testCase{ir.BiasGrad, ir.Attr{Act: act}, ir.Params{}, []arg{num(3, 7), num(3, 7)}})
		}
		all = append(all,
			testCase{ir.Linear, ir.Attr{Act: act, Flag: ir.Before}, ir.Params{}, []arg{num(3, 5), num(7, 5), num(7)}},
			testCase{ir.Linear, ir.Attr{Act: act}, ir.Params{}, []arg{num(2, 3, 5), num(7, 5), num(7)}},
			testCase{ir.Linear, ir.Attr{Act: act}, ir.Params{}, []arg{num(5), num(1, 5)}})
	}
	all = append(all, elementwiseCases()...)
	for code := ir.Code(1); int(code) < ir.Codes; code++ {
		if code.Row().OverAxes() && code.Fused() {
			all = append(all,
				testCase{code, ir.Attr{Axes: 0b101}, ir.Params{}, []arg{num(3, 4, 7)}},
				testCase{code, ir.Attr{Axes: 0b10, Keep: true}, ir.Params{}, []arg{num(3, 4)}},
				testCase{code, ir.Attr{}, ir.Params{}, []arg{num()}})
		}
	}
	for _, code := range []ir.Code{ir.Softmax, ir.LogSoftmax} {
		all = append(all,
			testCase{code, ir.Attr{}, ir.Params{}, []arg{num(3, 1, 7)}},
			testCase{code, ir.Attr{}, ir.Params{}, []arg{num(2, 0)}},
			testCase{code, ir.Attr{}, ir.Params{}, []arg{num()}})
	}
	for _, code := range []ir.Code{ir.Softmax, ir.LogSoftmax} {
		all = append(all, testCase{code, ir.Attr{}, ir.Params{}, []arg{masking(7, 3)}})
	}
	for _, code := range []ir.Code{ir.SoftmaxGrad, ir.LogSoftmaxGrad} {
		all = append(all,
			testCase{code, ir.Attr{}, ir.Params{}, []arg{num(3, 7), num(3, 7)}},
			testCase{code, ir.Attr{}, ir.Params{}, []arg{num(0, 3), num(0, 3)}})
	}
	all = append(all, lossCases()...)
	for _, a := range []ir.Attr{{Axis: 1}, {Axis: 0, Flag: ir.Descending}, {Axis: 1, Flag: ir.Descending, Dims: [ir.MaxRank]int32{2}}} {
		all = append(all, testCase{ir.Sort, a, ir.Params{}, []arg{num(3, 7)}}, testCase{ir.Sort, a, ir.Params{}, []arg{num(4, 8, 2)}})
		a = ir.Attr{Axis: 1, Flag: a.Flag, Out: ir.Dense(dtype.I64, 4, 5)}
		all = append(all, testCase{ir.LastAt, a, ir.Params{}, []arg{num(4, 9), index(5, 4, 9)}})
	}
	all = append(all, normCases()...)
	all = append(all, attentionCases()...)
	return append(all, updateCases()...)
}

// elementwiseCases follow from the rows that have a value.
func elementwiseCases() (all []testCase) {
	for code := ir.Code(1); int(code) < ir.Codes; code++ {
		row := code.Row()
		if row.Value == "" {
			continue
		}
		try := row.Try
		if row.Params == 0 {
			try = []ir.Params{{}}
		}
		n, _ := row.Operands()
		for _, p := range try {
			for _, shape := range [][]int{{3, 1, 7}, {2, 0}, {}} {
				tc := testCase{code, ir.Attr{}, p, nil}
				for i := range n {
					a := num(shape...)
					switch row.Domain[i] {
					case ir.Positives:
						a = positive(shape...)
					case ir.Inside:
						a = inside(shape...)
					case ir.Above:
						a = above(shape...)
					}
					tc.args = append(tc.args, a)
				}
				all = append(all, tc)
			}
		}
	}
	return all
}

func lossCases() (all []testCase) {
	for _, p := range []ir.Params{ir.Scalars(0, -100), ir.Scalars(0.1, 2)} {
		all = append(all,
			testCase{ir.CrossEntropy, ir.Attr{}, p, []arg{num(11, 5), index(5, 11)}},
			testCase{ir.CrossEntropy, ir.Attr{}, p, []arg{num(2, 3), {shape: []int{2}, dt: dtype.I64, fill: func(*rand.Rand) float64 { return math.Float64frombits(p.Value[1]) }}}},
			testCase{ir.CrossEntropyGrad, ir.Attr{}, p, []arg{num(11, 5), index(5, 11), stat(2, 11), stat(11)}},
			testCase{ir.CrossEntropy, ir.Attr{Flag: ir.Mean}, p, []arg{num(11, 5), index(5, 11)}},
			testCase{ir.CrossEntropyGrad, ir.Attr{Flag: ir.Mean}, p, []arg{num(11, 5), index(5, 11), stat(2, 11), stat(), variance()}},
			testCase{ir.LinearCrossEntropy, ir.Attr{}, p, []arg{num(11, 3), num(5, 3), index(5, 11)}})
		for _, grads := range []ir.Flag{0, ir.GradX, ir.GradW, ir.GradX | ir.GradW} {
			all = append(all, testCase{ir.LinearCrossEntropy, ir.Attr{Flag: ir.Mean | grads}, p, []arg{num(11, 3), num(5, 3), index(5, 11)}})
			all = append(all, testCase{ir.LinearCrossEntropy, ir.Attr{Flag: ir.Total | grads}, p, []arg{num(11, 3), num(5, 3), index(5, 11)}})
			if grads != 0 {
				all = append(all, testCase{ir.LinearCrossEntropyGrad, ir.Attr{Flag: grads}, p, []arg{num(11, 3), num(5, 3), index(5, 11), stat(11)}})
			}
		}
	}
	return all
}

func normCases() []testCase {
	eps := ir.Scalars(1e-3)
	none := ir.Params{}
	relu, planes := ir.Attr{Act: ir.ActReLU}, num(3, 2, 5)
	return []testCase{
		{ir.LayerNorm, ir.Attr{}, eps, []arg{num(3, 5)}},
		{ir.LayerNorm, ir.Attr{}, eps, []arg{num(3, 1), num(1)}},
		{ir.LayerNorm, ir.Attr{}, eps, []arg{num(3, 5), num(5), num(5)}},
		{ir.LayerNormGrad, ir.Attr{}, none, []arg{num(3, 5), num(3, 5), stat(3), variance(3)}},
		{ir.LayerNormGrad, ir.Attr{}, none, []arg{num(3, 5), num(3, 5), stat(3), variance(3), num(5)}},
		{ir.AddNorm, ir.Attr{}, eps, []arg{num(3, 5), num(5), num(5)}},
		{ir.AddNorm, ir.Attr{}, eps, []arg{num(3, 5), num(5), num(5), num(3, 5)}},
		{ir.AddNormGrad, ir.Attr{}, none, []arg{num(3, 5), num(3, 5), stat(3), variance(3), num(5)}},
		{ir.AddNormGrad, ir.Attr{}, none, []arg{num(3, 5), num(3, 5), stat(3), variance(3), num(5), num(3, 5)}},
		{ir.RMSNorm, ir.Attr{}, eps, []arg{num(3, 5)}},
		{ir.RMSNorm, ir.Attr{}, eps, []arg{num(3, 5), num(5)}},
		{ir.RMSNormGrad, ir.Attr{}, none, []arg{num(3, 5), num(3, 5), variance(3)}},
		{ir.RMSNormGrad, ir.Attr{}, none, []arg{num(3, 5), num(3, 5), variance(3), num(5)}},
		{ir.LSTMStep, ir.Attr{}, none, []arg{num(3, 20), num(3, 20), num(3, 5)}},
		{ir.LSTMStepGrad, ir.Attr{}, none, []arg{num(3, 5), num(3, 5), num(3, 20), num(3, 5), num(3, 5)}},
		{ir.BatchNorm, ir.Attr{}, eps, []arg{num(3, 2, 5), stat(2), stat(2)}},
		{ir.BatchNormGrad, ir.Attr{}, eps, []arg{num(3, 2, 5), num(3, 2, 5), stat(2), variance(2), stat(2)}},
		{ir.BatchNormEval, ir.Attr{}, eps, []arg{num(3, 2, 5), stat(2), variance(2), stat(2), stat(2)}},
		{ir.BatchNorm, relu, eps, []arg{planes, stat(2), stat(2)}},
		{ir.BatchNorm, relu, eps, []arg{planes, stat(2), stat(2), planes}},
		{ir.BatchNorm, ir.Attr{}, eps, []arg{planes, stat(2), stat(2), planes}},
		{ir.BatchNormGrad, ir.Attr{}, eps, []arg{planes, planes, stat(2), variance(2), stat(2), planes}},
		{ir.BatchNormGrad, ir.Attr{Flag: ir.Residual}, eps, []arg{planes, planes, stat(2), variance(2), stat(2), planes}},
		{ir.BatchNormEval, relu, eps, []arg{planes, stat(2), variance(2), stat(2), stat(2), planes}},
	}
}

func attentionCases() (all []testCase) {
	p := ir.Scalars(0.6)
	q, k, v := num(2, 1, 3, 4), num(2, 1, 2, 4), num(2, 1, 2, 5)
	g, lse := num(2, 1, 3, 5), stat(2, 1, 3)
	for _, causal := range []bool{false, true} {
		a := ir.Attr{Causal: causal}
		for _, masks := range [][]arg{nil, {seen(2, 1, 3, 2)}, {masking(2, 1, 3, 2)}} {
			all = append(all,
				testCase{ir.Attention, a, p, append([]arg{q, k, v}, masks...)},
				testCase{ir.AttentionGrad, a, p, append([]arg{g, q, k, v, g, lse}, masks...)})
		}
	}
	qkv, o, own := num(2, 3, 3, 2, 4), num(2, 3, 2, 4), stat(2, 2, 3)
	for _, causal := range []bool{false, true} {
		a := ir.Attr{Causal: causal}
		for _, masks := range [][]arg{nil, {seen(2, 2, 3, 3)}, {masking(2, 2, 3, 3)}} {
			all = append(all,
				testCase{ir.SelfAttention, a, p, append([]arg{qkv}, masks...)},
				testCase{ir.SelfAttentionGrad, a, p, append([]arg{o, qkv, o, own}, masks...)})
		}
	}
	return append(all, testCase{ir.Attention, ir.Attr{}, p, []arg{q, num(2, 1, 0, 4), num(2, 1, 0, 5)}})
}

func updateCases() []testCase {
	scale, w, s, one := stat(), num(3, 5), positive(3, 5), num()
	number := arg{dt: dtype.I64, fill: func(r *rand.Rand) float64 { return float64(1 + r.IntN(9)) }}
	sgd, adam := ir.Scalars(0.1, 0.9, 0.01, 2, 0), ir.Scalars(0.01, 0.9, 0.99, 1e-8, 0.1, 0.5, 0)
	places := 0
	table := arg{shape: []int{2 * ir.CodeValues}, dt: dtype.F64, fill: func(*rand.Rand) float64 { // rising in each half
		places++
		return float64(places%ir.CodeValues)/ir.CodeValues - float64(places%(2*ir.CodeValues)/ir.CodeValues)*0.5
	}}
	codes := func(shape ...int) arg {
		return arg{shape: shape, dt: dtype.U8, fill: func(r *rand.Rand) float64 { return float64(r.IntN(ir.CodeValues)) }}
	}
	code, top := codes(3, 5), arg{shape: []int{1}, dt: dtype.F32, fill: func(r *rand.Rand) float64 { return 0.3 + r.Float64() }}
	none := arg{shape: []int{0}, dt: dtype.F32, fill: (*rand.Rand).Float64}
	all := []testCase{
		{ir.SumSquares, ir.Attr{}, ir.Params{}, []arg{num(3, 5), num(), num(0, 2)}},
		{ir.CastAll, ir.Attr{DType: dtype.F64}, ir.Params{}, []arg{w, one, num(0, 2)}},
		{ir.TrackMoments, ir.Attr{}, ir.Scalars(0.1, 1.5), []arg{num(7), num(7), number, num(7), num(7)}},
		{ir.TrackMoments, ir.Attr{}, ir.Scalars(0.9, 1.5), []arg{num(7), num(7), number, num(7), num(7)}},
		{ir.SGD, ir.Attr{}, sgd, []arg{scale, w, w, one, one}},
		{ir.SGD, ir.Attr{}, skipping(sgd), []arg{scale, w, w, one, one}},
		{ir.AdamW, ir.Attr{}, adam, []arg{scale, w, w, w, s, number, one, one, one, positive(), number}},
		{ir.AdamW, ir.Attr{Flag: ir.Coupled}, adam, []arg{scale, w, w, w, s, number}},
		{ir.AdamW, ir.Attr{}, skipping(adam), []arg{scale, w, w, w, s, number}},
		{ir.Adam8bit, ir.Attr{}, adam, []arg{scale, table, w, w, code, code, top, top, number, num(0, 2), num(0, 2), codes(0, 2), codes(0, 2), none, none, number}},
		{ir.Adam8bit, ir.Attr{}, skipping(adam), []arg{scale, table, w, w, code, code, top, top, number}},
	}
	for _, f := range []ir.Flag{0, ir.Nesterov} {
		all = append(all, testCase{ir.SGD, ir.Attr{Flag: f | ir.Momentum}, sgd, []arg{scale, w, w, w, one, one, one}})
	}
	all = append(all, testCase{ir.SGD, ir.Attr{Flag: ir.Momentum}, skipping(sgd), []arg{scale, w, w, w}})
	return append(append(all, stepCases()...), ruleCases()...)
}

// ruleCases are of optimizers whose update is a rule: early and late, skipped, with both kinds of weight decay.
func ruleCases() (all []testCase) {
	for code := ir.Code(1); int(code) < ir.Codes; code++ {
		r := code.Row().Rule
		if r == nil {
			continue
		}
		params := func(coupled, decay, skip float64) ir.Params {
			values := []float64{0.1, 0.5, coupled, decay}
			for i := range r.Settings {
				values = append(values, []float64{0.9, 0.99, 1e-3, 0.8}[i])
			}
			return ir.Scalars(append(values, skip)...)
		}
		args := []arg{positive()}
		for _, shape := range [][]int{{3, 5}, {}} {
			for range 2 + len(r.State) {
				args = append(args, positive(shape...))
			}
			args = append(args, arg{dt: dtype.I64, fill: func(rng *rand.Rand) float64 { return float64(1 + rng.IntN(30)) }})
			for range r.Numbers {
				args = append(args, arg{fill: (*rand.Rand).Float64})
			}
		}
		for _, p := range []ir.Params{params(0, 0.1, 0), params(0.1, 0, 0), params(0, 0.1, 1)} {
			all = append(all, testCase{code: code, p: p, args: args})
		}
	}
	return all
}

// skipping sets the last parameter, an integer.
func skipping(p ir.Params) ir.Params {
	p.Value[p.N-1] = 1
	return p
}

// stepCases are of what an optimizer's step computes before its updates.
func stepCases() (all []testCase) {
	turns := arg{shape: []int{3}, dt: dtype.I64, fill: func(r *rand.Rand) float64 { return float64(r.IntN(2)) }}
	infinite := arg{shape: []int{2}, fill: func(*rand.Rand) float64 { return math.Inf(1) }}
	for _, clip := range []float64{0, 0.5, 1e9} {
		for _, g := range []arg{num(2, 3), infinite} {
			p := ir.Scalars(clip, 0.25, 0)
			all = append(all,
				testCase{ir.GradNorm, ir.Attr{}, p, []arg{turns, turns, g, num(), num(0)}},
				testCase{ir.GradNorm, ir.Attr{}, skipping(p), []arg{turns, turns, g, num()}})
		}
	}
	number := func(dt dtype.DType, v float64) arg { return arg{dt: dt, fill: func(*rand.Rand) float64 { return v }} }
	for _, scale := range []float64{1 << 16, math.Ldexp(1, 127), math.Ldexp(1, -127)} {
		for _, good := range []float64{-1, 0, 2} {
			for _, found := range []float64{0, 1} {
				p := ir.Scalars(2, 0.5, 0)
				p.Value[2] = 3
				all = append(all, testCase{ir.LossScale, ir.Attr{}, p, []arg{number(dtype.F32, scale), number(dtype.F64, 1/scale), number(dtype.I64, good),
					number(dtype.I64, 0), number(dtype.I64, found)}})
			}
		}
	}
	return all
}
