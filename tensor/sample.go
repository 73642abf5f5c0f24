package tensor

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// RandPerm makes the numbers 0 … n-1 in random order, in i64.
func (e *Env) RandPerm(n int) *Tensor {
	checkShape("RandPerm", []int{n})
	return e.Tidy(func(e *Env) *Tensor { return e.RandInt(0, math.MaxInt64, n).ArgSort(0, false) })
}

// Bernoulli is 1 with probability t and 0 otherwise, element by element, in t's dtype. Below 0 a probability counts as 0, above 1
// as 1. It has no gradient.
func (t *Tensor) Bernoulli() *Tensor {
	return t.Env().Tidy(func(e *Env) *Tensor {
		p := t.quiet().inside(e)
		if !p.DType().IsFloat() {
			raise("Bernoulli", "convert with Cast", "probabilities are floating, not %s", p.DType())
		}
		return e.uniform(t.Shape()).Lt(p.Cast(dtype.F64)).Cast(t.DType())
	})
}

// uniform makes f64 numbers in [0, 1) of 48 bits.
func (e *Env) uniform(shape []int) *Tensor {
	high, low := e.Rand(shape...).Cast(dtype.F64), e.Rand(shape...).Cast(dtype.F64)
	return high.AddScaled(low, 0x1p-24)
}

// Multinomial draws n places along the last dimension of t, weights [k] or [m,k] that need not add up to 1, with their
// probabilities: i64 [n] or [m,n]. Without replacement none comes twice, and they are in the order drawn. Weights that are
// negative, infinite or no numbers, and fewer above 0 than are drawn, are an error, for which the host waits: a sync point.
func (t *Tensor) Multinomial(n int, replacement bool) *Tensor {
	const op = "Multinomial"
	switch {
	case t.Rank() != 1 && t.Rank() != 2 || !t.DType().IsFloat():
		raise(op, "give floating weights [k] or [m,k]", "weights %s", t.typ)
	case n < 1 || !replacement && n > t.Dim(-1) || t.Dim(-1) == 0:
		raise(op, "draw at least 1, and without replacement at most one of each", "%d of %d", n, t.Dim(-1))
	case t.Size() == 0:
		return t.Env().full(ir.Dense(dtype.I64, 0, n), 0)
	}
	w := t.quiet().Cast(dtype.F64)
	least := n
	if replacement {
		least = 1
	}
	few := w.GtScalar(0).Sum(-1).LtScalar(float64(least)).Any()
	if bad := w.GeScalar(0).And(w.LtScalar(inf)).All().Not(); bad.Or(few).Item() != 0 {
		raise(op, "they are finite and not negative, and as many are above 0 as are drawn", "weights %s of which %d cannot be drawn", t.typ, n)
	}
	return t.Env().Tidy(func(e *Env) *Tensor {
		if w := w.inside(e); replacement {
			return w.drawn(n)
		}
		return w.inside(e).race(n)
	})
}

// drawn is n places, each by its own number below the sum.
func (t *Tensor) drawn(n int) *Tensor {
	sums := t.CumSum(-1)
	shape := append([]int{}, t.Shape()...)
	shape[len(shape)-1] = n
	at := t.env.uniform(shape).Mul(sums.Slice(-1, -1, t.Dim(-1)))
	return sums.SearchSorted(at, true).Minimum(t.GtScalar(0).Mul(t.env.Arange(t.Dim(-1))).Max(-1).Unsqueeze(-1))
}

// race is the n places that are the first to arrive, each at a time that is exponential with its weight as the rate.
func (t *Tensor) race(n int) *Tensor {
	never := t.EqScalar(0)
	at := t.env.uniform(t.Shape()).Neg().Log1p().Neg().Div(t.MaskedFill(never, 1)).MaskedFill(never, inf)
	_, places := at.TopK(n, -1, false)
	return places
}
