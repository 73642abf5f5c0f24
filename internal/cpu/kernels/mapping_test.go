package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// blockwise are the functions that map elements, as functions of two operands and two numbers. exact ones have the bits
// of the Go loop.
var blockwise = []struct {
	name  string
	exact bool
	f     func(dst, x, y []float32, p, q float32)
}{
	{"exp", false, func(dst, x, _ []float32, _, _ float32) { Exp(dst, x) }},
	{"expm1", false, func(dst, x, _ []float32, _, _ float32) { Expm1(dst, x) }},
	{"log", false, func(dst, x, _ []float32, _, _ float32) { Log(dst, x) }},
	{"log1p", false, func(dst, x, _ []float32, _, _ float32) { Log1p(dst, x) }},
	{"tanh", false, func(dst, x, _ []float32, _, _ float32) { Tanh(dst, x) }},
	{"sigmoid", false, func(dst, x, _ []float32, _, _ float32) { Sigmoid(dst, x) }},
	{"erf", false, func(dst, x, _ []float32, _, _ float32) { Erf(dst, x) }},
	{"sin", false, func(dst, x, _ []float32, _, _ float32) { Sin(dst, x) }},
	{"cos", false, func(dst, x, _ []float32, _, _ float32) { Cos(dst, x) }},
	{"gelu", false, func(dst, x, _ []float32, _, _ float32) { GELU(dst, x) }},
	{"gelu_tanh", false, func(dst, x, _ []float32, _, _ float32) { GELUTanh(dst, x) }},
	{"silu", false, func(dst, x, _ []float32, _, _ float32) { SiLU(dst, x) }},
	{"gelu_grad", false, func(dst, x, y []float32, _, _ float32) { GELUGrad(dst, x, y) }},
	{"gelu_tanh_grad", false, func(dst, x, y []float32, _, _ float32) { GELUTanhGrad(dst, x, y) }},
	{"silu_grad", false, func(dst, x, y []float32, _, _ float32) { SiLUGrad(dst, x, y) }},
	{"rsqrt", false, func(dst, x, _ []float32, _, _ float32) { Rsqrt(dst, x) }},
	{"sqrt", true, func(dst, x, _ []float32, _, _ float32) { Sqrt(dst, x) }},
	{"relu", true, func(dst, x, _ []float32, _, _ float32) { ReLU(dst, x) }},
	{"relu_grad", true, func(dst, x, y []float32, _, _ float32) { ReLUGrad(dst, x, y) }},
	{"add", true, func(dst, x, y []float32, _, _ float32) { Add(dst, x, y) }},
	{"sub", true, func(dst, x, y []float32, _, _ float32) { Sub(dst, x, y) }},
	{"mul", true, func(dst, x, y []float32, _, _ float32) { Mul(dst, x, y) }},
	{"div", true, func(dst, x, y []float32, _, _ float32) { Div(dst, x, y) }},
	{"affine", true, func(dst, x, _ []float32, p, q float32) { Affine(dst, x, p, q) }},
	{"axpy", true, func(dst, x, y []float32, p, _ float32) { Axpy(dst, x, y, p) }},
	{"lerp", true, func(dst, x, y []float32, p, _ float32) { Lerp(dst, x, y, p) }},
	{"weigh", true, func(dst, x, y []float32, p, _ float32) { RowWeigh(dst, x, y, p) }},
	{"sgd", true, func(dst, x, y []float32, p, q float32) { copy(dst, x); SGD(dst, y, p, q, 0.25) }},
}

// TestMappings compares the loops in assembly with those in Go: sizes, tails, alignments, in place or not, and nothing
// written beside. Special values are in every place of a vector.
func TestMappings(t *testing.T) {
	r := testutil.Rand(t)
	special := []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 1e-40, -1e-40, 3e38, -3e38, 1 << 21, -120, 90}
	for round := range 60 {
		n := []int{0, 1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 8<<10 + 21}[round%16]
		n += round / 16
		x, y := drawn(r, n, special), drawn(r, n, special)
		p, q := float32(r.NormFloat64()), float32(r.NormFloat64())
		for _, f := range blockwise {
			restore := cpufeat.Set(cpufeat.Generic)
			want := make([]float32, n)
			f.f(want, x, y, p, q)
			restore()
			eachLevel(t, func(t *testing.T) {
				at := r.IntN(16)
				space := make([]float32, n+40)
				for i := range space {
					space[i] = 7
				}
				dst := space[at : at+n : at+n]
				in := x
				if round%2 == 1 {
					copy(dst, x)
					in = dst
				}
				f.f(dst, in, y, p, q)
				for i, v := range space {
					if (i < at || i >= at+n) && v != 7 {
						t.Fatalf("%s of %d at %d wrote beside them, at %d", f.name, n, at, i)
					}
				}
				scale := y
				if !strings.HasSuffix(f.name, "grad") {
					scale = make([]float32, n)
				}
				compare(t, fmt.Sprintf("%s of %d at %d", f.name, n, at), dst, want, x, scale, f.exact)
			})
		}
	}
}

// drawn has n random numbers, some of them special.
func drawn(r *rand.Rand, n int, special []float32) []float32 {
	x := make([]float32, n)
	for i := range x {
		if x[i] = float32(3 * r.NormFloat64()); r.IntN(8) == 0 {
			x[i] = special[r.IntN(len(special))]
		}
	}
	return x
}

// compare allows inexact results an error of their own size and of scale, with which sums are multiplied.
func compare(t *testing.T, name string, got, want, x, scale []float32, exact bool) {
	t.Helper()
	for i, w := range want {
		g, s := float64(got[i]), math.Abs(float64(scale[i]))
		if g != g && w != w || math.Float32bits(got[i]) == math.Float32bits(w) || s > math.MaxFloat32 {
			continue
		}
		off := math.Abs(g - float64(w))
		if exact || !(off <= 1e-6*math.Abs(float64(w))+3e-7*s+1.5e-45) {
			t.Fatalf("%s: element %d of %g is %g, the loop in Go has %g", name, i, x[i], g, w)
		}
	}
}

// TestSumRows compares with plain sums.
func TestSumRows(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := testutil.Rand(t)
		for _, n := range []int{0, 1, 7, 8, 15, 16, 17, 33, 100, 8<<10 + 5} {
			var rows [4][]float32
			for i := range rows {
				rows[i] = drawn(r, n, []float32{1, -1})
			}
			acc, want := make([]float64, n+1), make([]float64, n)
			acc[n] = 7
			for i := range n {
				acc[i] = r.NormFloat64()
				want[i] = acc[i] + float64((rows[0][i]+rows[1][i])+(rows[2][i]+rows[3][i]))
			}
			SumRows(acc[:n], rows[0], rows[1], rows[2], rows[3])
			for i, w := range want {
				if acc[i] != w {
					t.Fatalf("sum %d of %d is %v, want %v", i, n, acc[i], w)
				}
			}
			sum := 0.
			for _, v := range rows[0] {
				sum += float64(v)
			}
			testutil.Close(t, []float64{RowTotal(rows[0])}, []float64{sum}, 0, 3e-7*float64(3*n+1))
			if acc[n] != 7 {
				t.Errorf("SumRows of %d wrote beyond them", n)
			}
		}
	})
}
