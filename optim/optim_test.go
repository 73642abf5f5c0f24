package optim

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// model has parameters of several ranks.
func model(env *tensor.Env) nn.Sequential {
	return nn.Sequential{nn.NewLinear(env, 5, 7), nn.Tanh{}, nn.NewLinear(env, 7, 3)}
}

// train takes one step on random data and returns what it reports.
func train(env *tensor.Env, m nn.Module, opt Optimizer, step int) Report {
	e, scope := env.Scope(uint64(step))
	defer scope.End()
	backward(e, m)
	return opt.Step()
}

func backward(e *tensor.Env, m nn.Module) {
	nn.MSE(m.Forward(e.Randn(4, 5)), e.Randn(4, 3)).Backward()
}

func values(m any) (out []float64) {
	for _, p := range nn.Params(m) {
		out = append(out, p.Floats()...)
	}
	return out
}

func optimizers() map[string]func(m any) Optimizer {
	return map[string]func(m any) Optimizer{
		"sgd": func(m any) Optimizer { return NewSGD(nn.Params(m), SGDConfig{LR: 0.1}) },
		"momentum": func(m any) Optimizer {
			return NewSGD(nn.Params(m), SGDConfig{LR: 0.1, Momentum: 0.9, Nesterov: true, Clip: 0.5})
		},
		"adam": func(m any) Optimizer { return NewAdam(nn.Params(m), AdamWConfig{LR: 0.01}) },
		"adamw": func(m any) Optimizer {
			return NewAdamW(nn.Params(m), AdamWConfig{LR: 0.01, Clip: 0.5, Rule: DecayMatricesOnly})
		},
	}
}

// each runs f with every optimizer on a device of its own.
func each(t *testing.T, f func(t *testing.T, env *tensor.Env, m nn.Sequential, opt Optimizer)) {
	for name, build := range optimizers() {
		t.Run(name, func(t *testing.T) {
			env := freshEnv(t)
			m := model(env)
			f(t, env, m, build(m))
		})
	}
}

func TestMemoryIsFlat(t *testing.T) {
	each(t, func(t *testing.T, env *tensor.Env, m nn.Sequential, opt Optimizer) {
		var early tensor.Memory
		for step := range 200 {
			train(env, m, opt, step)
			if step == 20 {
				env.Device().Collect()
				early = env.Device().Memory()
			}
		}
		if late := env.Device().Memory(); late.Used != early.Used || late.Allocated.Current != early.Allocated.Current {
			t.Errorf("%d bytes used after 200 steps, %d after 20", late.Used, early.Used)
		}
	})
}

func TestStepDrawsNothing(t *testing.T) {
	each(t, func(t *testing.T, env *tensor.Env, m nn.Sequential, opt Optimizer) {
		before := env.Draws()
		train(env, m, opt, 0)
		if after := env.Draws(); after != before {
			t.Errorf("a step drew %d random numbers of the program", after-before)
		}
	})
}

// TestOutOfMemory fails every allocation of a first and of a later step in turn: parameters must be as before, the
// gradients still there, and the next try must do what an undisturbed step does.
func TestOutOfMemory(t *testing.T) {
	for name, build := range optimizers() {
		for _, warm := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s/%d", name, warm), func(t *testing.T) {
				want := afterSteps(t, build, warm, 0)
				failures := 0
				for k := 1; ; k++ {
					got := afterSteps(t, build, warm, k)
					if got == nil {
						break
					}
					failures++
					if !slices.Equal(got, want) {
						t.Fatalf("another result when allocation %d failed and the step was tried again", k)
					}
				}
				if failures == 0 {
					t.Error("no allocation failed")
				}
			})
		}
	}
}

// afterSteps gives the parameters after warm steps and one more, whose k-th allocation fails once; nil when it has fewer.
func afterSteps(t *testing.T, build func(any) Optimizer, warm, k int) []float64 {
	env := freshEnv(t)
	m := model(env)
	opt := build(m)
	for step := range warm {
		train(env, m, opt, step)
	}
	e, scope := env.Scope(99)
	defer scope.End()
	backward(e, m)
	before, counters := values(m), opt.Counters()
	env.Device().FailAt(k)
	_, err := tensor.Try(env, func(*tensor.Env) map[string]*tensor.Tensor {
		opt.Step()
		return nil
	})
	env.Device().FailAt(0)
	if k == 0 || err == nil {
		if k == 0 && err != nil {
			t.Fatal(err)
		}
		if k == 0 {
			return values(m)
		}
		return nil
	}
	if oom := (*tensor.OOMError)(nil); !errors.As(err, &oom) {
		t.Fatalf("allocation %d: %v", k, err)
	}
	if !slices.Equal(values(m), before) {
		t.Fatalf("parameters changed before allocation %d failed", k)
	}
	if got := opt.Counters(); !maps.Equal(got, counters) {
		t.Fatalf("allocation %d failed, and the counters went from %v to %v", k, counters, got)
	}
	opt.Step()
	return values(m)
}

