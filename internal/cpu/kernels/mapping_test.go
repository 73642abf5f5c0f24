package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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
	{"clamp", true, func(dst, x, _ []float32, p, q float32) { Clamp(dst, x, min(p, q), max(p, q)) }},
	{"maximum", true, func(dst, x, y []float32, _, _ float32) { Maximum(dst, x, y) }},
	{"minimum", true, func(dst, x, y []float32, _, _ float32) { Minimum(dst, x, y) }},
	{"momentum", true, func(dst, x, y []float32, p, q float32) {
		copy(dst, x)
		m := slices.Clone(y)
		SGDMomentum(dst, y, m, &SGDRates{Scale: p, Decay: q, Rate: 0.25, Momentum: 0.5})
		Add(dst, dst, m)
	}},
	{"nesterov", true, func(dst, x, y []float32, p, q float32) {
		copy(dst, x)
		SGDMomentum(dst, y, slices.Clone(x), &SGDRates{Scale: p, Decay: q, Rate: 0.25, Momentum: 0.5, Nesterov: true})
	}},
	{"drop", true, func(dst, x, y []float32, p, q float32) { Drop(dst, x, y, p, q) }},
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

// TestSumRows compares with plain sums of whole numbers, which are exact, and with the loop in Go.
func TestSumRows(t *testing.T) {
	r := testutil.Rand(t)
	for _, n := range []int{0, 1, 7, 8, 15, 16, 17, 33, 100, 8<<10 + 5} {
		rows, stride := 1+r.IntN(20), n+r.IntN(20)
		x, whole := drawn(r, (rows-1)*stride+n, []float32{1, -1}), make([]float32, (rows-1)*stride+n)
		for i := range whole {
			whole[i] = float32(r.IntN(2001) - 1000)
		}
		restore := cpufeat.Set(cpufeat.Generic)
		want, sums := make([]float64, n), make([]float64, n)
		SumRows(want, x, rows, stride)
		for i := range n {
			for j := range rows {
				sums[i] += float64(whole[j*stride+i])
			}
		}
		restore()
		eachLevel(t, func(t *testing.T) {
			acc, exact := make([]float64, n+1), make([]float64, n)
			acc[n] = 7
			SumRows(acc[:n], x, rows, stride)
			SumRows(exact, whole, rows, stride)
			if !slices.Equal(acc[:n], want) || !slices.Equal(exact, sums) {
				t.Fatalf("%d rows of %d", rows, n)
			}
			if acc[n] != 7 {
				t.Errorf("SumRows of %d wrote beyond them", n)
			}
		})
	}
}

func TestRowExtreme(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := testutil.Rand(t)
		for _, n := range []int{0, 1, 7, 15, 16, 17, 33, 8<<10 + 5} {
			x := drawn(r, n, []float32{0, 1e38, -1e38})
			most, least := float32(math.Inf(-1)), float32(math.Inf(1))
			for _, v := range x {
				most, least = max(most, v), min(least, v)
			}
			u, plain := RowExtreme(x, 1)
			v, also := RowExtreme(x, -1)
			if u != most || -v != least || !plain || !also {
				t.Fatalf("extremes of %d: %v %v, %v %v; want %v, %v", n, u, plain, -v, also, most, least)
			}
			if n == 0 {
				continue
			}
			x[r.IntN(n)] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}[r.IntN(3)]
			if _, plain := RowExtreme(x, 1); plain {
				t.Fatalf("no number among %d was not noticed", n)
			}
		}
	})
}

// TestSumPlaces reads rows where indices say, as the loop in Go does.
func TestSumPlaces(t *testing.T) {
	r := testutil.Rand(t)
	for _, n := range []int{0, 1, 7, 16, 33, 1<<10 + 5} {
		const rows = 9
		stride := n + r.IntN(20)
		x, places := drawn(r, rows*stride+n, []float32{1, -1}), make([]int64, r.IntN(20))
		for i := range places {
			places[i] = r.Int64N(rows)
		}
		restore := cpufeat.Set(cpufeat.Generic)
		want := make([]float64, n)
		SumPlaces(want, x, stride, places)
		restore()
		eachLevel(t, func(t *testing.T) {
			acc := make([]float64, n+1)
			acc[n] = 7
			if SumPlaces(acc[:n], x, stride, places); !slices.Equal(acc[:n], want) || acc[n] != 7 {
				t.Fatalf("%d places of rows of %d", len(places), n)
			}
		})
		plain, size := make([]float64, n), make([]float64, n)
		for i := range plain {
			for _, p := range places {
				v := float64(x[int(p)*stride+i])
				plain[i] += v
				size[i] += math.Abs(v)
			}
			if math.Abs(plain[i]-want[i]) > 3.1*0x1p-24*size[i]+1e-300 {
				t.Fatalf("sum %d of %d places is %v, want %v", i, len(places), want[i], plain[i])
			}
		}
	}
}

func TestRowTotal(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := testutil.Rand(t)
		for _, n := range []int{0, 1, 7, 8, 15, 16, 17, 33, 100, 128, 8<<10 + 5} {
			x := drawn(r, n, []float32{1, -1})
			sum, size := 0., 0.
			for _, v := range x {
				sum += float64(v)
				size += math.Abs(float64(v))
			}
			// Three additions in float32 are in error by half an ulp each.
			testutil.Close(t, []float64{RowTotal(x)}, []float64{sum}, 0, 3.1*0x1p-24*size+1e-300)
		}
	})
}

// TestRowMoments has rows far from zero, alike, of one element far from the others, and of values that are none.
func TestRowMoments(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := testutil.Rand(t)
		for _, n := range []int{1, 7, 8, 16, 31, 32, 33, 100, 8<<10 + 5} {
			for _, far := range []float64{0, 1e4, -3e37} {
				for _, spread := range []float64{0, 1, 1e3} {
					x := make([]float32, n)
					for i := range x {
						x[i] = float32(far + spread*r.NormFloat64())
					}
					if r.IntN(2) == 0 {
						x[0] += float32(100 * spread)
					}
					c, sum, squares := float64(x[0]), 0., 0.
					for _, v := range x {
						sum += float64(v) - c
					}
					want := c + sum/float64(n)
					for _, v := range x {
						squares += (float64(v) - want) * (float64(v) - want)
					}
					mean, got := RowMoments(x)
					// float64 loses what the first element's distance takes of it, n times the variance at most.
					testutil.Close(t, []float64{mean, got}, []float64{want, squares}, 1e-15*float64(n+10), 1e-15*float64(n+10)*squares)
				}
			}
		}
		if m, q := RowMoments([]float32{3, float32(math.Inf(1)), 2}); !math.IsInf(m, 1) || q == q {
			t.Errorf("moments of an infinite value: %v, %v", m, q)
		}
	})
}
