package tensor_test

import (
	"math"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

func TestRandPerm(t *testing.T) {
	env := open(t).Seed(5)
	for _, n := range []int{0, 1, 2, 257} {
		v := env.RandPerm(n).Floats()
		slices.Sort(v)
		for i, x := range v {
			if x != float64(i) {
				t.Fatalf("%d numbers have no %d: %v", n, i, v)
			}
		}
		if len(v) != n {
			t.Errorf("%d numbers of %d", len(v), n)
		}
	}
	first := make([]float64, 4)
	for range 400 {
		first[int(env.RandPerm(4).Floats()[0])]++
	}
	shares(t, "the first of four", first, []float64{1, 1, 1, 1})
}

// shares compares counts with weights: within five standard deviations.
func shares(t *testing.T, what string, counts, weights []float64) {
	t.Helper()
	n, sum := 0.0, 0.0
	for i := range counts {
		n, sum = n+counts[i], sum+weights[i]
	}
	for i, w := range weights {
		p := w / sum
		if d := math.Abs(counts[i] - n*p); d > 5*math.Sqrt(n*p*(1-p)) {
			t.Errorf("%s: %v, want shares of %v", what, counts, weights)
			return
		}
	}
}

func TestBernoulli(t *testing.T) {
	env := open(t).Seed(3)
	p := tensor.From(env, []float32{0, 0.2, 0.5, 1}, 4)
	draws := p.Expand(4000, 4).Bernoulli()
	if draws.DType() != dtype.F32 || draws.Recorded() {
		t.Errorf("%s", draws.Info())
	}
	counts := draws.Sum(0).Floats()
	if counts[0] != 0 || counts[3] != 4000 {
		t.Errorf("of probabilities 0 and 1: %v", counts)
	}
	shares(t, "ones of 0.2", []float64{counts[1], 4000 - counts[1]}, []float64{0.2, 0.8})
	shares(t, "ones of 0.5", []float64{counts[2], 4000 - counts[2]}, []float64{0.5, 0.5})
	fails(t, env, func() { env.Arange(3).Bernoulli() }, "convert with Cast")
}

func TestMultinomial(t *testing.T) {
	env := open(t).Seed(11)
	weights := []float64{0, 3, 1, 0, 6, 0}
	w := tensor.From(env, weights, 6)
	shares(t, "with replacement", w.Multinomial(5000, true).BinCount(nil, 6).Floats(), weights)

	rows := w.Expand(3000, 6).Multinomial(3, false)
	if !slices.Equal(rows.Shape(), []int{3000, 3}) || rows.DType() != dtype.I64 {
		t.Fatal(rows.Info())
	}
	sorted, _ := rows.Sort(1, false)
	equal(t, "without replacement, all three", sorted.Eq(tensor.From(env, []int64{1, 2, 4}, 3)).All(), 1)
	shares(t, "the first drawn", rows.Select(1, 0).BinCount(nil, 6).Floats(), weights)
	// Of 3:1:6 the second is the first class after the third with 6/10·3/4, and after the second with 1/10·3/9.
	shares(t, "the second drawn", rows.Select(1, 1).BinCount(nil, 6).Floats(),
		[]float64{0, 0.6*3/4 + 0.1*3/9, 0.3*1/7 + 0.6*1/4, 0, 0.3*6/7 + 0.1*6/9, 0})
	if got := env.Zeros(0, 4).Cast(dtype.F32).Multinomial(2, true).Shape(); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("of no rows: %v", got)
	}
	of := func(v ...float64) *tensor.Tensor { return tensor.From(env, v, len(v)) }
	for name, c := range map[string]struct {
		call func()
		say  string
	}{
		"too many":     {func() { w.Multinomial(7, false) }, "at most one of each"},
		"none":         {func() { w.Multinomial(0, true) }, "at least 1"},
		"too few":      {func() { w.Multinomial(4, false) }, "as many are above 0"},
		"all 0":        {func() { of(0, 0).Multinomial(1, true) }, "as many are above 0"},
		"negative":     {func() { of(1, -1).Multinomial(1, true) }, "finite and not negative"},
		"not a number": {func() { of(1, math.NaN()).Multinomial(1, true) }, "finite and not negative"},
		"infinite":     {func() { of(1, math.Inf(1)).Multinomial(1, true) }, "finite and not negative"},
		"integers":     {func() { env.Arange(3).Multinomial(1, true) }, "floating weights"},
	} {
		t.Run(name, func(t *testing.T) { fails(t, env, c.call, c.say) })
	}
}
