package cpu

import (
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
)

// matrix is a view: element (i, j) is data[i*row+j*col].
type matrix[T any] struct {
	data     []T
	row, col int
}

// rowsOf views data as rows that begin step elements apart.
func rowsOf[T any](data []T, step int) matrix[T] { return matrix[T]{data, step, 1} }

// t is the transposed view.
func (m matrix[T]) t() matrix[T] { return matrix[T]{m.data, m.col, m.row} }

// gemm computes C = A·B, or C += A·B with add. C is m×n with rows ldc elements apart, A is m×k, B is k×n.
func gemm[T kernels.Float](m, n, k int, a, b matrix[T], c []T, ldc int, add bool) {
	kernels.Gemm(&kernels.Product[T]{M: m, N: n, K: k, A: a.data, ARow: a.row, ACol: a.col,
		B: b.data, BRow: b.row, BCol: b.col, C: c, CRow: ldc, Accumulate: add})
}
