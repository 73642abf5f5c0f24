package optim

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/testutil/golden"
	"github.com/warpline-ml/warpline/tensor"
)

const courseLR = 0.05

func wave(step int) float64 { return 1 + 0.5*math.Sin(float64(step)/7) }

// cycling is a pair of a rate and a momentum.
func cycling(rate, momentum Schedule) [2]Schedule { return [2]Schedule{rate, momentum} }

// courses are the schedules of courses_reference.py, by its names.
func courses() map[string][2]Schedule {
	const lr = courseLR
	one := func(s Schedule) [2]Schedule { return [2]Schedule{s} }
	return map[string][2]Schedule{
		"LambdaLR":                            one(Lambda(lr, wave)),
		"MultiplicativeLR":                    one(Multiplicative(lr, func(step int) float64 { return 1 - 0.01*float64(step%3) })),
		"StepLR":                              one(Stepwise(lr, 0.7, 30)),
		"MultiStepLR":                         one(MultiStep(lr, 0.3, 200, 30, 80, 80)),
		"MultiStepLR from 0":                  one(MultiStep(lr, 0.5, 1, 2)),
		"ConstantLR":                          one(ConstantFactor(lr, 0.25, 40)),
		"LinearLR":                            one(Linear(0.2*lr, 0.9*lr, 70)),
		"ExponentialLR":                       one(Exponential(lr, 0.97)),
		"PolynomialLR":                        one(Polynomial(lr, 1, 250)),
		"PolynomialLR squared":                one(Polynomial(lr, 2, 120)),
		"PolynomialLR root":                   one(Polynomial(lr, 0.5, 400)),
		"CosineAnnealingLR":                   one(CosineAnnealing(lr, 0.002, 64)),
		"CosineAnnealingLR to 0":              one(CosineAnnealing(lr, 0, 400)),
		"CosineAnnealingWarmRestarts":         one(CosineRestarts(lr, 0.001, 40, 1)),
		"CosineAnnealingWarmRestarts doubled": one(CosineRestarts(lr, 0, 17, 2)),
		"CosineAnnealingWarmRestarts tripled": one(CosineRestarts(lr, 0.01, 1, 3)),
		"OneCycleLR":                          cycling(OneCycle(OneCycleConfig{Max: 0.2, Steps: 300})),
		"OneCycleLR linear":                   cycling(OneCycle(OneCycleConfig{Max: 0.2, Steps: 301, Linear: true, Start: 0.17})),
		"OneCycleLR three":                    cycling(OneCycle(OneCycleConfig{Max: 0.2, Steps: 300, ThreePhase: true, Div: 10, FinalDiv: 100})),
		"OneCycleLR three linear":             cycling(OneCycle(OneCycleConfig{Max: 0.2, Steps: 300, ThreePhase: true, Start: 0.4, Linear: true, MomentumLow: 0.7, MomentumTop: 0.99})),
		"CyclicLR":                            cycling(Cyclic(CyclicConfig{Base: 0.01, Max: 0.1, Up: 20})),
		"CyclicLR uneven":                     cycling(Cyclic(CyclicConfig{Base: 0.01, Max: 0.1, Up: 10, Down: 37, MomentumLow: 0.6, MomentumTop: 0.95})),
		"CyclicLR triangular2":                cycling(Cyclic(CyclicConfig{Base: 0.01, Max: 0.1, Up: 25, Scale: func(n int) float64 { return math.Pow(2, float64(1-n)) }})),
		"CyclicLR exp_range":                  cycling(Cyclic(CyclicConfig{Base: 0.01, Max: 0.1, Up: 25, ByStep: true, Scale: func(n int) float64 { return math.Pow(0.99, float64(n)) }})),
		"CyclicLR scaled":                     cycling(Cyclic(CyclicConfig{Base: 0.01, Max: 0.1, Up: 25, Scale: func(n int) float64 { return 1 / float64(1+n) }})),
		"SequentialLR":                        one(Sequential([]Schedule{ConstantFactor(lr, 0.1, 20), Exponential(lr, 0.95), CosineAnnealing(lr, 0, 100)}, 20, 70)),
		"ChainedScheduler":                    one(Chained(lr, ConstantFactor(1, 0.1, 20), Exponential(1, 0.99), Stepwise(1, 0.5, 50))),
		"warm-up, stable, decay":              one(WarmupStableDecay(lr, 0.1*lr, 20, 130, 100)),
		"SWALR":                               one(Cosine(lr, 0.01, 50)),
		"SWALR linear":                        one(Linear(lr, 0.2, 50)),
	}
}

var plateaus = map[string]PlateauConfig{
	"ReduceLROnPlateau":         {Patience: 5},
	"ReduceLROnPlateau max abs": {Larger: true, Absolute: true, Threshold: 0.05, Factor: 0.5, Patience: 3, Cooldown: 4, Least: 0.001},
	"ReduceLROnPlateau max":     {Larger: true, Factor: 0.8, Patience: 2, Threshold: 0.01},
	"ReduceLROnPlateau abs":     {Absolute: true, Threshold: 0.02, Factor: 0.9, Patience: 1, Cooldown: 2, Eps: 1e-4},
	"ReduceLROnPlateau at once": {Factor: 0.6, Patience: -1, Least: 1e-5},
}

