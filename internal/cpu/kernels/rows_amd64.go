//go:build !purego

package kernels

import "math"

// The functions of rows.go and updates.go by assembly, at most mostInAssembly elements a call.

func rowMaxAssembly(x []float32) float32 {
	f := rowMaxAVX2
	if avx512() {
		f = rowMaxAVX512
	}
	m := float32(math.Inf(-1))
	for ; len(x) > 0; x = x[min(len(x), mostInAssembly):] {
		if v := f(at(x, 0), min(len(x), mostInAssembly)); v > m {
			m = v
		}
	}
	return m
}

func rowExpAssembly(dst, x []float32, shift float32) (sum float64) {
	f := rowExpAVX2
	if avx512() {
		f = rowExpAVX512
	}
	for i := 0; i < len(x); i += mostInAssembly {
		sum += f(at(dst, i), at(x, i), min(len(x)-i, mostInAssembly), shift)
	}
	return sum
}

func rowSumAssembly(x []float32) (sum float64) {
	f := rowSumAVX2
	if avx512() {
		f = rowSumAVX512
	}
	for i := 0; i < len(x); i += mostInAssembly {
		sum += f(at(x, i), min(len(x)-i, mostInAssembly))
	}
	return sum
}

func rowSquaresAssembly(x []float32, m float64) (sum float64) {
	f := rowSquaresAVX2
	if avx512() {
		f = rowSquaresAVX512
	}
	for i := 0; i < len(x); i += mostInAssembly {
		sum += f(at(x, i), min(len(x)-i, mostInAssembly), m)
	}
	return sum
}

func rowDotAssembly(x, y []float32) (sum float64) {
	f := rowDotAVX2
	if avx512() {
		f = rowDotAVX512
	}
	for i := 0; i < len(x); i += mostInAssembly {
		sum += f(at(x, i), at(y, i), min(len(x)-i, mostInAssembly))
	}
	return sum
}

func rowAffineAssembly(dst, x []float32, m, s, b float32) {
	f := rowAffineAVX2
	if avx512() {
		f = rowAffineAVX512
	}
	for i := 0; i < len(x); i += mostInAssembly {
		f(at(dst, i), at(x, i), min(len(x)-i, mostInAssembly), m, s, b)
	}
}

func rowNormalizeAssembly(dst, x, w, b []float32, m, s float32) {
	f := rowNormalizeAVX2
	if avx512() {
		f = rowNormalizeAVX512
	}
	for i := 0; i < len(x); i += mostInAssembly {
		f(at(dst, i), at(x, i), at(w, i), at(b, i), min(len(x)-i, mostInAssembly), m, s)
	}
}

func rowMixAssembly(dst, g, x []float32, p, q, m, r float32) {
	f := rowMixAVX2
	if avx512() {
		f = rowMixAVX512
	}
	for i := 0; i < len(x); i += mostInAssembly {
		f(at(dst, i), at(g, i), at(x, i), min(len(x)-i, mostInAssembly), p, q, m, r)
	}
}

func rowGatherAssembly(db, dw []float64, g, x []float32, m, s float64) {
	f := rowGatherAVX2
	if avx512() {
		f = rowGatherAVX512
	}
	for i := 0; i < len(x); i += mostInAssembly {
		f(at(db, i), at(dw, i), at(g, i), at(x, i), min(len(x)-i, mostInAssembly), m, s)
	}
}

func sumRowsAssembly(acc []float64, a, b, c, d []float32) {
	f := sumRowsAVX2
	if avx512() {
		f = sumRowsAVX512
	}
	for i := 0; i < len(acc); i += mostInAssembly {
		f(at(acc, i), at(a, i), at(b, i), at(c, i), at(d, i), min(len(acc)-i, mostInAssembly))
	}
}

func adamAssembly(p, g, m, v []float32, c *AdamRates) {
	f := adamAVX2
	if avx512() {
		f = adamAVX512
	}
	for i := 0; i < len(p); i += mostInAssembly {
		f(at(p, i), at(g, i), at(m, i), at(v, i), min(len(p)-i, mostInAssembly), c.Scale, c.Coupled, c.Rest1, c.Beta2, c.Rest2, c.Eps, c.Root, c.Step, c.Keep)
	}
}

func sgdAssembly(p, g []float32, scale, decay, rate float32) {
	f := sgdAVX2
	if avx512() {
		f = sgdAVX512
	}
	for i := 0; i < len(p); i += mostInAssembly {
		f(at(p, i), at(g, i), min(len(p)-i, mostInAssembly), scale, decay, rate)
	}
}

func rowTotalAssembly(x []float32) (sum float64) {
	f := rowTotalAVX2
	if avx512() {
		f = rowTotalAVX512
	}
	for i := 0; i < len(x); i += mostInAssembly {
		sum += f(at(x, i), min(len(x)-i, mostInAssembly))
	}
	return sum
}
