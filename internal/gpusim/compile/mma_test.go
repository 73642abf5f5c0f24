package compile

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/warpline-ml/warpline/internal/gpusim/arith"
	"github.com/warpline-ml/warpline/internal/gpusim/oracle"
	"github.com/warpline-ml/warpline/internal/ptx"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestChain compares the default sum of products with a chain of fused multiply-adds in exact rationals: numbers of all
// sizes, down to subnormal ones and up to infinity, and of like sizes, where sums cancel and lie between two float32.
func TestChain(t *testing.T) {
	rnd := testutil.Rand(t)
	f32 := oracle.Formats["f32"]
	for _, ty := range []ptx.Type{ptx.BF16, ptx.F16, ptx.TF32} {
		value := valueOf(ty)
		for range 3000 {
			n := 1 + rnd.IntN(16)
			c := uint64(anyFloat(rnd, ptx.F32))
			a, b, want := make([]float64, n), make([]float64, n), c
			for i := range n {
				a[i], b[i] = value(anyFloat(rnd, ty)), value(anyFloat(rnd, ty))
				want = f32.Fma(float32Bits(a[i]), float32Bits(b[i]), want, "rn")
			}
			if got := sumF32(a, b, float64(math.Float32frombits(uint32(c)))); got != uint64(arith.Canon32(math.Float32frombits(uint32(want)))) {
				t.Fatalf("%s: %v · %v + %#x is %#x, want %#x", ty, a, b, c, got, want)
			}
		}
	}
}

func float32Bits(x float64) uint64 { return uint64(math.Float32bits(float32(x))) }

// anyFloat is the bits of a number of a type: of any, or of a size near one.
func anyFloat(rnd *rand.Rand, ty ptx.Type) uint64 {
	if rnd.IntN(2) == 0 {
		return rnd.Uint64() & (1<<ty.Bits() - 1)
	}
	x := math.Float32bits(float32(math.Ldexp(rnd.Float64()-0.5, rnd.IntN(12))))
	switch ty {
	case ptx.BF16:
		return uint64(x >> 16)
	case ptx.F16:
		return arith.F16.Round(float64(math.Float32frombits(x)), arith.RN)
	}
	return uint64(x)
}
