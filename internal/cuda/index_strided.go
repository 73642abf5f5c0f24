package cuda

import (
	"math/bits"

	"github.com/warpline-ml/warpline/internal/ir"
)

// divisor64 is the kernels' Divisor64.
type divisor64 struct{ by, mul, shift uint64 }

// divideBy returns the divisor by n. For quotients of numbers below 2⁶³ to be right, mul is ⌊2^(63+l)/n⌋+1 with
// l = ⌈log₂ n⌉ and shift l-1. Kernels never divide by less than 2, for which mul stays 0.
func divideBy(n int) divisor64 {
	d := divisor64{by: uint64(n)}
	if n > 1 {
		d.shift = uint64(bits.Len(uint(n-1)) - 1)
		d.mul, _ = bits.Div64(1<<d.shift, 0, d.by)
		d.mul++
	}
	return d
}

// strided is the kernels' Strided: where the elements of an operand lie, its dimensions merged where they run on.
type strided struct {
	rank int64
	dims [ir.MaxRank]stridedDim
}

type stridedDim struct {
	stride int64
	size   divisor64
}

// inner is the innermost dimension.
func (s *strided) inner() (size, stride int) {
	d := &s.dims[s.rank-1]
	return int(d.size.by), int(d.stride)
}

// contiguous reports whether neighbouring elements are neighbours in memory everywhere.
func (s *strided) contiguous() bool { return s.rank == 1 && s.dims[0].stride == 1 }

// multiplesOf reports whether all strides but the innermost are multiples of n.
func (s *strided) multiplesOf(n int) bool {
	for _, d := range s.dims[:s.rank-1] {
		if d.stride%int64(n) != 0 {
			return false
		}
	}
	return true
}

// stridedOf is the layout of dimensions of some sizes, outermost first. There is at least one.
func stridedOf(sizes, strides []int) (s strided) {
	n := 0
	for i, size := range sizes {
		if size == 1 {
			continue
		}
		if last := n - 1; n > 0 && s.dims[last].stride == int64(size*strides[i]) {
			s.dims[last] = stridedDim{int64(strides[i]), divideBy(int(s.dims[last].size.by) * size)}
			continue
		}
		s.dims[n] = stridedDim{int64(strides[i]), divideBy(size)}
		n++
	}
	if n == 0 {
		s.dims[0] = stridedDim{1, divideBy(1)}
		n = 1
	}
	s.rank = int64(n)
	return s
}

// placesOf is the layout of a type.
func placesOf(t *ir.Type) strided { return stridedOf(t.Shape(), t.Strides()) }

// split is a dense tensor seen from one of its dimensions: element (i, j, l) of outer×n×inner is at (i·n+j)·inner+l.
type split struct{ outer, n, inner int }

func splitAt(t *ir.Type, axis int8) split {
	v := split{1, t.Dim(int(axis)), 1}
	for d, n := range t.Shape() {
		switch {
		case d < int(axis):
			v.outer *= n
		case d > int(axis):
			v.inner *= n
		}
	}
	return v
}
