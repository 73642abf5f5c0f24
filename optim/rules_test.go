package optim

import (
	"fmt"
	"iter"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil/golden"
	"github.com/warpline-ml/warpline/tensor"
)

// ruleAttrs are the arguments of rules_reference.py, by PyTorch's names.
type ruleAttrs struct {
	LR           float64
	Betas        [2]float64
	Eps          any
	WeightDecay  *float64 `json:"weight_decay"`
	Momentum     float64
	Nesterov     *bool
	Maximize     bool
	AMSGrad      bool `json:"amsgrad"`
	Centered     bool
	Alpha        float64
	LRDecay      float64 `json:"lr_decay"`
	Initial      float64 `json:"initial_accumulator_value"`
	Decoupled    bool    `json:"decoupled_weight_decay"`
	Fading       float64 `json:"momentum_decay"`
	Rho          float64
	Beta2Decay   float64 `json:"beta2_decay"`
	D            float64
	R            float64
	Power        float64 `json:"weight_lr_power"`
	Warmup       int
	NSSteps      int `json:"ns_steps"`
	Adjust       string
	Rest         *ruleAttrs
	MaxIter      int     `json:"max_iter"`
	History      int     `json:"history_size"`
	LineSearch   string  `json:"line_search_fn"`
	ToleranceG   float64 `json:"tolerance_grad"`
	MaxIterWants int     `json:"-"`
}

func (a *ruleAttrs) eps() float64 {
	v, _ := a.Eps.(float64)
	return v
}

func (a *ruleAttrs) decay() float64 {
	switch {
	case a.WeightDecay == nil:
		return 0 // the default
	case *a.WeightDecay == 0:
		return -1
	}
	return *a.WeightDecay
}

// ruled makes the optimizer of a case.
func (a *ruleAttrs) optimizer(kind string, params iter.Seq2[string, *tensor.Tensor]) Optimizer {
	adam := AdamWConfig{LR: a.LR, Beta1: a.Betas[0], Beta2: a.Betas[1], Eps: a.eps(), WeightDecay: a.decay(), AMSGrad: a.AMSGrad, Maximize: a.Maximize}
	moments := MomentsConfig{LR: a.LR, Beta1: a.Betas[0], Beta2: a.Betas[1], Eps: a.eps(), WeightDecay: a.decay(), Decoupled: a.Decoupled, Fading: a.Fading, Maximize: a.Maximize}
	switch kind {
	case "SGD":
		return NewSGD(params, SGDConfig{LR: a.LR, Momentum: a.Momentum, Nesterov: a.Nesterov != nil && *a.Nesterov, WeightDecay: a.decay(), Maximize: a.Maximize})
	case "Adam":
		return NewAdam(params, adam)
	case "AdamW":
		return NewAdamW(params, adam)
	case "RMSprop":
		return NewRMSprop(params, RMSpropConfig{LR: a.LR, Alpha: a.Alpha, Eps: a.eps(), Momentum: a.Momentum, WeightDecay: a.decay(), Centered: a.Centered, Maximize: a.Maximize})
	case "Adagrad":
		return NewAdagrad(params, AdagradConfig{LR: a.LR, LRDecay: a.LRDecay, Initial: a.Initial, Eps: a.eps(), WeightDecay: a.decay(), Maximize: a.Maximize})
	case "NAdam":
		return NewNAdam(params, moments)
	case "RAdam":
		return NewRAdam(params, moments)
	case "Adamax":
		return NewAdamax(params, moments)
	case "Adadelta":
		return NewAdadelta(params, AdadeltaConfig{LR: a.LR, Rho: a.Rho, Eps: a.eps(), WeightDecay: a.decay(), Maximize: a.Maximize})
	case "Adafactor":
		c := AdafactorConfig{LR: a.LR, Beta2Decay: a.Beta2Decay, Threshold: a.D, WeightDecay: a.decay(), Maximize: a.Maximize}
		if pair, ok := a.Eps.([]any); ok {
			c.Eps1, c.Eps2 = pair[0].(float64), pair[1].(float64)
		}
		return NewAdafactor(params, c)
	case "Lion":
		return NewLion(params, LionConfig{LR: a.LR, Beta1: a.Betas[0], Beta2: a.Betas[1], WeightDecay: a.decay(), Maximize: a.Maximize})
	case "ScheduleFree":
		return NewScheduleFree(params, ScheduleFreeConfig{LR: a.LR, Beta1: a.Betas[0], Beta2: a.Betas[1], Eps: a.eps(), WeightDecay: a.decay(), R: a.R, Power: a.Power})
	case "Muon":
		return NewMuon(params, MuonConfig{LR: a.LR, Momentum: a.Momentum, Plain: a.Nesterov != nil && !*a.Nesterov, Steps: a.NSSteps, WeightDecay: a.decay(),
			MatchAdamW: a.Adjust == "match_rms_adamw", Rest: AdamWConfig{LR: a.Rest.LR, Beta1: a.Rest.Betas[0], Beta2: a.Rest.Betas[1], WeightDecay: a.Rest.decay()}})
	case "Adam8bit":
		return NewAdam8bit(params, Adam8bitConfig{LR: a.LR, Beta1: a.Betas[0], Beta2: a.Betas[1], Eps: a.eps(), WeightDecay: a.decay(), Least: 1})
	}
	return nil
}

