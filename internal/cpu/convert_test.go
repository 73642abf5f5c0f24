package cpu

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestConvert compares the bits with package dtype's: every number of 16 bits, and float32 of all kinds, at odd lengths.
func TestConvert(t *testing.T) {
	r := testutil.Rand(t)
	f16, bf16 := make([]dtype.Float16, 1<<16), make([]dtype.BFloat16, 1<<16)
	single := make([]float32, 3<<16+11)
	for i := range 1 << 16 {
		f16[i], bf16[i] = dtype.Float16(i), dtype.BFloat16(i)
		single[3*i] = math.Float32frombits(r.Uint32())
		single[3*i+1] = float32(math.Ldexp(r.Float64()-0.5, r.IntN(60)-40))
		single[3*i+2] = math.Float32frombits(uint32(i)<<16 | 1<<15) // a tie of bf16
	}
	for _, l := range cpufeat.Levels() {
		restore := cpufeat.Set(l)
		for _, n := range []int{0, 1, 15, 16, 33, 1<<16 - 1} {
			sameBits(t, f16[1:n+1], make([]float32, n), math.Float32bits)
			sameBits(t, bf16[1:n+1], make([]float32, n), math.Float32bits)
			sameBits(t, single[5:n+5], make([]dtype.Float16, n), func(v dtype.Float16) uint32 { return uint32(v) })
			sameBits(t, single[5:n+5], make([]dtype.BFloat16, n), func(v dtype.BFloat16) uint32 { return uint32(v) })
		}
		sameBits(t, single, make([]dtype.Float16, len(single)), func(v dtype.Float16) uint32 { return uint32(v) })
		sameBits(t, single, make([]dtype.BFloat16, len(single)), func(v dtype.BFloat16) uint32 { return uint32(v) })
		restore()
	}
}

func sameBits[D, S dtype.Element](t *testing.T, src []S, dst []D, bits func(D) uint32) {
	t.Helper()
	want := make([]D, len(dst))
	dtype.Convert(want, src)
	convert(dst, src)
	for i, w := range want {
		if bits(dst[i]) != bits(w) {
			t.Fatalf("%v: %v of %d is %#x, want %#x", cpufeat.Active(), src[i], len(src), bits(dst[i]), bits(w))
		}
	}
}
