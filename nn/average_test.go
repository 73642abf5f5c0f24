package nn

import (
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

// TestAverageBy: a share of the program's own moves the mean by so much, buffers are the model's, and a mean of a layer has names of its
// own.
func TestAverageBy(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	norm := NewBatchNorm(env, 2)
	mean := NewEMA(norm, 0.9)
	norm.Weight.FillInPlace(3)
	norm.RunningMean.FillInPlace(5)
	for _, c := range []struct{ share, want float64 }{{0.25, 1.5}, {0, 1.5}, {1, 3}} {
		mean.UpdateBy(c.share)
		testutil.Close(t, mean.Model.Weight.Floats(), []float64{c.want, c.want}, 1e-6, 0)
		testutil.Close(t, mean.Model.RunningMean.Floats(), []float64{5, 5}, 0, 0)
	}
	names := map[string]bool{}
	for path := range State(mean) {
		names[path] = true
	}
	if !names["module.weight"] || !names["n_averaged"] || len(names) != 6 {
		t.Errorf("names %v", names)
	}
	for _, share := range []float64{-0.1, 1.1} {
		if _, err := env.Try(func(*tensor.Env) *tensor.Tensor { mean.UpdateBy(share); return nil }); err == nil {
			t.Errorf("a share of %v", share)
		}
	}
}

// TestFunc: a function stands between layers, may keep what it is given, and has a row in the summary.
func TestFunc(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	var kept *tensor.Tensor
	m := Sequential{Tanh{}, Func(func(x *tensor.Tensor) *tensor.Tensor { kept = x.Scale(2); return kept.Scale(2) }), Func((*tensor.Tensor).Exp)}
	y := m.Forward(env.Zeros(2, 3))
	testutil.Close(t, append(y.Floats(), kept.Floats()...), []float64{1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0}, 0, 0)
	if rows := Summary(m, 2, 3).Rows; len(rows) < 3 || rows[len(rows)-1].Kind != "Func" {
		t.Errorf("%+v", rows)
	}
	Clone(m).Forward(env.Zeros(1))
}
