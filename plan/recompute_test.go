package plan_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/plan"
	"github.com/warpline-ml/warpline/tensor"
)

// thick is a block that keeps what its width says.
type thick struct{ Up, Down *nn.Linear }

func (b *thick) Forward(x *tensor.Tensor) *tensor.Tensor {
	return x.Add(b.Down.Forward(b.Up.Forward(x).Sigmoid().Square()))
}

// uneven makes two steps of a model whose blocks differ.
func uneven(env *tensor.Env, begin func()) error { return unevenSteps(env, 2, begin) }

func unevenSteps(env *tensor.Env, n int, begin func()) error {
	var model nn.Sequential
	for _, n := range []int{40, 400, 120, 240} {
		model = append(model, &thick{nn.NewLinear(env, 32, n), nn.NewLinear(env, n, 32)})
	}
	opt := optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 0.1})
	for step := range n {
		if step == 1 {
			begin()
		}
		e, s := env.Scope(uint64(step))
		model.Forward(e.Rand(500, 32)).Square().Mean().Backward()
		opt.Step()
		s.End()
	}
	return nil
}

// measured is what a choice of parts needs and takes, by a run of its own: on a card by the step's time of a dry run.
func measured(t *testing.T, d *tensor.Device, paths ...string) (peak int64, cost float64) {
	t.Helper()
	env, err := d.Rehearse()
	if err != nil {
		t.Fatal(err)
	}
	counts := false
	if d.Name() != "cpu" {
		r, err := plan.DryRun("a100-80", func(env *tensor.Env) error {
			return unevenSteps(env.Recompute(tensor.PartsAt(paths...)), 4, func() {})
		})
		if err != nil {
			t.Fatal(err)
		}
		cost = r.Step.Total
	}
	defer env.Device().Observe(func(e *device.Event) {
		if counts && e.Step == 0 && d.Name() == "cpu" {
			cost += max(float64(e.Kernel.FLOPs)/10, float64(e.Kernel.Bytes))
		}
	}, device.KindLaunch, device.KindFill)()
	if err := uneven(env.Recompute(tensor.PartsAt(paths...)), func() { counts = true }); err != nil {
		t.Fatal(err)
	}
	return env.Device().Memory().Peak, cost
}

// TestRecomputeChooses compares choices with all that there are: the fewest bytes within a slowdown, to a twentieth, and the least
// time within so many bytes.
func TestRecomputeChooses(t *testing.T) {
	for _, name := range []string{"cpu", "null:a100-80x3:1"} {
		env, err := tensor.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		d := env.Device()
		var peaks []int64
		var slower []float64
		_, base := measured(t, d)
		for set := range 16 {
			var paths []string
			for i := range 4 {
				if set>>i&1 == 1 {
					paths = append(paths, fmt.Sprint(i))
				}
			}
			peak, cost := measured(t, d, paths...)
			peaks, slower = append(peaks, peak), append(slower, cost/base)
		}
		for _, limit := range []float64{1, 1.02, 1.1, 1.2, 1.5} {
			r, err := plan.Recompute(d, plan.Budget{Slowdown: limit}, uneven)
			if err != nil {
				t.Fatal(err)
			}
			fewest := peaks[0]
			for i, p := range peaks {
				if slower[i] <= limit {
					fewest = min(fewest, p)
				}
			}
			if r.Slowdown > limit || r.Without != peaks[0] || float64(r.Peak) > 1.05*float64(fewest) {
				t.Errorf("%s, slowdown %v: %+v, the fewest bytes are %d of %d", name, limit, r, fewest, peaks[0])
			}
			if peak, cost := measured(t, d, r.Parts...); peak != r.Peak || math.Abs(cost/base-r.Slowdown) > 1e-9 {
				t.Errorf("%s: %+v has a peak of %d and takes %v", name, r, peak, cost/base)
			}
		}
		least := peaks[0]
		for _, p := range peaks {
			least = min(least, p)
		}
		for _, bytes := range []int64{peaks[0], (peaks[0] + least) / 2, least} {
			r, err := plan.Recompute(d, plan.Budget{Bytes: bytes}, uneven)
			if err != nil {
				t.Fatal(err)
			}
			quickest := 100.0
			for i, p := range peaks {
				if p <= bytes {
					quickest = min(quickest, slower[i])
				}
			}
			if r.Peak > bytes || r.Slowdown > 1.05*quickest {
				t.Errorf("%s, %d bytes: %+v, the quickest takes %v", name, bytes, r, quickest)
			}
		}
		var tight *plan.TightError
		if _, err := plan.Recompute(d, plan.Budget{Bytes: 1000}, uneven); !errors.As(err, &tight) || tight.Least != least {
			t.Errorf("%s: %v, the least is %d", name, err, least)
		}
		wrong := errors.New("the program's own")
		if _, err := plan.Recompute(d, plan.Budget{}, func(*tensor.Env, func()) error { return wrong }); !errors.Is(err, wrong) {
			t.Error(err)
		}
	}
}
