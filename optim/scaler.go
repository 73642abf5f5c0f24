package optim

import (
	"fmt"
	"iter"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// LossScalerConfig configures a [LossScaler]. Zero means PyTorch's default, given in the comments.
type LossScalerConfig struct {
	Init     float64 // the first scale: 65536
	Growth   float64 // above 1, what the scale is multiplied by after Interval Steps with finite gradients in a row: 2
	Backoff  float64 // below 1, what it is multiplied by when a gradient was not finite: 0.5
	Interval int     // 2000
}

// LossScaler keeps gradients of float16 in its range: it multiplies the loss before Backward, divides the gradients before
// the update, and leaves out Steps whose gradients are not finite. The scale follows what the gradients stand, as that of
// PyTorch's GradScaler does. bfloat16 has float32's range and needs none.
//
//	amp, scaler := env.Autocast(dtype.F16), optim.NewLossScaler(optim.LossScalerConfig{})
//	for b, err := range data.Batches(amp, set, config) {
//		…
//		scaler.Backward(nn.CrossEntropy(model.Forward(b.X), b.Y))
//		scaler.Step(opt)
//	}
//
// A Step waits for the device once for each optimizer, to read the norm of the gradients: on a GPU the line shows among
// the device's Syncs. Between Backward and Step gradients are multiplied by Scale: what a hook (OnGrad) compares them with
// must be, too. Reports and Clip are about gradients that are divided again.
//
// It may be used by one goroutine at a time.
type LossScaler struct {
	config LossScalerConfig
	scale  float32
	good   int // Steps with finite gradients since the scale changed
}

// NewLossScaler makes a scaler, of which a program needs one.
func NewLossScaler(c LossScalerConfig) *LossScaler {
	c.Init, c.Growth, c.Backoff = optional(c.Init, 1<<16), optional(c.Growth, 2), optional(c.Backoff, 0.5)
	if c.Interval == 0 {
		c.Interval = 2000
	}
	s := &LossScaler{config: c, scale: float32(c.Init)}
	wrong := ""
	switch {
	case !usable(s.scale):
		wrong = fmt.Sprintf("Init is %v, no number above 0 that float32 has, with its inverse", c.Init)
	case !(c.Growth > 1) || !finite(c.Growth):
		wrong = fmt.Sprintf("Growth is %v, not above 1", c.Growth)
	case !(c.Backoff > 0 && c.Backoff < 1):
		wrong = fmt.Sprintf("Backoff is %v, not in (0, 1)", c.Backoff)
	case c.Interval < 1:
		wrong = fmt.Sprintf("Interval is %d, not at least 1", c.Interval)
	default:
		return s
	}
	tensor.Raise("optim.NewLossScaler", "check the configuration", "%s", wrong)
	return nil
}

// usable reports whether gradients can be multiplied by v and divided again.
func usable(v float32) bool { return v > 0 && finite(float64(v)) && finite(float64(inverse(v))) }

// inverse is 1/v, rounded once from float64 as PyTorch does.
func inverse(v float32) float32 { return float32(1 / float64(v)) }

// Scale is what losses are multiplied by until the next Step.
func (s *LossScaler) Scale() float64 { return float64(s.scale) }

// Backward is loss.Backward(only...) of the loss times Scale. A loss in 16 bits is scaled in float32. Gradients add up
// over several calls before a Step.
func (s *LossScaler) Backward(loss *tensor.Tensor, only ...iter.Seq2[string, *tensor.Tensor]) {
	if dt := loss.DType(); dt.IsFloat() && dt != dtype.F64 {
		loss = loss.Cast(dtype.F32)
	}
	loss.Scale(s.Scale()).Backward(only...)
}

// Step is opt.Step with the gradients divided by Scale, which it then adjusts. If one of them is not finite, or their norm
// is beyond float32, it updates nothing, drops them, and says so in the report. opt is an optimizer of this package, or a
// type that embeds one, whose own Step, if it has one, is not called.
func (s *LossScaler) Step(opt Optimizer) Report { return s.StepAll(opt)[0] }

// StepAll is Step for several optimizers of the same losses: each updates its parameters or leaves them, and the scale is
// adjusted once.
func (s *LossScaler) StepAll(opts ...Optimizer) []Report {
	if len(opts) == 0 {
		tensor.Raise("LossScaler.StepAll", "name the optimizers that the losses are for", "there is none")
	}
	cores := make([]scaled, len(opts))
	for i, o := range opts {
		cores[i] = scalable(o)
	}
	reports := make([]Report, len(opts))
	overflow := false
	for i, c := range cores {
		reports[i] = c.step(float64(inverse(s.scale)), true)
		overflow = overflow || reports[i].Overflow
	}
	s.adjust(overflow)
	return reports
}

// scaled is what a LossScaler needs of an optimizer.
type scaled interface {
	step(factor float64, judge bool) Report
	scalable()
}

func scalable(o Optimizer) scaled {
	c, ok := o.(scaled)
	if !ok {
		tensor.Raise("LossScaler.Step", "embed the optimizer of this package that it stands on", "a %T cannot divide its gradients", o)
	}
	c.scalable()
	return c
}

// scalable panics unless there are gradients, none of them in float16: what was rounded there has lost what the scale is
// to keep.
func (c *core) scalable() {
	found := false
	for _, s := range c.states {
		if s.p.Grad() == nil || s.p.Frozen() {
			continue
		}
		if found = true; s.p.DType() == dtype.F16 {
			tensor.Raise("LossScaler.Step", "keep parameters in float32 and compute in env.Autocast(dtype.F16)", "the parameter %s is in float16", s.name)
		}
	}
	if !found {
		tensor.Raise("LossScaler.Step", "call Backward before, of a loss that the optimizer's parameters are part of", "no parameter has a gradient")
	}
}

// adjust is GradScaler's update.
func (s *LossScaler) adjust(overflow bool) {
	if overflow {
		down := float32(float64(s.scale) * s.config.Backoff)
		if !usable(down) {
			tensor.Raise("LossScaler.Step", "look for a NaN in the model or the data", "gradients are not finite at any scale; it is down to %v", s.scale)
		}
		s.scale, s.good = down, 0
		return
	}
	if s.good++; s.good < s.config.Interval {
		return
	}
	s.good = 0
	if up := float32(float64(s.scale) * s.config.Growth); usable(up) {
		s.scale = up
	}
}

// LossScalerState is what resuming needs of a [LossScaler]: the values of GradScaler's state_dict that change, under its
// names.
type LossScalerState struct {
	Scale float64 `json:"scale"`
	Good  int     `json:"_growth_tracker"` // Steps with finite gradients since the scale changed
}

// State is what Load puts back.
func (s *LossScaler) State() LossScalerState { return LossScalerState{s.Scale(), s.good} }

// Load goes on from a state. The configuration is not part of it. When it fails, nothing was changed.
func (s *LossScaler) Load(state LossScalerState) error {
	if scale := float32(state.Scale); !usable(scale) || float64(scale) != state.Scale || state.Good < 0 {
		return fmt.Errorf("loss scaler: a scale of %v after %d good steps is none", state.Scale, state.Good)
	}
	s.scale, s.good = float32(state.Scale), state.Good
	return nil
}
