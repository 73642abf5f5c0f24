// Package kernels computes on host memory: the loops behind the operations of
// the CPU engine.
//
// A kernel has one result. It depends on the shapes, the strides and the level
// of cpufeat, but neither on the number of threads nor on what else is
// computed in the same call.
package kernels

import (
	"fmt"
	"unsafe"
)

//go:generate go run -C ../../_asm . gemm ../cpu/kernels
//go:generate go run -C ../../_asm . pairs ../cpu/kernels

// Float is an element type of matrix products.
type Float interface{ float32 | float64 }

// A Product is C = Act(A·B [+ C] + Bias) for an M×K matrix A and a K×N matrix
// B. Element (i, l) of A is A[i*ARow+l*ACol] and that of B and C alike, where
// the columns of C are adjacent. Strides are not negative, so that transposed
// and broadcast operands need no copy. C must not overlap A, B or Bias.
//
// Sums are formed in T. If K is 0 the product A·B is zero.
type Product[T Float] struct {
	M, N, K    int
	A          []T
	ARow, ACol int
	B          []T
	BRow, BCol int
	C          []T
	CRow       int
	Accumulate bool // add to what C holds
	Bias       []T  // nil, or a value for each of the N columns
	Act        Activation
	Before     []T // nil, or where what Act is applied to goes, as C lies
	zip        zipping
}

// A BatchDim is a dimension of a batch of products: its size, and the
// distances in elements between neighbours in A, B and C. A distance of 0
// shares A or B.
type BatchDim struct{ Size, A, B, C int }

// Gemm computes p. It panics if p reaches beyond its slices.
func Gemm[T Float](p *Product[T]) { GemmBatch(p, nil) }

// GemmBatch computes p for every index of the batch, the same bits as that
// many calls of Gemm would. The products must not overlap in C.
func GemmBatch[T Float](p *Product[T], batch []BatchDim) {
	p.check(batch)
	count := 1
	for _, d := range batch {
		count *= d.Size
	}
	if count == 0 || p.M == 0 || p.N == 0 {
		return
	}
	done := false
	switch q := any(p).(type) {
	case *Product[float32]:
		done = multiplyAssembly(q, batch, count, singles)
	case *Product[float64]:
		w := wordsOf(q)
		done = multiplyAssembly(&w, batch, count, doubles)
	}
	if !done {
		multiplyGo(p, batch, count)
	}
}

// elements is what the micro-kernels of a set multiply.
type elements uint8

const (
	singles elements = iota // float32
	doubles                 // float64
	halves                  // pairs of bfloat16
)

// words is the number of float32 that an element takes.
func (e elements) words() int {
	if e == doubles {
		return 2
	}
	return 1
}

// wordsOf is a product of float64 as the assembly's driver has it, which
// measures in float32: two for each element.
func wordsOf(p *Product[float64]) Product[float32] {
	return Product[float32]{M: p.M, N: p.N, K: p.K, Accumulate: p.Accumulate, Act: p.Act,
		A: as[float32](p.A), ARow: 2 * p.ARow, ACol: 2 * p.ACol, B: as[float32](p.B), BRow: 2 * p.BRow, BCol: 2 * p.BCol,
		C: as[float32](p.C), CRow: 2 * p.CRow, Bias: as[float32](p.Bias), Before: as[float32](p.Before)}
}

// doublesOf is the reverse.
func doublesOf(p *Product[float32]) Product[float64] {
	return Product[float64]{M: p.M, N: p.N, K: p.K, Accumulate: p.Accumulate, Act: p.Act,
		A: as[float64](p.A), ARow: p.ARow / 2, ACol: p.ACol / 2, B: as[float64](p.B), BRow: p.BRow / 2, BCol: p.BCol / 2,
		C: as[float64](p.C), CRow: p.CRow / 2, Bias: as[float64](p.Bias), Before: as[float64](p.Before)}
}

// as is the memory of a slice as another type's; nil stays nil.
func as[To, From Float](x []From) []To {
	var from From
	var to To
	return unsafe.Slice((*To)(unsafe.Pointer(unsafe.SliceData(x))), uintptr(len(x))*unsafe.Sizeof(from)/unsafe.Sizeof(to))
}

// check panics unless the product lies within its slices.
func (p *Product[T]) check(batch []BatchDim) {
	var a, b, c int // offsets of the last product
	for _, d := range batch {
		if d.Size < 0 || d.A < 0 || d.B < 0 || d.C < 0 {
			panic(fmt.Sprintf("kernels: bad dimension of a batch of products: %+v", d))
		}
		if d.Size == 0 {
			return
		}
		a, b, c = a+(d.Size-1)*d.A, b+(d.Size-1)*d.B, c+(d.Size-1)*d.C
	}
	checkMatrix("A", p.M, p.K, p.ARow, p.ACol, a, len(p.A))
	checkMatrix("B", p.K, p.N, p.BRow, p.BCol, b, len(p.B))
	checkMatrix("C", p.M, p.N, p.CRow, 1, c, len(p.C))
	if p.M > 1 && p.CRow < p.N {
		panic(fmt.Sprintf("kernels: rows of %d columns of C are %d elements apart", p.N, p.CRow))
	}
	if p.Before != nil {
		checkMatrix("Before", p.M, p.N, p.CRow, 1, c, len(p.Before))
	}
	if p.Bias != nil && len(p.Bias) < p.N {
		panic(fmt.Sprintf("kernels: bias of %d for %d columns", len(p.Bias), p.N))
	}
}

func checkMatrix(name string, rows, cols, row, col, offset, n int) {
	if rows < 0 || cols < 0 || row < 0 || col < 0 ||
		rows > 0 && cols > 0 && offset+(rows-1)*row+(cols-1)*col >= n {
		panic(fmt.Sprintf("kernels: %s is %d×%d with strides %d and %d from %d, but has %d elements", name, rows, cols, row, col, offset, n))
	}
}

// position returns the offsets of product i of a batch, the last dimension
// running fastest.
func position(batch []BatchDim, i int) (a, b, c int) {
	for d := len(batch) - 1; d >= 0; d-- {
		at := i % batch[d].Size
		i /= batch[d].Size
		a, b, c = a+at*batch[d].A, b+at*batch[d].B, c+at*batch[d].C
	}
	return a, b, c
}

// element is product i of a batch of p.
func (p *Product[T]) element(batch []BatchDim, i int) Product[T] {
	q := *p
	a, b, c := position(batch, i)
	if p.K > 0 { // otherwise A and B may be empty
		q.A, q.B = p.A[a:], p.B[b:]
	}
	q.C = p.C[c:]
	if p.Before != nil {
		q.Before = p.Before[c:]
	}
	return q
}

// finish applies the bias of the columns from left on, and the activation, to
// a part of a row of C.
func (p *Product[T]) finish(c []T, row, left int) {
	if p.Bias != nil {
		for j, v := range p.Bias[left : left+len(c)] {
			c[j] += v
		}
	}
	p.activate(c, row, left)
}

// activate applies the activation to a part of a row of C, and keeps what it is
// applied to where that is wanted.
func (p *Product[T]) activate(c []T, row, left int) {
	if p.Before != nil {
		copy(p.Before[row*p.CRow+left:][:len(c)], c)
	}
	Activate(p.Act, c)
}

func ceilDiv(n, d int) int { return (n + d - 1) / d }
