package cpu

import (
	"math"

	"github.com/warpline-ml/warpline/internal/cpu/kernels"
)

// Loops over rows. Those of float32 are in package kernels; those of float64, which nobody trains in, are plain.

// sumOf adds in float64.
func sumOf[T kernels.Float](x []T) (s float64) {
	if f, ok := any(x).([]float32); ok {
		return kernels.RowSum(f)
	}
	for _, v := range x {
		s += float64(v)
	}
	return s
}

// dotOf is the sum of products in float64.
func dotOf[T kernels.Float](x, y []T) (s float64) {
	if f, ok := any(x).([]float32); ok {
		return kernels.RowDot(f, any(y).([]float32))
	}
	for i, v := range x {
		s += float64(v) * float64(y[i])
	}
	return s
}

// deviation is the sum of squared distances from m.
func deviation[T kernels.Float](x []T, m float64) (s float64) {
	if f, ok := any(x).([]float32); ok {
		return kernels.RowSquares(f, m)
	}
	for _, v := range x {
		d := float64(v) - m
		s += d * d
	}
	return s
}

// momentsOf is the mean and the sum of squared distances from it.
func momentsOf[T kernels.Float](x []T) (mean, squares float64) {
	if f, ok := any(x).([]float32); ok {
		return kernels.RowMoments(f)
	}
	mean = sumOf(x) / float64(len(x))
	return mean, deviation(x, mean)
}

// largest is the largest element, or perhaps NaN if there is one; -∞ of nothing.
func largest[T kernels.Float](x []T) T {
	if f, ok := any(x).([]float32); ok {
		return T(kernels.RowMax(f))
	}
	m := T(math.Inf(-1))
	for _, v := range x {
		m = max(m, v)
	}
	return m
}

// expInto stores exp(x - shift) in y, which may be x, and returns the sum.
func expInto[T kernels.Float](y, x []T, shift T) float64 {
	if f, ok := any(x).([]float32); ok {
		return kernels.RowExp(any(y).([]float32), f, float32(shift))
	}
	for i, v := range x {
		y[i] = T(math.Exp(float64(v - shift)))
	}
	return sumOf(y[:len(x)])
}

// weigh stores y·(g-s) in dst.
func weigh[T kernels.Float](dst, y, g []T, s T) {
	if f, ok := any(y).([]float32); ok {
		kernels.RowWeigh(any(dst).([]float32), f, any(g).([]float32), float32(s))
		return
	}
	for i, v := range y {
		dst[i] = v * (g[i] - s)
	}
}

// rescale stores (x-m)·s + b in dst.
func rescale[T kernels.Float](dst, x []T, m, s, b T) {
	if f, ok := any(x).([]float32); ok {
		kernels.RowAffine(any(dst).([]float32), f, float32(m), float32(s), float32(b))
		return
	}
	for i, v := range x {
		dst[i] = (v-m)*s + b
	}
}

// times multiplies x by v.
func times[T kernels.Float](x []T, v T) { rescale(x, x, 0, v, 0) }

// mix stores p·g - q·(x-m) - r in dst.
func mix[T kernels.Float](dst, g, x []T, p, q, m, r T) {
	if f, ok := any(x).([]float32); ok {
		kernels.RowMix(any(dst).([]float32), any(g).([]float32), f, float32(p), float32(q), float32(m), float32(r))
		return
	}
	for i, v := range x {
		dst[i] = p*g[i] - q*(v-m) - r
	}
}

// multiplied stores x·y in dst.
func multiplied[T kernels.Float](dst, x, y []T) {
	if f, ok := any(x).([]float32); ok {
		kernels.Mul(any(dst).([]float32), f, any(y).([]float32))
		return
	}
	for i, v := range x {
		dst[i] = v * y[i]
	}
}
