package kernels

import (
	"math"

	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/par"
)

// Pairs tells whether the active level multiplies pairs of bfloat16.
func Pairs() bool { return cpufeat.Active() == cpufeat.AVX512BF16 }

// GemmPairs is [Gemm] of bfloat16 with sums in float32: an element of A and of
// B is two of them, the one with the lower index of k in the lower half of its
// 32 bits, and K counts pairs. Numbers that are not normal count as zeros, as
// the processor's instruction has it. It panics if p reaches beyond its slices.
func GemmPairs(p *Product[float32]) {
	p.check(nil)
	if p.M == 0 || p.N == 0 {
		return
	}
	if !multiplyAssembly(p, nil, 1, halves) {
		multiplyPairs(p)
	}
}

// multiplyPairs is GemmPairs in Go, row by row, of a copy: what par is given
// goes to the heap.
func multiplyPairs(given *Product[float32]) {
	p := *given
	par.For(p.M, 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			for j := range p.N {
				c := &p.C[i*p.CRow+j]
				*c = p.epilogue(p.dot(i, j), *c, j)
			}
		}
	})
}

// dot is the sum of the products of row i of A with column j of B.
func (p *Product[T]) dot(i, j int) (s T) {
	for l := range p.K {
		a, b := math.Float32bits(float32(p.A[i*p.ARow+l*p.ACol])), math.Float32bits(float32(p.B[l*p.BRow+j*p.BCol]))
		s += T(normal(a<<16)*normal(b<<16) + normal(a&0xffff0000)*normal(b&0xffff0000))
	}
	return s
}

// normal is a float32 by its bits, and zero unless it is normal.
func normal(bits uint32) float32 {
	if bits&0x7f800000 == 0 {
		return 0
	}
	return math.Float32frombits(bits)
}

// epilogue is that of a tile for one sum.
func (p *Product[T]) epilogue(s, old T, j int) T {
	if p.Accumulate {
		s += old
	}
	if p.Bias != nil {
		s += p.Bias[j]
	}
	row := []T{s}
	Activate(p.Act, row)
	return row[0]
}

// PairRows joins two rows of bfloat16 to one of pairs: low holds the elements
// with the lower index of k. high may be nil, for zeros.
func PairRows(dst []float32, low, high []uint16) {
	if high == nil {
		for i, v := range low {
			dst[i] = math.Float32frombits(uint32(v))
		}
		return
	}
	pairRows(dst[:len(low)], low, high[:len(low)])
}

func pairRowsGo(dst []float32, low, high []uint16) {
	for i, v := range low {
		dst[i] = math.Float32frombits(uint32(v) | uint32(high[i])<<16)
	}
}
