package optim

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// composed makes an update of operations, one parameter after the other. f is given the parameter, its scaled gradient and its
// state in an environment of the update's, and gives their next values in this order; where the step is skipped they are
// dropped.
func composed(f func(u *composition) (p *tensor.Tensor, keep []*tensor.Tensor)) func(l *ledger, b *batch) {
	return func(l *ledger, b *batch) {
		for i := range b.p {
			e, scope := b.p[i].Env().NoGrad().Scope()
			u := &composition{e: e, l: l, s: b.states[i], rates: b.rates, t: b.counts[i].In(e).Cast(dtype.F64)}
			u.wide = dtype.F32
			if b.p[i].DType() == dtype.F64 {
				u.wide = dtype.F64
			}
			u.p = b.p[i].In(e).Cast(u.wide)
			u.g = b.g[i].In(e).Cast(u.wide).Mul(l.scale.In(e).Cast(u.wide))
			u.lr = l.rate(b).In(e).Scale(b.rates.Scale)
			skip := l.skip.In(e).Cast(dtype.Bool)
			for _, k := range b.keep {
				u.keep = append(u.keep, k[i].In(e))
			}
			p, keep := f(u)
			store := func(at, v *tensor.Tensor) {
				at = at.In(e)
				at.CopyInPlace(tensor.Where(skip, at, v.Cast(at.DType())))
			}
			store(b.p[i], p)
			for j, v := range keep {
				store(u.keep[j], v)
			}
			scope.End()
		}
	}
}

// composition is one parameter's update: all in wide, numbers in f64.
type composition struct {
	e     *tensor.Env
	l     *ledger
	s     *state
	rates Rates
	wide  dtype.DType
	p, g  *tensor.Tensor
	keep  []*tensor.Tensor // in their own dtypes
	lr, t *tensor.Tensor   // f64[]
}

// number is an f64[].
func (u *composition) number(v float64) *tensor.Tensor { return u.e.FullOf(dtype.F64, v) }

// by is x times an f64[].
func (u *composition) by(x, number *tensor.Tensor) *tensor.Tensor { return x.Mul(number.Cast(u.wide)) }

// decayed is the parameter times 1 - lr·decay.
func (u *composition) decayed() *tensor.Tensor {
	if u.rates.WeightDecay == 0 {
		return u.p
	}
	return u.by(u.p, u.lr.Scale(-u.rates.WeightDecay).AddScalar(1))
}

// towards is x moved to y by a share, f64[].
func (u *composition) towards(x, y, share *tensor.Tensor) *tensor.Tensor {
	return x.Add(u.by(y.Sub(x), share))
}

// rms is the root of the mean of squares, f64[].
func (u *composition) rms(x *tensor.Tensor) *tensor.Tensor {
	n := 1
	for _, d := range x.Shape() {
		n *= d
	}
	return tensor.SumSquares(x).Cast(dtype.F64).Scale(1 / float64(max(n, 1))).Sqrt()
}

// powers is 1 - βᵗ, f64[].
func (u *composition) rest(beta float64) *tensor.Tensor {
	return u.number(beta).Pow(u.t).Neg().AddScalar(1)
}

// adam is the fused update of parameters that another optimizer leaves to AdamW; their state is two moments.
func adam(step tensor.AdamWStep) func(l *ledger, b *batch) {
	return func(l *ledger, b *batch) {
		s := step
		s.LR, s.Skip, s.Scale, s.WeightDecay = l.rate(b), l.skip, b.rates.Scale, b.rates.WeightDecay
		tensor.AdamWInPlace(s, l.scale, b.p, b.g, b.keep[0], b.keep[1], b.counts)
	}
}

// elements is the number of a tensor's.
func elements(t *tensor.Tensor) int {
	n := 1
	for _, d := range t.Shape() {
		n *= d
	}
	return n
}

// positive is a setting from above 0.
func positive(op, what string, v float64) float64 {
	check(op, what, v, math.SmallestNonzeroFloat64, math.Inf(1))
	return v
}
