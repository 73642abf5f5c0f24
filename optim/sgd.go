package optim

import (
	"iter"

	"github.com/warpline-ml/warpline/tensor"
)

// SGDConfig configures [SGD]. Of LR and WeightDecay zero means PyTorch's default, given in the comments, and a negative
// number means 0. A negative Momentum or Clip is a mistake.
type SGDConfig struct {
	LR          float64 // 1e-3
	Momentum    float64
	WeightDecay float64 // 0
	Nesterov    bool
	Maximize    bool    // go along the gradient, and not against it
	Clip        float64 // largest 2-norm of all gradients together; 0: they are not clipped
	Rule        Rule    // rates of single parameters; nil: all the same

	Rounding Rounding // of parameters in bfloat16
	Seed     uint64   // of stochastic rounding, which it and the number of the step decide
}

// SGD is stochastic gradient descent, with momentum as PyTorch has it. With g the gradient plus decay·w:
//
//	buf = momentum·buf + g     (g alone in the first update)
//	w = w - lr·buf             (Nesterov: w - lr·(g + momentum·buf))
type SGD struct{ *core }

// NewSGD updates the given parameters.
func NewSGD(params iter.Seq2[string, *tensor.Tensor], c SGDConfig) *SGD {
	var kinds []string
	if c.Momentum != 0 {
		kinds = []string{"momentum_buffer"}
	}
	o := newCore("optim.NewSGD", params, settings{optional(c.LR, 1e-3), optional(c.WeightDecay, 0), c.Clip, c.Rule}, kinds...)
	check("optim.NewSGD", "Momentum", c.Momentum, 0, 1)
	if c.Nesterov && c.Momentum == 0 {
		tensor.Raise("optim.NewSGD", "set Momentum, 0.9 for example", "Nesterov without momentum")
	}
	if c.Momentum != 0 {
		o.momentum = &momentum{v: c.Momentum}
	}
	o.update = func(l *ledger, b *batch) {
		s := tensor.SGDStep{LR: l.rate(b), Skip: l.skip, Scale: b.rates.Scale, WeightDecay: b.rates.WeightDecay, Nesterov: c.Nesterov}
		if o.momentum == nil {
			tensor.SGDInPlace(s, l.scale, b.p, b.g, nil)
		} else {
			s.Momentum = o.momentum.now()
			tensor.SGDInPlace(s, l.scale, b.p, b.g, b.keep[0])
		}
	}
	o.maximize = c.Maximize
	o.rounds("optim.NewSGD", c.Rounding, c.Seed)
	return &SGD{o}
}
