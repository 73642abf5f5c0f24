package optim

import (
	"iter"
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// ruled describes an optimizer whose update is a rule of package ir, one fused operation on every device.
type ruled struct {
	op, rule string
	params   iter.Seq2[string, *tensor.Tensor]
	settings
	kinds    []kind
	values   []float64 // of the rule's settings
	momentum *momentum // the first of values, where it can be changed; nil: it cannot
	coupled  bool      // weight decay is added to the gradient, and not taken from the weight
	maximize bool
	rounding Rounding
	seed     uint64
	numbers  func(e *tensor.Env, l *ledger, b *batch) []*tensor.Tensor // what the rule wants to know of each parameter besides; nil: nothing
}

func (r ruled) core() *core {
	o := newCore(r.op, r.params, r.settings)
	o.keeps(func(*state) []kind { return r.kinds })
	o.maximize = r.maximize
	o.momentum = r.momentum
	o.update = func(l *ledger, b *batch) {
		if r.momentum != nil {
			r.values[0] = r.momentum.now()
		}
		s := tensor.RuleStep{Rule: r.rule, LR: l.rate(b), Scale: b.rates.Scale, Settings: r.values, Skip: l.skip}
		if r.coupled {
			s.Coupled = b.rates.WeightDecay
		} else {
			s.WeightDecay = b.rates.WeightDecay
		}
		if r.numbers == nil {
			tensor.RuleInPlace(s, l.scale, b.p, b.g, b.keep, b.counts)
			return
		}
		e, scope := l.all.Env().NoGrad().Scope()
		defer scope.End()
		tensor.RuleInPlace(s, l.scale, b.p, b.g, b.keep, b.counts, r.numbers(e, l, b))
	}
	o.rounds(r.op, r.rounding, r.seed)
	return o
}

// RMSpropConfig configures [RMSprop]. Of LR, Alpha, Eps and WeightDecay zero means PyTorch's default, given in the comments,
// and a negative number means 0. A negative Momentum or Clip is a mistake.
type RMSpropConfig struct {
	LR          float64 // 1e-2
	Alpha       float64 // 0.99
	Eps         float64 // 1e-8
	Momentum    float64
	WeightDecay float64 // 0
	Centered    bool    // by the variance of gradients, and not the mean of their squares
	Maximize    bool    // go along the gradient, and not against it
	Clip        float64 // largest 2-norm of all gradients together; 0: they are not clipped
	Rule        Rule    // rates of single parameters; nil: all the same

	Rounding Rounding // of parameters in bfloat16
	Seed     uint64   // of stochastic rounding, which it and the number of the step decide
}

// RMSprop divides gradients by the root of a mean of their squares (Tieleman and Hinton, 2012). With g the gradient plus
// decay·w:
//
//	v = α·v + (1-α)·g²
//	w = w - lr·g / (√v + ε)          (centered: of v - m² with m a mean of g; with momentum: of a buffer of these)
type RMSprop struct{ *core }

// NewRMSprop updates the given parameters.
func NewRMSprop(params iter.Seq2[string, *tensor.Tensor], c RMSpropConfig) *RMSprop {
	const op = "optim.NewRMSprop"
	r := ruled{op: op, rule: "rmsprop", params: params, settings: settings{optional(c.LR, 1e-2), optional(c.WeightDecay, 0), c.Clip, c.Rule},
		kinds: plain("square_avg"), values: []float64{optional(c.Alpha, 0.99), optional(c.Eps, 1e-8)}, coupled: true,
		maximize: c.Maximize, rounding: c.Rounding, seed: c.Seed}
	check(op, "Alpha", r.values[0], 0, 1)
	check(op, "Eps", r.values[1], 0, math.Inf(1))
	check(op, "Momentum", c.Momentum, 0, 1)
	if c.Centered {
		r.rule, r.kinds = r.rule+"_centered", append(r.kinds, plain("grad_avg")...)
	}
	if c.Momentum > 0 {
		r.rule, r.kinds, r.values = r.rule+"_momentum", append(r.kinds, plain("momentum_buffer")...), append(r.values, c.Momentum)
	}
	return &RMSprop{r.core()}
}

// AdagradConfig configures [Adagrad]. Of LR, Eps and WeightDecay zero means PyTorch's default, given in the comments, and a
// negative number means 0.
type AdagradConfig struct {
	LR          float64 // 1e-2
	LRDecay     float64 // the rate is divided by 1 + LRDecay·(t-1)
	Initial     float64 // of the sums
	Eps         float64 // 1e-10
	WeightDecay float64 // 0
	Maximize    bool    // go along the gradient, and not against it
	Clip        float64 // largest 2-norm of all gradients together; 0: they are not clipped
	Rule        Rule    // rates of single parameters; nil: all the same

	Rounding Rounding // of parameters in bfloat16
	Seed     uint64   // of stochastic rounding, which it and the number of the step decide
}

// Adagrad divides gradients by the root of the sum of their squares (Duchi, Hazan and Singer, 2011). With g the gradient plus
// decay·w:
//
//	s = s + g²
//	w = w - lr/(1 + decay of the rate·(t-1)) · g / (√s + ε)
type Adagrad struct{ *core }

// NewAdagrad updates the given parameters.
func NewAdagrad(params iter.Seq2[string, *tensor.Tensor], c AdagradConfig) *Adagrad {
	const op = "optim.NewAdagrad"
	check(op, "LRDecay", c.LRDecay, 0, math.Inf(1))
	check(op, "Initial", c.Initial, 0, math.Inf(1))
	return &Adagrad{ruled{op: op, rule: "adagrad", params: params, settings: settings{optional(c.LR, 1e-2), optional(c.WeightDecay, 0), c.Clip, c.Rule},
		kinds: []kind{{name: "sum", value: c.Initial}}, values: []float64{c.LRDecay, checked(op, "Eps", optional(c.Eps, 1e-10), math.Inf(1))}, coupled: true,
		maximize: c.Maximize, rounding: c.Rounding, seed: c.Seed}.core()}
}

// checked is v, which check takes from 0.
func checked(op, what string, v, hi float64) float64 {
	check(op, what, v, 0, hi)
	return v
}

// MomentsConfig configures [NAdam], [RAdam] and [Adamax]. Of LR, Beta1, Beta2, Eps and WeightDecay zero means PyTorch's
// default, given in the comments, and a negative number means 0.
type MomentsConfig struct {
	LR          float64 // RAdam: 1e-3, the others: 2e-3
	Beta1       float64 // 0.9
	Beta2       float64 // 0.999
	Eps         float64 // 1e-8
	WeightDecay float64 // 0
	Decoupled   bool    // weights decay as with AdamW; else the decay is added to the gradient
	Fading      float64 // NAdam, momentum_decay: 4e-3
	Maximize    bool    // go along the gradient, and not against it
	Clip        float64 // largest 2-norm of all gradients together; 0: they are not clipped
	Rule        Rule    // rates of single parameters; nil: all the same

	Rounding Rounding // of parameters in bfloat16
	Seed     uint64   // of stochastic rounding, which it and the number of the step decide
}

func (c *MomentsConfig) ruled(op, rule string, lr float64, params iter.Seq2[string, *tensor.Tensor], kinds ...string) ruled {
	return ruled{op: op, rule: rule, params: params, settings: settings{optional(c.LR, lr), optional(c.WeightDecay, 0), c.Clip, c.Rule}, kinds: plain(kinds...),
		values: []float64{checked(op, "Beta1", optional(c.Beta1, 0.9), 1), checked(op, "Beta2", optional(c.Beta2, 0.999), 1),
			checked(op, "Eps", optional(c.Eps, 1e-8), math.Inf(1))},
		coupled: !c.Decoupled, maximize: c.Maximize, rounding: c.Rounding, seed: c.Seed}
}

// RAdam is Adam that leaves out the division until its variance is known well enough (Liu et al., 2020).
type RAdam struct{ *core }

// NewRAdam updates the given parameters.
func NewRAdam(params iter.Seq2[string, *tensor.Tensor], c MomentsConfig) *RAdam {
	return &RAdam{c.ruled("optim.NewRAdam", "radam", 1e-3, params, "exp_avg", "exp_avg_sq").core()}
}

// Adamax is Adam by the largest gradient in place of the second moment (Kingma and Ba, 2015). Weights do not decay
// decoupled.
type Adamax struct{ *core }

// NewAdamax updates the given parameters.
func NewAdamax(params iter.Seq2[string, *tensor.Tensor], c MomentsConfig) *Adamax {
	c.Decoupled = false
	return &Adamax{c.ruled("optim.NewAdamax", "adamax", 2e-3, params, "exp_avg", "exp_inf").core()}
}

// NAdam is Adam with Nesterov's momentum (Dozat, 2016), which grows with the steps t to β₁: μ(t) = β₁·(1 - 0.96^(t·fading)/2).
type NAdam struct{ *core }

// NewNAdam updates the given parameters.
func NewNAdam(params iter.Seq2[string, *tensor.Tensor], c MomentsConfig) *NAdam {
	const op = "optim.NewNAdam"
	r := c.ruled(op, "nadam", 2e-3, params, "exp_avg", "exp_avg_sq")
	fading := math.Pow(0.96, checked(op, "Fading", optional(c.Fading, 4e-3), math.Inf(1)))
	r.values = append(r.values, fading)
	products := momentumProducts(r.values[0], fading)
	r.numbers = func(e *tensor.Env, l *ledger, b *batch) (list []*tensor.Tensor) {
		all := l.tables[0].In(e).IndexSelect(0, l.all.In(e).Clamp(0, float64(len(products)-1)))
		for _, s := range b.states {
			list = append(list, all.Select(0, s.index))
		}
		return list
	}
	o := r.core()
	o.tables = [][]float64{products}
	return &NAdam{o}
}

// momentumProducts are the products of NAdam's momenta over the steps to each, until no float64 tells 1 from 1 less them.
func momentumProducts(beta1, fading float64) []float64 {
	const most = 1 << 20
	list, f := []float64{1}, 1.
	for p := 1.; p > 1e-18 && len(list) < most; {
		f *= fading
		p *= beta1 * (1 - 0.5*f)
		list = append(list, p)
	}
	return list
}

// AdadeltaConfig configures [Adadelta]. Of LR, Rho, Eps and WeightDecay zero means PyTorch's default, given in the comments,
// and a negative number means 0.
type AdadeltaConfig struct {
	LR          float64 // 1
	Rho         float64 // 0.9
	Eps         float64 // 1e-6
	WeightDecay float64 // 0
	Maximize    bool    // go along the gradient, and not against it
	Clip        float64 // largest 2-norm of all gradients together; 0: they are not clipped
	Rule        Rule    // rates of single parameters; nil: all the same

	Rounding Rounding // of parameters in bfloat16
	Seed     uint64   // of stochastic rounding, which it and the number of the step decide
}

// Adadelta scales gradients by what they have moved (Zeiler, 2012).
type Adadelta struct{ *core }

// NewAdadelta updates the given parameters.
func NewAdadelta(params iter.Seq2[string, *tensor.Tensor], c AdadeltaConfig) *Adadelta {
	const op = "optim.NewAdadelta"
	return &Adadelta{ruled{op: op, rule: "adadelta", params: params, settings: settings{optional(c.LR, 1), optional(c.WeightDecay, 0), c.Clip, c.Rule},
		kinds: plain("square_avg", "acc_delta"), coupled: true, maximize: c.Maximize, rounding: c.Rounding, seed: c.Seed,
		values: []float64{checked(op, "Rho", optional(c.Rho, 0.9), 1), checked(op, "Eps", optional(c.Eps, 1e-6), math.Inf(1))}}.core()}
}

// LionConfig configures [Lion]. Of LR, Beta1, Beta2 and WeightDecay zero means the default, given in the comments, and a
// negative number means 0.
type LionConfig struct {
	LR          float64 // 1e-4
	Beta1       float64 // 0.9
	Beta2       float64 // 0.99
	WeightDecay float64 // 0
	Maximize    bool    // go along the gradient, and not against it
	Clip        float64 // largest 2-norm of all gradients together; 0: they are not clipped
	Rule        Rule    // rates of single parameters; nil: all the same

	Rounding Rounding // of parameters in bfloat16
	Seed     uint64   // of stochastic rounding, which it and the number of the step decide
}

// Lion goes by the sign of a mean of gradients (Chen et al., 2023):
//
//	w = w · (1 - lr·decay) - lr·sign(β₁·m + (1-β₁)·g)
//	m = β₂·m + (1-β₂)·g
type Lion struct{ *core }

// NewLion updates the given parameters.
func NewLion(params iter.Seq2[string, *tensor.Tensor], c LionConfig) *Lion {
	const op = "optim.NewLion"
	return &Lion{ruled{op: op, rule: "lion", params: params, settings: settings{optional(c.LR, 1e-4), optional(c.WeightDecay, 0), c.Clip, c.Rule},
		kinds: plain("exp_avg"), maximize: c.Maximize, rounding: c.Rounding, seed: c.Seed,
		values: []float64{checked(op, "Beta1", optional(c.Beta1, 0.9), 1), checked(op, "Beta2", optional(c.Beta2, 0.99), 1)}}.core()}
}

// ScheduleFreeConfig configures [ScheduleFree]. Of LR, Beta1, Beta2, Eps, WeightDecay and Power zero means the default, given in
// the comments, and a negative number means 0.
type ScheduleFreeConfig struct {
	LR          float64 // 2.5e-3
	Beta1       float64 // 0.9
	Beta2       float64 // 0.999
	Eps         float64 // 1e-8
	WeightDecay float64 // 0
	R           float64 // weights of the average grow with this power of the step
	Power       float64 // and with this power of the largest rate so far: 2
	Maximize    bool    // go along the gradient, and not against it
	Clip        float64 // largest 2-norm of all gradients together; 0: they are not clipped
	Rule        Rule    // rates of single parameters; nil: all the same

	Rounding Rounding // of parameters in bfloat16
	Seed     uint64   // of stochastic rounding, which it and the number of the step decide
}

// ScheduleFree is AdamW that needs no falling rate (Defazio et al., 2024): the parameters lie between a sequence z, which goes
// by the gradients, and its average x, which is what has been learnt. A warm-up is a rate that rises: SetLR. With
// c the share of the step in the average, y the parameter and u = g/(√(v/(1-β₂ᵗ)) + ε) + decay·y:
//
//	y = y + c·(z-y) + lr·(β₁·(1-c) - 1)·u
//	z = z - lr·u
//
// The share goes by the rate of the first group of parameters. Models are evaluated, and saved for use, with the average: see
// Averaged. Checkpoints are of y.
type ScheduleFree struct {
	*core
	beta1 float64
}

// NewScheduleFree updates the given parameters.
func NewScheduleFree(params iter.Seq2[string, *tensor.Tensor], c ScheduleFreeConfig) *ScheduleFree {
	const op = "optim.NewScheduleFree"
	beta1 := optional(c.Beta1, 0.9)
	if check(op, "Beta1", beta1, 0, 1); beta1 == 0 {
		tensor.Raise(op, "give a number above 0", "Beta1 is 0: the average cannot be told from the parameters")
	}
	r := ruled{op: op, rule: "schedule_free", params: params, settings: settings{optional(c.LR, 2.5e-3), optional(c.WeightDecay, 0), c.Clip, c.Rule},
		kinds: []kind{{name: "z", copy: true}, {name: "exp_avg_sq"}}, maximize: c.Maximize, rounding: c.Rounding, seed: c.Seed,
		values: []float64{beta1, checked(op, "Beta2", optional(c.Beta2, 0.999), 1), checked(op, "Eps", optional(c.Eps, 1e-8), math.Inf(1))}}
	const k, most, sum, share = 0, 1, 2, 3
	r.numbers = func(_ *tensor.Env, l *ledger, b *batch) (list []*tensor.Tensor) {
		for range b.p {
			list = append(list, l.numbers[share])
		}
		return list
	}
	o := r.core()
	o.numbers = []number{{name: "k"}, {name: "lr_max"}, {name: "weight_sum"}, {name: "share"}}
	power := optional(c.Power, 2)
	o.advance = func(e *tensor.Env, l *ledger) {
		skip := l.skip.In(e).Cast(dtype.Bool)
		at := func(i int) *tensor.Tensor { return l.numbers[i].In(e) }
		constant := func(v float64) *tensor.Tensor { return e.FullOf(dtype.F64, v) }
		n, rate := at(k).AddScalar(1), at(most).Maximum(l.rates[0].cell.In(e))
		weight := n.Pow(constant(c.R)).Mul(rate.Pow(constant(power)))
		total := at(sum).Add(weight)
		part := tensor.Where(total.Eq(constant(0)), constant(0), weight.Div(total))
		for i, v := range []*tensor.Tensor{n, rate, total, part} {
			at(i).CopyInPlace(tensor.Where(skip, at(i), v))
		}
	}
	return &ScheduleFree{o, beta1}
}

// Averaged calls f with the parameters that have been learnt, the average, and puts those of training back to the bit. It takes
// the memory of a copy of them meanwhile.
func (o *ScheduleFree) Averaged(f func()) {
	o.instead(f, func(s *state, y *tensor.Tensor) *tensor.Tensor {
		return y.Cast(dtype.F64).Lerp(s.value(0).To(y.Env()).Cast(dtype.F64), 1-1/o.beta1)
	})
}
