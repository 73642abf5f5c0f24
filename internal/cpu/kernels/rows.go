package kernels

import "math"

// Loops over one row of float32 that softmax, losses, normalization and updates spend their time in. Sums are formed in
// float64. The loops in Go have four chains, so that additions overlap.

// RowMax returns the largest element of x, -∞ if there is none. A NaN may be passed over or returned.
func RowMax(x []float32) float32 {
	if assembly() {
		return rowMaxAssembly(x)
	}
	m := float32(math.Inf(-1))
	for _, v := range x {
		if v > m {
			m = v
		}
	}
	return m
}

// RowExp stores exp(x-shift) in dst, which may be x, and returns the sum of what it stored. Errors are below 2 ulp.
func RowExp(dst, x []float32, shift float32) (sum float64) {
	dst = dst[:len(x)]
	if assembly() {
		return rowExpAssembly(dst, x, shift)
	}
	for i, v := range x {
		dst[i] = v - shift
	}
	Exp(dst, dst)
	for _, v := range dst {
		sum += float64(v)
	}
	return sum
}

// RowSquares returns the sum of the squared distances of x from m.
func RowSquares(x []float32, m float64) (sum float64) {
	if assembly() {
		return rowSquaresAssembly(x, m)
	}
	var b, c, d float64
	for ; len(x) >= 4; x = x[4:] {
		p, q, r, s := float64(x[0])-m, float64(x[1])-m, float64(x[2])-m, float64(x[3])-m
		sum += p * p
		b += q * q
		c += r * r
		d += s * s
	}
	for _, v := range x {
		p := float64(v) - m
		b += p * p
	}
	return (sum + b) + (c + d)
}

// RowDot returns the sum of the products of x and y, which has as many elements.
func RowDot(x, y []float32) (sum float64) {
	if assembly() {
		return rowDotAssembly(x, y[:len(x)])
	}
	var b, c, d float64
	for ; len(x) >= 4 && len(y) >= 4; x, y = x[4:], y[4:] {
		sum += float64(x[0]) * float64(y[0])
		b += float64(x[1]) * float64(y[1])
		c += float64(x[2]) * float64(y[2])
		d += float64(x[3]) * float64(y[3])
	}
	for i, v := range x {
		b += float64(v) * float64(y[i])
	}
	return (sum + b) + (c + d)
}

// RowSum returns the sum of x.
func RowSum(x []float32) (sum float64) {
	if assembly() {
		return rowSumAssembly(x)
	}
	var b, c, d float64
	for ; len(x) >= 4; x = x[4:] {
		sum += float64(x[0])
		b += float64(x[1])
		c += float64(x[2])
		d += float64(x[3])
	}
	for _, v := range x {
		b += float64(v)
	}
	return (sum + b) + (c + d)
}

// RowWeigh stores y·(g-s) in dst, which may be y or g. All have the length of y.
func RowWeigh(dst, y, g []float32, s float32) {
	dst, g = dst[:len(y)], g[:len(y)]
	if mapWeigh.inAssembly(dst, y, g, s, 0) {
		return
	}
	for i, v := range y {
		dst[i] = v * (g[i] - s)
	}
}

// RowAffine stores (x-m)·s + b in dst, which may be x.
func RowAffine(dst, x []float32, m, s, b float32) {
	dst = dst[:len(x)]
	if assembly() {
		rowAffineAssembly(dst, x, m, s, b)
		return
	}
	for i, v := range x {
		dst[i] = (v-m)*s + b
	}
}

// RowNormalize stores (x-m)·s·w + b in dst, where w and b have the length of x.
func RowNormalize(dst, x, w, b []float32, m, s float32) {
	dst, w, b = dst[:len(x)], w[:len(x)], b[:len(x)]
	if assembly() {
		rowNormalizeAssembly(dst, x, w, b, m, s)
		return
	}
	for i, v := range x {
		dst[i] = (v-m)*s*w[i] + b[i]
	}
}

// RowMix stores p·g - q·(x-m) - r in dst, which may be g. All have the length of x.
func RowMix(dst, g, x []float32, p, q, m, r float32) {
	dst, g = dst[:len(x)], g[:len(x)]
	if assembly() {
		rowMixAssembly(dst, g, x, p, q, m, r)
		return
	}
	for i, v := range x {
		dst[i] = p*g[i] - q*(v-m) - r
	}
}

// RowGather adds g to db and g·(x-m)·s to dw. All have the length of x.
func RowGather(db, dw []float64, g, x []float32, m, s float64) {
	db, dw, g = db[:len(x)], dw[:len(x)], g[:len(x)]
	if assembly() {
		rowGatherAssembly(db, dw, g, x, m, s)
		return
	}
	for i, v := range x {
		db[i] += float64(g[i])
		dw[i] += float64(g[i]) * ((float64(v) - m) * s)
	}
}

// SumRows adds four rows, pair by pair in float32, to sums in float64: acc[i] += (a[i] + b[i]) + (c[i] + d[i]). All have
// the length of acc.
func SumRows(acc []float64, a, b, c, d []float32) {
	a, b, c, d = a[:len(acc)], b[:len(acc)], c[:len(acc)], d[:len(acc)]
	if assembly() {
		sumRowsAssembly(acc, a, b, c, d)
		return
	}
	for i := range acc {
		acc[i] += float64((a[i] + b[i]) + (c[i] + d[i]))
	}
}

// RowTotal returns the sum of x, with groups of up to eight elements added pair by pair in float32.
func RowTotal(x []float32) (sum float64) {
	if assembly() {
		return rowTotalAssembly(x)
	}
	for ; len(x) >= 8; x = x[8:] {
		sum += float64(((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7])))
	}
	for _, v := range x {
		sum += float64(v)
	}
	return sum
}
