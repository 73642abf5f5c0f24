package optim

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil/golden"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// scalerCase is PyTorch's run of one or two optimizers with a GradScaler.
type scalerCase struct {
	Name       string
	Optimizers []struct {
		Optimizer string
		Attrs     optimizerAttrs
	}
	Scaler struct {
		Init     float64 `json:"init_scale"`
		Growth   float64 `json:"growth_factor"`
		Backoff  float64 `json:"backoff_factor"`
		Interval int     `json:"growth_interval"`
	}
	MaxNorm  float64 `json:"max_norm"`
	Scales   []float64
	Trackers []int
	Updates  []int
}

// optimizers builds one for all parameters, or one for each.
func (c *scalerCase) optimizers(params named) (list []Optimizer) {
	for i := range c.Optimizers {
		o, of := &c.Optimizers[i], params
		if len(c.Optimizers) > 1 {
			of = params[i : i+1]
		}
		opt := build(o.Optimizer, &o.Attrs, nil, of.all())
		if c.MaxNorm > 0 {
			opt.(*AdamW).clip = c.MaxNorm
		}
		list = append(list, opt)
	}
	return list
}

// TestGoldenScaler takes PyTorch's steps on gradients of which some are not finite, or not once they are scaled.
func TestGoldenScaler(t *testing.T) {
	var index struct {
		Steps int
		Cases []scalerCase
	}
	golden.JSON(t, "testdata/scaler.json", &index)
	for i := range index.Cases {
		c := &index.Cases[i]
		t.Run(c.Name, func(t *testing.T) {
			env := freshEnv(t)
			ref := golden.Tensors(t, env, "testdata/scaler.safetensors")
			params := named{{"w", tensor.NewParam(ref["init.w"])}, {"b", tensor.NewParam(ref["init.b"])}}
			opts := c.optimizers(params)
			scaler := NewLossScaler(LossScalerConfig(c.Scaler))
			for s := range index.Steps {
				loss := env.Zeros()
				for _, e := range params {
					loss = loss.Add(e.p.Mul(ref["gradient."+e.name].Select(0, s)).Sum())
				}
				scaler.Backward(loss)
				scaler.StepAll(opts...)
				if got, want := scaler.State(), (LossScalerState{c.Scales[s], c.Trackers[s]}); got != want {
					t.Errorf("after step %d: %+v, want %+v", s+1, got, want)
				}
				for _, e := range params {
					golden.Close(t, fmt.Sprintf("%s after step %d", e.name, s+1), e.p, ref[c.Name+"/"+e.name].Select(0, s), 3e-6, 1e-6)
				}
			}
			for i, opt := range opts {
				if n := opt.Counters()[params[i].name+".step"]; n != c.Updates[i] {
					t.Errorf("optimizer %d made %d updates, want %d", i, n, c.Updates[i])
				}
			}
		})
	}
}

// tiny is a loss in float16 whose gradients are a tenth of what that can hold.
func tiny(env *tensor.Env, w *tensor.Tensor) *tensor.Tensor {
	return env.Ones(2, 4).In(env.Autocast(dtype.F16)).MatMul(w).Cast(dtype.F32).Mean().Scale(6e-9 * 12)
}

// TestScalerKeepsSmallGradients: what float16 rounds to 0 comes through, as float32 has it.
func TestScalerKeepsSmallGradients(t *testing.T) {
	env := freshEnv(t)
	plain, scaled := nn.NewParam(env.Ones(4, 6)), nn.NewParam(env.Ones(4, 6))
	opt := NewSGD(nn.Params(map[string]*tensor.Tensor{"w": scaled}), SGDConfig{LR: 1e6})
	scaler := NewLossScaler(LossScalerConfig{})
	tiny(env, plain).Backward()
	if g := plain.Grad().Abs().Max().Item(); g != 0 {
		t.Errorf("without a scale the gradient is %v: the test shows nothing", g)
	}
	scaler.Backward(tiny(env, scaled))
	r := scaler.Step(opt)
	const g = 6e-9 * 12 / 12 * 2 // of each weight, by two rows
	if n, want := r.Norm(), g*math.Sqrt(24); r.Overflow() || math.Abs(n-want) > 2e-3*want {
		t.Errorf("norm %v, want %v; %v", n, want, r)
	}
	if got, want := 1-scaled.Select(0, 0).Select(0, 0).Item(), 1e6*g; math.Abs(got-want) > 2e-3*want {
		t.Errorf("the weight moved by %v, want %v", got, want)
	}
}

