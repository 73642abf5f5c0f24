package metric_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/tensor"
)

// TestMeters: figures by name are those of the meters by themselves, batch by batch.
func TestMeters(t *testing.T) {
	env := tensor.Best()
	logits := func(v ...float32) *tensor.Tensor { return tensor.From(env, v, len(v)/2, 2) }
	var m metric.Meters
	m.Classes(logits(2, 1, 0, 3), tensor.From(env, []int64{0, 1}, 2))
	m.Classes(logits(1, 4, 5, 2), tensor.From(env, []int64{0, 0}, 2))
	m.Numbers(tensor.From(env, []float32{1, 2, 4}, 3), tensor.From(env, []float32{1, 2, 3}, 3))
	m.Perplexity(env.Full(math.Log(4)), 10)
	m.Mean("kl", env.Full(2), 3)
	m.Mean("kl", env.Full(6), 1)
	got := m.Values()
	for name, want := range map[string]float64{
		"accuracy": 0.75, "precision": 0.75, "recall": 5. / 6, "f1": (0.8 + 2./3) / 2, "auc": 2.5 / 3, "mae": 1. / 3, "mse": 1. / 3, "r2": 0.5,
		"rmse": math.Sqrt(1. / 3), "perplexity": 4, "kl": 3,
	} {
		if v, ok := got[name]; !ok || math.Abs(v-want) > 1e-6 {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
	}
	if names := slices.Sorted(maps.Keys(got)); len(names) != 12 || !slices.Contains(names, "ece") {
		t.Errorf("figures %v", names)
	}
	if text := m.String(); text != "figures of 4 labels and 3 numbers" {
		t.Error(text)
	}
	var none *metric.Meters
	none.Classes(nil, nil)
	none.Numbers(nil, nil)
	none.Perplexity(nil, 0)
	none.Mean("", nil, 0)
	if len(none.Values()) != 0 || len(new(metric.Meters).Values()) != 0 {
		t.Error("figures of nothing")
	}
}

// TestMetersReset: what is measured after a Reset is what a new one measures, in the memory of the one before.
func TestMetersReset(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	measure := func(m *metric.Meters, turn uint64, v float32) map[string]float64 {
		e, scope := env.Scope(turn)
		defer scope.End()
		m.Classes(tensor.From(e, []float32{v, 1, 0, 3, 2, 9}, 3, 2), tensor.From(e, []int64{0, 1, 0}, 3))
		m.Numbers(tensor.From(e, []float32{1, v}, 2), tensor.From(e, []float32{v + 3, 2}, 2))
		m.Perplexity(e.Full(float64(v)), 10)
		m.Mean("kl", e.Full(float64(v)), 3)
		return m.Values()
	}
	var m metric.Meters
	measure(&m, 0, 7)
	used := env.Device().Memory().Used
	if m.Reset(); len(m.Values()) != 0 {
		t.Errorf("Reset leaves %v", m.Values())
	}
	got := measure(&m, 1, 2)
	if now := env.Device().Memory().Used; now != used {
		t.Errorf("%d bytes in use, and %d after a Reset and as many batches", used, now)
	}
	if want := measure(&metric.Meters{}, 2, 2); !maps.Equal(got, want) || len(got) != 12 {
		t.Errorf("figures %v after a Reset, %v of new meters", got, want)
	}
	other, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	m.Reset()
	env = other
	if elsewhere, want := measure(&m, 0, 2), measure(&metric.Meters{}, 1, 2); !maps.Equal(elsewhere, want) {
		t.Errorf("figures %v after a Reset on another device, %v of new meters", elsewhere, want)
	}
	m.Reset()
	if m.Classes(tensor.From(env, []float32{1, 2, 3}, 1, 3), tensor.From(env, []int64{2}, 1)); m.Values()["accuracy"] != 1 {
		t.Errorf("figures %v of three classes behind a Reset of two", m.Values())
	}
	new(metric.Meters).Reset()
	(*metric.Meters)(nil).Reset()
}

// TestMetersOfAreas: labels of pixels give the mean IoU and no ranking; many classes the share among the five largest; more than a
// confusion matrix is kept of, no more than that.
func TestMetersOfAreas(t *testing.T) {
	env := tensor.Best()
	var m metric.Meters
	m.Classes(env.Arange(24).Reshape(1, 2, 2, 6), tensor.From(env, []int64{5, 5, 5, 0}, 1, 2, 2))
	got := m.Values()
	if got["accuracy"] != 0.75 || got["top5"] != 0.75 || got["iou"] != 0.375 {
		t.Errorf("figures %v", got)
	}
	if _, ranked := got["auc"]; ranked {
		t.Errorf("a ranking of areas: %v", got)
	}
	var many metric.Meters
	many.Classes(env.Arange(1001).Reshape(1, 1001), tensor.From(env, []int64{999}, 1))
	if got := many.Values(); len(got) != 2 || got["top5"] != 1 || got["accuracy"] != 0 {
		t.Errorf("figures %v", got)
	}
}
