package kernels

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// eachLevel runs a test on every instruction set of the machine.
func eachLevel(t *testing.T, f func(t *testing.T)) {
	for _, l := range cpufeat.Levels() {
		t.Run(l.String(), func(t *testing.T) {
			defer cpufeat.Set(l)()
			f(t)
		})
	}
}

func TestRows(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := testutil.Rand(t)
		for _, n := range []int{0, 1, 7, 8, 9, 15, 16, 17, 24, 31, 100, 8<<10 + 13} {
			x, y, exp := make([]float32, n), make([]float32, n), make([]float32, n+1)
			largest, sum, squares, dot := math.Inf(-1), 0., 0., 0.
			want := make([]float64, n)
			for i := range x {
				x[i], y[i] = min(float32(20*r.NormFloat64()), 80), float32(r.NormFloat64()) // exp(80) is still a float32
				u, v := float64(x[i]), float64(y[i])
				largest = max(largest, u)
				want[i] = math.Exp(float64(x[i] - 3))
				sum += want[i]
				squares += (u - 0.3) * (u - 0.3)
				dot += u * v
			}
			exp[n] = 7
			s := RowExp(exp, x, 3)
			got := make([]float64, n)
			for i, v := range exp[:n] {
				got[i] = float64(v)
			}
			testutil.Close(t, got, want, 2.5e-7, 1e-45)
			if exp[n] != 7 {
				t.Errorf("RowExp of %d wrote beyond them", n)
			}
			testutil.Close(t, []float64{float64(RowMax(x)), s, RowSquares(x, 0.3), RowDot(x, y)}, []float64{largest, sum, squares, dot}, 3e-7, 1e-10)
		}
	})
}

// What is stored row by row must be what the comments say.
func TestRowStores(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := testutil.Rand(t)
		for _, n := range []int{0, 1, 8, 13, 32, 101, 8<<10 + 9} {
			draw := func() []float32 {
				x := make([]float32, n)
				for i := range x {
					x[i] = float32(r.NormFloat64())
				}
				return x
			}
			x, g, w, b := draw(), draw(), draw(), draw()
			db, dw := make([]float64, n), make([]float64, n)
			var dst [4][]float32
			for i := range dst {
				dst[i] = make([]float32, n+1)
				dst[i][n] = 7
			}
			RowWeigh(dst[0], x, g, 0.3)
			RowAffine(dst[1], x, 0.2, 3, 0.7)
			RowNormalize(dst[2], x, w, b, 0.2, 3)
			RowMix(dst[3], g, x, 2, 3, 0.2, 0.5)
			RowGather(db, dw, g, x, 0.2, 3)
			sum, total := 0., make([]float64, n)
			var want [4][]float64
			for i := range x {
				u, v := float64(x[i]), float64(g[i])
				sum += u
				want[0] = append(want[0], u*(v-0.3))
				want[1] = append(want[1], (u-0.2)*3+0.7)
				want[2] = append(want[2], (u-0.2)*3*float64(w[i])+float64(b[i]))
				want[3] = append(want[3], 2*v-3*(u-0.2)-0.5)
				total[i] = v * (u - 0.2) * 3
				if db[i] != v {
					t.Fatalf("RowGather of %d: sum %v of %v", n, db[i], v)
				}
			}
			testutil.Close(t, dw, total, 1e-12, 1e-12)
			testutil.Close(t, []float64{RowSum(x)}, []float64{sum}, 1e-12, 1e-10)
			for i, d := range dst {
				if d[n] != 7 {
					t.Errorf("function %d of %d wrote beyond them", i, n)
				}
				got := make([]float64, n)
				for j, v := range d[:n] {
					got[j] = float64(v)
				}
				testutil.Close(t, got, want[i], 1e-6, 1e-6)
			}
		}
	})
}

// The largest element must be found in every place.
func TestRowMaxPlaces(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for n := 1; n < 70; n++ {
			x := make([]float32, n)
			for i := range x {
				x[i] = -5
			}
			for i := range x {
				x[i] = -1
				if got := RowMax(x); got != -1 {
					t.Fatalf("place %d of %d: %v", i, n, got)
				}
				x[i] = -5
			}
		}
	})
}

func TestAdam(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := testutil.Rand(t)
		c := AdamRates{0.5, 0.1, 0.1, 0.9, 0.1, 1e-3, 0.7, 0.02, 0.99}
		for _, n := range []int{0, 1, 8, 19, 64} {
			var x [4][]float32
			var got, want [4][]float64
			for range n {
				for j := range x {
					x[j] = append(x[j], float32(r.Float64()))
				}
			}
			for i := range n {
				p, g, m, v := float64(x[0][i]), float64(x[1][i]), float64(x[2][i]), float64(x[3][i])
				d := g*0.5 + 0.1*p
				m += 0.1 * (d - m)
				v = v*0.9 + 0.1*d*d
				p = p*0.99 - 0.02*m/(math.Sqrt(v)*0.7+1e-3)
				for j, u := range []float64{p, g, m, v} {
					want[j] = append(want[j], u)
				}
			}
			Adam(x[0], x[1], x[2], x[3], &c)
			for j := range x {
				for _, u := range x[j] {
					got[j] = append(got[j], float64(u))
				}
				testutil.Close(t, got[j], want[j], 1e-6, 1e-7)
			}
		}
	})
}

func TestRowExpSpecial(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	in := []float64{0, -inf, inf, nan, -103, -87.5, 88.7, 89, -104.5, -1e30, 1e30, 1e-30, -0.5, 100, -100, 1}
	eachLevel(t, func(t *testing.T) {
		x, got, want := make([]float32, len(in)), make([]float64, len(in)), make([]float64, len(in))
		for i, v := range in {
			x[i] = float32(v)
			want[i] = float64(float32(math.Exp(float64(x[i]))))
		}
		if s := RowExp(x, x, 0); !math.IsNaN(s) {
			t.Errorf("the sum with NaN is %v", s)
		}
		for i, v := range x {
			got[i] = float64(v)
		}
		testutil.Close(t, got, want, 2.5e-7, 1.5e-45)
		if got[1] != 0 { // a masked score must have no weight at all
			t.Errorf("exp(-∞) is %v", got[1])
		}
	})
}

func BenchmarkRows(b *testing.B) {
	x, y := make([]float32, 256), make([]float32, 256)
	for i := range x {
		x[i] = float32(i*37%256) / 100
	}
	for name, f := range map[string]func(){
		"max":     func() { RowMax(x) },
		"exp":     func() { RowExp(y, x, 1) },
		"squares": func() { RowSquares(x, 1) },
		"dot":     func() { RowDot(x, y) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(x)), "ns/elem")
		})
	}
}
