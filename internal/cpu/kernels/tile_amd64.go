//go:build !purego

package kernels

import (
	"unsafe"

	"github.com/warpline-ml/warpline/internal/cpufeat"
)

// A tile is the argument of a micro-kernel: some rows of A times one or two
// vectors of columns of B. All distances are in bytes.
type tile struct {
	a       unsafe.Pointer
	as      int // between rows of A with byRows, between steps of k without
	b       unsafe.Pointer
	bs      int // between steps of k
	c       unsafe.Pointer
	cs      int // between rows
	k       int // steps
	bias    unsafe.Pointer
	rows    int
	vectors int // of columns
	flags   int
	mask    uint32 // bit j: column j is in use
}

// Flags of a tile. A kernel applies the parts of the epilogue in this order.
const (
	accumulate = 1 << iota // add the old C
	addBias                // add bias[j] to column j
	relu                   // replace negative values by zero; keep NaN
	byRows                 // A is read as it lies in memory
)

// A kernelSet describes the micro-kernels of a level.
type kernelSet struct {
	height int  // most rows of a tile
	vector int  // columns in a vector; a full tile has two
	laneA  int  // lanes of a packed panel of A
	stepsK int  // most steps of k in a slice: a panel of A should stay in the first cache
	masks  bool // columns of C may be masked
}

var (
	setAVX512 = kernelSet{14, 16, 16, 1024, true}
	setAVX2   = kernelSet{6, 8, 8, 384, false}
)

// The most rows and columns of a tile without masks.
const (
	maxRowsAVX2 = 6
	maxColsAVX2 = 16
)

// activeSet returns the kernels of the active level, nil if it has none.
func activeSet() *kernelSet {
	switch cpufeat.Active() {
	case cpufeat.AVX512:
		return &setAVX512
	case cpufeat.AVX2:
		return &setAVX2
	}
	return nil
}

// lanes is the number of columns of a full tile.
func (s *kernelSet) lanes() int { return 2 * s.vector }

// compute runs the micro-kernel. Direct calls keep the tile on the stack of
// the caller.
func (s *kernelSet) compute(t *tile) {
	if s.masks {
		tileAVX512(t)
	} else {
		tileAVX2(t)
	}
}

// around runs a kernel without masks on a tile that sticks out of C: on a copy
// with room around it.
func (s *kernelSet) around(t *tile, width int) {
	var c [maxRowsAVX2][maxColsAVX2]float32
	var bias [maxColsAVX2]float32
	u := *t
	u.c, u.cs, u.bias = unsafe.Pointer(&c), int(unsafe.Sizeof(c[0])), unsafe.Pointer(&bias)
	if t.flags&addBias != 0 {
		copy(bias[:], unsafe.Slice((*float32)(t.bias), width))
	}
	if t.flags&accumulate != 0 {
		for i := range t.rows {
			copy(c[i][:], t.row(i, width))
		}
	}
	s.compute(&u)
	for i := range t.rows {
		copy(t.row(i, width), c[i][:])
	}
}

// row is row i of the tile of C.
func (t *tile) row(i, width int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Add(t.c, i*t.cs)), width)
}

// ceiling runs n turns of a loop of multiply-adds on registers alone, whose
// rate no kernel of the level can pass, and returns their number.
func ceiling(l cpufeat.Level, n int) (work float64) {
	switch l {
	case cpufeat.AVX512:
		ceilingAVX512(n)
		return float64(n * 24 * 16)
	case cpufeat.AVX2:
		ceilingAVX2(n)
		return float64(n * 12 * 8)
	}
	return 0
}
