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
// A Step does not wait for the device, which finds out for itself whether gradients are finite, and adjusts the scale;
// what is asked of a report, Scale and State wait. That gradients are finite at no scale is found out later, and a Step
// then panics. Between Backward and Step gradients are multiplied by Scale: what a hook (OnGrad) compares them with must be,
// too. Reports and Clip are about gradients that are divided again.
//
// It may be used by one goroutine at a time.
type LossScaler struct {
	config LossScalerConfig
	state  LossScalerState // unless a device has it
	at     *tensor.Env     // the root of the device that has it; nil before the first Backward and after a Load
	scale  *tensor.Tensor  // f32[]
	unit   *tensor.Tensor  // 1/scale, a cell
	good   *tensor.Tensor  // i64[]
	steps  int
	watch  *tensor.Pending // of good
}

// NewLossScaler makes a scaler, of which a program needs one.
func NewLossScaler(c LossScalerConfig) *LossScaler {
	c.Init, c.Growth, c.Backoff = optional(c.Init, 1<<16), optional(c.Growth, 2), optional(c.Backoff, 0.5)
	if c.Interval == 0 {
		c.Interval = 2000
	}
	s := &LossScaler{config: c, state: LossScalerState{Scale: float64(float32(c.Init))}}
	wrong := ""
	switch {
	case !usable(float32(c.Init)):
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
func (s *LossScaler) Scale() float64 {
	if s.at == nil {
		return s.state.Scale
	}
	return s.scale.Item()
}

// Backward is loss.Backward(only...) of the loss times Scale. A loss in 16 bits is scaled in float32. Gradients add up
// over several calls before a Step.
func (s *LossScaler) Backward(loss *tensor.Tensor, only ...iter.Seq2[string, *tensor.Tensor]) {
	if dt := loss.DType(); dt.IsFloat() && dt != dtype.F64 {
		loss = loss.Cast(dtype.F32)
	}
	s.open(loss.Env())
	defer scaledBackward()()
	loss.Mul(s.scale.To(loss.Env())).Backward(only...)
}

// open puts the state on e's device, unless one has it.
func (s *LossScaler) open(e *tensor.Env) {
	if s.at != nil {
		return
	}
	e, scope := e.NoGrad().Scope()
	defer scope.End()
	scale, unit := tensor.NewBuffer(e.FullOf(dtype.F32, s.state.Scale)), tensor.NewCell(e, float64(inverse(float32(s.state.Scale))))
	s.good = tensor.NewBuffer(e.FullOf(dtype.I64, float64(s.state.Good)))
	s.scale, s.unit, s.at = scale, unit, scale.Env()
}

// Step is opt.Step with the gradients divided by Scale, which is then adjusted. If one of them is not finite, or their norm
// is beyond float32, nothing is updated and the gradients are dropped: the report's Overflow. opt is an optimizer of this
// package, or a type that embeds one, whose own Step, if it has one, is not called.
//
// When no scale does any more, one of the next 128 Steps panics, on every device the same: each 64th reads what the 64th
// before it asked for. That is a sync point only for a program that is 64 Steps ahead of the device, which does not run
// dry by it.
func (s *LossScaler) Step(opt Optimizer) Report { return s.StepAll(opt)[0] }

// StepAll is Step for several optimizers of the same losses: each updates its parameters or leaves them, and the scale is
// adjusted once. No parameter with a gradient may be of two of them.
func (s *LossScaler) StepAll(opts ...Optimizer) []Report {
	if len(opts) == 0 {
		tensor.Raise("LossScaler.StepAll", "name the optimizers that the losses are for", "there is none")
	}
	cores := make([]scaled, len(opts))
	for i, o := range opts {
		cores[i] = scalable(o)
	}
	apart(cores)
	s.open(cores[0].env())
	reports, skips := make([]Report, len(opts)), make([]*tensor.Tensor, len(opts))
	e, scope := s.at.NoGrad().Scope()
	defer scope.End()
	for i, c := range cores {
		reports[i] = c.step(s.unit)
		skips[i] = reports[i].c.last.skip.To(e)
	}
	step := tensor.LossScaleStep{Growth: s.config.Growth, Backoff: s.config.Backoff, Interval: s.config.Interval, Scale: s.scale, Inverse: s.unit, Good: s.good}
	tensor.LossScaleInPlace(step, skips...)
	tensor.AfterRun(s.look)
	return reports
}

// lookEvery is how many steps lie between looks at whether some scale still does.
const lookEvery = 64

// look asks now and then for the count of good steps, and panics if the count that it asked for the time before says that
// no scale does. Whether that is here by now does not matter: equal runs end at equal steps.
func (s *LossScaler) look() {
	if s.steps++; s.steps%lookEvery != 0 || !s.at.Device().Computes() {
		return
	}
	asked := s.watch
	s.watch = s.good.Later()
	if asked != nil && asked.Value() < 0 {
		tensor.Raise("LossScaler.Step", "look for a NaN in the model or the data", "gradients are not finite at any scale; it is down to %v", s.Scale())
	}
}

// scaled is what a LossScaler needs of an optimizer.
type scaled interface {
	step(factor *tensor.Tensor) Report
	scalable()
	env() *tensor.Env
	gradients() iter.Seq2[string, *tensor.Tensor]
}

func scalable(o Optimizer) scaled {
	c, ok := o.(scaled)
	if !ok {
		tensor.Raise("LossScaler.Step", "embed the optimizer of this package that it stands on", "a %T cannot divide its gradients", o)
	}
	c.scalable()
	return c
}

// env is that of the first parameter.
func (c *core) env() *tensor.Env { return c.states[0].p.Env() }

// scalable panics unless there are gradients, none of them in float16: what was rounded there has lost what the scale is
// to keep.
func (c *core) scalable() {
	if c.inBackward {
		tensor.Raise("LossScaler.Step", "train in bfloat16, which needs no scale, or without StepInBackward", "the optimizer applies gradients as they come")
	}
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

// gradients walks the parameters that have one.
func (c *core) gradients() iter.Seq2[string, *tensor.Tensor] {
	return func(yield func(string, *tensor.Tensor) bool) {
		for _, s := range c.states {
			if s.p.Grad() != nil && !yield(s.name, s.p) {
				return
			}
		}
	}
}

// apart panics if one gradient is for two optimizers: the first step takes it.
func apart(cores []scaled) {
	taken := map[*tensor.Tensor]bool{}
	for _, c := range cores {
		for name, p := range c.gradients() {
			if taken[p] {
				tensor.Raise("LossScaler.StepAll", "give each optimizer once, and each parameter to one of them", "the parameter %s is of two optimizers", name)
			}
			taken[p] = true
		}
	}
}

// LossScalerState is what resuming needs of a [LossScaler]: the values of GradScaler's state_dict that change, under its
// names.
type LossScalerState struct {
	Scale float64 `json:"scale"`
	Good  int     `json:"_growth_tracker"` // Steps with finite gradients since the scale changed
}

// State is what Load puts back.
func (s *LossScaler) State() LossScalerState {
	if s.at == nil {
		return s.state
	}
	return LossScalerState{s.Scale(), max(int(s.good.Item()), 0)}
}

// Load goes on from a state. The configuration is not part of it. When it fails, nothing was changed.
func (s *LossScaler) Load(state LossScalerState) error {
	if scale := float32(state.Scale); !usable(scale) || float64(scale) != state.Scale || state.Good < 0 {
		return fmt.Errorf("loss scaler: a scale of %v after %d good steps is none", state.Scale, state.Good)
	}
	*s = LossScaler{config: s.config, state: state}
	return nil
}
