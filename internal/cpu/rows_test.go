package cpu

import (
	"math"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

func TestLargest(t *testing.T) {
	r := testutil.Rand(t)
	low := float32(math.Inf(-1))
	for n := range 40 {
		x := []float32{low}
		for range n {
			x = append(x, float32(r.NormFloat64()-2))
		}
		if got, want := largest(x), slices.Max(x); got != want {
			t.Errorf("of %v: %v", x, got)
		}
		x[r.IntN(len(x))] = float32(math.Inf(1))
		if got := largest(x); !math.IsInf(float64(got), 1) {
			t.Errorf("with +∞: %v", got)
		}
	}
	if got := largest([]float32(nil)); got != low {
		t.Errorf("of nothing: %v", got)
	}
}

func BenchmarkRows(b *testing.B) {
	x, y := make([]float32, 256), make([]float32, 256)
	for i := range x {
		x[i] = float32(i*37%256) / 100
	}
	for name, f := range map[string]func(){
		"largest":   func() { largest(x) },
		"exp":       func() { expInto(y, x, 1) },
		"sum":       func() { sumOf(x) },
		"deviation": func() { deviation(x, 1) },
		"dot":       func() { dotOf(x, y) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(x)), "ns/elem")
		})
	}
}
