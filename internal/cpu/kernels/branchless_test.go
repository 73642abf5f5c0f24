package kernels

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// edges are values on both sides of every decision.
var edges = []float32{0, float32(math.Copysign(0, -1)), 1, -1, math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32,
	2, 2, -3, math.MaxFloat32, -math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), 1e38}

func same32(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }

func TestReLUByBits(t *testing.T) {
	nan := float32(math.NaN())
	x := append([]float32{nan, -nan}, edges...)
	dst, back, g := make([]float32, len(x)), make([]float32, len(x)), make([]float32, len(x))
	for i := range g {
		g[i] = float32(i + 1)
	}
	ReLU(dst, x)
	ReLUGrad(back, x, g)
	for i, v := range x {
		want, grad := v, float32(0)
		if v < 0 {
			want = 0
		}
		if !(v <= 0) {
			grad = g[i]
		}
		if !same32(dst[i], want) || !same32(back[i], grad) {
			t.Errorf("relu(%v) = %v, gradient %v; want %v, %v", v, dst[i], back[i], want, grad)
		}
	}
}

func TestMaxPairs(t *testing.T) {
	r := testutil.Rand(t)
	top, low, out, place := make([]float32, 2000), make([]float32, 2000), make([]float32, 1000), make([]uint8, 1000)
	for i := range top {
		top[i], low[i] = edges[r.IntN(len(edges)-5)], edges[r.IntN(len(edges)-5)]
	}
	if !MaxPairs(out, place, top, low) {
		t.Fatal("finite numbers are taken for NaN")
	}
	for c := range out {
		v := []float32{top[2*c], top[2*c+1], low[2*c], low[2*c+1]}
		best, at := v[0], 0
		for i, x := range v {
			if x > best {
				best, at = x, i
			}
		}
		if out[c] != best || int(place[c]) != at {
			t.Fatalf("of %v: %v at %d, want %v at %d", v, out[c], place[c], best, at)
		}
	}
	low[999] = float32(math.NaN())
	if MaxPairs(out, place, top, low) {
		t.Error("a NaN is not seen")
	}
}

func BenchmarkReLU(b *testing.B) {
	x := make([]float32, 4096)
	r := testutil.Rand(b)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	dst := make([]float32, len(x))
	for b.Loop() {
		ReLU(dst, x)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(x)), "ns/elem")
}

func TestSignAndChooseByBits(t *testing.T) {
	nan := float32(math.NaN())
	x := append([]float32{nan, -nan}, edges...)
	sign, dst, y, c := make([]float32, len(x)), make([]float32, len(x)), make([]float32, len(x)), make([]bool, len(x))
	for i := range y {
		y[i], c[i] = -float32(i), i%3 == 0
	}
	Sign(sign, x)
	Choose(dst, c, x, y)
	for i, v := range x {
		want, chosen := float32(0), y[i]
		if v > 0 {
			want = 1
		} else if v < 0 {
			want = -1
		}
		if c[i] {
			chosen = v
		}
		if !same32(sign[i], want) || !same32(dst[i], chosen) {
			t.Errorf("sign(%v) = %v, want %v; of %v and %v by %v: %v", v, sign[i], want, v, y[i], c[i], dst[i])
		}
	}
}
