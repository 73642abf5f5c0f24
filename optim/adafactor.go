package optim

import (
	"iter"
	"math"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// AdafactorConfig configures [Adafactor]. Of LR, Beta2Decay, Eps2, Threshold and WeightDecay zero means PyTorch's default, given
// in the comments.
type AdafactorConfig struct {
	LR          float64 // the largest rate; that of step t is at most 1/√t: 1e-2
	Beta2Decay  float64 // the newest square counts t to this power: -0.8
	Eps1        float64 // least root of a variance; 0: the spacing at 1 of the parameter's dtype
	Eps2        float64 // least root mean square of a parameter, by which the rate is multiplied: 1e-3
	Threshold   float64 // largest root mean square of an update, d: 1
	WeightDecay float64 // 0
	Maximize    bool    // go along the gradient, and not against it
	Clip        float64 // largest 2-norm of all gradients together; 0: they are not clipped
	Rule        Rule    // rates of single parameters; nil: all the same

	Rounding Rounding // of parameters in bfloat16
	Seed     uint64   // of stochastic rounding, which it and the number of the step decide
}

// Adafactor keeps of a matrix's second moments the means of rows and of columns alone (Shazeer and Stern, 2018). A parameter of
// more dimensions is a stack of matrices in its last two; one with less than two keeps all.
type Adafactor struct{ *core }

// NewAdafactor updates the given parameters.
func NewAdafactor(params iter.Seq2[string, *tensor.Tensor], c AdafactorConfig) *Adafactor {
	const op = "optim.NewAdafactor"
	o := newCore(op, params, settings{optional(c.LR, 1e-2), optional(c.WeightDecay, 0), c.Clip, c.Rule})
	decay := c.Beta2Decay
	if decay == 0 {
		decay = -0.8
	}
	if !(decay < 0) || math.IsInf(decay, 0) {
		tensor.Raise(op, "give a number below 0", "Beta2Decay is %v", decay)
	}
	least, threshold := checked(op, "Eps2", optional(c.Eps2, 1e-3), math.Inf(1)), positive(op, "Threshold", optional(c.Threshold, 1))
	check(op, "Eps1", c.Eps1, 0, math.Inf(1))
	o.maximize = c.Maximize
	o.keeps(func(s *state) []kind {
		n := s.p.Rank()
		if n < 2 {
			return plain("variance")
		}
		rows, columns := slices.Clone(s.p.Shape()), slices.Clone(s.p.Shape())
		rows[n-1], columns[n-2] = 1, 1
		return []kind{{name: "row_var", shape: rows}, {name: "col_var", shape: columns}}
	})
	for _, s := range o.states {
		s.family = string(rune('0' + min(s.p.Rank(), 2)))
	}
	o.update = composed(func(u *composition) (*tensor.Tensor, []*tensor.Tensor) {
		eps := c.Eps1
		if eps == 0 {
			eps = u.s.p.DType().Epsilon()
		}
		rho := u.lr.Minimum(u.t.Rsqrt())
		alpha := u.rms(u.p).Maximum(u.number(least)).Mul(rho)
		variance, keep := u.variance(u.t.Pow(u.number(decay)), eps)
		step := variance.Clamp(max(eps*eps, smallest(u.wide)), math.Inf(1)).Rsqrt().Mul(u.g)
		over := u.rms(step).Scale(1 / threshold).Maximum(u.number(1))
		return u.decayed().Sub(u.by(step, alpha.Div(over))), keep
	})
	o.rounds(op, c.Rounding, c.Seed)
	return &Adafactor{o}
}

// smallest is the least normal number of a dtype: the square of a small one may be 0.
func smallest(dt dtype.DType) float64 {
	if dt == dtype.F64 {
		return 0x1p-1022
	}
	return 0x1p-126
}

// variance is Adafactor's estimate after a gradient, with its next state.
func (u *composition) variance(share *tensor.Tensor, eps float64) (v *tensor.Tensor, keep []*tensor.Tensor) {
	n, g2 := u.g.Rank(), u.g.Square()
	if n < 2 {
		v = u.towards(u.keep[0].Cast(u.wide), g2, share)
		return v, []*tensor.Tensor{v}
	}
	mean := func(x *tensor.Tensor, axis int) *tensor.Tensor {
		shape := slices.Clone(x.Shape())
		shape[axis] = 1
		return x.Mean(axis).Reshape(shape...)
	}
	rows := u.towards(u.keep[0].Cast(u.wide), mean(g2, n-1), share)
	columns := u.towards(u.keep[1].Cast(u.wide), mean(g2, n-2), share)
	return rows.Mul(columns).Div(mean(rows, n-2).Clamp(eps, math.Inf(1))), []*tensor.Tensor{rows, columns}
}
