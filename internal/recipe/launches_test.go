package recipe_test

import (
	"testing"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/recipe"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// stated are the kernels of a step of optimizers that need more than those of the norm and of an update for each set of rates: a table
// of numbers (nadam), numbers of the optimizer's own (asgd, schedulefree), two kinds of state (adam8bit), and reductions and
// products, for each shape of parameters, of which there are two of matrices and one of vectors.
var stated = map[string]int64{"nadam": 5, "asgd": 12, "schedulefree": 26, "adam8bit": 5, "muon": 2*38 + 4, "adafactor": 3*52 + 2}

// composed are optimizers that are written in operations, which launch some for each parameter.
var composed = map[string]bool{
	// of those of package optim none is
}

// TestLaunchesOfAStep: a step of any optimizer launches as many kernels for a deep model as for one of a quarter of its layers, and
// as many as are stated, or 4 at most.
func TestLaunchesOfAStep(t *testing.T) {
	for _, o := range recipe.Optimizers {
		if composed[o.Name] {
			continue
		}
		shallow, deep := launchesOfAStep(t, &o, 2), launchesOfAStep(t, &o, 8)
		want, ok := stated[o.Name]
		if !ok {
			want = min(max(deep, 1), 4)
		}
		if deep != shallow || deep != want {
			t.Errorf("%s: a step launches %d kernels for 2 layers and %d for 8; want %d", o.Name, shallow, deep, want)
		}
	}
}

// launchesOfAStep are the kernels of a step of a model with so many layers.
func launchesOfAStep(t *testing.T, o *recipe.Optimizer, layers int) int64 {
	t.Helper()
	env, err := tensor.Fresh("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	m := nn.Sequential{nn.NewLinear(env, 9, 70)}
	for range layers {
		m = append(m, nn.NewLinear(env, 70, 70), nn.NewLayerNorm(env, 70))
	}
	opt := o.Make(nn.Params(m), recipe.Step{LR: 0.01, WeightDecay: 0.1})
	var work device.Work
	for range 3 { // the first makes state
		e, scope := env.Scope()
		for _, p := range nn.Params(m) {
			p.In(e).Sum().Backward()
		}
		var tally device.Tally
		stop := env.Device().Observe(tally.Observe, device.KindLaunch, device.KindFill)
		opt.Step()
		stop()
		work, _ = tally.Work()
		scope.End()
	}
	return work.Kernels
}
