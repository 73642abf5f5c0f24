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
	a := &adafactor{decay: decay, eps: c.Eps1, least: least, threshold: threshold}
	o.update = a.update
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

// adafactor updates parameters, those of a shape together. Its means are taken in float64: engines sum a stack in another order than
// one parameter, as offloaded ones come, and what is left of that in float64 is nothing in what they are rounded to.
type adafactor struct{ decay, eps, least, threshold float64 }

// largestPart are the elements of parameters that are updated together where that takes memory, unless one alone has more.
const largestPart = 1 << 22

func (a *adafactor) update(l *ledger, b *batch) {
	e, scope := l.all.Env().NoGrad().Scope()
	defer scope.End()
	t := l.all.In(e).Cast(dtype.F64)
	share, rate := t.Pow(e.FullOf(dtype.F64, a.decay)), t.Rsqrt().Minimum(l.rate(b).In(e).Scale(b.rates.Scale))
	for _, part := range b.byShape(largestPart) {
		e, scope := e.Scope()
		a.part(e, l, part, share, rate)
		scope.End()
	}
}

// part updates parameters of one shape, as a stack of them. share is what the newest square counts, and rate the largest rate, f64 of
// every parameter of the optimizer.
func (a *adafactor) part(e *tensor.Env, l *ledger, b *batch, share, rate *tensor.Tensor) {
	g := b.stacked(e, b.g)
	g = g.Mul(l.scale.In(e).Cast(g.DType()))
	b.remember(e, l, squareMeans(g.Cast(dtype.F64).Square()), share)
	eps := a.eps
	if eps == 0 {
		eps = b.states[0].p.DType().Epsilon()
	}
	step := b.variance(e, eps).Clamp(max(eps*eps, smallest(g.DType())), math.Inf(1)).Rsqrt().Mul(g)
	over := rms(step).Scale(1/a.threshold).Clamp(1, math.Inf(1))
	p := b.stacked(e, b.p)
	alpha := rms(p).Clamp(a.least, math.Inf(1)).Div(over).Mul(tensor.Stack(0, b.of(rate)...).In(e))
	shape := slices.Repeat([]int{1}, p.Rank())
	shape[0] = len(b.p)
	p = p.Mul(l.rate(b).In(e).Scale(-b.rates.Scale * b.rates.WeightDecay).AddScalar(1).Cast(p.DType())).Sub(step.Mul(alpha.Cast(p.DType()).Reshape(shape...)))
	b.towards(l, e.FullOf(dtype.F32, 1), b.p, p.Cast(b.p[0].DType()).Unbind(0), slices.Repeat([]*tensor.Tensor{e.FullOf(dtype.F64, 1)}, len(b.p)))
}

// remember moves what is kept towards new means.
func (b *batch) remember(e *tensor.Env, l *ledger, means []*tensor.Tensor, share *tensor.Tensor) {
	shares := b.of(share)
	for k, mean := range means {
		b.towards(l, e.FullOf(dtype.F32, 1), b.keep[k], mean.Cast(b.keep[k][0].DType()).Unbind(0), shares)
	}
}

// towards moves values of the parameters by shares, f64 each, towards others, which are multiplied by scale first.
func (b *batch) towards(l *ledger, scale *tensor.Tensor, was, to, shares []*tensor.Tensor) {
	tensor.RuleInPlace(tensor.RuleStep{Rule: "mean_step", LR: l.rate(b), Skip: l.skip}, scale, was, to, nil, b.counts, shares)
}

// squareMeans are those of squares that are kept: over rows and columns, or all of them.
func squareMeans(squares *tensor.Tensor) []*tensor.Tensor {
	if n := squares.Rank(); n > 2 {
		return []*tensor.Tensor{flat(squares, n-1), flat(squares, n-2)}
	}
	return []*tensor.Tensor{squares}
}

// flat is a mean over an axis that stays, as one of 1.
func flat(x *tensor.Tensor, axis int) *tensor.Tensor {
	shape := slices.Clone(x.Shape())
	shape[axis] = 1
	return x.Mean(axis).Reshape(shape...)
}

// variance is the estimate by what is kept.
func (b *batch) variance(e *tensor.Env, eps float64) *tensor.Tensor {
	v := b.stacked(e, b.keep[0])
	if len(b.keep) == 1 {
		return v
	}
	mean := flat(v.Cast(dtype.F64), v.Rank()-2).Cast(v.DType())
	return v.Div(mean.Clamp(eps, math.Inf(1))).Mul(b.stacked(e, b.keep[1]))
}

// rms are the roots of the means of squares of each of a stack, f64.
func rms(x *tensor.Tensor) *tensor.Tensor {
	n := x.Dim(0)
	return x.Cast(dtype.F64).Square().Reshape(n, elements(x)/max(n, 1)).Mean(1).Sqrt()
}

// stacked are tensors of the batch along a new axis, in float32 or float64.
func (b *batch) stacked(e *tensor.Env, list []*tensor.Tensor) *tensor.Tensor {
	in := make([]*tensor.Tensor, len(list))
	for i, t := range list {
		in[i] = t.In(e)
	}
	return wide(tensor.Stack(0, in...))
}

// wide is x in what updates are computed in.
func wide(x *tensor.Tensor) *tensor.Tensor {
	if x.DType() == dtype.F64 {
		return x
	}
	return x.Cast(dtype.F32)
}

// of are the numbers of the batch's parameters, from those of all.
func (b *batch) of(all *tensor.Tensor) (list []*tensor.Tensor) {
	for _, s := range b.states {
		list = append(list, all.Select(0, s.index))
	}
	return list
}
