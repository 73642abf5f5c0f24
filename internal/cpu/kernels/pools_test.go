package kernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// pooled is what Plane says, window by window.
func pooled(g *Pooling, x []float32) (y []float32, places []int64) {
	for r := range g.OH {
		y0, y1 := g.Rows(r)
		for c := range g.OW {
			x0, x1 := g.Cols(c)
			at := y0*g.W + x0
			for i := y0; i < y1; i++ {
				for j := x0; j < x1; j++ {
					if x[i*g.W+j] > x[at] {
						at = i*g.W + j
					}
				}
			}
			y, places = append(y, x[at]), append(places, int64(at))
		}
	}
	return y, places
}

// pooling draws one whose windows have an element within the plane, half of them of pairs.
func pooling(r *rand.Rand) *Pooling {
	if r.IntN(2) == 0 {
		return pairs(r)
	}
	g := &Pooling{KernelH: 1 + r.IntN(4), KernelW: 1 + r.IntN(5), StrideH: 1 + r.IntN(3), StrideW: 1 + r.IntN(2)}
	g.PadH, g.PadW = r.IntN(g.KernelH/2+1), r.IntN(g.KernelW/2+1)
	g.OH, g.OW = 1+r.IntN(5), 1+r.IntN(40)
	g.H = max(1, (g.OH-1)*g.StrideH+g.KernelH-2*g.PadH+r.IntN(g.StrideH))
	g.W = max(1, (g.OW-1)*g.StrideW+g.KernelW-2*g.PadW+r.IntN(g.StrideW))
	return g
}

// TestMaxPool compares planes of few numbers, -∞ among them, with the loops above.
func TestMaxPool(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := testutil.Rand(t)
		for range 300 {
			g := pooling(r)
			m := NewMaxPool(g)
			if m == nil {
				return
			}
			x := make([]float32, g.H*g.W)
			for i := range x {
				if x[i] = float32(r.IntN(4)) - 2; r.IntN(3) == 0 {
					x[i] = float32(math.Inf(-1))
				}
			}
			y, places := make([]float32, g.OH*g.OW+1), make([]int64, g.OH*g.OW+1)
			y[len(y)-1], places[len(y)-1] = 7, 7
			wantY, wantPlaces := pooled(g, x)
			if !m.Plane(y, places, x) || !slices.Equal(y, append(wantY, 7)) || !slices.Equal(places, append(wantPlaces, 7)) {
				t.Fatalf("%+v of %v: %v at %v, want %v at %v", *g, x, y, places, wantY, wantPlaces)
			}
			x[wantPlaces[r.IntN(len(wantPlaces))]] = float32(math.NaN())
			if m.Plane(y, places, x) {
				t.Fatalf("%+v: no NaN seen in %v", *g, x)
			}
		}
	})
}

// pairs draws one of 2×2 side by side, half of them with elements beside.
func pairs(r *rand.Rand) *Pooling {
	g := &Pooling{KernelH: 2, KernelW: 2, StrideH: 2, StrideW: 2, OH: 1 + r.IntN(5), OW: 1 + r.IntN(40)}
	g.H, g.W = 2*g.OH, 2*g.OW
	if r.IntN(2) == 0 {
		g.H, g.W = g.H+r.IntN(2), g.W+r.IntN(2)
	}
	return g
}

// TestMaxPairsGrad compares with gradients that are put at their places, and moves a place out of its window.
func TestMaxPairsGrad(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := testutil.Rand(t)
		for range 300 {
			g := pairs(r)
			y, places := noise[float32](r, g.OH*g.OW), make([]int64, g.OH*g.OW)
			x := noise[float32](r, g.H*g.W+1)
			want := make([]float32, len(x))
			want[g.H*g.W] = x[g.H*g.W]
			for i, v := range y {
				at := (2*(i/g.OW)+r.IntN(2))*g.W + 2*(i%g.OW) + r.IntN(2)
				places[i], want[at] = int64(at), v
			}
			if !MaxPairsGrad(g, x, y, places) {
				if NewMaxPool(g) != nil && g.H == 2*g.OH && g.W == 2*g.OW {
					t.Fatalf("%+v: nothing was done", *g)
				}
				continue
			}
			if !slices.Equal(x, want) {
				t.Fatalf("%+v of %v at %v: %v, want %v", *g, y, places, x, want)
			}
			i := r.IntN(len(places))
			places[i] += []int64{-1 << 40, 1 << 32, int64(-2 * g.W), int64(2 * g.W), math.MinInt64}[r.IntN(5)]
			if MaxPairsGrad(g, x, y, places) {
				t.Fatalf("%+v: the place %d of %d was taken", *g, places[i], i)
			}
		}
	})
}
