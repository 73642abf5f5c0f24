package optim

import (
	"iter"
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// ASGDConfig configures [ASGD]. Of LR, Lambda, Alpha, T0 and WeightDecay zero means PyTorch's default, given in the comments, and a
// negative number means 0.
type ASGDConfig struct {
	LR          float64 // 1e-2
	Lambda      float64 // lambd, how fast weights and the rate fall: 1e-4
	Alpha       float64 // the power with which the rate falls: 0.75
	T0          float64 // the step after which the average begins: 1e6
	WeightDecay float64 // 0
	Maximize    bool    // go along the gradient, and not against it
	Clip        float64 // largest 2-norm of all gradients together; 0: they are not clipped
	Rule        Rule    // rates of single parameters; nil: all the same

	Rounding Rounding // of parameters in bfloat16
	Seed     uint64   // of stochastic rounding, which it and the number of the step decide
}

// ASGD is descent whose average is what has been learnt (Polyak and Juditsky, 1992). With g the gradient plus decay·w and t the
// number of the parameter's update, from 1:
//
//	η = lr / (1 + λ·lr·(t-1))^α
//	w = w·(1 - λ·η) - η·g
//	a = a + (w-a) / max(1, t-1-T0)
//
// A rate that changes counts from the next step on; PyTorch's from the one after it.
type ASGD struct{ *core }

// NewASGD updates the given parameters.
func NewASGD(params iter.Seq2[string, *tensor.Tensor], c ASGDConfig) *ASGD {
	const op = "optim.NewASGD"
	lambda, alpha := checked(op, "Lambda", optional(c.Lambda, 1e-4), math.Inf(1)), checked(op, "Alpha", optional(c.Alpha, 0.75), math.Inf(1))
	r := ruled{op: op, rule: "asgd", params: params, settings: settings{optional(c.LR, 1e-2), optional(c.WeightDecay, 0), c.Clip, c.Rule},
		kinds: []kind{{name: "ax", copy: true}}, values: []float64{lambda, checked(op, "T0", optional(c.T0, 1e6), math.Inf(1))}, coupled: true,
		maximize: c.Maximize, rounding: c.Rounding, seed: c.Seed}
	r.numbers = func(e *tensor.Env, l *ledger, b *batch) (list []*tensor.Tensor) {
		rate := l.rate(b).In(e).Scale(b.rates.Scale)
		before := l.all.In(e).Cast(dtype.F64).AddScalar(-1)
		eta := rate.Div(before.Mul(rate).Scale(lambda).AddScalar(1).Pow(e.FullOf(dtype.F64, alpha)))
		for _, s := range b.states {
			list = append(list, eta.Select(0, s.index))
		}
		return list
	}
	return &ASGD{r.core()}
}

// Averaged calls f with the average of the parameters, and puts those of training back to the bit. It takes the memory of a copy of them
// meanwhile.
func (o *ASGD) Averaged(f func()) {
	o.instead(f, func(s *state, w *tensor.Tensor) *tensor.Tensor { return s.value(0).To(w.Env()) })
}

// instead calls f with other values of the parameters that have been updated, which of gives, and puts theirs back to the bit.
func (c *core) instead(f func(), of func(s *state, w *tensor.Tensor) *tensor.Tensor) {
	for _, s := range c.states {
		if !s.seen {
			continue
		}
		e, scope := s.p.Env().NoGrad().Scope()
		defer scope.End()
		w := s.p.In(e)
		was := w.Clone()
		defer s.p.CopyInPlace(was)
		s.p.CopyInPlace(of(s, w).Cast(s.p.DType()))
	}
	f()
}
