package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// groups collects the elements of each result of a reduction.
func groups(x *ir.Type, v []float64, axes uint16) [][]float64 {
	n := 1
	for d, size := range x.Shape() {
		if axes>>d&1 == 0 {
			n *= size
		}
	}
	out := make([][]float64, n)
	for i, a := range v {
		at, step, rest := 0, 1, i
		for d := x.Rank() - 1; d >= 0; d-- {
			if axes>>d&1 == 0 {
				at += rest % x.Dim(d) * step
				step *= x.Dim(d)
			}
			rest /= x.Dim(d)
		}
		out[at] = append(out[at], a)
	}
	return out
}

func foldOf(code ir.Code, v []float64) float64 {
	acc := map[ir.Code]float64{ir.Sum: 0, ir.Prod: 1, ir.ReduceMax: math.Inf(-1), ir.ReduceMin: math.Inf(1)}[code]
	lost := 0. // by rounding, as Kahan has it
	for _, a := range v {
		switch code {
		case ir.Sum:
			next := acc + (a - lost)
			lost = next - acc - (a - lost)
			acc = next
		case ir.Prod:
			acc *= a
		case ir.ReduceMax:
			acc = max(acc, a)
		case ir.ReduceMin:
			acc = min(acc, a)
		}
	}
	return acc
}

// reduceCases are shapes and axes for each way to walk, and random ones.
func reduceCases(r *rand.Rand) (shapes [][]int, axes []uint16) {
	shapes = [][]int{{36000}, {130, 140}, {140, 130}, {5, 40, 130}, {5, 40, 130}, {4, 3, 2, 800}, {12000, 3}, {2, 20000}, {}, {3, 0, 2}}
	axes = []uint16{1, 1, 2, 0b101, 0b010, 0b1011, 1, 2, 0, 0b010}
	for range 4 {
		s := randomShape(r)
		shapes = append(shapes, s)
		axes = append(axes, uint16(r.IntN(1<<len(s))))
	}
	return shapes, axes
}

func TestReduce(t *testing.T) {
	r := testutil.Rand(t)
	shapes, axes := reduceCases(r)
	for _, code := range []ir.Code{ir.Sum, ir.Prod, ir.ReduceMax, ir.ReduceMin} {
		types := numberTypes
		if code == ir.ReduceMax || code == ir.ReduceMin {
			types = orderedTypes
		}
		for _, dt := range types {
			for i, shape := range shapes {
				x := randomView(r, dt, shape)
				op := ir.New(code, ir.Attr{Axes: axes[i], Keep: r.IntN(2) == 0}, x)
				if _, err := op.Infer(); err != nil {
					continue // an extreme of nothing
				}
				testReduce(t, r, op)
			}
		}
	}
}

func testReduce(t *testing.T, r *rand.Rand, op ir.Op) {
	t.Helper()
	x := op.In(0)
	v := numbersFor(r, x)
	if op.Code == ir.Prod { // near 1, lest it vanish, and lest a part of it overflow of which all is finite; 1 and 3 for integers, which wrap
		for i := range v {
			v[i] = 1 + (2*r.Float64()-1)/128
			if !x.DType.IsFloat() {
				v[i] = float64(1 + 2*r.IntN(2))
			}
		}
	}
	got := mustLaunch(t, op, ir.Params{}, v)
	want, scale := []float64{}, 1. // errors are relative to the magnitudes that are added
	for _, g := range groups(x, got.in[0], op.Attr.Axes) {
		switch {
		case op.Code == ir.Prod && !x.DType.IsFloat():
			want = append(want, wrappedProduct(x.DType, g))
		default:
			want = append(want, held(x.DType, foldOf(op.Code, g)))
		}
		scale = max(scale, 4+float64(len(g))/4)
		switch m := magnitude(g); {
		case op.Code != ir.Sum:
		case len(g) < 256: // too few terms for their rounding errors to average out
			scale = max(scale, m)
		default: // terms of one sign, as a repeated element has: partial sums are as large as the result
			scale = max(scale, 4*math.Abs(want[len(want)-1]))
		}
	}
	compare(t, op, got.out[0], want, max(precision(x.DType), 1e-12), scale)
}

// magnitude is the sum of |v|, which bounds every partial sum.
func magnitude(v []float64) (m float64) {
	for _, a := range v {
		m += math.Abs(a)
	}
	return m
}

func wrappedProduct(dt dtype.DType, v []float64) float64 {
	p := int64(1)
	for _, a := range v {
		p *= int64(a)
	}
	switch dt {
	case dtype.I32:
		return float64(int32(p))
	case dtype.U8:
		return float64(uint8(p))
	}
	return float64(p)
}

// A sum of a million numbers keeps all the digits that float32 has.
func TestSumIsAccurate(t *testing.T) {
	x := ir.Dense(dtype.F32, 1<<20)
	v := make([]float64, x.Size())
	want := 0.
	for i := range v {
		v[i] = float64(float32(1 + 1/float64(i+1)))
		want += v[i]
	}
	got := mustLaunch(t, ir.New(ir.Sum, ir.Attr{Axes: 1}, x), ir.Params{}, v).out[0][0]
	if math.Abs(got/want-1) > 1e-7 {
		t.Errorf("sum is %v, want %v", got, want)
	}
}

