package conform

import (
	"math"
	"math/rand/v2"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ref"
)

// fill draws the elements of an operand, in row-major order.
type fill func(r *rand.Rand, t *ir.Type) ref.Array

// each draws numbers one by one; integer operands truncate them.
func each(f func(r *rand.Rand) float64) fill {
	return func(r *rand.Rand, t *ir.Type) ref.Array {
		v := make([]float64, t.Size())
		for i := range v {
			v[i] = f(r)
		}
		if t.DType == dtype.Bool {
			return truths(t, v)
		}
		return ref.Floats(t, v...)
	}
}

// truths are whether numbers differ from 0.
func truths(t *ir.Type, v []float64) ref.Array {
	b := make([]int64, len(v))
	for i := range v {
		b[i] = int64(v[i])
	}
	return ref.Ints(t, b...)
}

// between draws integers of [lo, hi).
func between(lo, hi int) fill {
	return each(func(r *rand.Rand) float64 { return float64(lo + r.IntN(max(hi-lo, 1))) })
}

// values repeats a list, shuffled by a stride so that neighbours differ between operands.
func values(list []float64, stride int) fill {
	return func(_ *rand.Rand, t *ir.Type) ref.Array {
		v := make([]float64, t.Size())
		for i := range v {
			v[i] = list[i/stride%len(list)]
		}
		return ref.Floats(t, v...)
	}
}

// whole draws integers of a dtype's full range.
func whole(r *rand.Rand, t *ir.Type) ref.Array {
	v := make([]int64, t.Size())
	for i := range v {
		v[i] = int64(r.Uint64())
		if t.DType == dtype.Bool {
			v[i] &= 1
		} else if r.IntN(4) == 0 {
			v[i] %= 5
		}
	}
	return ref.Ints(t, v...)
}

// plain draws what a dtype usually holds: normal numbers, or the whole range of integers.
func plain(r *rand.Rand, t *ir.Type) ref.Array {
	if !t.DType.IsFloat() {
		return whole(r, t)
	}
	return normal(r, t)
}

// few draws from so few numbers that there are ties.
func few(r *rand.Rand, t *ir.Type) ref.Array { return between(0, 4)(r, t) }

var (
	normal   = each((*rand.Rand).NormFloat64)
	spread   = each(func(r *rand.Rand) float64 { return 4 * r.NormFloat64() })
	shifted  = each(func(r *rand.Rand) float64 { return 3 + r.NormFloat64() })
	inside   = each(func(r *rand.Rand) float64 { return 2*r.Float64() - 1 })
	positive = each(func(r *rand.Rand) float64 { return 0.25 + 2*r.Float64() })
	near1    = each(func(r *rand.Rand) float64 { return 0.99 + 0.02*r.Float64() })
	constant = each(func(*rand.Rand) float64 { return 7 })
	log2s    = each(func(r *rand.Rand) float64 { return math.Exp2(40*r.Float64() - 20) })
)

// special are the awkward values of a floating dtype.
func special(dt dtype.DType) []float64 {
	inf := math.Inf(1)
	list := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, -7.25, 100, -100, inf, -inf, math.NaN(),
		dt.SmallestNormal(), -dt.SmallestSubnormal(), 3 * dt.SmallestSubnormal(), dt.Epsilon(), 1 + dt.Epsilon(), 1 - dt.Epsilon()/2, dt.Max(), dt.Lowest()}
	return list
}

// extremes repeats the awkward values of an integer dtype, each stride times.
func extremes(stride int) fill {
	return func(_ *rand.Rand, t *ir.Type) ref.Array {
		list := []int64{0, 1, -1, 2, -2, 3, -3, 7, math.MaxInt64, math.MinInt64, math.MaxInt32, math.MinInt32, 255, 128}
		v := make([]int64, t.Size())
		for i := range v {
			v[i] = list[i/stride%len(list)]
		}
		return ref.Ints(t, v...)
	}
}

// transposed is a type whose dimensions lie in memory in reverse.
func transposed(dt dtype.DType, shape ...int) *ir.Type {
	strides := make([]int, len(shape))
	step := 1
	for i, d := range shape {
		strides[i] = step
		step *= max(d, 1)
	}
	return ir.Strided(dt, shape, strides)
}

// stepped is a type with gaps: every other element of rows that are longer than they need to be.
func stepped(dt dtype.DType, shape ...int) *ir.Type {
	strides := make([]int, len(shape))
	step := 2
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = step
		step = step*max(shape[i], 1) + 3
	}
	return ir.Strided(dt, shape, strides)
}

// rowsApart is a type whose rows are contiguous and lie apart.
func rowsApart(dt dtype.DType, shape ...int) *ir.Type {
	strides := make([]int, len(shape))
	step := 1
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = step
		step = step*max(shape[i], 1) + 5
	}
	return ir.Strided(dt, shape, strides)
}

// repeated is a type that an Expand of dimension axis makes.
func repeated(dt dtype.DType, axis int, shape ...int) *ir.Type {
	small := append([]int(nil), shape...)
	small[axis] = 1
	strides := append([]int(nil), ir.Dense(dt, small...).Strides()...)
	strides[axis] = 0
	return ir.Strided(dt, shape, strides)
}

// number is a type of one number that repeats everywhere.
func number(dt dtype.DType, shape ...int) *ir.Type {
	return ir.Strided(dt, shape, make([]int, len(shape)))
}

// wideRange draws numbers of many magnitudes, some of them integers.
func wideRange(r *rand.Rand, t *ir.Type) ref.Array {
	if !t.DType.IsFloat() {
		return whole(r, t)
	}
	return each(func(r *rand.Rand) float64 {
		v := r.NormFloat64() * math.Exp2(float64(r.IntN(24)-8))
		if r.IntN(3) == 0 {
			v = math.Round(v)
		}
		return v
	})(r, t)
}
