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

// RowExtreme returns the largest p·x, for p 1 or -1, of the numbers in x, which may be none: -∞. It returns false where
// NaN or infinities are among them: those are for the caller.
func RowExtreme(x []float32, p float32) (most float32, plain bool) {
	if assembly() {
		return rowExtremeAssembly(x, p)
	}
	most = float32(math.Inf(-1))
	var sum float32
	for _, v := range x {
		most = max(most, p*v)
		sum += v * 0
	}
	return most, sum == 0
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

// RowMoments returns the mean of x and the sum of squared distances from it, found in one reading by distances from the
// first element. Where that lies far away, so does the mean of squares: float64 has digits to spare.
func RowMoments(x []float32) (mean, squares float64) {
	c, n := 0., float64(len(x))
	if n > 0 && x[0]-x[0] == 0 { // else there would be no distances
		c = float64(x[0])
	}
	var sum float64
	if assembly() {
		sum, squares = rowMomentsAssembly(x, c)
	} else {
		sum, squares = moments(x, c)
	}
	return c + sum/n, max(0, squares-sum*(sum/n))
}

// moments returns Σ (x-c) and Σ (x-c)².
func moments(x []float32, c float64) (sum, squares float64) {
	var sums, more [4]float64
	for ; len(x) >= 4; x = x[4:] {
		for i := range sums {
			d := float64(x[i]) - c
			sums[i] += d
			more[i] += d * d
		}
	}
	for _, v := range x {
		d := float64(v) - c
		sums[0] += d
		more[0] += d * d
	}
	return (sums[0] + sums[1]) + (sums[2] + sums[3]), (more[0] + more[1]) + (more[2] + more[3])
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

// SumRows adds rows of x, stride apart, to sums in float64: eight of them, or four, pair by pair in float32, and what is
// left one by one. All have the length of acc.
//
//	acc[i] += ((x[i] + x[stride+i]) + (x[2*stride+i] + x[3*stride+i])) + ...
func SumRows(acc []float64, x []float32, rows, stride int) {
	for _, group := range []int{8, 4, 1} {
		for ; rows >= group; rows -= group {
			y := x[:(group-1)*stride+len(acc)]
			if group == 1 || !assembly() {
				sumGroup(acc, y, group, stride)
			} else {
				sumRowsAssembly(acc, y, group, stride)
			}
			x = x[min(group*stride, len(x)):]
		}
	}
}

func sumGroup(acc []float64, x []float32, group, stride int) {
	for i := range acc {
		var sums [8]float32
		for j := range group {
			sums[j] = x[j*stride+i]
		}
		for n := group; n > 1; n /= 2 {
			for j := range n / 2 {
				sums[j] = sums[2*j] + sums[2*j+1]
			}
		}
		acc[i] += float64(sums[0])
	}
}

var zeros [1 << 10]float32

// SumPlaces adds rows of x to sums in float64: those at these places, stride apart, of the length of acc. Eight of them,
// or what is left and zeros, are added pair by pair in float32.
func SumPlaces(acc []float64, x []float32, stride int, places []int64) {
	for lo := 0; lo < len(acc); lo += len(zeros) {
		part := acc[lo:min(lo+len(zeros), len(acc))]
		for i := 0; i < len(places); i += 8 {
			var rows [8][]float32
			group := places[i:min(i+8, len(places))]
			for j := range rows {
				rows[j] = zeros[:len(part)]
				if j < len(group) {
					rows[j] = x[int(group[j])*stride+lo:][:len(part)]
				}
			}
			if assembly() {
				sumOfRowsAssembly(part, &rows, len(group))
			} else {
				sumOfRows(part, &rows)
			}
		}
	}
}

func sumOfRows(acc []float64, rows *[8][]float32) {
	for i := range acc {
		x := (rows[0][i] + rows[1][i]) + (rows[2][i] + rows[3][i])
		y := (rows[4][i] + rows[5][i]) + (rows[6][i] + rows[7][i])
		acc[i] += float64(x + y)
	}
}

// RowTotals stores [RowTotal] of n elements of each row of x, stride apart, in sums.
func RowTotals(sums []float64, x []float32, n, stride int) {
	if assembly() && n > 0 {
		rowTotalsAssembly(sums, x, n, stride)
		return
	}
	for i := range sums {
		sums[i] = RowTotal(x[i*stride:][:n])
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
