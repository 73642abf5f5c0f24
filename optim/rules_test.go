package optim

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/internal/testutil/golden"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// ruleAttrs are the arguments of rules_reference.py, by PyTorch's names.
type ruleAttrs struct {
	LR          float64
	Betas       [2]float64
	Eps         any
	WeightDecay *float64 `json:"weight_decay"`
	Momentum    float64
	Nesterov    *bool
	Maximize    bool
	AMSGrad     bool `json:"amsgrad"`
	Centered    bool
	Alpha       float64
	LRDecay     float64 `json:"lr_decay"`
	Initial     float64 `json:"initial_accumulator_value"`
	Decoupled   bool    `json:"decoupled_weight_decay"`
	Fading      float64 `json:"momentum_decay"`
	Rho         float64
	Etas        [2]float64
	StepSizes   [2]float64 `json:"step_sizes"`
	Lambd       float64
	T0          *float64
	Beta2Decay  float64 `json:"beta2_decay"`
	D           float64
	R           float64
	Power       float64 `json:"weight_lr_power"`
	Warmup      int
	NSSteps     int `json:"ns_steps"`
	Adjust      string
	Rest        *ruleAttrs
	MaxIter     int     `json:"max_iter"`
	History     int     `json:"history_size"`
	LineSearch  string  `json:"line_search_fn"`
	ToleranceG  float64 `json:"tolerance_grad"`
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
	case "Rprop":
		return NewRprop(params, RpropConfig{LR: a.LR, Less: a.Etas[0], More: a.Etas[1], Least: a.StepSizes[0], Most: a.StepSizes[1], Maximize: a.Maximize})
	case "ASGD":
		c := ASGDConfig{LR: a.LR, Lambda: a.Lambd, Alpha: a.Alpha, WeightDecay: a.decay(), Maximize: a.Maximize}
		if a.T0 != nil {
			c.T0 = *a.T0
			if c.T0 == 0 {
				c.T0 = -1
			}
		}
		return NewASGD(params, c)
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

// minimizer makes an L-BFGS of a case.
func (a *ruleAttrs) minimizer(params iter.Seq2[string, *tensor.Tensor]) *LBFGS {
	return NewLBFGS(params, LBFGSConfig{LR: a.LR, Iterations: a.MaxIter, History: a.History, Wolfe: a.LineSearch == "strong_wolfe", Gradient: a.ToleranceG, Maximize: a.Maximize})
}

// TestGoldenRules takes 100 steps of each optimizer on two problems, by PyTorch's and by the papers' numbers: all of them on the CPU,
// and on a simulated card, which is slow, some in each run.
func TestGoldenRules(t *testing.T) {
	var index struct {
		Kept  []int
		Cases []struct {
			Name, Optimizer string
			Attrs           ruleAttrs
			Kept            map[string][]int
		}
	}
	golden.JSON(t, "testdata/rules.json", &index)
	env := freshEnv(t)
	ref := golden.Tensors(t, env, "testdata/rules.safetensors")
	spread := testutil.NewSpread(t, testutil.Seed(t), 12)
	for _, c := range index.Cases {
		for _, name := range []string{"squares", "net"} {
			for dt, bar := range ruleBars {
				title := fmt.Sprint(c.Name, " ", name, " ", dt)
				if testutil.Device() != "cpu" && !spread.Takes(title) {
					continue
				}
				t.Run(title, func(t *testing.T) {
					p := newProblem(ref, name, dt)
					if c.Optimizer == "LBFGS" {
						minimizes(t, env, c.Attrs.minimizer(p.params.all()), p, c.Kept[name], ref, c.Name+"/"+name+"/")
						return
					}
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
					if o, ok := opt.(interface{ Averaged(func()) }); ok {
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

// minimizes takes 100 turns. Weights are compared in float64, as long as PyTorch's own do not hang on the last digits of the data;
// after all turns the loss is as low.
func minimizes(t *testing.T, env *tensor.Env, opt *LBFGS, p *problem, kept []int, ref map[string]*tensor.Tensor, at string) {
	losses := ref[at+"loss"].Floats()
	first := p.loss(env).Item()
	for s := range 100 {
		opt.Minimize(p.loss)
		if i := slices.Index(kept, s+1); i >= 0 && p.params[0].p.DType() == dtype.F64 {
			most := 0.
			for _, e := range p.params {
				for _, v := range ref[at+e.name].Select(0, i).Floats() {
					most = max(most, v, -v)
				}
			}
			for _, e := range p.params {
				golden.Close(t, fmt.Sprintf("%s after %d turns", e.name, s+1), e.p, ref[at+e.name].Select(0, i), 0, 1e-5*most)
			}
		}
	}
	if last := p.loss(env).Item(); !(last <= losses[2]+1e-3*first) {
		t.Errorf("the loss %v becomes %v after 100 turns, PyTorch's %v", first, last, losses[2])
	}
	if len(kept) == 0 {
		t.Error("nothing is compared")
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

// TestGoldenAverages: means of weights are AveragedModel's, under its names.
func TestGoldenAverages(t *testing.T) {
	env := freshEnv(t)
	ref := golden.Tensors(t, env, "testdata/rules.safetensors")
	for _, name := range []string{"EMA", "SWA"} {
		for _, captured := range []bool{false, true} {
			t.Run(fmt.Sprint(name, captured), func(t *testing.T) {
				layer, norm := nn.NewLinear(env, 6, 5), nn.NewBatchNorm(env, 5)
				model := nn.Sequential{layer, norm}
				nn.Cast(model, dtype.F64)
				layer.Weight.CopyInPlace(ref["init.w"].Transpose(0, 1))
				layer.Bias.CopyInPlace(ref["init.b"])
				mean := nn.NewSWA(model)
				if name == "EMA" {
					mean = nn.NewEMA(model, 0.9)
				}
				opt := NewSGD(nn.Params(model), SGDConfig{LR: 0.1})
				type batch struct{ X, Y *tensor.Tensor }
				step := func(update bool) func(b batch) *tensor.Tensor {
					return func(b batch) *tensor.Tensor {
						loss := norm.Forward(layer.Forward(b.X).Reshape(12, 5, 1)).Reshape(12, 5).Sub(b.Y).Square().Mean()
						loss.Backward()
						opt.Step()
						if update {
							mean.Update()
						}
						return loss
					}
				}
				first, rest := step(false), step(true)
				if captured {
					c := tensor.Capture(env, rest)
					defer c.Close()
					rest = c.Run
				}
				for s := range 30 {
					e, scope := env.Scope()
					b := batch{ref["x"].In(e).Clone(), ref["x"].In(e).MatMul(ref["target"].In(e))}
					if s < 3 {
						first(b)
					} else {
						rest(b)
					}
					scope.End()
				}
				saved := map[string]*tensor.Tensor{}
				for path, p := range nn.Params(mean) {
					saved[path] = p
				}
				for path, p := range nn.Buffers(mean) {
					saved[path] = p
				}
				for path, want := range ref {
					if path, ok := strings.CutPrefix(path, name+"/"); ok && !strings.HasPrefix(path, "update_bn.") {
						if saved[path] == nil {
							t.Errorf("%s is not saved, but %v", path, slices.Sorted(maps.Keys(saved)))
							continue
						}
						near(t, path, saved[path], want.Cast(dtype.F64), 1e-6)
					}
				}
				nn.UpdateBatchNorm(mean.Model, func() {
					layer, norm := mean.Model[0].(*nn.Linear), mean.Model[1].(*nn.BatchNorm)
					for _, rows := range [][2]int{{0, 5}, {5, 7}, {7, 12}} {
						norm.Forward(layer.Forward(ref["x"].Slice(0, rows[0], rows[1])))
					}
				})
				checked := 0
				for path, want := range ref {
					if path, ok := strings.CutPrefix(path, name+"/update_bn."); ok {
						near(t, "update_bn's "+path, saved[path], want.Cast(dtype.F64), 1e-6)
						checked++
					}
				}
				if checked != 3 {
					t.Errorf("%d statistics are compared, want 3", checked)
				}
			})
		}
	}
}
