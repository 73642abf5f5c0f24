package cpu

import (
	"math"

	"github.com/warpline-ml/warpline/internal/cpu/kernels"
)

// sumOf adds in float64, in four chains so that additions overlap.
func sumOf[T kernels.Float](x []T) float64 {
	var a, b, c, d float64
	for ; len(x) >= 4; x = x[4:] {
		a += float64(x[0])
		b += float64(x[1])
		c += float64(x[2])
		d += float64(x[3])
	}
	for _, v := range x {
		a += float64(v)
	}
	return (a + b) + (c + d)
}

// dotOf is the sum of products in float64.
func dotOf[T kernels.Float](x, y []T) float64 {
	var a, b, c, d float64
	for ; len(x) >= 4 && len(y) >= 4; x, y = x[4:], y[4:] {
		a += float64(x[0]) * float64(y[0])
		b += float64(x[1]) * float64(y[1])
		c += float64(x[2]) * float64(y[2])
		d += float64(x[3]) * float64(y[3])
	}
	for i, v := range x {
		a += float64(v) * float64(y[i])
	}
	return (a + b) + (c + d)
}

// deviation is the sum of squared distances from m.
func deviation[T kernels.Float](x []T, m float64) float64 {
	var a, b, c, d float64
	for ; len(x) >= 4; x = x[4:] {
		p, q, r, s := float64(x[0])-m, float64(x[1])-m, float64(x[2])-m, float64(x[3])-m
		a += p * p
		b += q * q
		c += r * r
		d += s * s
	}
	for _, v := range x {
		p := float64(v) - m
		a += p * p
	}
	return (a + b) + (c + d)
}

// largest is the largest element, or perhaps NaN if there is one; -∞ of nothing.
func largest[T kernels.Float](x []T) T {
	if f, ok := any(x).([]float32); ok {
		return T(largest32(f))
	}
	m := T(math.Inf(-1))
	for _, v := range x {
		m = max(m, v)
	}
	return m
}

// largest32 compares bit patterns as integers, which takes no branch. A NaN counts as more than +∞ or less than -∞.
func largest32(x []float32) float32 {
	low := ordered(float32(math.Inf(-1)))
	a, b, c, d := low, low, low, low
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = max(a, ordered(x[0])), max(b, ordered(x[1])), max(c, ordered(x[2])), max(d, ordered(x[3]))
	}
	for _, v := range x {
		a = max(a, ordered(v))
	}
	m := max(a, b, c, d)
	return math.Float32frombits(uint32(m ^ m>>31&math.MaxInt32))
}

// ordered gives integers in the order of the numbers.
func ordered(v float32) int32 {
	b := int32(math.Float32bits(v))
	return b ^ b>>31&math.MaxInt32
}

// expInto stores exp(x - shift) in y, which may be x, and returns the sum.
func expInto[T kernels.Float](y, x []T, shift T) float64 {
	y = y[:len(x)]
	if y, ok := any(y).([]float32); ok {
		for i, v := range x {
			y[i] = float32(v - shift)
		}
		kernels.Exp(y, y)
		return sumOf(y)
	}
	for i, v := range x {
		y[i] = T(math.Exp(float64(v - shift)))
	}
	return sumOf(y)
}

// times multiplies x by v.
func times[T kernels.Float](x []T, v T) {
	for i := range x {
		x[i] *= v
	}
}
