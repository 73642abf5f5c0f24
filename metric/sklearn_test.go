package metric

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/testutil/golden"
	"github.com/warpline-ml/warpline/tensor"
)

// reference is what bench/pytorch/metric_reference.py wrote.
type reference struct {
	Classification []struct {
		Classes             int
		Labels, Predictions []int64
		Accuracy            float64
		Counts              [][]int
		Averages            map[Average]Averages
		Each                map[string][]*float64
	}
	Areas []struct {
		Classes int
		Labels  []int64
		Scores  []float64
		Areas   map[string]float64
	}
	Regression []struct {
		Predictions, Targets []float64
		MAE, MSE, RMSE       float64
		R2                   *float64
	}
	Probabilities struct {
		Classes       int
		Labels        []int64
		Probabilities []float64
		LogLoss       float64
		TopK          []float64
		Calibration   float64
	}
}

func sklearn(t *testing.T) (r reference) {
	golden.JSON(t, "testdata/sklearn.json", &r)
	return r
}

func orNaN(p *float64) float64 {
	if p == nil {
		return math.NaN()
	}
	return *p
}

// same compares figures, NaN with NaN.
func same(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.IsNaN(want) != math.IsNaN(got) || math.Abs(got-want) > 1e-9*math.Max(1, math.Abs(want)) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// halves counts the rows in two metrics of batches of 7, to be merged.
func halves(n int, add func(part, lo, hi int)) {
	for lo := 0; lo < n; lo += 7 {
		add(lo/7%2, lo, min(lo+7, n))
	}
}

func TestConfusionAsScikitLearn(t *testing.T) {
	env := freshEnv(t)
	for k, c := range sklearn(t).Classification {
		parts := [2]*Confusion{NewConfusion(env, c.Classes), NewConfusion(env, c.Classes)}
		halves(len(c.Labels), func(part, lo, hi int) {
			x := make([]float32, (hi-lo)*c.Classes)
			for i, p := range c.Predictions[lo:hi] {
				x[i*c.Classes+int(p)] = 1
			}
			parts[part].Add(tensor.From(env, x, hi-lo, c.Classes), tensor.From(env, c.Labels[lo:hi], hi-lo))
		})
		m := parts[0]
		m.Merge(parts[1])
		if fmt.Sprint(m.Counts()) != fmt.Sprint(c.Counts) {
			t.Errorf("case %d: %v, want %v", k, m.Counts(), c.Counts)
		}
		same(t, "accuracy", m.Accuracy(), c.Accuracy)
		for a, want := range c.Averages {
			got := m.Average(a)
			what := fmt.Sprintf("case %d, %s ", k, a)
			same(t, what+"precision", got.Precision, want.Precision)
			same(t, what+"recall", got.Recall, want.Recall)
			same(t, what+"F1", got.F1, want.F1)
			same(t, what+"IoU", got.IoU, want.IoU)
		}
		for name, got := range map[string][]float64{"Precision": m.Precision(), "Recall": m.Recall(), "F1": m.F1()} {
			for i, want := range c.Each[name] {
				same(t, fmt.Sprintf("case %d, %s of class %d", k, name, i), got[i], orNaN(want))
			}
		}
		for i, iou := range m.IoU() { // F = 2J/(1+J)
			same(t, "IoU from F1", 2*iou/(1+iou), m.F1()[i])
		}
	}
	empty := NewConfusion(env, 3)
	for _, a := range []Average{Micro, Macro, Weighted} {
		if got := empty.Average(a); !math.IsNaN(got.F1 + got.IoU) {
			t.Errorf("%s of nothing: %v", a, got)
		}
	}
}

func TestROCAsScikitLearn(t *testing.T) {
	env := freshEnv(t)
	for k, c := range sklearn(t).Areas {
		var parts [2]ROC
		halves(len(c.Labels), func(part, lo, hi int) {
			s := tensor.From(env, c.Scores[lo*c.Classes:hi*c.Classes], hi-lo, c.Classes)
			if c.Classes == 1 {
				s = s.Reshape(hi - lo)
			}
			parts[part].Add(s, tensor.From(env, c.Labels[lo:hi], hi-lo))
		})
		r := &parts[0]
		r.Merge(&parts[1])
		for how, want := range c.Areas {
			got := map[string]func() float64{
				"binary":    func() float64 { return r.AUC(Macro) },
				"ovr macro": func() float64 { return r.AUC(Macro) }, "ovr weighted": func() float64 { return r.AUC(Weighted) },
				"ovo macro": func() float64 { return r.AUCPairs(Macro) }, "ovo weighted": func() float64 { return r.AUCPairs(Weighted) },
			}[how]()
			same(t, fmt.Sprintf("case %d, %s", k, how), got, want)
		}
	}
	var one ROC
	one.Add(env.Rand(4), env.Ones(4))
	if got := one.AUC(Macro); !math.IsNaN(got) {
		t.Errorf("the area of one class is %v", got)
	}
	var odd ROC
	odd.Add(tensor.From(env, []float32{1, float32(math.NaN())}, 2), tensor.From(env, []int64{0, 1}, 2))
	if got := odd.AUC(Macro); !math.IsNaN(got) {
		t.Errorf("the area of NaN is %v", got)
	}
}

func TestRegressionAsScikitLearn(t *testing.T) {
	env := freshEnv(t)
	for k, c := range sklearn(t).Regression {
		var parts [2]Regression
		halves(len(c.Targets), func(part, lo, hi int) {
			parts[part].Add(tensor.From(env, c.Predictions[lo:hi], hi-lo), tensor.From(env, c.Targets[lo:hi], hi-lo))
		})
		r := &parts[0]
		r.Merge(&parts[1])
		got, what := r.Value(), fmt.Sprintf("case %d ", k)
		same(t, what+"MAE", got.MAE, c.MAE)
		same(t, what+"MSE", got.MSE, c.MSE)
		same(t, what+"RMSE", got.RMSE, c.RMSE)
		same(t, what+"R2", got.R2, orNaN(c.R2))
		var all Regression
		all.Merge(r)
		if all.Merge(&Regression{}); all.Value() != got && !math.IsNaN(got.R2) {
			t.Errorf("case %d: merged into none it is %v, was %v", k, all.Value(), got)
		}
	}
	if e := (&Regression{}).Value(); !math.IsNaN(e.MAE) {
		t.Errorf("of nothing: %v", e)
	}
}

func TestProbabilitiesAsScikitLearn(t *testing.T) {
	env := freshEnv(t)
	c := sklearn(t).Probabilities
	n := len(c.Labels)
	batch := func(lo, hi int) (p, y *tensor.Tensor) {
		return tensor.From(env, c.Probabilities[lo*c.Classes:hi*c.Classes], hi-lo, c.Classes), tensor.From(env, c.Labels[lo:hi], hi-lo)
	}
	for k, want := range c.TopK {
		var parts [2]Mean
		halves(n, func(part, lo, hi int) {
			p, y := batch(lo, hi)
			parts[part].AddSum(CorrectTopK(p, y, k+1), hi-lo)
		})
		parts[0].Merge(&parts[1])
		same(t, fmt.Sprintf("top %d", k+1), parts[0].Value(), want)
	}
	var perplexity [2]Perplexity
	calibration := [2]*Calibration{NewCalibration(env, 15), NewCalibration(env, 15)}
	halves(n, func(part, lo, hi int) {
		p, y := batch(lo, hi)
		perplexity[part].Add(p.Gather(-1, y.Unsqueeze(-1)).Log().Neg().Mean(), hi-lo)
		calibration[part].Add(p, y)
	})
	perplexity[0].Merge(&perplexity[1].Mean)
	same(t, "perplexity", perplexity[0].Value(), math.Exp(c.LogLoss))
	calibration[0].Merge(calibration[1])
	same(t, "calibration error", calibration[0].Error(), c.Calibration)
	samples := 0
	for _, b := range calibration[0].Bins() {
		samples += b.Samples
	}
	if samples != n || !math.IsNaN(NewCalibration(env, 3).Error()) {
		t.Errorf("%d samples of %d", samples, n)
	}
}

// TestTopKOfTies: top 1 is Correct also of equal logits, and NaN is never right.
func TestTopKOfTies(t *testing.T) {
	env := freshEnv(t)
	nan := float32(math.NaN())
	x := tensor.From(env, []float32{1, 1, 0, 0, 2, 2, 3, 3, 3, nan, 0, 1}, 4, 3)
	for label := range int64(3) {
		y := env.FullOf(dtype.I64, float64(label), 4)
		got, want := CorrectTopK(x.Slice(0, 0, 3), y.Slice(0, 0, 3), 1).Item(), Correct(x.Slice(0, 0, 3), y.Slice(0, 0, 3)).Item()
		if got != want {
			t.Errorf("label %d: %v right among the first, %v by Correct", label, got, want)
		}
	}
	if got := CorrectTopK(x.Slice(0, 3, 4), tensor.From(env, []int64{0}, 1), 2).Item(); got != 0 {
		t.Error("a logit that is NaN is among the two largest")
	}
}

func TestBadUse(t *testing.T) {
	env := freshEnv(t)
	x, y := env.Rand(4, 3), env.RandInt(0, 3, 4)
	for want, f := range map[string]func(){
		"no average":                 func() { NewConfusion(env, 2).Average("mean") },
		"3 classes and 2":            func() { NewConfusion(env, 3).Merge(NewConfusion(env, 2)) },
		"the 4 largest of 3":         func() { CorrectTopK(x, y, 4) },
		"the 0 largest of 3":         func() { CorrectTopK(x, y, 0) },
		"predictions of shape":       func() { new(Regression).Add(x, y) },
		"0 bins":                     func() { NewCalibration(env, 0) },
		"2 bins and 3":               func() { NewCalibration(env, 2).Merge(NewCalibration(env, 3)) },
		"label 7":                    func() { new(ROC).Add(x, env.FullOf(dtype.I64, 7, 4)) },
		"scores of shape":            func() { new(ROC).Add(x, x) },
		"average \"micro\" of areas": func() { r := new(ROC); r.Add(x, y); r.AUC(Micro) },
	} {
		_, err := env.Try(func(*tensor.Env) *tensor.Tensor {
			f()
			return nil
		})
		if e := (*tensor.Error)(nil); !errors.As(err, &e) || !strings.Contains(e.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestMetricsOutliveBatches: figures are kept when the batch that they came from is released.
func TestMetricsOutliveBatches(t *testing.T) {
	env := freshEnv(t)
	var r Regression
	c := NewCalibration(env, 4)
	for i := range 3 {
		e, scope := env.Scope(uint64(i))
		p := e.Rand(5, 2).Softmax(-1)
		r.Add(p.Select(1, 0), p.Select(1, 0).AddScalar(2))
		c.Add(p, e.RandInt(0, 2, 5))
		scope.End()
	}
	testutil.Close(t, []float64{r.Value().MAE}, []float64{2}, 1e-6, 0)
	if got := c.Error(); !(got >= 0 && got <= 1) {
		t.Errorf("calibration error %v", got)
	}
}
