//go:build !purego && (amd64 || arm64)

package kernels

import (
	"unsafe"

	"github.com/warpline-ml/warpline/internal/par"
)

// A vectorProduct is a row times a matrix. The matrix is read once, along its
// rows, and not packed: memory bounds this product.
type vectorProduct struct {
	x, b  unsafe.Pointer
	y     []float32
	k     int
	row   int  // bytes between rows of the stored matrix
	dots  bool // the rows lie along k
	width int  // elements of y in a part
}

const (
	mostAtOnce = 2048 // elements of y in a part, at most: long pieces of rows suit the memory
	mostDots   = 256  // the same where each is a row
	fewColumns = 16   // with fewer, rows across are too short
)

// row computes the product if it is a row times a matrix, or a matrix times a
// column, and its strides allow it. It reports whether it did.
func (p *product) row() bool {
	q := p.source
	if q.N == 1 && q.M > 1 && q.CRow == 1 && q.Bias == nil { // Cᵀ = Bᵀ·Aᵀ
		q.M, q.N, q.A, q.B = 1, q.M, q.B, q.A
		q.ARow, q.ACol, q.BRow, q.BCol = q.BCol, q.BRow, q.ACol, q.ARow
	}
	across := q.BCol == 1 && q.N >= fewColumns
	if q.M != 1 || q.K == 0 || q.K > 1 && q.ACol != 1 || !across && q.BRow != 1 {
		return false
	}
	p.source = q
	v := &p.vector
	*v = vectorProduct{x: unsafe.Pointer(unsafe.SliceData(q.A)), b: unsafe.Pointer(unsafe.SliceData(q.B)), y: q.C[:q.N], k: q.K}
	v.width = min(mostAtOnce, ceilDiv(q.N, 128)*64) // two parts at least, by the shape alone
	v.row = 4 * q.BRow
	if !across {
		v.row, v.dots, v.width = 4*q.BCol, true, min(v.width, mostDots)
	}
	if p.shared {
		par.For(q.N, v.width, p.vectorLoop)
	} else {
		p.vectorParts(0, q.N)
	}
	return true
}

// vectorParts computes the elements of y from lo to hi, a part at a time.
func (p *product) vectorParts(lo, hi int) {
	v := &p.vector
	for ; lo < hi; lo += v.width {
		y := v.y[lo:min(lo+v.width, hi)]
		if !p.source.Accumulate {
			clear(y)
		}
		if v.dots {
			v.addDots(y, lo, p.set)
		} else {
			v.addAcross(y, lo, p.set)
		}
		p.source.finish(y, 0, lo)
	}
}

// addAcross adds the scaled rows of the matrix to y, which begins at element
// from.
func (v *vectorProduct) addAcross(y []float32, from int, set *kernelSet) {
	to, b := unsafe.Pointer(unsafe.SliceData(y)), unsafe.Add(v.b, 4*from)
	k := 0
	for ; k+8 <= v.k; k += 8 {
		row, x := unsafe.Add(b, k*v.row), unsafe.Add(v.x, 4*k)
		set.addRows8(to, row, x, len(y), v.row)
	}
	for ; k < v.k; k++ {
		row, x := unsafe.Add(b, k*v.row), unsafe.Add(v.x, 4*k)
		set.addRows1(to, row, x, len(y), v.row)
	}
}

const (
	dotsAtOnce = 4       // rows that dotRows4 multiplies
	stepsDots  = 1 << 14 // steps of k in one call, which cannot be preempted
)

// addDots adds the dot products of the rows to y, which begins at row from.
func (v *vectorProduct) addDots(y []float32, from int, set *kernelSet) {
	for j := 0; j < len(y); {
		n := 1
		if j+dotsAtOnce <= len(y) {
			n = dotsAtOnce
		}
		for l := 0; l < v.k; l += stepsDots {
			b, x := unsafe.Add(v.b, (from+j)*v.row+4*l), unsafe.Add(v.x, 4*l)
			set.dotRows(y[j:j+n], b, x, min(stepsDots, v.k-l), v.row)
		}
		j += n
	}
}
