package cuda

import (
	"math"
	"math/bits"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestDivideBy compares the kernels' division with Go's, at multiples of the divisor and beside them.
func TestDivideBy(t *testing.T) {
	r := testutil.Rand(t)
	check := func(i uint64, n int) {
		d := divideBy(n)
		high, _ := bits.Mul64(i, d.mul)
		if got := high >> d.shift; got != i/uint64(n) {
			t.Fatalf("%d/%d is %d by multiplication with %#x and a shift of %d", i, n, got, d.mul, d.shift)
		}
	}
	for range 20000 {
		n := 2 + int(r.Uint64()>>(2+r.IntN(62)))
		k := r.Uint64() >> (1 + r.IntN(63)) / uint64(n) * uint64(n)
		for _, i := range []uint64{k, k + uint64(n) - 1, max(k, 1) - 1, 1<<63 - 1} {
			check(min(i, 1<<63-1), n)
		}
	}
}

// TestStrided compares places with those that strides give, and counts the dimensions that are left.
func TestStrided(t *testing.T) {
	for _, c := range []struct {
		sizes, strides []int
		rank           int64
	}{
		{nil, nil, 1}, {[]int{1}, []int{7}, 1}, {[]int{4, 5}, []int{5, 1}, 1}, {[]int{4, 5}, []int{1, 4}, 2}, {[]int{4, 1, 5}, []int{10, 3, 2}, 1},
		{[]int{2, 3, 4}, []int{0, 4, 1}, 2}, {[]int{2, 3}, []int{0, 0}, 1}, {[]int{3, 1 << 40, 2}, []int{1, 6, 3}, 2},
	} {
		s := stridedOf(c.sizes, c.strides)
		if s.rank != c.rank {
			t.Errorf("sizes %v with strides %v have %d dimensions, want %d", c.sizes, c.strides, s.rank, c.rank)
		}
		n := 1
		for _, d := range c.sizes {
			n *= d
		}
		for i := range min(n, 40) {
			want := 0
			for d, rest := len(c.sizes)-1, i; d >= 0; d-- {
				want += rest % c.sizes[d] * c.strides[d]
				rest /= c.sizes[d]
			}
			if got := s.at(i); got != want {
				t.Errorf("sizes %v with strides %v: element %d is at %d, want %d", c.sizes, c.strides, i, got, want)
			}
		}
	}
}

// at is what the kernels' Strided computes.
func (s *strided) at(i int) (off int) {
	for d := s.rank - 1; d > 0; d-- {
		n := int(s.dims[d].size.by)
		off += i % n * int(s.dims[d].stride)
		i /= n
	}
	return off + i*int(s.dims[0].stride)
}

// TestFoldCuts checks that every cut of a reduction covers its elements once and makes a grid that drivers accept.
func TestFoldCuts(t *testing.T) {
	for _, shape := range [][]int{{1}, {0, 3}, {3, 0}, {7, 1 << 20}, {1 << 20, 7}, {1 << 33}, {1 << 17, 1 << 17}, {1, 1 << 38}, {1 << 38, 1}, {65537, 3, 65537}} {
		for _, dt := range []dtype.DType{dtype.F64, dtype.U8} {
			for axes := range uint16(1) << len(shape) {
				f, columns := newFold(ir.Dense(dt, shape...), axes)
				blocks := ceilDiv(int(f.results), foldThreads/int(f.lanes))
				if columns {
					blocks = ceilDiv(int(f.results), int(f.lanes))
				}
				if f.lanes != int64(powerOf2(int(f.lanes))) || f.lanes > foldThreads || f.parts > 65535 || blocks > math.MaxInt32 {
					t.Errorf("%v over %b: %d lanes, %d parts, %d blocks", shape, axes, f.lanes, f.parts, blocks)
				}
				if f.partLen*f.parts < f.n || f.n > 0 && f.partLen*(f.parts-1) >= f.n || f.parts > 1 && f.partLen%16 != 0 {
					t.Errorf("%v over %b: %d parts of %d for %d elements", shape, axes, f.parts, f.partLen, f.n)
				}
			}
		}
	}
}