// problem is one of those of rules_reference.py.
type problem struct {
	ref    map[string]*tensor.Tensor
	params named
	net    bool
}

func newProblem(ref map[string]*tensor.Tensor, name string, dt dtype.DType) *problem {
	p := &problem{ref: map[string]*tensor.Tensor{}, net: name == "net"}
	for _, n := range []string{"x", "y", "target"} {
		p.ref[n] = ref[n].Cast(dt)
	}
	for _, n := range []string{"w", "b", "v"} {
		if n != "v" || p.net {
			p.params = append(p.params, struct {
				name string
				p    *tensor.Tensor
			}{n, tensor.NewParam(ref["init."+n].Cast(dt))})
		}
	}
	return p
}

func (p *problem) loss(e *tensor.Env) *tensor.Tensor {
	h := p.ref["x"].In(e).MatMul(p.params[0].p.In(e)).Add(p.params[1].p.In(e))
	if p.net {
		return h.Tanh().MatMul(p.params[2].p.In(e)).Sub(p.ref["y"].In(e)).Square().Mean()
	}
	return h.Sub(p.ref["x"].In(e).MatMul(p.ref["target"].In(e))).Square().Mean()
}

// ruleBars are how near 100 steps come to the reference's, relative to the largest weight, in float64 and in float32.
var ruleBars = map[dtype.DType]float64{dtype.F64: 1e-9, dtype.F32: 1e-5}

// TestGoldenRules takes 100 steps of each optimizer on two problems, by PyTorch's and by the papers' numbers.
func TestGoldenRules(t *testing.T) {
	var index struct {
		Kept  []int
		Cases []struct {
			Name, Optimizer string
			Attrs           ruleAttrs
		}
	}
	golden.JSON(t, "testdata/rules.json", &index)
	env := freshEnv(t)
	ref := golden.Tensors(t, env, "testdata/rules.safetensors")
	for _, c := range index.Cases {
		if c.Optimizer == "LBFGS" {
			continue
		}
		for _, name := range []string{"squares", "net"} {
			for dt, bar := range ruleBars {
				t.Run(fmt.Sprint(c.Name, " ", name, " ", dt), func(t *testing.T) {
					p := newProblem(ref, name, dt)
					opt := c.Attrs.optimizer(c.Optimizer, p.params.all())
					schedule := Constant(opt.LR())
					if c.Attrs.Warmup > 0 {
						schedule = Warmup(c.Attrs.Warmup, schedule)
					}
					at := 0
					for s := range 100 {
						opt.SetLR(schedule(s))
						e, scope := env.Scope()
						p.loss(e).Backward()
						opt.Step()
						scope.End()
						if s+1 == index.Kept[at] {
							for _, e := range p.params {
								near(t, fmt.Sprintf("%s after step %d", e.name, s+1), e.p, ref[c.Name+"/"+name+"/"+e.name].Select(0, at), bar)
							}
							at++
						}
					}
					if o, ok := opt.(*ScheduleFree); ok {
						before := p.params[0].p.Floats()
						o.Averaged(func() {
							for _, e := range p.params {
								near(t, "average of "+e.name, e.p, ref[c.Name+"/"+name+"/"+e.name+".average"], bar)
							}
						})
						if fmt.Sprint(before) != fmt.Sprint(p.params[0].p.Floats()) {
							t.Error("Averaged leaves other parameters")
						}
					}
				})
			}
		}
	}
}

// near compares by the largest value.
func near(t *testing.T, name string, got, want *tensor.Tensor, bar float64) {
	t.Helper()
	most := 0.
	for _, v := range want.Floats() {
		most = max(most, v, -v)
	}
	golden.Close(t, name, got.Cast(dtype.F64), want, bar, bar*most)
}
