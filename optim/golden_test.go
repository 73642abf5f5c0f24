package optim

import (
	"fmt"
	"iter"
	"math"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/testutil/golden"
	"github.com/warpline-ml/warpline/tensor"
)

// freshEnv is a CPU of the test's own, on which what is released turns into NaN.
func freshEnv(t testing.TB) *tensor.Env {
	t.Helper()
	env, err := tensor.Fresh(testutil.Device())
	if err != nil {
		t.Fatal(err)
	}
	env.Device().Poison(true)
	return env
}

// named are parameters in a fixed order.
type named []struct {
	name string
	p    *tensor.Tensor
}

func (n named) all() iter.Seq2[string, *tensor.Tensor] {
	return func(yield func(string, *tensor.Tensor) bool) {
		for _, e := range n {
			if !yield(e.name, e.p) {
				return
			}
		}
	}
}

// give makes g the gradient of p: that of Σ p·g.
func give(p, g *tensor.Tensor) { p.Mul(g).Sum().Backward() }

// golden optimizer attributes; zero values are not given.
type optimizerAttrs struct {
	LR          float64
	Momentum    float64
	Nesterov    bool
	WeightDecay *float64 `json:"weight_decay"`
	Betas       [2]float64
	Eps         float64
}

func (a *optimizerAttrs) decay() float64 {
	switch {
	case a.WeightDecay == nil:
		return 0 // the default
	case *a.WeightDecay == 0:
		return -1
	}
	return *a.WeightDecay
}

func build(kind string, a *optimizerAttrs, rule Rule, params iter.Seq2[string, *tensor.Tensor]) Optimizer {
	adam := AdamWConfig{LR: a.LR, Beta1: a.Betas[0], Beta2: a.Betas[1], Eps: a.Eps, WeightDecay: a.decay(), Rule: rule}
	switch kind {
	case "Adam":
		return NewAdam(params, adam)
	case "AdamW":
		return NewAdamW(params, adam)
	}
	return NewSGD(params, SGDConfig{LR: a.LR, Momentum: a.Momentum, Nesterov: a.Nesterov, WeightDecay: a.decay(), Rule: rule})
}

// TestGoldenOptimizers takes PyTorch's ten steps on given gradients, and compares weights after each and state after all.
func TestGoldenOptimizers(t *testing.T) {
	var index struct {
		Steps int
		Cases []struct {
			Name, Optimizer, Decays string
			Attrs                   optimizerAttrs
		}
	}
	golden.JSON(t, "testdata/optimizers.json", &index)
	for _, c := range index.Cases {
		t.Run(c.Name, func(t *testing.T) {
			env := freshEnv(t)
			ref := golden.Tensors(t, env, "testdata/optimizers.safetensors")
			params := named{{"w", tensor.NewParam(ref["init.w"])}, {"b", tensor.NewParam(ref["init.b"])}}
			var rule Rule
			if c.Decays == "w" {
				rule = DecayMatricesOnly
			}
			opt := build(c.Optimizer, &c.Attrs, rule, params.all())
			for s := range index.Steps {
				for _, e := range params {
					give(e.p, ref["gradient."+e.name].Select(0, s))
				}
				opt.Step()
				for _, e := range params {
					golden.Close(t, fmt.Sprintf("%s after step %d", e.name, s+1), e.p, ref[c.Name+"/"+e.name].Select(0, s), 3e-6, 1e-6)
				}
			}
			compareState(t, ref, c.Name, opt)
		})
	}
}

func compareState(t *testing.T, ref map[string]*tensor.Tensor, name string, opt Optimizer) {
	n := 0
	for path, s := range opt.State() {
		golden.Close(t, path, s, ref[name+"/state."+path], 1e-5, 1e-7)
		n++
	}
	want := 0
	for path := range ref {
		if len(path) > len(name)+7 && path[:len(name)+7] == name+"/state." {
			want++
		}
	}
	if n != want {
		t.Errorf("%d state tensors, PyTorch has %d", n, want)
	}
}

// TestGoldenClip steps by SGD with rate 1 from 0, so that the weights are the clipped gradients, negated.
func TestGoldenClip(t *testing.T) {
	var index struct {
		Cases []struct {
			Name     string
			MaxNorm  float64 `json:"max_norm"`
			NormType any     `json:"norm_type"`
			Norm     float64
		}
	}
	golden.JSON(t, "testdata/clip.json", &index)
	checked := 0
	for _, c := range index.Cases {
		if c.NormType != 2.0 { // the only norm there is
			continue
		}
		checked++
		t.Run(c.Name, func(t *testing.T) {
			env := freshEnv(t)
			ref := golden.Tensors(t, env, "testdata/clip.safetensors")
			var params named
			for _, n := range []string{"a", "b", "c"} {
				p := tensor.NewParam(ref[c.Name+"/in."+n].ZerosLike())
				params = append(params, struct {
					name string
					p    *tensor.Tensor
				}{n, p})
				give(p, ref[c.Name+"/in."+n])
			}
			r := NewSGD(params.all(), SGDConfig{LR: 1, Clip: c.MaxNorm}).Step()
			testutil.Close(t, []float64{r.Norm()}, []float64{c.Norm}, 1e-6, 0)
			for _, e := range params {
				golden.Close(t, e.name, e.p.Neg(), ref[c.Name+"/out."+e.name], 1e-6, 1e-15)
			}
		})
	}
	if checked != 4 {
		t.Errorf("%d cases, want 4", checked)
	}
}

func TestGoldenSchedules(t *testing.T) {
	var index struct {
		Cases []struct {
			Name  string
			LR    float64
			Rates []float64
		}
	}
	golden.JSON(t, "testdata/schedules.json", &index)
	const lr = 0.01
	schedules := map[string]Schedule{
		"constant":                Constant(lr),
		"LinearLR":                Linear(0.1*lr, lr, 5),
		"CosineAnnealingLR":       Cosine(lr, 0.001, 20),
		"cosine closed form":      Cosine(lr, 0.001, 20),
		"nanoGPT":                 WarmupCosine(lr, 0.001, 5, 20),
		"StepLR":                  Stepwise(lr, 0.5, 7),
		"ExponentialLR":           Exponential(lr, 0.9),
		"nanoGPT without warm-up": WarmupCosine(lr, 0, 0, 20),
		"SequentialLR(LinearLR, CosineAnnealingLR)": Linear(0.1*lr, lr, 5).Then(5, Cosine(lr, 0, 15)),
	}
	if len(schedules) != len(index.Cases) {
		t.Errorf("%d schedules for %d cases", len(schedules), len(index.Cases))
	}
	for _, c := range index.Cases {
		s := schedules[c.Name]
		if s == nil || c.LR != lr {
			t.Errorf("no schedule for %s at %v", c.Name, c.LR)
			continue
		}
		got := make([]float64, len(c.Rates))
		for i := range got {
			got[i] = s(i)
		}
		testutil.Close(t, got, c.Rates, 1e-12, 1e-16)
	}
	if v := Warmup(4, Constant(1))(3); math.Abs(v-0.8) > 1e-15 {
		t.Errorf("fourth of four warm-up steps at %v", v)
	}
}
