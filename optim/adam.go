package optim

import (
	"iter"
	"math"

	"github.com/warpline-ml/warpline/tensor"
)

// AdamWConfig configures [AdamW] and [Adam]. Of LR, Beta1, Beta2, Eps and WeightDecay zero means PyTorch's default, given
// in the comments, and a negative number means 0. A negative Clip is a mistake.
type AdamWConfig struct {
	LR          float64 // 1e-3
	Beta1       float64 // 0.9
	Beta2       float64 // 0.999
	Eps         float64 // 1e-8
	WeightDecay float64 // AdamW: 0.01, Adam: 0
	AMSGrad     bool    // by the largest second moment so far (Reddi, Kale and Kumar, 2018)
	Maximize    bool    // go along the gradient, and not against it
	Clip        float64 // largest 2-norm of all gradients together; 0: they are not clipped
	Rule        Rule    // rates of single parameters; nil: all the same

	Rounding Rounding // of parameters in bfloat16
	Seed     uint64   // of stochastic rounding, which it and the number of the step decide
}

// AdamW is Adam with decoupled weight decay (Loshchilov and Hutter, 2019). With g the gradient and t the number of the
// parameter's update, from 1:
//
//	w = w · (1 - lr·decay)
//	m = β₁·m + (1-β₁)·g
//	v = β₂·v + (1-β₂)·g²
//	w = w - lr/(1-β₁ᵗ) · m / (√(v/(1-β₂ᵗ)) + ε)
type AdamW struct{ *core }

// NewAdamW updates the given parameters.
func NewAdamW(params iter.Seq2[string, *tensor.Tensor], c AdamWConfig) *AdamW {
	return &AdamW{newAdam("optim.NewAdamW", params, c, optional(c.WeightDecay, 0.01), false)}
}

// Adam adds decay·w to the gradient instead of decaying w (Kingma and Ba, 2015).
type Adam struct{ *core }

// NewAdam updates the given parameters.
func NewAdam(params iter.Seq2[string, *tensor.Tensor], c AdamWConfig) *Adam {
	return &Adam{newAdam("optim.NewAdam", params, c, optional(c.WeightDecay, 0), true)}
}

func newAdam(op string, params iter.Seq2[string, *tensor.Tensor], c AdamWConfig, decay float64, coupled bool) *core {
	m := &momentum{v: checked(op, "Beta1", optional(c.Beta1, 0.9), 1)}
	if c.AMSGrad {
		return ruled{op: op, rule: "amsgrad", params: params, settings: settings{optional(c.LR, 1e-3), decay, c.Clip, c.Rule}, coupled: coupled,
			kinds: plain("exp_avg", "exp_avg_sq", "max_exp_avg_sq"), maximize: c.Maximize, rounding: c.Rounding, seed: c.Seed,
			values: []float64{m.v, checked(op, "Beta2", optional(c.Beta2, 0.999), 1),
				checked(op, "Eps", optional(c.Eps, 1e-8), math.Inf(1))}, momentum: m}.core()
	}
	o := newCore(op, params, settings{optional(c.LR, 1e-3), decay, c.Clip, c.Rule}, "exp_avg", "exp_avg_sq")
	step := tensor.AdamWStep{Beta2: optional(c.Beta2, 0.999), Eps: optional(c.Eps, 1e-8), Coupled: coupled}
	check(op, "Beta2", step.Beta2, 0, 1)
	check(op, "Eps", step.Eps, 0, math.Inf(1))
	o.update = func(l *ledger, b *batch) {
		s := step
		s.Beta1 = m.now()
		s.LR, s.Skip, s.Scale, s.WeightDecay = l.rate(b), l.skip, b.rates.Scale, b.rates.WeightDecay
		tensor.AdamWInPlace(s, l.scale, b.p, b.g, b.keep[0], b.keep[1], b.counts)
	}
	o.momentum, o.maximize = m, c.Maximize
	o.rounds(op, c.Rounding, c.Seed)
	return o
}
