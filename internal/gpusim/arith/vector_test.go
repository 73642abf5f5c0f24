package arith

import (
	"math/rand/v2"
	"testing"

	"github.com/warpline-ml/warpline/internal/gpusim/oracle"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

// TestFast compares each whole-warp loop with the lane function of its form.
func TestFast(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	laneOf := func(name string) Lane {
		fm, err := FormOf(oracle.Inst(name))
		if err != nil {
			t.Fatal(err)
		}
		return fm.F
	}
	for range 300 {
		a, b, c := oracle.Words(rnd), oracle.Words(rnd), oracle.Words(rnd)
		x, y, z := oracle.Longs(rnd), oracle.Longs(rnd), oracle.Longs(rnd)
		for name, f := range Loops32 {
			if name == "ex2.approx.f32" {
				continue // TestApproximations bounds it
			}
			var d simt.Vec32
			f(&d, &a, &b, &c)
			g := laneOf(name)
			for i, v := range d {
				if want := uint32(g(uint64(a[i]), uint64(b[i]), uint64(c[i]), 0)); v != want {
					t.Fatalf("%s of %x %x %x is %x, want %x", name, a[i], b[i], c[i], v, want)
				}
			}
		}
		for name, f := range Loops64 {
			var d simt.Vec64
			f(&d, &x, &y, &z)
			g := laneOf(name)
			for i, v := range d {
				if want := g(x[i], y[i], z[i], 0); v != want {
					t.Fatalf("%s of %x %x is %x, want %x", name, x[i], y[i], v, want)
				}
			}
		}
		for name, f := range LoopsWiden {
			var d simt.Vec64
			f(&d, &a, &b, &z)
			g := laneOf(name)
			for i, v := range d {
				if want := g(uint64(a[i]), uint64(b[i]), z[i], 0); v != want {
					t.Fatalf("%s of %x %x %x is %x, want %x", name, a[i], b[i], z[i], v, want)
				}
			}
		}
		for name, f := range Tests32 {
			cmp, _, err := Comparison(oracle.Inst(name))
			if err != nil {
				t.Fatal(err)
			}
			b := b
			b[3], b[4] = a[3], a[4]
			m := f(&a, &b)
			for i := range a {
				if (m>>i&1 == 1) != cmp(uint64(a[i]), uint64(b[i])) {
					t.Fatalf("%s of %x %x", name, a[i], b[i])
				}
			}
		}
		for name, f := range Tests64 {
			cmp, _, err := Comparison(oracle.Inst(name))
			if err != nil {
				t.Fatal(err)
			}
			m := f(&x, &y)
			for i := range x {
				if (m>>i&1 == 1) != cmp(x[i], y[i]) {
					t.Fatalf("%s of %x %x", name, x[i], y[i])
				}
			}
		}
	}
}