func TestResumeIsExact(t *testing.T) {
	for name, build := range optimizers() {
		t.Run(name, func(t *testing.T) {
			env := freshEnv(t)
			m := model(env)
			opt := build(m)
			for step := range 5 {
				train(env, m, opt, step)
			}
			copied := nn.Clone(m)
			again := build(copied)
			if err := again.Load(maps.Collect(opt.State()), opt.Counters()); err != nil {
				t.Fatal(err)
			}
			for step := 5; step < 10; step++ {
				train(env, m, opt, step)
				train(env, copied, again, step)
			}
			if !slices.Equal(values(m), values(copied)) {
				t.Error("the resumed run differs")
			}
			if !maps.Equal(opt.Counters(), again.Counters()) {
				t.Errorf("counters %v, want %v", again.Counters(), opt.Counters())
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	env := freshEnv(t)
	m := model(env)
	opt := NewAdamW(nn.Params(m), AdamWConfig{})
	train(env, m, opt, 0)
	cases := map[string]struct {
		change func(map[string]*tensor.Tensor, map[string]int)
		want   string
	}{
		"missing":  {func(s map[string]*tensor.Tensor, _ map[string]int) { delete(s, "0.weight.exp_avg_sq") }, "0.weight.exp_avg_sq is missing"},
		"shape":    {func(s map[string]*tensor.Tensor, _ map[string]int) { s["0.bias.exp_avg"] = env.Zeros(2) }, "has shape [2]"},
		"dtype":    {func(s map[string]*tensor.Tensor, _ map[string]int) { s["0.bias.exp_avg"] = env.Arange(7) }, "not floating"},
		"stranger": {func(s map[string]*tensor.Tensor, _ map[string]int) { s["9.bias.exp_avg"] = env.Zeros(2) }, "9.bias.exp_avg belongs to none"},
		"kind":     {func(s map[string]*tensor.Tensor, _ map[string]int) { s["0.bias.momentum_buffer"] = env.Zeros(7) }, "belongs to none"},
		"counter":  {func(_ map[string]*tensor.Tensor, c map[string]int) { c["0.bias.step"] = -1 }, "is -1"},
		"steps":    {func(_ map[string]*tensor.Tensor, c map[string]int) { c["steps"] = -5 }, "steps is -5"},
		"unknown":  {func(_ map[string]*tensor.Tensor, c map[string]int) { c["x.step"] = 1 }, "x.step belongs to none"},
	}
	for name, c := range cases {
		tensors, counters := maps.Collect(opt.State()), opt.Counters()
		c.change(tensors, counters)
		err := opt.Load(tensors, counters)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if opt.Counters()["0.bias.step"] != 1 {
		t.Error("a refused load changed the optimizer")
	}
}

// TestLoadWithoutMemory fails every allocation of a Load in turn: the optimizer must be as before.
func TestLoadWithoutMemory(t *testing.T) {
	each(t, func(t *testing.T, env *tensor.Env, m nn.Sequential, opt Optimizer) {
		state := func() (out []float64) {
			for _, s := range opt.State() {
				out = append(out, s.Floats()...)
			}
			return out
		}
		train(env, m, opt, 0)
		tensors, counters := map[string]*tensor.Tensor{}, opt.Counters()
		for name, s := range opt.State() {
			tensors[name] = s.FullLike(7)
		}
		for name := range counters {
			counters[name] = 100
		}
		want, before := state(), opt.Counters()
		for k := 1; ; k++ {
			env.Device().FailAt(k)
			_, err := env.Try(func(*tensor.Env) *tensor.Tensor {
				if err := opt.Load(tensors, counters); err != nil {
					t.Error(err)
				}
				return nil
			})
			env.Device().FailAt(0)
			if err == nil {
				break
			}
			if got := opt.Counters(); !slices.Equal(state(), want) || !maps.Equal(got, before) {
				t.Fatalf("allocation %d failed, and the optimizer is at %v", k, got)
			}
		}
		if got := opt.Counters(); !maps.Equal(got, counters) {
			t.Errorf("loaded %v, want %v", got, counters)
		}
	})
}

// TestReport checks the names of parameters without gradients, frozen ones apart.
func TestReport(t *testing.T) {
	env := freshEnv(t)
	type net struct{ Used, Rare, Unused, Still *tensor.Tensor }
	p := func() *tensor.Tensor { return nn.NewParam(env.Ones(3)) }
	m := &net{p(), p(), p(), p()}
	m.Still.Freeze(true)
	opt := NewAdamW(nn.Params(m), AdamWConfig{})
	for step := 1; step <= 4; step++ {
		y := m.Used
		if step == 2 {
			y = y.Mul(m.Rare)
		}
		y.Sum().Backward()
		r := opt.Step()
		want, never := []string{"Rare", "Unused"}, []string(nil)
		if step == 2 {
			want = []string{"Unused"}
		}
		if step >= 3 {
			never = []string{"Unused"}
		}
		if !slices.Equal(r.Skipped, want) || !slices.Equal(r.Never, never) {
			t.Errorf("step %d: skipped %v, never %v; want %v and %v", step, r.Skipped, r.Never, want, never)
		}
		texts := []string{"", "step 1: no gradient for Rare, Unused", "step 2: no gradient for Unused", "step 3: no gradient so far for Unused", "step 4: no gradient so far for Unused"}
		if got := fmt.Sprint(r); got != texts[step] {
			t.Errorf("printed as %q, want %q", got, texts[step])
		}
		if m.Used.Grad() != nil {
			t.Error("a gradient was not consumed")
		}
	}
	if c := opt.Counters(); c["Used.step"] != 4 || c["Rare.step"] != 1 || c["steps"] != 4 {
		t.Errorf("counters %v", c)
	}
}

func TestNorm(t *testing.T) {
	env := freshEnv(t)
	w := nn.NewParam(env.Zeros(2))
	opt := NewSGD(named{{"w", w}}.all(), SGDConfig{})
	give(w, tensor.From(env, []float32{3, 4}, 2))
	first := opt.Step()
	if n := first.Norm(); n != 5 || !first.Finite() {
		t.Errorf("norm %v, want 5", n)
	}
	later := first.NormLater()
	if r := opt.Step(); r.Norm() != 0 || r.NormLater() != nil {
		t.Errorf("norm %v without gradients", r.Norm())
	}
	if n := later.Value(); n != 5 {
		t.Errorf("norm %v after the next step, want 5", n)
	}
	if _, err := env.Try(func(*tensor.Env) *tensor.Tensor { first.Norm(); return nil }); err == nil || !strings.Contains(err.Error(), "step 1") {
		t.Errorf("the norm of an old step: %v", err)
	}
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
		give(w, tensor.From(env, []float32{1, bad}, 2))
		if opt.Step().Finite() {
			t.Errorf("a gradient of %v is called finite", bad)
		}
	}
}

func TestDiscard(t *testing.T) {
	env := freshEnv(t)
	w := nn.NewParam(env.Ones(2))
	opt := NewSGD(named{{"w", w}}.all(), SGDConfig{LR: 1})
	w.Sum().Backward()
	opt.Discard()
	if opt.Step(); w.Grad() != nil || w.Floats()[0] != 1 {
		t.Errorf("a discarded gradient was applied: %v", w.Floats())
	}
}

// TestNegativeMeansZero: a rate of 0 is written as a negative number, where 0 stands for the default.
func TestNegativeMeansZero(t *testing.T) {
	for name, build := range map[string]func(w named) Optimizer{
		"sgd": func(w named) Optimizer { return NewSGD(w.all(), SGDConfig{LR: 0.5, WeightDecay: -1}) },
		"adam": func(w named) Optimizer {
			return NewAdam(w.all(), AdamWConfig{LR: 0.5, Beta1: -1, Beta2: -1, Eps: -1, WeightDecay: -1})
		},
		"adamw": func(w named) Optimizer {
			return NewAdamW(w.all(), AdamWConfig{LR: 0.5, Beta1: -1, Beta2: -1, Eps: -1, WeightDecay: -1})
		},
	} {
		w := nn.NewParam(freshEnv(t).Full(3, 1))
		opt := build(named{{"w", w}})
		give(w, w.FullLike(1))
		if opt.Step(); w.Floats()[0] != 2.5 {
			t.Errorf("%s: 3 goes to %v, want 2.5", name, w.Floats()[0])
		}
	}
}

// TestRules checks that each parameter has its own rate and decay, though updates are fused.
func TestRules(t *testing.T) {
	env := freshEnv(t)
	params := named{}
	for i := range 4 {
		params = append(params, struct {
			name string
			p    *tensor.Tensor
		}{fmt.Sprint(i), nn.NewParam(env.Ones(2, 2))})
	}
	opt := NewSGD(params.all(), SGDConfig{LR: 0.1, WeightDecay: 0.5, Rule: func(path string, _ *tensor.Tensor, r *Rates) {
		switch path {
		case "1":
			r.Scale = 10
		case "2":
			r.WeightDecay = 0
		case "3":
			r.Scale = 0
		}
	}})
	for range 2 {
		for _, e := range params {
			give(e.p, env.Ones(2, 2))
		}
		opt.SetLR(opt.LR())
		opt.Step()
	}
	step := func(w, lr, decay float64) float64 { return w - lr*(1+decay*w) }
	want := []float64{step(step(1, .1, .5), .1, .5), step(step(1, 1, .5), 1, .5), step(step(1, .1, 0), .1, 0), 1}
	for i, e := range params {
		testutil.Close(t, e.p.Floats()[:1], want[i:i+1], 1e-6, 1e-7)
	}
}

// TestDTypes updates parameters of three dtypes side by side.
func TestDTypes(t *testing.T) {
	env := freshEnv(t)
	params := named{}
	for _, dt := range []dtype.DType{dtype.F32, dtype.F64, dtype.BF16} {
		params = append(params, struct {
			name string
			p    *tensor.Tensor
		}{dt.String(), nn.NewParam(env.FullOf(dt, 1, 3))})
	}
	opt := NewAdamW(params.all(), AdamWConfig{LR: 0.25, WeightDecay: -1, Clip: 100})
	for _, e := range params {
		give(e.p, e.p.FullLike(1))
	}
	r := opt.Step()
	testutil.Close(t, []float64{r.Norm()}, []float64{3}, 1e-6, 0)
	for _, e := range params {
		testutil.Close(t, e.p.Floats(), []float64{0.75, 0.75, 0.75}, 1e-6, 0)
	}
}

// TestMoves trains on one device, moves the model behind the optimizer's back, and goes on.
func TestMoves(t *testing.T) {
	each(t, func(t *testing.T, env *tensor.Env, m nn.Sequential, opt Optimizer) {
		want := nn.Clone(m)
		ref := optimizers()[strings.TrimPrefix(t.Name(), "TestMoves/")](want)
		other := freshEnv(t)
		for step := range 6 {
			if step == 3 {
				nn.To(other, m)
				env = other
			}
			train(env, m, opt, step)
			train(want[0].(*nn.Linear).Weight.Env(), want, ref, step)
		}
		if !slices.Equal(values(m), values(want)) {
			t.Error("moving the model changed its training")
		}
		for name, s := range opt.State() {
			if s.Env().Device() != other.Device() {
				t.Errorf("%s stayed behind", name)
			}
		}
	})
}

func TestBadConfigurations(t *testing.T) {
	env := freshEnv(t)
	params := named{{"w", nn.NewParam(env.Ones(2))}}.all()
	nan := math.NaN()
	for want, f := range map[string]func(){
		"no parameters":             func() { NewSGD(named{}.all(), SGDConfig{}) },
		"LR is NaN":                 func() { NewAdamW(params, AdamWConfig{LR: nan}) },
		"LR is +Inf":                func() { NewSGD(params, SGDConfig{LR: math.Inf(1)}) },
		"Beta1 is 1":                func() { NewAdam(params, AdamWConfig{Beta1: 1}) },
		"Beta2 is 1.5":              func() { NewAdam(params, AdamWConfig{Beta2: 1.5}) },
		"Clip is -1":                func() { NewSGD(params, SGDConfig{Clip: -1}) },
		"Momentum is 1":             func() { NewSGD(params, SGDConfig{Momentum: 1}) },
		"Clip is -2":                func() { NewAdamW(params, AdamWConfig{Clip: -2}) },
		"Momentum is -1":            func() { NewSGD(params, SGDConfig{Momentum: -1}) },
		"Eps is NaN":                func() { NewAdam(params, AdamWConfig{Eps: nan}) },
		"every 0 steps":             func() { Stepwise(1, 0.5, 0) },
		"Nesterov without momentum": func() { NewSGD(params, SGDConfig{Nesterov: true}) },
		"SetLR: LR is -1":           func() { NewSGD(params, SGDConfig{}).SetLR(-1) },
		"WeightDecay of w is NaN": func() {
			NewSGD(params, SGDConfig{Rule: func(_ string, _ *tensor.Tensor, r *Rates) { r.WeightDecay = nan }})
		},
		"Scale of w is -3": func() {
			NewAdamW(params, AdamWConfig{Rule: func(_ string, _ *tensor.Tensor, r *Rates) { r.Scale = -3 }})
		},
	} {
		_, err := env.Try(func(*tensor.Env) *tensor.Tensor { f(); return nil })
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "_test.go:") {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestNullDevice takes steps where nothing is computed, as a plan does.
func TestNullDevice(t *testing.T) {
	env, err := tensor.Fresh("null:a100-80")
	if err != nil {
		t.Fatal(err)
	}
	m := model(env)
	opt := NewAdamW(nn.Params(m), AdamWConfig{Clip: 1})
	for step := range 3 {
		if r := train(env, m, opt, step); r.Norm() != 0 || r.Skipped != nil {
			t.Errorf("norm %v, skipped %v", r.Norm(), r.Skipped)
		}
	}
	if len(env.Device().Unknown()) == 0 {
		t.Error("nobody noted that the norm was not computed")
	}
}
