//go:build !purego

package kernels

import (
	"math"

	"github.com/warpline-ml/warpline/internal/cpufeat"
)

// The compiler keeps to one element at a time. These take eight, and a row of softmax about a tenth of the time.

// mostInAssembly is the number of elements in a call, which cannot be preempted: a few microseconds.
const mostInAssembly = 8 << 10

// vectorLength is the number of elements of x that assembly takes: whole vectors.
func vectorLength(x []float32) int {
	if cpufeat.Active() == cpufeat.Generic {
		return 0
	}
	return len(x) &^ 7
}

// rowMaxAVX2 returns the largest of n elements, a positive multiple of 8.
//
//go:noescape
func rowMaxAVX2(x *float32, n int) float32

// rowExpAVX2 stores exp(x-shift) for n elements, a positive multiple of 8, and returns their sum. The exponential is
// that of Cephes (expf): x = n·ln2 + r, and a polynomial of degree 7 in r.
//
//go:noescape
func rowExpAVX2(dst, x *float32, n int, shift float32) float64

// rowSquaresAVX2 returns Σ (x-m)² over n elements, a positive multiple of 8.
//
//go:noescape
func rowSquaresAVX2(x *float32, n int, m float64) float64

// rowDotAVX2 returns Σ x·y over n elements, a positive multiple of 8.
//
//go:noescape
func rowDotAVX2(x, y *float32, n int) float64

func rowMaxAssembly(x []float32) float32 {
	m := float32(math.Inf(-1))
	for ; len(x) > 0; x = x[min(len(x), mostInAssembly):] {
		if v := rowMaxAVX2(&x[0], min(len(x), mostInAssembly)); v > m {
			m = v
		}
	}
	return m
}

func rowExpAssembly(dst, x []float32, shift float32) (sum float64) {
	for len(x) > 0 {
		n := min(len(x), mostInAssembly)
		sum += rowExpAVX2(&dst[0], &x[0], n, shift)
		dst, x = dst[n:], x[n:]
	}
	return sum
}

func rowSquaresAssembly(x []float32, m float64) (sum float64) {
	for ; len(x) > 0; x = x[min(len(x), mostInAssembly):] {
		sum += rowSquaresAVX2(&x[0], min(len(x), mostInAssembly), m)
	}
	return sum
}

func rowDotAssembly(x, y []float32) (sum float64) {
	for len(x) > 0 {
		n := min(len(x), mostInAssembly)
		sum += rowDotAVX2(&x[0], &y[0], n)
		x, y = x[n:], y[n:]
	}
	return sum
}

// The others do what the functions of package kernels that call them say, for a positive multiple of 8 elements.

//go:noescape
func rowSumAVX2(x *float32, n int) float64

//go:noescape
func rowWeighAVX2(dst, y, v *float32, n int, s float32)

//go:noescape
func rowAffineAVX2(dst, x *float32, n int, m, s, b float32)

//go:noescape
func rowNormalizeAVX2(dst, x, w, b *float32, n int, m, s float32)

//go:noescape
func rowMixAVX2(dst, v, x *float32, n int, p, q, m, r float32)

//go:noescape
func rowGatherAVX2(db, dw *float64, v, x *float32, n int, m, s float64)

func rowSumAssembly(x []float32) (sum float64) {
	for ; len(x) > 0; x = x[min(len(x), mostInAssembly):] {
		sum += rowSumAVX2(&x[0], min(len(x), mostInAssembly))
	}
	return sum
}

func rowWeighAssembly(dst, y, g []float32, s float32) {
	for i := 0; i < len(y); i += mostInAssembly {
		rowWeighAVX2(&dst[i], &y[i], &g[i], min(len(y)-i, mostInAssembly), s)
	}
}

func rowAffineAssembly(dst, x []float32, m, s, b float32) {
	for i := 0; i < len(x); i += mostInAssembly {
		rowAffineAVX2(&dst[i], &x[i], min(len(x)-i, mostInAssembly), m, s, b)
	}
}

func rowNormalizeAssembly(dst, x, w, b []float32, m, s float32) {
	for i := 0; i < len(x); i += mostInAssembly {
		rowNormalizeAVX2(&dst[i], &x[i], &w[i], &b[i], min(len(x)-i, mostInAssembly), m, s)
	}
}

func rowMixAssembly(dst, g, x []float32, p, q, m, r float32) {
	for i := 0; i < len(x); i += mostInAssembly {
		rowMixAVX2(&dst[i], &g[i], &x[i], min(len(x)-i, mostInAssembly), p, q, m, r)
	}
}

func rowGatherAssembly(db, dw []float64, g, x []float32, m, s float64) {
	for i := 0; i < len(x); i += mostInAssembly {
		rowGatherAVX2(&db[i], &dw[i], &g[i], &x[i], min(len(x)-i, mostInAssembly), m, s)
	}
}

//go:noescape
func rowAdamAVX2(p, d, m, v *float32, n int, c *AdamRates)

func rowAdamAssembly(p, g, m, v []float32, c *AdamRates) {
	for i := 0; i < len(p); i += mostInAssembly {
		rowAdamAVX2(&p[i], &g[i], &m[i], &v[i], min(len(p)-i, mostInAssembly), c)
	}
}
