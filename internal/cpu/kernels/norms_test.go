package kernels

import (
	"math/rand/v2"
	"testing"

	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// guarded is n numbers, zeros among them, before a value that nothing may touch.
func guarded(r *rand.Rand, n int) []float32 {
	x := make([]float32, n+1)
	for i := range n {
		x[i] = float32(r.NormFloat64()) * float32(min(r.IntN(5), 1))
	}
	x[n] = 7
	return x
}

// norm draws a Norm of some rows. Of its fields some are nil, or parameters of all places.
func norm(r *rand.Rand) *Norm[float32] {
	a := &Norm[float32]{Rows: r.IntN(5), N: r.IntN(70), One: r.IntN(2) == 0, Floor: NoFloor[float32]()}
	a.Stride = a.N + r.IntN(3)
	size := a.Rows * a.Stride
	a.X, a.G, a.Y = guarded(r, size), guarded(r, size), guarded(r, size)
	if r.IntN(2) == 0 {
		a.Floor = 0
	}
	if r.IntN(3) > 0 {
		a.Result = guarded(r, size)
	}
	if r.IntN(2) == 0 {
		a.Other = guarded(r, size)
	}
	a.Sum, a.More = guarded(r, a.N), guarded(r, a.N)
	for _, p := range []*[]float32{&a.M, &a.P, &a.Q, &a.R} {
		if *p = guarded(r, max(a.N, NormVector)); a.One {
			for i := range *p {
				(*p)[i] = (*p)[0]
			}
		}
	}
	return a
}

// widened is a copy in float64, whose loops are in Go.
func widened(a *Norm[float32]) *Norm[float64] {
	wide := func(x []float32) (y []float64) {
		for _, v := range x {
			y = append(y, float64(v))
		}
		return y
	}
	return &Norm[float64]{Rows: a.Rows, N: a.N, Stride: a.Stride, One: a.One, X: wide(a.X), G: wide(a.G), Y: wide(a.Y), Other: wide(a.Other),
		Result: wide(a.Result), Sum: wide(a.Sum), More: wide(a.More), M: wide(a.M), P: wide(a.P), Q: wide(a.Q), R: wide(a.R), Floor: float64(a.Floor)}
}

// TestNorms compares each loop on every level with the loop in Go in float64.
func TestNorms(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := testutil.Rand(t)
		for range 400 {
			loops := []struct {
				name string
				f32  func(*Norm[float32])
				f64  func(*Norm[float64])
			}{
				{"Add", (*Norm[float32]).Add, (*Norm[float64]).Add},
				{"Deviations", (*Norm[float32]).Deviations, (*Norm[float64]).Deviations},
				{"Apply", (*Norm[float32]).Apply, (*Norm[float64]).Apply},
				{"GradSums", (*Norm[float32]).GradSums, (*Norm[float64]).GradSums},
				{"GradApply", (*Norm[float32]).GradApply, (*Norm[float64]).GradApply},
			}
			for _, l := range loops {
				a := norm(r)
				if l.name == "GradSums" && a.Result == nil {
					a.Other = nil
				}
				want := widened(a)
				l.f32(a)
				l.f64(want)
				got := widened(a)
				for _, c := range [][2][]float64{{got.Y, want.Y}, {got.Other, want.Other}, {got.Sum, want.Sum}, {got.More, want.More}} {
					testutil.Close(t, c[0], c[1], 2e-6, 2e-6)
				}
				if t.Failed() {
					t.Fatalf("%s of %d rows of %d with stride %d, one %v", l.name, a.Rows, a.N, a.Stride, a.One)
				}
			}
		}
	})
}

// TestNormsNaN: a NaN stays one through relu, and its gradient passes.
func TestNormsNaN(t *testing.T) {
	nan := NoFloor[float32]() - NoFloor[float32]()
	for _, l := range cpufeat.Levels() {
		restore := cpufeat.Set(l)
		one := func(v float32) []float32 { return []float32{v} }
		a := &Norm[float32]{Rows: 1, N: 1, Stride: 1, X: one(nan), G: one(3), Result: one(nan), Y: one(0), M: one(0), P: one(1), Q: one(0), Sum: one(0), More: one(0)}
		if a.Apply(); a.Y[0] == a.Y[0] {
			t.Errorf("%v: relu of NaN is %v", l, a.Y[0])
		}
		if a.GradSums(); a.Sum[0] != 3 {
			t.Errorf("%v: %v passes where relu's result is NaN", l, a.Sum[0])
		}
		restore()
	}
}