// TestScalerFindsItsScale: a scale beyond float16 comes down until gradients fit. Steps that are left out change nothing
// and drop their gradients.
func TestScalerFindsItsScale(t *testing.T) {
	each(t, func(t *testing.T, env *tensor.Env, m nn.Sequential, opt Optimizer) {
		scaler := NewLossScaler(LossScalerConfig{Init: 1 << 40})
		before, skipped := values(m), 0
		for {
			e, scope := env.Scope(uint64(skipped))
			amp := e.Autocast(dtype.F16)
			scaler.Backward(nn.MSE(m.Forward(e.Ones(4, 5).In(amp)), e.Full(3, 4, 3)))
			r := scaler.Step(opt)
			scope.End()
			if !r.Overflow() {
				if !r.Finite() || strings.Contains(r.String(), "not finite") {
					t.Error(r)
				}
				break
			}
			if r.Finite() || !strings.Contains(r.String(), "not finite") {
				t.Error(r)
			}
			skipped++
			if after := values(m); fmt.Sprint(after) != fmt.Sprint(before) || len(opt.Counters()) != 1 {
				t.Fatalf("a step that was left out changed %v to %v; %v", before, after, opt.Counters())
			}
			for path, p := range nn.Params(m) {
				if p.Grad() != nil {
					t.Errorf("%s has a gradient", path)
				}
			}
		}
		if skipped < 20 || scaler.Scale() != math.Ldexp(1, 40-skipped) {
			t.Errorf("%d steps were left out, the scale is %v", skipped, scaler.Scale())
		}
		if fmt.Sprint(values(m)) == fmt.Sprint(before) {
			t.Error("the step that was taken changed nothing")
		}
	})
}

