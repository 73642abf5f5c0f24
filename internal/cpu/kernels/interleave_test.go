package kernels

import (
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestApart takes rows of every small length apart and weaves them again, and looks for what was written beside.
func TestApart(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		apart[float32](t)
		apart[float64](t)
	})
}

func apart[T Float](t *testing.T) {
	r := testutil.Rand(t)
	for n := range 70 {
		row := make([]T, n)
		for i := range row {
			row[i] = T(r.NormFloat64())
		}
		even, odd, again := make([]T, n/2+3), make([]T, n/2+3), make([]T, n+3)
		Apart(even[1:], odd[1:], row)
		want := [2][]T{make([]T, len(even)), make([]T, len(odd))}
		for i, v := range row {
			want[i%2][1+i/2] = v
		}
		if !slices.Equal(even, want[0]) || !slices.Equal(odd, want[1]) {
			t.Fatalf("%v taken apart: %v and %v", row, even, odd)
		}
		Weave(again[1:1+n], even[1:], odd[1:])
		if !slices.Equal(again[1:1+n], row) || again[0] != 0 || again[n+1] != 0 || again[n+2] != 0 {
			t.Fatalf("%v woven from %v and %v", again, even, odd)
		}
	}
}

func BenchmarkApart(b *testing.B) {
	row, even, odd := make([]float32, 28), make([]float32, 14), make([]float32, 14)
	for b.Loop() {
		Apart(even, odd, row)
	}
}

func BenchmarkWeave(b *testing.B) {
	row, even, odd := make([]float32, 28), make([]float32, 14), make([]float32, 14)
	for b.Loop() {
		Weave(row, even, odd)
	}
}
