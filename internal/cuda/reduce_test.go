package cuda_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/conform"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ref"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// launches returns a function that runs an op on a simulated GPU under all checks.
func launches(t *testing.T) func(code ir.Code, attr ir.Attr, p ir.Params, in ...ref.Array) []ref.Array {
	t.Helper()
	dev := opener(t, simcuda.Config{Checks: gpusim.AllChecks})()
	l, err := conform.NewLauncher(dev)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(code ir.Code, attr ir.Attr, p ir.Params, in ...ref.Array) (out []ref.Array) {
		t.Helper()
		err := l.Try(func() {
			defer l.Release()
			var v []ir.Value
			for _, a := range in {
				v = append(v, l.Put(a.Type, a))
			}
			for _, y := range l.Emit(code, attr, p, v...) {
				out = append(out, l.Get(y))
			}
		})
		if err != nil {
			t.Fatalf("%s: %v", code, err)
		}
		return out
	}
}

// small is an array of integers of few digits, which sums hold exactly in every dtype.
func small(r *rand.Rand, t *ir.Type) ref.Array {
	v := make([]float64, t.Size())
	for i := range v {
		v[i] = float64(r.IntN(7) - 3)
	}
	if !t.DType.IsFloat() {
		n := make([]int64, len(v))
		for i := range v {
			n[i] = int64(v[i])
		}
		return ref.Ints(t, n...)
	}
	return ref.Floats(t, v...)
}

func normals(r *rand.Rand, t *ir.Type) ref.Array {
	v := make([]float64, t.Size())
	for i := range v {
		v[i] = float64(float32(r.NormFloat64()))
	}
	return ref.Floats(t, v...)
}

// equal compares results with those of the reference, exactly.
func equal(t *testing.T, what string, got []ref.Array, code ir.Code, attr ir.Attr, p ir.Params, in ...ref.Array) {
	t.Helper()
	var types []*ir.Type
	for _, a := range in {
		types = append(types, a.Type)
	}
	op := ir.New(code, attr, types...)
	want, err := ref.Eval(&op, &p, in)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		for j, w := range want[i].Data {
			if got[i].Data[j] != w {
				t.Fatalf("%s: element %d of result %d is %v, want %v", what, j, i, got[i].Data[j], w)
			}
		}
	}
}

// shuffled is a type of some sizes that lie in memory in another order, with gaps.
func shuffled(r *rand.Rand, dt dtype.DType, sizes []int) *ir.Type {
	strides := make([]int, len(sizes))
	step := 1 + r.IntN(2)
	for _, d := range r.Perm(len(sizes)) {
		strides[d] = step
		step = step*sizes[d] + 3*r.IntN(2)
	}
	return ir.Strided(dt, sizes, strides)
}

// TestReductionsOfAnyView tries shapes, orders of dimensions and gaps by chance.
func TestReductionsOfAnyView(t *testing.T) {
	run, r := launches(t), testutil.Rand(t)
	sizes := []int{1, 2, 3, 5, 8, 16, 31, 40}
	for range 40 {
		shape := make([]int, 1+r.IntN(5))
		n := 1
		for i := range shape {
			if shape[i] = sizes[r.IntN(len(sizes))]; n*shape[i] > 20000 {
				shape[i] = 1
			}
			n *= shape[i]
		}
		dt := []dtype.DType{dtype.F32, dtype.F64, dtype.I64, dtype.U8}[r.IntN(4)]
		x := small(r, shuffled(r, dt, shape))
		attr := ir.Attr{Axes: uint16(r.IntN(1 << len(shape)))}
		for _, code := range []ir.Code{ir.Sum, ir.ReduceMin} {
			equal(t, x.Type.String(), run(code, attr, ir.Params{}, x), code, attr, ir.Params{}, x)
		}
	}
}

// TestLongReductions takes every way of cutting the work: lanes, warps, blocks and parts, along rows and columns.
func TestLongReductions(t *testing.T) {
	run, r := launches(t), testutil.Rand(t)
	for _, c := range []struct {
		shape []int
		axes  uint16
	}{
		{[]int{70001}, 1}, {[]int{70001, 1}, 1}, {[]int{3, 30011}, 2}, {[]int{30011, 3}, 1}, {[]int{30011, 3}, 2}, {[]int{257, 300}, 3},
		{[]int{5, 2000, 12}, 5}, {[]int{5, 2000, 12}, 2}, {[]int{2, 9, 4100}, 5}, {[]int{66000, 2}, 2},
	} {
		for _, dt := range []dtype.DType{dtype.F32, dtype.U8} {
			x := small(r, ir.Dense(dt, c.shape...))
			attr := ir.Attr{Axes: c.axes}
			equal(t, x.Type.String(), run(ir.Sum, attr, ir.Params{}, x), ir.Sum, attr, ir.Params{}, x)
		}
	}
	x := small(r, ir.Dense(dtype.F32, 50003))
	equal(t, "arg_max", run(ir.ArgMax, ir.Attr{}, ir.Params{}, x), ir.ArgMax, ir.Attr{}, ir.Params{}, x)
	for _, shape := range [][]int{{50003}, {3, 5000}, {5000, 3}, {2, 300, 5}} {
		x := small(r, ir.Dense(dtype.I32, shape...))
		attr := ir.Attr{Axis: int8(max(len(shape)-2, 0))}
		equal(t, "cumsum "+x.Type.String(), run(ir.CumSum, attr, ir.Params{}, x), ir.CumSum, attr, ir.Params{}, x)
	}
}

// TestSumsDoNotDependOnPlace demands the same bits wherever in memory a tensor begins.
func TestSumsDoNotDependOnPlace(t *testing.T) {
	run, r := launches(t), testutil.Rand(t)
	const n = 9001
	x := normals(r, ir.Dense(dtype.F32, n))
	want := run(ir.Sum, ir.Attr{Axes: 1}, ir.Params{}, x)[0].Data[0]
	for shift := 1; shift < 4; shift++ {
		// A row of a matrix whose rows begin at any offset.
		rows := ir.Strided(dtype.F32, []int{2, n}, []int{n + shift, 1})
		twice := ref.Floats(rows, slices.Concat(x.Data, x.Data)...)
		for i, got := range run(ir.Sum, ir.Attr{Axes: 2}, ir.Params{}, twice)[0].Data {
			if math.Float64bits(got) != math.Float64bits(want) {
				t.Errorf("rows %d apart: the sum of row %d is %v, at another place %v", n+shift, i, got, want)
			}
		}
	}
}