// TestScalerWaitsForNothing: no step waits for the device, neither one that is taken nor one that is left out; what they
// were is read late.
func TestScalerWaitsForNothing(t *testing.T) {
	env, err := tensor.Fresh("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	m := model(env)
	opt, scaler := NewAdamW(nn.Params(m), AdamWConfig{Clip: 1}), NewLossScaler(LossScalerConfig{})
	const steps = 2*lookEvery + 3
	x, target := env.Ones(4, 5), env.Full(math.Inf(1), 4, 3)
	for i := range steps {
		e, scope := env.Scope(uint64(i))
		y := e.Ones(4, 3)
		if i == 1 {
			y = target
		}
		scaler.Backward(nn.MSE(m.Forward(x.In(e)), y))
		scaler.Step(opt)
		scope.End()
	}
	if got := env.Device().Syncs(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if got, want := scaler.State(), (LossScalerState{1 << 15, steps - 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for name, n := range opt.Counters() {
		if name != "steps" && n != steps-1 {
			t.Errorf("%s is %d after %d steps and one that was left out", name, n, steps-1)
		}
	}
}

// TestScalerMemoryIsFlat: neither a step that is taken nor one that is left out keeps anything.
func TestScalerMemoryIsFlat(t *testing.T) {
	env := freshEnv(t)
	m := model(env)
	opt, scaler := NewAdamW(nn.Params(m), AdamWConfig{}), NewLossScaler(LossScalerConfig{Interval: 1})
	var early int64
	for i := range 60 {
		e, scope := env.Scope(uint64(i))
		target := e.Ones(4, 3)
		if i%5 == 4 {
			target = e.Full(math.Inf(1), 4, 3)
		}
		scaler.Backward(nn.MSE(m.Forward(e.Ones(4, 5)), target))
		if r := scaler.Step(opt); r.Overflow() != (i%5 == 4) {
			t.Errorf("step %d: %v", i, r)
		}
		scope.End()
		if i == 9 {
			early = env.Device().Memory().Used
		}
	}
	if late := env.Device().Memory().Used; late != early {
		t.Errorf("%d bytes used after 60 steps, %d after 10", late, early)
	}
}

// TestScalerInAPlan: a device without arithmetic takes the step, for which no value must be known.
func TestScalerInAPlan(t *testing.T) {
	env, err := tensor.Fresh("null:a100-80")
	if err != nil {
		t.Fatal(err)
	}
	m := model(env)
	scaler := NewLossScaler(LossScalerConfig{})
	scaler.Backward(nn.MSE(m.Forward(env.Ones(4, 5)), env.Ones(4, 3)))
	r := scaler.Step(NewAdamW(nn.Params(m), AdamWConfig{}))
	if n := len(env.Device().Unknown()); n != 0 {
		t.Error(env.Device().Unknown())
	}
	if r.Overflow() || len(env.Device().Unknown()) != 1 {
		t.Error(r, env.Device().Unknown())
	}
}

func TestScalerState(t *testing.T) {
	s := NewLossScaler(LossScalerConfig{Interval: 3})
	want := LossScalerState{Scale: 96, Good: 2}
	if err := s.Load(want); err != nil || s.State() != want || s.Scale() != 96 {
		t.Error(err, s.State())
	}
	for _, bad := range []LossScalerState{{0, 0}, {-1, 0}, {math.NaN(), 0}, {math.Inf(1), 0}, {1e39, 0}, {1e-46, 0}, {0.1, 0}, {64, -1}} {
		if err := s.Load(bad); err == nil || s.State() != want {
			t.Errorf("%+v: %v, %+v", bad, err, s.State())
		}
	}
	w := nn.NewParam(freshEnv(t).Ones(3))
	opt := NewSGD(nn.Params(map[string]*tensor.Tensor{"w": w}), SGDConfig{})
	step := func() {
		s.Backward(w.Scale(1e-30).Sum())
		s.Step(opt)
	}
	if step(); s.Scale() != 192 || s.State().Good != 0 {
		t.Errorf("after the third good step %+v", s.State())
	}
	if err := s.Load(LossScalerState{math.Ldexp(1, 127), 5}); err != nil {
		t.Fatal(err)
	}
	if step(); s.State() != (LossScalerState{math.Ldexp(1, 127), 0}) {
		t.Errorf("a scale that has nowhere to grow is %+v", s.State())
	}
}

// TestScalerSharedParameters: what two optimizers would step is refused before anything changes, and stepped where only
// one of them has a gradient for it.
func TestScalerSharedParameters(t *testing.T) {
	env := freshEnv(t)
	a, b, c := nn.NewParam(env.Ones(3)), nn.NewParam(env.Ones(3)), nn.NewParam(env.Ones(3))
	first := NewSGD(nn.Params(map[string]*tensor.Tensor{"a": a, "b": b}), SGDConfig{LR: 0.5})
	second := NewAdamW(nn.Params(map[string]*tensor.Tensor{"b": b, "c": c}), AdamWConfig{})
	s := NewLossScaler(LossScalerConfig{})
	s.Backward(a.Add(b).Add(c).Sum())
	for name, opts := range map[string][]Optimizer{"shared": {first, second}, "twice": {first, first}} {
		_, err := env.Try(func(*tensor.Env) *tensor.Tensor { s.StepAll(opts...); return nil })
		if err == nil || !strings.Contains(err.Error(), "of two optimizers") || a.Grad() == nil || first.Counters()["steps"] != 0 {
			t.Errorf("%s: %v; the gradient is %v, %v", name, err, a.Grad(), first.Counters())
		}
	}
	first.Discard()
	second.Discard()
	s.Backward(a.Add(c).Sum())
	if r := s.StepAll(first, second); r[0].Overflow() || r[1].Overflow() || a.Sum().Item() != 1.5 || b.Sum().Item() != 3 || c.Sum().Item() >= 3 {
		t.Errorf("%v: %v %v %v", r, a, b, c)
	}
}

// TestScalerGivesUpAtOneStep: that no scale does is said at the same step on every device.
func TestScalerGivesUpAtOneStep(t *testing.T) {
	for _, name := range []string{"cpu", "sim:0"} {
		env, err := tensor.Fresh(name)
		if err != nil {
			t.Fatal(err)
		}
		w := nn.NewParam(env.Ones(3))
		opt, scaler := NewSGD(nn.Params(map[string]*tensor.Tensor{"w": w}), SGDConfig{}), NewLossScaler(LossScalerConfig{})
		steps := 0
		for err = nil; err == nil && steps < 10*lookEvery; steps++ {
			_, err = env.Try(func(env *tensor.Env) *tensor.Tensor {
				scaler.Backward(w.Mul(env.Full(math.NaN(), 3)).Sum())
				scaler.Step(opt)
				return nil
			})
		}
		// From 2^16 down to 2^-127, whose inverse float32 still has, are 143 steps; the 144th finds no scale.
		if want := (144+lookEvery-1)/lookEvery*lookEvery + lookEvery; err == nil || steps != want {
			t.Errorf("%s: given up after %d steps, want %d; %v", name, steps, want, err)
		}
	}
}

// foreign is an optimizer of somebody else.
type foreign struct{ Optimizer }

func TestScalerMistakes(t *testing.T) {
	env := freshEnv(t)
	half := map[string]*tensor.Tensor{"w": nn.NewParam(env.Ones(3).Cast(dtype.F16))}
	whole := map[string]*tensor.Tensor{"w": nn.NewParam(env.Ones(3))}
	opt := NewSGD(nn.Params(whole), SGDConfig{})
	for word, f := range map[string]func(){
		"Init is 0":     func() { NewLossScaler(LossScalerConfig{Init: -1}) },
		"Init is 1e+60": func() { NewLossScaler(LossScalerConfig{Init: 1e60}) },
		"Growth":        func() { NewLossScaler(LossScalerConfig{Growth: 1}) },
		"Backoff":       func() { NewLossScaler(LossScalerConfig{Backoff: 1}) },
		"Interval":      func() { NewLossScaler(LossScalerConfig{Interval: -1}) },
		"no parameter has a gradient": func() {
			NewLossScaler(LossScalerConfig{}).Step(opt)
		},
		"the parameter w is in float16": func() {
			s := NewLossScaler(LossScalerConfig{})
			s.Backward(half["w"].Sum())
			s.Step(NewSGD(nn.Params(half), SGDConfig{}))
		},
		"there is none":   func() { NewLossScaler(LossScalerConfig{}).StepAll() },
		"a optim.foreign": func() { NewLossScaler(LossScalerConfig{}).Step(foreign{opt}) },
		"not finite at any scale": func() {
			s := NewLossScaler(LossScalerConfig{})
			for range 1000 {
				s.Backward(whole["w"].Mul(env.Full(math.NaN(), 3)).Sum())
				s.Step(opt)
			}
		},
	} {
		_, err := env.Try(func(*tensor.Env) *tensor.Tensor { f(); return nil })
		if err == nil || !strings.Contains(err.Error(), word) || !strings.Contains(err.Error(), "scaler_test.go:") {
			t.Errorf("%s: %v", word, err)
		}
	}
	opt.Discard()
	wrapped := struct{ *SGD }{opt} // embeds an optimizer of this package
	s := NewLossScaler(LossScalerConfig{})
	s.Backward(whole["w"].Sum())
	if r := s.Step(wrapped); r.Overflow() {
		t.Error(r)
	}
}
