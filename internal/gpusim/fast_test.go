package gpusim

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// words are random 32-bit words, every other one a float near the interesting places.
func words(rnd *rand.Rand) (v vec32) {
	edges := oracleFormats["f32"].edges()
	for i := range v {
		switch rnd.IntN(3) {
		case 0:
			v[i] = rnd.Uint32()
		case 1:
			v[i] = uint32(edges[rnd.IntN(len(edges))])
		default:
			v[i] = rnd.Uint32() >> rnd.IntN(32)
		}
	}
	return v
}

func longs(rnd *rand.Rand) (v vec64) {
	for i := range v {
		v[i] = rnd.Uint64() >> rnd.IntN(64)
	}
	return v
}

func instOf(name string) *ptx.Inst {
	parts := strings.Split(name, ".")
	return &ptx.Inst{Op: parts[0], Mods: parts[1:]}
}

// TestFast compares each whole-warp loop with the lane function of its form.
func TestFast(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	laneOf := func(name string) lane {
		fm, err := formOf(instOf(name))
		if err != nil {
			t.Fatal(err)
		}
		return fm.f
	}
	for range 300 {
		a, b, c := words(rnd), words(rnd), words(rnd)
		x, y, z := longs(rnd), longs(rnd), longs(rnd)
		for name, f := range fast32 {
			if name == "ex2.approx.f32" {
				continue // TestApproximations bounds it
			}
			var d vec32
			f(&d, &a, &b, &c)
			g := laneOf(name)
			for i, v := range d {
				if want := uint32(g(uint64(a[i]), uint64(b[i]), uint64(c[i]), 0)); v != want {
					t.Fatalf("%s of %x %x %x is %x, want %x", name, a[i], b[i], c[i], v, want)
				}
			}
		}
		for name, f := range fast64 {
			var d vec64
			f(&d, &x, &y, &z)
			g := laneOf(name)
			for i, v := range d {
				if want := g(x[i], y[i], z[i], 0); v != want {
					t.Fatalf("%s of %x %x is %x, want %x", name, x[i], y[i], v, want)
				}
			}
		}
		for name, f := range fastWiden {
			var d vec64
			f(&d, &a, &b, &z)
			g := laneOf(name)
			for i, v := range d {
				if want := g(uint64(a[i]), uint64(b[i]), z[i], 0); v != want {
					t.Fatalf("%s of %x %x %x is %x, want %x", name, a[i], b[i], z[i], v, want)
				}
			}
		}
		for name, f := range fastTest32 {
			cmp, _, err := comparison(instOf(name))
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
		for name, f := range fastTest64 {
			cmp, _, err := comparison(instOf(name))
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
