package estimate

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestExact compares with package math over what the model asks for and beyond, and with powers of two, which are exact.
func TestExact(t *testing.T) {
	r := testutil.Rand(t)
	for range 10_000 {
		x := math.Exp(60*r.Float64() - 20)
		if got, want := log2(x), math.Log2(x); math.Abs(got-want) > 4e-15*max(1, math.Abs(want)) {
			t.Errorf("log2(%v) = %v, want %v", x, got, want)
		}
		x = 80*r.Float64() - 40
		if got, want := exp2(x), math.Exp2(x); math.Abs(got-want) > 4e-15*want {
			t.Errorf("exp2(%v) = %v, want %v", x, got, want)
		}
	}
	for n := -60; n <= 60; n++ {
		if p := math.Ldexp(1, n); log2(p) != float64(n) || exp2(float64(n)) != p {
			t.Errorf("2^%d: %v, %v", n, log2(p), exp2(float64(n)))
		}
	}
}
