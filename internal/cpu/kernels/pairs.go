package kernels

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/par"
)

// Pairs tells whether the active level multiplies pairs of bfloat16.
func Pairs() bool { return cpufeat.Active() == cpufeat.AVX512BF16 }

// A HalfProduct is C = A·B of bfloat16 with sums in float32, which are rounded
// once. Element (i, l) of A is A[i*ARow+l*ACol], and that of B and C alike,
// where the columns of C are adjacent. Numbers that are not normal count as
// zeros, as the processor's instruction has it.
type HalfProduct struct {
	M, N, K    int
	A          []dtype.BFloat16
	ARow, ACol int
	B          []dtype.BFloat16
	BRow, BCol int
	C          []dtype.BFloat16
	CRow       int
	Sums       []float32 // room for the sums, as C lies
}

// A half is an operand of bfloat16: lanes, which are the rows of A and the
// columns of B, by steps of k.
type half struct {
	data       []dtype.BFloat16
	lanes      int
	lane, step int
}

func (p *HalfProduct) halves() [2]half {
	return [2]half{{p.A, p.M, p.ARow, p.ACol}, {p.B, p.N, p.BCol, p.BRow}}
}

// Zips reports whether the kernels can read the operands where they lie, of
// which the contents do not count: neighbours along k adjacent, and pairs of
// them, or else neighbours across that do not repeat along k.
func (p *HalfProduct) Zips() bool {
	h := p.halves()
	return h[0].zips(p.K) && h[1].zips(p.K)
}

// paired tells whether the operand's memory is pairs along k.
func (h *half) paired(k int) bool { return h.step == 1 && k%2 == 0 && h.lane%2 == 0 }

func (h *half) zips(k int) bool { return h.paired(k) || h.lane == 1 && h.step > 0 }

// words is the operand as float32 that are pairs, with the distances of its
// lanes and its steps. Where its lanes are adjacent, the words are of two
// lanes each: high is the distance from an element to that of the next step,
// in bytes, and otherwise 0.
func (h *half) words(k int) (data []float32, lane, step, high int) {
	data = unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(h.data))), len(h.data)/2)
	if h.paired(k) {
		return data, h.lane / 2, 1, 0
	}
	return data, 0, h.step, 2 * h.step
}

// A zipping is what else is to know of a product of bfloat16.
type zipping struct {
	highA, highB int // in bytes from the first to the second half of a pair; 0: they are adjacent
	steps        int // of bfloat16
	out          []dtype.BFloat16
}

// GemmHalves computes p, which must zip. It panics if p reaches beyond its
// slices.
func GemmHalves(p *HalfProduct) {
	p.check()
	if p.M == 0 || p.N == 0 {
		return
	}
	q := Product[float32]{M: p.M, N: p.N, K: (p.K + 1) / 2, C: p.Sums, CRow: p.CRow, zip: zipping{steps: p.K, out: p.C}}
	h := p.halves()
	q.A, q.ARow, q.ACol, q.zip.highA = h[0].words(p.K)
	q.B, q.BCol, q.BRow, q.zip.highB = h[1].words(p.K)
	if !multiplyAssembly(&q, nil, 1, halves) {
		multiplyPairs(&q)
	}
}

func (p *HalfProduct) check() {
	checkMatrix("A", p.M, p.K, p.ARow, p.ACol, 0, len(p.A))
	checkMatrix("B", p.K, p.N, p.BRow, p.BCol, 0, len(p.B))
	checkMatrix("C", p.M, p.N, p.CRow, 1, 0, min(len(p.C), len(p.Sums)))
	if !p.Zips() || p.M > 1 && p.CRow < p.N {
		panic(fmt.Sprintf("kernels: no product of bfloat16 with strides %d, %d and %d, %d into rows of %d", p.ARow, p.ACol, p.BRow, p.BCol, p.CRow))
	}
}

// multiplyPairs is GemmHalves in Go, row by row, of a copy: what par is given
// goes to the heap.
func multiplyPairs(given *Product[float32]) {
	p := *given
	par.For(p.M, 1, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			for j := range p.N {
				s := float32(0)
				for l := range p.K {
					a, b := p.zip.pair(p.A, i*p.ARow+l*p.ACol, i, l, p.zip.highA), p.zip.pair(p.B, j*p.BCol+l*p.BRow, j, l, p.zip.highB)
					s += normal(a<<16)*normal(b<<16) + normal(a&0xffff0000)*normal(b&0xffff0000)
				}
				p.C[i*p.CRow+j] = s
			}
			p.zip.round(p.C[i*p.CRow:][:p.N], i*p.CRow)
		}
	})
}

// pair is a pair of an operand at a word and, if its halves lie apart, from a
// lane on.
func (z *zipping) pair(data []float32, at, lane, step, high int) uint32 {
	if high == 0 {
		return math.Float32bits(data[at])
	}
	element := func(l int) uint32 {
		if l >= z.steps {
			return 0
		}
		return uint32(*(*uint16)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(data)), 2*lane+l*high)))
	}
	return element(2*step) | element(2*step+1)<<16
}

// round stores sums, which end up at an element of the result.
func (z *zipping) round(sums []float32, at int) {
	out := z.out[at : at+len(sums)]
	n := ToBF16(unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(out))), len(out)), sums)
	for i := n; i < len(out); i++ {
		out[i] = dtype.BF16FromFloat32(sums[i])
	}
}

// normal is a float32 by its bits, and zero unless it is normal.
func normal(bits uint32) float32 {
	if bits&0x7f800000 == 0 {
		return 0
	}
	return math.Float32frombits(bits)
}
