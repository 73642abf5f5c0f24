//go:build !purego && (amd64 || arm64)

package kernels

import "math"

// mappingLoop is a mapping's function.
type mappingLoop = func(dst, x, y *float32, n int, p, q float32)

// vectorKernels are a level's functions over vectors, each named as the generator names it.
type vectorKernels struct {
	rowMax            func(x *float32, n int) float32
	rowExtreme        func(x *float32, n int, p float32) (ret, more float32)
	rowExp            func(dst, x *float32, n int, shift float32) float64
	rowSum, rowTotal  func(x *float32, n int) float64
	rowSquares        func(x *float32, n int, m float64) float64
	rowDot            func(x, y *float32, n int) float64
	rowAffine         func(dst, x *float32, n int, m, s, b float32)
	rowNormalize      func(dst, x, w, b *float32, n int, m, s float32)
	rowMix            func(dst, grad, x *float32, n int, p, q, m, r float32)
	rowGather         func(db, dw *float64, grad, x *float32, n int, m, s float64)
	rowMoments        func(x *float32, n int, c float64) (sum, squares float64)
	sumEight          func(acc *float64, row0, row1, row2, row3, row4, row5, row6, row7 *float32, n int)
	sumRows           func(acc *float64, a, b, c, d *float32, n int)
	adam              func(p, grad, m, v *float32, n int, scale, coupled, rest1, beta2, rest2, eps, root, step, keep float32)
	sgd               func(p, grad *float32, n int, scale, decay, rate float32)
	sgdMomentum       func(p, grad, m *float32, n int, scale, decay, rate, momentum float32)
	sgdNesterov       func(p, grad, m *float32, n int, scale, decay, rate, momentum float32)
	lstmCell          func(h, next, yi, yf, yg, yo, cell *float32, n int)
	lstmGradCell      func(d, da, dh, dnext, yo, next *float32, n int)
	lstmGradGates     func(di, df, dg, d, yi, yf, yg, cell *float32, n int)
	fromF16, fromBF16 func(dst *float32, x *uint16, n int)
	toF16, toBF16     func(dst *uint16, x *float32, n int)
	sin, cos          func(dst, x *float32, n int) int
}

// The functions of rows.go and updates.go by assembly, at most mostInAssembly elements a call.

func rowMaxAssembly(x []float32) float32 {
	f := vectors().rowMax
	m := float32(math.Inf(-1))
	for ; len(x) > 0; x = x[min(len(x), mostInAssembly):] {
		if v := f(at(x, 0), min(len(x), mostInAssembly)); v > m {
			m = v
		}
	}
	return m
}

func rowExtremeAssembly(x []float32, p float32) (most float32, plain bool) {
	f := vectors().rowExtreme
	most, plain = float32(math.Inf(-1)), true
	for i := 0; i < len(x) && plain; i += mostInAssembly {
		v, sum := f(at(x, i), min(len(x)-i, mostInAssembly), p)
		most, plain = max(most, v), sum == 0
	}
	return most, plain
}

func rowExpAssembly(dst, x []float32, shift float32) (sum float64) {
	f := vectors().rowExp
	for i := 0; i < len(x); i += mostInAssembly {
		sum += f(at(dst, i), at(x, i), min(len(x)-i, mostInAssembly), shift)
	}
	return sum
}

func rowSumAssembly(x []float32) (sum float64) {
	f := vectors().rowSum
	for i := 0; i < len(x); i += mostInAssembly {
		sum += f(at(x, i), min(len(x)-i, mostInAssembly))
	}
	return sum
}

func rowSquaresAssembly(x []float32, m float64) (sum float64) {
	f := vectors().rowSquares
	for i := 0; i < len(x); i += mostInAssembly {
		sum += f(at(x, i), min(len(x)-i, mostInAssembly), m)
	}
	return sum
}

func rowDotAssembly(x, y []float32) (sum float64) {
	f := vectors().rowDot
	for i := 0; i < len(x); i += mostInAssembly {
		sum += f(at(x, i), at(y, i), min(len(x)-i, mostInAssembly))
	}
	return sum
}

func rowAffineAssembly(dst, x []float32, m, s, b float32) {
	f := vectors().rowAffine
	for i := 0; i < len(x); i += mostInAssembly {
		f(at(dst, i), at(x, i), min(len(x)-i, mostInAssembly), m, s, b)
	}
}

func rowNormalizeAssembly(dst, x, w, b []float32, m, s float32) {
	f := vectors().rowNormalize
	for i := 0; i < len(x); i += mostInAssembly {
		f(at(dst, i), at(x, i), at(w, i), at(b, i), min(len(x)-i, mostInAssembly), m, s)
	}
}

