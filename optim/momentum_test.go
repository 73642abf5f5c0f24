package optim

import (
	"math"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// TestSetMomentum: steps with a momentum that changes are those of the formula in float64, whose correction has the momentum of the step.
func TestSetMomentum(t *testing.T) {
	course := []float64{0.95, 0.9, 0.85, 0, 0.9, 0.95}
	for name, c := range map[string]struct {
		make func(w *tensor.Tensor) interface {
			Optimizer
			SetMomentum(m float64)
		}
		step func(n int, m, g, w float64, keep *[2]float64) float64
	}{
		"SGD": {func(w *tensor.Tensor) interface {
			Optimizer
			SetMomentum(m float64)
		} {
			return NewSGD(only(w), SGDConfig{LR: 0.1, Momentum: 0.5})
		}, func(_ int, m, g, w float64, keep *[2]float64) float64 {
			keep[0] = m*keep[0] + g
			return w - 0.1*keep[0]
		}},
		"Adam": {func(w *tensor.Tensor) interface {
			Optimizer
			SetMomentum(m float64)
		} {
			return NewAdam(only(w), AdamWConfig{LR: 0.1})
		}, adamed},
		"AdamW, AMSGrad": {func(w *tensor.Tensor) interface {
			Optimizer
			SetMomentum(m float64)
		} {
			return NewAdamW(only(w), AdamWConfig{LR: 0.1, AMSGrad: true, WeightDecay: -1})
		}, adamed},
	} {
		t.Run(name, func(t *testing.T) {
			env := freshEnv(t)
			w := nn.NewParam(env.Ones(1))
			opt, want, keep := c.make(w), 1., [2]float64{}
			for n, m := range course {
				opt.SetMomentum(m)
				w.Square().Sum().Backward()
				opt.Step()
				want = c.step(n+1, m, 2*want, want, &keep)
			}
			testutil.Close(t, w.Floats(), []float64{want}, 1e-5, 1e-6)
		})
	}
}

// adamed is a step of Adam, and of AMSGrad where the second moment only grows, as it does here.
func adamed(n int, m, g, w float64, keep *[2]float64) float64 {
	keep[0] = m*keep[0] + (1-m)*g
	keep[1] = 0.999*keep[1] + 0.001*g*g
	return w - 0.1/(1-math.Pow(m, float64(n)))*keep[0]/(math.Sqrt(keep[1]/(1-math.Pow(0.999, float64(n))))+1e-8)
}

// only is one parameter.
func only(w *tensor.Tensor) func(yield func(string, *tensor.Tensor) bool) {
	return func(yield func(string, *tensor.Tensor) bool) { yield("w", w) }
}

// TestSetMomentumRefuses: what would be forgotten is an error.
func TestSetMomentumRefuses(t *testing.T) {
	env := freshEnv(t)
	w := nn.NewParam(env.Ones(1))
	plain, captured := NewSGD(only(w), SGDConfig{}), NewAdamW(only(w), AdamWConfig{})
	step := tensor.Capture(env, func(x *tensor.Tensor) *tensor.Tensor {
		loss := w.Mul(x).Sum()
		loss.Backward()
		captured.Step()
		return loss
	})
	defer step.Close()
	for range 3 {
		e, scope := env.Scope()
		step.Run(e.Ones(1))
		scope.End()
	}
	captured.SetMomentum(0.9)
	for want, f := range map[string]func(){
		"keeps no momentum":              func() { plain.SetMomentum(0.9) },
		"Momentum is 1":                  func() { captured.SetMomentum(1) },
		"captured step has the momentum": func() { captured.SetMomentum(0.5) },
	} {
		_, err := env.Try(func(*tensor.Env) *tensor.Tensor { f(); return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
