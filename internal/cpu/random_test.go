package cpu

import (
	"bytes"
	"math"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// keyed are parameters with an integer key at the end.
func keyed(key uint64, v ...float64) ir.Params {
	p := ir.Scalars(v...)
	p.Value[p.N] = key
	p.N++
	return p
}

func between(key uint64, lo, hi int64) ir.Params {
	p := ir.Integers(lo, hi)
	p.Value[p.N] = key
	p.N++
	return p
}

func meanAndDeviation(v []float64) (mean, std float64) {
	for _, a := range v {
		mean += a
	}
	mean /= float64(len(v))
	for _, a := range v {
		std += (a - mean) * (a - mean)
	}
	return mean, math.Sqrt(std / float64(len(v)))
}

func TestRandomDistributions(t *testing.T) {
	const n = 50000
	for _, dt := range floatTypes {
		y := ir.Dense(dt, n)
		u := mustLaunch(t, ir.New(ir.Uniform, ir.Attr{Out: y}), keyed(7, -1, 3)).out[0]
		if m, s := meanAndDeviation(u); math.Abs(m-1) > 0.03 || math.Abs(s-4/math.Sqrt(12)) > 0.02 {
			t.Errorf("%s uniform: mean %g, deviation %g", dt, m, s)
		}
		for _, v := range u {
			if v < -1 || v >= 3 {
				t.Fatalf("%s uniform in [-1, 3) gave %g", dt, v)
			}
		}
		z := mustLaunch(t, ir.New(ir.Normal, ir.Attr{Out: y}), keyed(8, 2, 0.5)).out[0]
		if m, s := meanAndDeviation(z); math.Abs(m-2) > 0.02 || math.Abs(s-0.5) > 0.01 {
			t.Errorf("%s normal: mean %g, deviation %g", dt, m, s)
		}
	}
	for _, dt := range numberTypes {
		y := ir.Dense(dt, n)
		counts := map[float64]int{}
		for _, v := range mustLaunch(t, ir.New(ir.RandInt, ir.Attr{Out: y}), between(9, 3, 8)).out[0] {
			counts[v]++
		}
		for v := 3.; v < 8; v++ {
			if math.Abs(float64(counts[v])-n/5) > 500 {
				t.Errorf("%s: %v occurs %d times of %d", dt, v, counts[v], n)
			}
		}
		if len(counts) != 5 {
			t.Errorf("%s: integers of [3, 8) are %v", dt, counts)
		}
	}
}

// Element i depends on the key and i only: a shorter tensor is the beginning of a longer one, also as a view.
func TestRandomIsPerElement(t *testing.T) {
	for code, keyed := range map[ir.Code]func(key uint64) ir.Params{
		ir.Uniform: func(key uint64) ir.Params { return keyed(key, 0, 5) },
		ir.Normal:  func(key uint64) ir.Params { return keyed(key, 0, 5) },
		ir.RandInt: func(key uint64) ir.Params { return between(key, 0, 5) },
	} {
		for _, dt := range floatTypes {
			long := mustLaunch(t, ir.New(code, ir.Attr{Out: ir.Dense(dt, 20001)}), keyed(3)).out[0]
			for _, y := range []*ir.Type{ir.Dense(dt, 1), ir.Dense(dt, 7, 11), ir.Strided(dt, []int{50, 101}, []int{1, 50})} {
				op := ir.New(code, ir.Attr{Out: y})
				compare(t, op, mustLaunch(t, op, keyed(3)).out[0], long[:y.Size()], 0, 0)
			}
			other := mustLaunch(t, ir.New(code, ir.Attr{Out: ir.Dense(dt, 20001)}), keyed(4)).out[0]
			same := 0
			for i := range long {
				same += int(truth(long[i] == other[i]))
			}
			if same > len(long)/4 {
				t.Errorf("%s of %s: two keys agree in %d of %d", code, dt, same, len(long))
			}
		}
	}
}

func TestDropout(t *testing.T) {
	r := testutil.Rand(t)
	var kept []bool
	for _, dt := range floatTypes {
		x := ir.Dense(dt, 200, 101)
		v := numbersFor(r, x)
		for i := range v {
			v[i] = math.Abs(v[i]) + 1
		}
		v[0] = math.Inf(1)
		op := ir.New(ir.Dropout, ir.Attr{}, x)
		got := mustLaunch(t, op, keyed(11, 0.25), v)
		want := make([]float64, len(v))
		n := 0
		for i, a := range got.out[0] {
			keep := a != 0
			if dt == floatTypes[0] {
				kept = append(kept, keep)
			} else if keep != kept[i] {
				t.Fatalf("%s keeps other elements than %s", dt, floatTypes[0])
			}
			if keep {
				want[i] = got.in[0][i] / 0.75
				n++
			}
		}
		compare(t, op, got.out[0], want, precision(dt), 1)
		if math.Abs(float64(n)/float64(len(v))-0.75) > 0.015 {
			t.Errorf("%s keeps %d of %d", dt, n, len(v))
		}
	}
	x := ir.Dense(dtype.F32, 100)
	op := ir.New(ir.Dropout, ir.Attr{}, x)
	in := numbersFor(r, x)
	all := mustLaunch(t, op, keyed(1, 0), in)
	compare(t, op, all.out[0], all.in[0], 0, 0)
	if none := mustLaunch(t, op, keyed(1, 1), in); !bytes.Equal(none.bytes[0], make([]byte, 400)) {
		t.Error("dropout of everything left something")
	}
}

func BenchmarkRandom(b *testing.B) {
	y := ir.Dense(dtype.F32, 1<<16)
	b.Run("uniform", func(b *testing.B) { bench(b, ir.New(ir.Uniform, ir.Attr{Out: y}), keyed(1, 0, 1)) })
	b.Run("normal", func(b *testing.B) { bench(b, ir.New(ir.Normal, ir.Attr{Out: y}), keyed(1, 0, 1)) })
	b.Run("dropout", func(b *testing.B) { bench(b, ir.New(ir.Dropout, ir.Attr{}, y), keyed(1, 0.1)) })
}
