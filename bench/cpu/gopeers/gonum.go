package main

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
)

// gonum has products.
func gonum(q question) func() {
	m, n, k, plain := q.sides()
	if q.bench != "gemm" || !plain {
		return nil
	}
	switch q.dtype {
	case "f32":
		matrix := func(r, c int) blas32.General {
			return blas32.General{Rows: r, Cols: c, Stride: c, Data: draw[float32](r * c)}
		}
		a, b, c := matrix(m, k), matrix(k, n), matrix(m, n)
		return func() { blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, a, b, 0, c) }
	case "f64":
		matrix := func(r, c int) blas64.General {
			return blas64.General{Rows: r, Cols: c, Stride: c, Data: draw[float64](r * c)}
		}
		a, b, c := matrix(m, k), matrix(k, n), matrix(m, n)
		return func() { blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, a, b, 0, c) }
	}
	return nil
}

func draw[T float32 | float64](n int) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = T(rand.NormFloat64())
	}
	return x
}
