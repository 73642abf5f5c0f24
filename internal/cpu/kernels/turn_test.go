package kernels

import (
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestTurn transposes pieces of matrices and looks at all of the result, for what was written beside.
func TestTurn(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := testutil.Rand(t)
		sizes := []int{0, 1, 7, 8, 9, 15, 16, 17, 33, 64, 65}
		for range 200 {
			rows, columns := sizes[r.IntN(len(sizes))], sizes[r.IntN(len(sizes))]
			ds, ss := columns+r.IntN(5), rows+r.IntN(5)
			from, to := r.IntN(5), r.IntN(5)
			src := make([]uint32, from+columns*ss+1)
			for i := range src {
				src[i] = r.Uint32()
			}
			dst := make([]uint32, to+rows*ds+1)
			want := make([]uint32, len(dst))
			for i := range rows {
				for j := range columns {
					want[to+i*ds+j] = src[from+j*ss+i]
				}
			}
			Turn(dst[to:], src[from:], rows, columns, ds, ss)
			for i, w := range want {
				if dst[i] != w {
					t.Fatalf("%d×%d, strides %d and %d: element %d is %#x, want %#x", rows, columns, ds, ss, i, dst[i], w)
				}
			}
		}
	})
}