func rowMixAssembly(dst, g, x []float32, p, q, m, r float32) {
	f := vectors().rowMix
	for i := 0; i < len(x); i += mostInAssembly {
		f(at(dst, i), at(g, i), at(x, i), min(len(x)-i, mostInAssembly), p, q, m, r)
	}
}

func rowGatherAssembly(db, dw []float64, g, x []float32, m, s float64) {
	f := vectors().rowGather
	for i := 0; i < len(x); i += mostInAssembly {
		f(at(db, i), at(dw, i), at(g, i), at(x, i), min(len(x)-i, mostInAssembly), m, s)
	}
}

func rowMomentsAssembly(x []float32, c float64) (sum, squares float64) {
	f := vectors().rowMoments
	for i := 0; i < len(x); i += mostInAssembly {
		s, q := f(at(x, i), min(len(x)-i, mostInAssembly), c)
		sum, squares = sum+s, squares+q
	}
	return sum, squares
}

// sumRowsAssembly adds a group of four or eight rows.
func sumRowsAssembly(acc []float64, x []float32, group, stride int) {
	four, eight := vectors().sumRows, vectors().sumEight
	for i := 0; i < len(acc); i += mostInAssembly {
		n, to := min(len(acc)-i, mostInAssembly), at(acc, i)
		row := func(j int) *float32 { return at(x, j*stride+i) }
		if group == 4 {
			four(to, row(0), row(1), row(2), row(3), n)
		} else {
			eight(to, row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7), n)
		}
	}
}

// sumOfRowsAssembly adds n rows at least, as many as a call takes; the others are zeros.
func sumOfRowsAssembly(acc []float64, rows *[8][]float32, n int) {
	v, to := vectors(), at(acc, 0)
	row := func(i int) *float32 { return at(rows[i], 0) }
	if n <= 4 {
		v.sumRows(to, row(0), row(1), row(2), row(3), len(acc))
	} else {
		v.sumEight(to, row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7), len(acc))
	}
}

func adamAssembly(p, g, m, v []float32, c *AdamRates) {
	f := vectors().adam
	for i := 0; i < len(p); i += mostInAssembly {
		f(at(p, i), at(g, i), at(m, i), at(v, i), min(len(p)-i, mostInAssembly), c.Scale, c.Coupled, c.Rest1, c.Beta2, c.Rest2, c.Eps, c.Root, c.Step, c.Keep)
	}
}

func sgdAssembly(p, g []float32, scale, decay, rate float32) {
	f := vectors().sgd
	for i := 0; i < len(p); i += mostInAssembly {
		f(at(p, i), at(g, i), min(len(p)-i, mostInAssembly), scale, decay, rate)
	}
}

func sgdMomentumAssembly(p, g, m []float32, c *SGDRates) {
	f := vectors().sgdMomentum
	if c.Nesterov {
		f = vectors().sgdNesterov
	}
	for i := 0; i < len(p); i += mostInAssembly {
		f(at(p, i), at(g, i), at(m, i), min(len(p)-i, mostInAssembly), c.Scale, c.Decay, c.Rate, c.Momentum)
	}
}

func rowTotalAssembly(x []float32) (sum float64) {
	f := vectors().rowTotal
	for i := 0; i < len(x); i += mostInAssembly {
		sum += f(at(x, i), min(len(x)-i, mostInAssembly))
	}
	return sum
}

func rowTotalsAssembly(sums []float64, x []float32, n, stride int) {
	f := vectors().rowTotal
	for i := range sums {
		if row := x[i*stride:][:n]; n <= mostInAssembly {
			sums[i] = f(at(row, 0), n)
		} else {
			sums[i] = rowTotalAssembly(row)
		}
	}
}

func lstmCellAssembly(h, next, y, cell []float32) {
	f, n := vectors().lstmCell, len(h)
	for i := 0; i < n; i += mostInAssembly {
		f(at(h, i), at(next, i), at(y, i), at(y, n+i), at(y, 2*n+i), at(y, 3*n+i), at(cell, i), min(n-i, mostInAssembly))
	}
}

func lstmGradAssembly(da, dc, dh, dnext, y, cell, next []float32) {
	v, n := vectors(), len(dc)
	for i := 0; i < n; i += mostInAssembly {
		size := min(n-i, mostInAssembly)
		v.lstmGradCell(at(dc, i), at(da, 3*n+i), at(dh, i), at(dnext, i), at(y, 3*n+i), at(next, i), size)
		v.lstmGradGates(at(da, i), at(da, n+i), at(da, 2*n+i), at(dc, i), at(y, i), at(y, n+i), at(y, 2*n+i), at(cell, i), size)
	}
}
