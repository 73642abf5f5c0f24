package recipe_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/recipe"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// batch is what a step learns from.
type batch struct {
	Env  *tensor.Env
	X, Y *tensor.Tensor
}

// trained is what some steps leave of a model whose first layer is used twice: weights, state and counts of updates after each
// step, and the norms of the gradients. One layer is frozen in a step between.
func trained(t *testing.T, o *recipe.Optimizer, device string, policy dtype.DType, captured, inward bool) (weights, norms []float64) {
	t.Helper()
	env, err := tensor.Fresh(device)
	if err != nil {
		t.Fatal(err)
	}
	env = env.Seed(5)
	first, last := nn.NewLinear(env, 6, 6), nn.NewLinear(env, 6, 3)
	m := nn.Sequential{first, nn.Tanh{}, nn.NewLinear(env, 6, 6), first, nn.NewLayerNorm(env, 6), last}
	values := recipe.Values{}
	for _, s := range o.Settings {
		values[s.Name] = others(s)[1]
	}
	opt := o.Make(nn.Params(m), recipe.Step{LR: 0.03, WeightDecay: 0.1, Values: values})
	if inward {
		optim.StepInBackward(opt)
	}
	var report optim.Report
	step := func(b batch) *tensor.Tensor {
		loss := nn.MSE(m.Forward(b.X), b.Y)
		loss.Backward()
		report = opt.Step()
		return loss
	}
	run := step
	if captured {
		run = tensor.Capture(env, step).Run
	}
	for i := range 6 {
		e, scope := env.Autocast(policy).Scope(uint64(i))
		nn.Freeze(last, i == 3)
		opt.SetLR(0.03 / float64(1+i))
		run(batch{e, e.Randn(4, 6), e.Randn(4, 3)})
		norms = append(norms, report.Norm())
		for _, p := range nn.Params(m) {
			if p.Grad() != nil {
				t.Errorf("a gradient of %s is left", p.Path())
			}
			weights = append(weights, p.Floats()...)
		}
		for _, s := range opt.State() {
			weights = append(weights, s.Floats()...)
		}
		weights = append(weights, float64(len(opt.Counters())))
		for _, name := range slices.Sorted(func(yield func(string) bool) {
			for name := range opt.Counters() {
				if !yield(name) {
					return
				}
			}
		}) {
			weights = append(weights, float64(opt.Counters()[name]))
		}
		scope.End()
	}
	return weights, norms
}

// TestStepInBackward: every optimizer that applies gradients as they come leaves what it leaves otherwise, to the bit, and tells
// the norm of all gradients.
func TestStepInBackward(t *testing.T) {
	spread := testutil.NewSpread(t, testutil.Seed(t), 4)
	for i := range recipe.Optimizers {
		o := &recipe.Optimizers[i]
		for _, device := range []string{"cpu", "sim:0"} {
			for _, policy := range []dtype.DType{dtype.F32, dtype.BF16} {
				for _, captured := range []bool{false, true} {
					name := fmt.Sprint(o.Name, device, policy, captured)
					if !spread.Takes(name) {
						continue
					}
					t.Run(name, func(t *testing.T) {
						want, norms := trained(t, o, device, policy, captured, false)
						got, sums := trained(t, o, device, policy, captured, true)
						if !slices.Equal(got, want) {
							t.Errorf("it leaves %v, otherwise %v", got, want)
						}
						for i, n := range norms {
							if n == 0 || math.Abs(sums[i]-n) > 1e-6*n {
								t.Errorf("step %d: norm %v, otherwise %v", i, sums[i], n)
							}
						}
					})
				}
			}
		}
	}
}
