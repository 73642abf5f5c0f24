//go:build !purego && (amd64 || arm64)

package kernels

import "unsafe"

// A tile is the argument of a micro-kernel: some rows of A times one or two
// vectors of columns of B. All distances are in bytes.
type tile struct {
	a       unsafe.Pointer
	as      int // between rows of A with byRows, between steps of k without
	b       unsafe.Pointer
	bs      int            // between steps of k
	table   unsafe.Pointer // of the steps, with byTable
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
	byTable                // steps of B are where the table says
)

// A kernelSet describes the micro-kernels of a level.
type kernelSet struct {
	elements
	size    int  // bytes of an element
	height  int  // most rows of a tile
	vector  int  // columns in a vector; a full tile has two
	laneA   int  // lanes of a packed panel of A
	stepsK  int  // most steps of k in a slice
	columns int  // most columns packed at a time: a slice of them stays in the second cache
	masks   bool // columns of C may be masked
	rows    bool // A may be read as it lies
	tables  bool // steps of B may be where a table says
}

// The most rows of a tile, and columns packed at a time, of any set.
const (
	maxHeight  = 14
	maxColumns = 256
)

// lanes is the number of columns of a full tile.
func (s *kernelSet) lanes() int { return 2 * s.vector }

// computeTile runs the micro-kernel on so many columns.
func (s *kernelSet) computeTile(t *tile, width int) {
	t.vectors, t.mask = ceilDiv(width, s.vector), uint32(1<<width-1)
	if s.masks || width%s.vector == 0 {
		s.compute(t)
	} else {
		s.around(t, width*s.words())
	}
}

// around runs a kernel without masks on a tile that sticks out of C: on a copy
// with room around it. The width is in float32.
func (s *kernelSet) around(t *tile, width int) {
	var c [maxRows][maxCols]float32
	var bias [maxCols]float32
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