func TestExtremesKeepNaN(t *testing.T) {
	for _, dt := range floatTypes {
		for _, shape := range [][]int{{9}, {9, 5}, {5, 9}} {
			for at := range 9 {
				x := ir.Dense(dt, shape...)
				axis := 0
				if shape[0] != 9 {
					axis = 1
				}
				v := make([]float64, x.Size())
				eachPlace(x, func(i, _ int) {
					j := i
					if axis == 0 && len(shape) == 2 {
						j = i / shape[1]
					}
					v[i] = float64(j % 9)
					if j%9 == at {
						v[i] = math.NaN()
					}
				})
				for _, code := range []ir.Code{ir.ReduceMax, ir.ReduceMin} {
					op := ir.New(code, ir.Attr{Axes: 1 << axis}, x)
					for _, g := range mustLaunch(t, op, ir.Params{}, v).out[0] {
						if g == g {
							t.Fatalf("%s of %s lost the NaN at %d: %v", code, x, at, g)
						}
					}
				}
				for _, code := range []ir.Code{ir.ArgMax, ir.ArgMin} {
					op := ir.New(code, ir.Attr{Axis: int8(axis)}, x)
					for _, g := range mustLaunch(t, op, ir.Params{}, v).out[0] {
						if g != float64(at) {
							t.Fatalf("%s of %s: %v, want the NaN at %d", code, x, g, at)
						}
					}
				}
			}
		}
	}
}

// lineCases are shapes and an axis.
var lineCases = []struct {
	shape []int
	axis  int
}{{[]int{7}, 0}, {[]int{2500}, 0}, {[]int{30, 700}, 1}, {[]int{700, 30}, 0}, {[]int{3, 50, 300}, 1}, {[]int{2, 1, 3}, 1}, {[]int{0, 4}, 1}, {[]int{40, 3, 1}, 1}}

func TestArg(t *testing.T) {
	r := testutil.Rand(t)
	for _, code := range []ir.Code{ir.ArgMax, ir.ArgMin} {
		for _, dt := range numberTypes {
			for _, c := range lineCases {
				x := ir.Dense(dt, c.shape...)
				v := numbersFor(r, x)
				for i := range v {
					v[i] = math.Trunc(v[i]) // many ties
				}
				op := ir.New(code, ir.Attr{Axis: int8(c.axis)}, x)
				got := mustLaunch(t, op, ir.Params{}, v)
				var want []float64
				for _, g := range groups(x, got.in[0], 1<<c.axis) {
					best := 0
					for i, a := range g {
						if code == ir.ArgMax && a > g[best] || code == ir.ArgMin && a < g[best] {
							best = i
						}
					}
					want = append(want, float64(best))
				}
				compare(t, op, got.out[0], want, 0, 0)
			}
		}
	}
}

func TestCumSum(t *testing.T) {
	r := testutil.Rand(t)
	for _, dt := range numberTypes {
		for _, c := range lineCases {
			x := ir.Dense(dt, c.shape...)
			op := ir.New(ir.CumSum, ir.Attr{Axis: int8(c.axis)}, x)
			got := mustLaunch(t, op, ir.Params{}, numbersFor(r, x))
			step := 1
			for _, d := range c.shape[c.axis+1:] {
				step *= d
			}
			sums := make([]float64, x.Size())
			want := make([]float64, x.Size())
			for i, a := range got.in[0] {
				sums[i] = a
				if i/step%c.shape[c.axis] > 0 {
					sums[i] += sums[i-step]
				}
				want[i] = held(dt, sums[i])
			}
			compare(t, op, got.out[0], want, precision(dt), math.Sqrt(float64(max(1, c.shape[c.axis]))))
		}
	}
}

func BenchmarkReduce(b *testing.B) {
	x := ir.Dense(dtype.F32, 512, 512)
	for _, code := range []ir.Code{ir.Sum, ir.ReduceMax} {
		for _, axes := range []uint16{1, 2, 3} {
			b.Run(fmt.Sprintf("%s-%02b", code, axes), func(b *testing.B) { bench(b, ir.New(code, ir.Attr{Axes: axes}, x), ir.Params{}) })
		}
	}
	b.Run("sum-bf16", func(b *testing.B) {
		bench(b, ir.New(ir.Sum, ir.Attr{Axes: 3}, ir.Dense(dtype.BF16, 512, 512)), ir.Params{})
	})
	b.Run("sum-short-rows", func(b *testing.B) {
		bench(b, ir.New(ir.Sum, ir.Attr{Axes: 2}, ir.Dense(dtype.F32, 1<<14, 10)), ir.Params{})
	})
	b.Run("sum-bias", func(b *testing.B) {
		bench(b, ir.New(ir.Sum, ir.Attr{Axes: 1}, ir.Dense(dtype.F32, 1<<14, 32)), ir.Params{})
	})
	b.Run("sum-channels", func(b *testing.B) {
		bench(b, ir.New(ir.Sum, ir.Attr{Axes: 0b1101}, ir.Dense(dtype.F32, 64, 16, 14, 14)), ir.Params{})
	})
	b.Run("arg_max", func(b *testing.B) { bench(b, ir.New(ir.ArgMax, ir.Attr{Axis: 1}, x), ir.Params{}) })
	b.Run("cumsum", func(b *testing.B) { bench(b, ir.New(ir.CumSum, ir.Attr{Axis: 1}, x), ir.Params{}) })
}
