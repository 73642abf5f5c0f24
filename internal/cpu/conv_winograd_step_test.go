package cpu

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestHalvesInfinity: what is infinite spoils the results that see it, by halves too, and no other.
func TestHalvesInfinity(t *testing.T) {
	r := testutil.Rand(t)
	c := convCase{18, 16, 15, 17, 16, 4, 4, ir.Conv{StrideH: 2, StrideW: 2, PadH: 1, PadW: 2, DilationH: 1, DilationW: 1, Groups: 1}}
	tx, tw, _ := c.types(dtype.F32)
	oh, ow := c.out()
	tg := ir.Dense(dtype.F32, c.n, c.o, oh, ow)
	x, w, g := normals(t, r, 1, tx), normals(t, r, 1, tw), normals(t, r, 1, tg)
	for range 5 {
		x.v[r.IntN(len(x.v))], g.v[r.IntN(len(g.v))] = math.Inf(1), math.Inf(-1)
	}
	x.v[c.h*c.w-1], g.v[0] = math.Inf(-1), math.NaN()
	y, dx := make([]float64, tg.Size()), make([]float64, tx.Size())
	c.visit(func(i, j, k int) {
		y[i] += x.v[j] * w.v[k]
		dx[j] += g.v[i] * w.v[k]
	})
	finite := func(v float64) bool { return v-v == 0 }
	alike := func(what string, got, want []float64) {
		for i := range want {
			if finite(got[i]) != finite(want[i]) {
				t.Fatalf("%s at %d is %v, not %v", what, i, got[i], want[i])
			}
		}
	}
	a := c.Attr()
	alike("a result", evaluate(t, ir.Conv2d, a, ir.Params{}, x, w)[0].v, y)
	a.Out = tx
	alike("a gradient", evaluate(t, ir.Conv2dGradInput, a, ir.Params{}, g, w)[0].v, dx)
}
