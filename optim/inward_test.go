package optim

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// deep is a model of many equal layers, whose gradients are most of what a step holds.
func deep(env *tensor.Env) (m nn.Sequential) {
	for range 10 {
		m = append(m, nn.NewLinear(env, 64, 64))
	}
	return m
}

// TestStepInBackwardSaves: one layer's gradients at a time, and not those of all ten.
func TestStepInBackwardSaves(t *testing.T) {
	peak := func(inward bool) int64 {
		env := freshEnv(t)
		m := deep(env)
		opt := NewAdamW(nn.Params(m), AdamWConfig{})
		if inward {
			StepInBackward(opt)
		}
		for i := range 3 {
			e, scope := env.Scope(uint64(i))
			if i == 2 {
				env.Device().ResetPeak()
			}
			m.Forward(e.Ones(2, 64)).Square().Mean().Backward()
			opt.Step()
			scope.End()
		}
		return env.Device().Memory().Peak
	}
	layer := int64(4 * (64*64 + 64))
	if saves := peak(false) - peak(true); saves < 85*layer/10 || saves > 9*layer {
		t.Errorf("%d bytes are saved, the gradients of a layer are %d", saves, layer)
	}
}

// TestStepInBackwardRefuses: what wants all gradients before the first update.
func TestStepInBackwardRefuses(t *testing.T) {
	env := freshEnv(t)
	with := func(c AdamWConfig) (nn.Sequential, *AdamW) {
		m := model(env)
		return m, NewAdamW(nn.Params(m), c)
	}
	clipped := func() {
		_, opt := with(AdamWConfig{Clip: 1})
		StepInBackward(opt)
	}
	alien := func() { StepInBackward(nil) }
	scaledLoss := func() {
		m, opt := with(AdamWConfig{})
		StepInBackward(opt)
		s := NewLossScaler(LossScalerConfig{})
		s.Backward(m.Forward(env.Autocast(dtype.F16).Ones(2, 5)).Sum())
	}
	scaledStep := func() {
		m, opt := with(AdamWConfig{})
		StepInBackward(opt)
		m.Forward(env.Ones(2, 5)).Sum().Backward()
		NewLossScaler(LossScalerConfig{}).Step(opt)
	}
	parts := func() {
		m, opt := with(AdamWConfig{})
		StepInBackward(opt)
		for range 2 {
			m.Forward(env.Ones(2, 5)).Sum().Backward()
		}
	}
	for text, f := range map[string]func(){
		"Clip is 1": clipped, "a <nil> cannot": alien, "whether to leave a scaled step out": scaledLoss, "applies gradients as they come": scaledStep,
		"a second Backward before Step": parts,
	} {
		_, err := tensor.Try(env, func(*tensor.Env) int {
			f()
			return 0
		})
		var known *tensor.Error
		if !errors.As(err, &known) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestStepInBackwardTwice: asking again changes nothing, Discard begins a step anew, and parameters that no loss reaches are
// reported.
func TestStepInBackwardTwice(t *testing.T) {
	env := freshEnv(t)
	m, unused := model(env), nn.NewLinear(env, 2, 2)
	opt := NewSGD(nn.Params([]nn.Module{m, unused}), SGDConfig{LR: 0.1})
	StepInBackward(opt)
	StepInBackward(opt)
	before := values(m)
	for i := range 4 {
		e, scope := env.Scope(uint64(i))
		backward(e, m)
		if i == 1 {
			opt.Discard()
			backward(e, m)
		}
		r := opt.Step()
		if !slices.Equal(r.Skipped, []string{"1.weight", "1.bias"}) || (len(r.Never) == 2) != (i >= 2) || !r.Finite() || r.Norm() == 0 {
			t.Errorf("step %d: %+v", i, r)
		}
		scope.End()
	}
	if slices.Equal(before, values(m)) || opt.Counters()["0.0.weight.step"] != 5 || opt.Counters()["steps"] != 4 {
		t.Errorf("counts %v", opt.Counters())
	}
	if r := opt.Step(); r.Norm() != 0 || len(r.Skipped) != 6 {
		t.Errorf("a step without gradients: %+v", r)
	}
}