// TestGoldenCourses: 300 steps of each scheduler of PyTorch, and of the momenta that two of them cycle.
func TestGoldenCourses(t *testing.T) {
	var index struct{ Cases []string }
	golden.JSON(t, "testdata/courses.json", &index)
	ref := golden.Tensors(t, freshEnv(t), "testdata/courses.safetensors")
	ours := courses()
	if len(ours)+len(plateaus) != len(index.Cases) {
		t.Errorf("%d schedules for %d cases", len(ours)+len(plateaus), len(index.Cases))
	}
	follow := func(name string, s Schedule) {
		want := ref[name].Floats()
		if got := s(len(want) - 1); got != s(len(want)-1) {
			t.Errorf("%s: another rate the second time", name)
		}
		got := make([]float64, len(want))
		for i := range got {
			got[i] = s(i)
		}
		if testutil.Close(t, got, want, 1e-12, 1e-16); t.Failed() {
			t.Fatal(name)
		}
	}
	for name, s := range ours {
		if follow(name, s[0]); s[1] != nil {
			follow(name+"/momentum", s[1])
		}
	}
	for name, c := range plateaus {
		c.LR = courseLR
		if got := climb(t, c, ref["plateau figures"].Floats()); !slices.Equal(got, ref[name].Floats()) {
			t.Errorf("%s: %v, want %v", name, got, ref[name].Floats())
		}
	}
}

// climb is the rates of a plateau that is stopped, written out and resumed before every step.
func climb(t *testing.T, c PlateauConfig, figures []float64) (rates []float64) {
	p := NewPlateau(c)
	for _, v := range figures {
		text, err := json.Marshal(p.State())
		if err != nil {
			t.Fatal(err)
		}
		var s PlateauState
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		if p = NewPlateau(c); p.Load(s) != nil {
			t.Fatal("its own state is refused")
		}
		rates = append(rates, p.Step(v))
		if p.LR() != rates[len(rates)-1] {
			t.Fatal("LR is another rate than that of Step")
		}
	}
	return rates
}

// TestGroups: PyTorch's Adam with two groups, each with a rate and a schedule of its own, also with a captured step.
func TestGroups(t *testing.T) {
	for _, captured := range []bool{false, true} {
		t.Run(fmt.Sprint(captured), func(t *testing.T) {
			env := freshEnv(t)
			ref := golden.Tensors(t, env, "testdata/courses.safetensors")
			params := named{{"w", tensor.NewParam(ref["groups/init.w"])}, {"b", tensor.NewParam(ref["groups/init.b"])}}
			opt := NewAdam(params.all(), AdamWConfig{Rule: func(path string, _ *tensor.Tensor, r *Rates) {
				if path == "b" {
					r.Group = 1
				}
			}})
			courses := []Schedule{Lambda(0.1, wave), Exponential(0.02, 0.9)}
			step := func(s struct {
				Env  *tensor.Env
				W, B *tensor.Tensor
			}) *tensor.Tensor {
				params[0].p.Mul(s.W).Sum().Add(params[1].p.Mul(s.B).Sum()).Backward()
				opt.Step()
				return s.W.Sum()
			}
			run := step
			if captured {
				run = tensor.Capture(env, step).Run
			}
			for s := range 20 {
				opt.SetLR(courses[0](s))
				opt.SetGroupLR(1, courses[1](s))
				e, scope := env.Scope(uint64(s))
				run(struct {
					Env  *tensor.Env
					W, B *tensor.Tensor
				}{e, ref["groups/gradient.w"].Select(0, s).In(e), ref["groups/gradient.b"].Select(0, s).In(e)})
				scope.End()
				for _, p := range params {
					golden.Close(t, fmt.Sprintf("%s after step %d", p.name, s+1), p.p, ref["groups/"+p.name].Select(0, s), 1e-12, 1e-13)
				}
			}
			if opt.LR() != courses[0](19) || opt.GroupLR(1) != courses[1](19) {
				t.Errorf("rates %v and %v", opt.LR(), opt.GroupLR(1))
			}
		})
	}
}

// TestCoursesRefuse: numbers that make no schedule are mistakes, told by name.
func TestCoursesRefuse(t *testing.T) {
	for want, f := range map[string]func(){
		"optim.Polynomial":      func() { Polynomial(1, 1, 0) },
		"optim.CosineAnnealing": func() { CosineAnnealing(1, 0, 0) },
		"optim.CosineRestarts":  func() { CosineRestarts(1, 0, 10, 0) },
		"optim.Sequential":      func() { Sequential([]Schedule{Constant(1)}, 3) },
		"optim.OneCycle":        func() { OneCycle(OneCycleConfig{Max: 1}) },
		"optim.Cyclic":          func() { Cyclic(CyclicConfig{Up: -1}) },
		"optim.NewPlateau":      func() { NewPlateau(PlateauConfig{Factor: 1}) },
		"SetGroupLR":            func() { new(core).SetGroupLR(1, 1) },
	} {
		err := refusal(f)
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if NewPlateau(PlateauConfig{}).Load(PlateauState{LR: math.NaN()}) == nil {
		t.Error("a rate that is no number is taken")
	}
}

// refusal is what a mistake panics with.
func refusal(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}
