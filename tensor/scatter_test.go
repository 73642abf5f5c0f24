package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

// grid is values in row-major order.
type grid struct {
	shape []int
	data  []float64
}

func newGrid(shape []int, value func() float64) grid {
	g := grid{shape, []float64{}}
	for range volume(shape) {
		g.data = append(g.data, value())
	}
	return g
}

func volume(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

func (g grid) tensor(env *tensor.Env, dt dtype.DType) *tensor.Tensor {
	return tensor.From(env, g.data, g.shape...).Cast(dt)
}

// places calls f with the coordinates of each element of a shape, in row-major order.
func places(shape []int, f func(at []int)) {
	at := make([]int, len(shape))
	for range volume(shape) {
		f(at)
		for d := len(at) - 1; d >= 0; d-- {
			if at[d]++; at[d] < shape[d] {
				break
			}
			at[d] = 0
		}
	}
}

func (g grid) offset(at []int) (n int) {
	for d, i := range at {
		n = n*g.shape[d] + i
	}
	return n
}

// scattered joins src into x one by one. first tells whether an element is met for the first time.
func scattered(axis int, x, idx, src grid, join func(old, v float64, first bool) float64) (out grid, count []float64) {
	out, count = grid{x.shape, slices.Clone(x.data)}, make([]float64, len(x.data))
	places(idx.shape, func(at []int) {
		to := slices.Clone(at)
		to[axis] = int(idx.data[idx.offset(at)])
		k := out.offset(to)
		out.data[k] = join(out.data[k], src.data[src.offset(at)], count[k] == 0)
		count[k]++
	})
	return out, count
}

// trials draws operands of a scatter: indices that come again and again, of awkward shapes, smaller than the value beside the
// dimension, and a source larger than the indices.
func trials(t *testing.T, f func(r *rand.Rand, axis int, x, idx, src grid)) {
	r := testutil.Rand(t)
	for _, shape := range [][]int{{1}, {7}, {3, 5}, {4, 1, 3}, {2, 3, 2}, {0, 3}, {3, 0}, {17}} {
		for axis := range shape {
			if shape[axis] == 0 {
				continue
			}
			for _, m := range []int{0, 1, 4, 11} {
				small := slices.Clone(shape)
				for d := range small {
					small[d] = max(0, small[d]-r.IntN(2))
				}
				small[axis] = m
				large := slices.Clone(small)
				large[axis] += r.IntN(2)
				value := func() float64 { return float64(r.IntN(9) - 4) }
				f(r, axis, newGrid(shape, value), newGrid(small, func() float64 { return float64(r.IntN(shape[axis])) }), newGrid(large, value))
			}
		}
	}
}

var scatterTypes = []dtype.DType{dtype.F64, dtype.F32, dtype.F16, dtype.BF16, dtype.I64, dtype.I32, dtype.U8, dtype.Bool}

// asHeld are values as a dtype holds them.
func asHeld(env *tensor.Env, g grid, dt dtype.DType) grid {
	return grid{g.shape, g.tensor(env, dt).Floats()}
}

func TestScatterTakesTheLast(t *testing.T) {
	env := open(t)
	trials(t, func(r *rand.Rand, axis int, x, idx, src grid) {
		for _, dt := range scatterTypes {
			x, src := asHeld(env, x, dt), asHeld(env, src, dt)
			want, count := scattered(axis, x, idx, src, func(_, v float64, _ bool) float64 { return v })
			at := idx.tensor(env, dtype.I64)
			name := fmt.Sprintf("%s%v at %v along %d", dt, x.shape, idx.shape, axis)
			equal(t, name, x.tensor(env, dt).Scatter(axis, at, src.tensor(env, dt)), want.data...)
			if dt == dtype.Bool {
				continue
			}
			for i := range want.data {
				if want.data[i] = x.data[i]; count[i] > 0 {
					want.data[i] = 3
				}
			}
			equal(t, name+", a number", x.tensor(env, dt).ScatterScalar(axis, at, 3), want.data...)
		}
	})
}

// TestScatterKeepsBits: zeros have their sign and NaN stays, of the source and of what is not written.
func TestScatterKeepsBits(t *testing.T) {
	env := open(t)
	minus := math.Copysign(0, -1)
	x := tensor.From(env, []float64{minus, 1, minus, 2}, 4)
	y := x.Scatter(0, tensor.From(env, []int64{3, 1, 3}, 3), tensor.From(env, []float64{7, math.NaN(), minus}, 3))
	if v := y.Floats(); !math.Signbit(v[0]) || !math.IsNaN(v[1]) || !math.Signbit(v[2]) || v[3] != 0 || !math.Signbit(v[3]) {
		t.Errorf("%v", v)
	}
}

func TestScatterReduce(t *testing.T) {
	env := open(t)
	joins := map[tensor.Reduction]func(old, v float64) float64{
		tensor.ReduceSum: func(old, v float64) float64 { return old + v }, tensor.ReduceMean: func(old, v float64) float64 { return old + v },
		tensor.ReduceProd: func(old, v float64) float64 { return old * v }, tensor.ReduceMax: math.Max, tensor.ReduceMin: math.Min,
	}
	trials(t, func(r *rand.Rand, axis int, x, idx, src grid) {
		if r.IntN(3) == 0 && len(src.data) > 2 {
			src.data[r.IntN(len(src.data))] = math.NaN()
		}
		for by, join := range joins {
			for _, self := range []bool{true, false} {
				dt := []dtype.DType{dtype.F64, dtype.F32, dtype.I64, dtype.I32}[r.IntN(4)]
				src := asHeld(env, src, dt)
				if !dt.IsFloat() {
					for i := range src.data {
						src.data[i] = float64(r.IntN(9) - 4)
					}
				}
				want, count := scattered(axis, x, idx, src, func(old, v float64, first bool) float64 {
					if first && !self {
						return v
					}
					return join(old, v)
				})
				for i, n := range count {
					if by == tensor.ReduceMean && n > 0 {
						if self {
							n++
						}
						if want.data[i] /= n; !dt.IsFloat() {
							want.data[i] = math.Floor(want.data[i])
						}
					}
				}
				got := x.tensor(env, dt).ScatterReduce(axis, idx.tensor(env, dtype.I64), src.tensor(env, dt), by, self)
				equal(t, fmt.Sprintf("%s of %s%v at %v along %d, with its own: %t", by, dt, x.shape, idx.shape, axis, self), got, want.data...)
			}
		}
	})
}

// TestIndexPutAndIndex: what is put at places is found there.
func TestIndexPutAndIndex(t *testing.T) {
	env := open(t)
	x := env.Arange(24).Reshape(2, 3, 4).Cast(dtype.F32)
	of := func(v ...int64) *tensor.Tensor { return tensor.From(env, v, len(v)) }
	all := func(v ...*tensor.Tensor) []*tensor.Tensor { return v }
	mask := x.Select(2, 0).GtScalar(7)
	for _, c := range []struct {
		name    string
		indices []*tensor.Tensor
		shape   []int
		want    []float64
	}{
		{"rows", all(of(1, 0)), []int{2, 3, 4}, []float64{12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
		{"from the end", all(of(-1), of(-3)), []int{1, 4}, []float64{12, 13, 14, 15}},
		{"columns", all(nil, nil, of(3, 0)), []int{2, 3, 2}, []float64{3, 0, 7, 4, 11, 8, 15, 12, 19, 16, 23, 20}},
		{"the middle", all(nil, of(2)), []int{2, 1, 4}, []float64{8, 9, 10, 11, 20, 21, 22, 23}},
		{"apart", all(of(1, 0), nil, of(2, 3)), []int{2, 3}, []float64{14, 18, 22, 3, 7, 11}},
		{"in a grid", all(of(0, 1).Unsqueeze(1), of(2, 1)), []int{2, 2, 4}, []float64{8, 9, 10, 11, 4, 5, 6, 7, 20, 21, 22, 23, 16, 17, 18, 19}},
		{"all", all(of(1), of(2), of(3)), []int{1}, []float64{23}},
		{"a mask", all(mask), []int{4, 4}, []float64{8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}},
		{"none", all(of()), []int{0, 3, 4}, nil},
	} {
		got := x.Index(c.indices...)
		if !slices.Equal(got.Shape(), c.shape) {
			t.Errorf("%s: shape %v, want %v", c.name, got.Shape(), c.shape)
			continue
		}
		equal(t, c.name, got, c.want...)
		put := x.ZerosLike().IndexPut(c.indices, got, false)
		equal(t, c.name+", put", put.Index(c.indices...), c.want...)
		sum := 0.0
		for _, v := range c.want {
			sum += v
		}
		equal(t, c.name+", and nothing else", put.Sum(), sum)
		equal(t, c.name+", added", x.IndexPut(c.indices, got, true).Index(c.indices...), got.Scale(2).Floats()...)
	}
}

// TestWritesOfRepeatedPlaces: the last stays, and all are added.
func TestWritesOfRepeatedPlaces(t *testing.T) {
	env := open(t)
	x, src := env.Zeros(3, 2), env.Arange(10).Reshape(5, 2).Cast(dtype.F32)
	at := tensor.From(env, []int64{2, 0, 2, 0, 2}, 5)
	equal(t, "IndexCopy", x.IndexCopy(0, at, src), 6, 7, 0, 0, 8, 9)
	equal(t, "IndexPut", x.IndexPut([]*tensor.Tensor{at}, src, false), 6, 7, 0, 0, 8, 9)
	equal(t, "IndexAdd", x.IndexAdd(0, at, src), 8, 10, 0, 0, 12, 15)
	equal(t, "IndexFill", x.IndexFill(0, at.AddScalar(-3), 4), 4, 4, 0, 0, 4, 4)
	yes := tensor.From(env, []bool{false, true, true}, 3)
	equal(t, "IndexAdd of bools", yes.IndexAdd(0, at, tensor.From(env, []bool{true, false, true, false, false}, 5)), 0, 1, 1)
	equal(t, "MaskedScatter", x.MaskedScatter(x.Eq(x), src), 0, 1, 2, 3, 4, 5)
}

// TestWritesHaveGradients compares with differences, to the second order: on the CPU all, and on a simulated card, for which these are
// tens of thousands of launches, of the second order some in each run.
func TestWritesHaveGradients(t *testing.T) {
	env := open(t)
	spread := testutil.NewSpread(t, testutil.Seed(t), 6)
	at := tensor.From(env, []int64{2, 0, 2, 0, 1, 1, 0, 2}, 2, 4)
	list := tensor.From(env, []int64{2, 0, 2}, 3)
	unique := []*tensor.Tensor{tensor.From(env, []int64{0, -1}, 2), tensor.From(env, []int64{1, 1}, 2)}
	mask := tensor.From(env, []bool{true, false, true, true, false, false, true, false, true}, 3, 3)
	reduce := func(by tensor.Reduction, self bool) func(x, y *tensor.Tensor) *tensor.Tensor {
		return func(x, y *tensor.Tensor) *tensor.Tensor { return x.ScatterReduce(1, at, y.Slice(0, 0, 2), by, self) }
	}
	for name, f := range map[string]func(x, y *tensor.Tensor) *tensor.Tensor{
		"Scatter":       func(x, y *tensor.Tensor) *tensor.Tensor { return x.Scatter(1, at, y) },
		"ScatterScalar": func(x, y *tensor.Tensor) *tensor.Tensor { return x.ScatterScalar(1, at, 2).Add(y.Sum()) },
		"IndexAdd":      func(x, y *tensor.Tensor) *tensor.Tensor { return x.IndexAdd(1, list, y.Slice(1, 0, 3)) },
		"IndexCopy":     func(x, y *tensor.Tensor) *tensor.Tensor { return x.IndexCopy(0, list, y.Slice(1, 0, 3)) },
		"IndexFill":     func(x, y *tensor.Tensor) *tensor.Tensor { return x.IndexFill(0, list, 2).Add(y.Sum()) },
		"IndexPut": func(x, y *tensor.Tensor) *tensor.Tensor {
			return x.IndexPut(unique, y.Select(0, 0).Slice(0, 0, 2), false)
		},
		"IndexPut, added": func(x, y *tensor.Tensor) *tensor.Tensor {
			return x.IndexPut(unique, y.Select(0, 0).Slice(0, 0, 1), true)
		},
		"Index":         func(x, y *tensor.Tensor) *tensor.Tensor { return x.Index(unique...).Add(y.Index(nil, list).Sum()) },
		"MaskedScatter": func(x, y *tensor.Tensor) *tensor.Tensor { return x.MaskedScatter(mask, y) },
		"SliceScatter": func(x, y *tensor.Tensor) *tensor.Tensor {
			return x.SliceScatter(y.Slice(0, 0, 2).Slice(1, 0, 3), 0, 0, 3, 2)
		},
		"SelectScatter": func(x, y *tensor.Tensor) *tensor.Tensor { return x.SelectScatter(y.Select(1, 0), -1, 1) },
		"DiagonalScatter": func(x, y *tensor.Tensor) *tensor.Tensor {
			return x.DiagonalScatter(y.Select(1, 0).Slice(0, 0, 2), 1, 1, 0)
		},
		"sum": reduce(tensor.ReduceSum, false), "prod": reduce(tensor.ReduceProd, true), "prod of sources": reduce(tensor.ReduceProd, false),
		"mean": reduce(tensor.ReduceMean, true), "amax": reduce(tensor.ReduceMax, true), "amin": reduce(tensor.ReduceMin, false),
	} {
		r := rand.New(rand.NewPCG(7, 1))
		x := newGrid([]int{3, 3}, func() float64 { return 1 + r.Float64() }).tensor(env, dtype.F64)
		y := newGrid([]int{3, 4}, func() float64 { return 1 + r.Float64() }).tensor(env, dtype.F64)
		cubes := func(in []*tensor.Tensor) *tensor.Tensor {
			z := f(in[0], in[1])
			return z.Mul(z).Mul(z)
		}
		second := testutil.Device() == "cpu" || spread.Takes(name)
		if err := tensor.GradCheck(cubes, []*tensor.Tensor{x, y}, tensor.GradCheckConfig{Second: second, RTol: 1e-4, ATol: 1e-6}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestExtremesShareTheGradient: equal ones get equal parts, and a value that is not joined none.
func TestExtremesShareTheGradient(t *testing.T) {
	env := open(t)
	for self, want := range map[bool][]float64{true: {0.25, 0.25, 0.25, 0.25}, false: {0, 1. / 3, 1. / 3, 1. / 3}} {
		x, y := env.Ones(1).RequireGrad(), env.Ones(3).RequireGrad()
		z := x.ScatterReduce(0, env.FullOf(dtype.I64, 0, 3), y, tensor.ReduceMax, self)
		g := tensor.Grad(z.Sum(), x, y)
		equal(t, fmt.Sprintf("with its own: %t", self), tensor.Cat(0, g...), want...)
	}
}

func TestWritesRefuse(t *testing.T) {
	env := open(t)
	x, y := env.Zeros(2, 3), env.Ones(2, 3)
	at, list := env.FullOf(dtype.I64, 0, 2, 3), env.FullOf(dtype.I64, 0, 2)
	beyond := env.FullOf(dtype.I64, 5, 2)
	whole := env.FullOf(dtype.I64, 1, 2, 3)
	for name, c := range map[string]struct {
		call func()
		say  string
	}{
		"larger indices":      {func() { x.Scatter(1, env.FullOf(dtype.I64, 0, 3, 3), env.Ones(3, 3)) }, "may not be larger"},
		"a small source":      {func() { x.Scatter(1, at, env.Ones(2, 2)) }, "a source for each index"},
		"another rank":        {func() { x.Scatter(1, list, list.Cast(dtype.F32)) }, "as many dimensions"},
		"floats into whole":   {func() { whole.Scatter(1, at, y) }, "convert with Cast"},
		"float indices":       {func() { x.Scatter(1, y, y) }, "are integers"},
		"bools":               {func() { x.Eq(x).ScatterReduce(1, at, x.Eq(x), tensor.ReduceSum, true) }, "it joins numbers"},
		"no reduction":        {func() { x.ScatterReduce(1, at, y, 9, true) }, "reduction(9)"},
		"a matrix as list":    {func() { x.IndexAdd(0, at, y) }, "list of indices"},
		"entries too few":     {func() { x.IndexCopy(0, list, y.Slice(0, 0, 1)) }, "as many entries"},
		"a fraction":          {func() { whole.IndexFill(0, list, 0.5) }, "convert with Cast"},
		"no indices":          {func() { x.IndexPut(nil, y, false) }, "at least one dimension"},
		"too many indices":    {func() { x.Index(list, list, list) }, "one for each dimension"},
		"indices of no shape": {func() { x.Index(list, env.FullOf(dtype.I64, 0, 3)) }, "do not broadcast"},
		"values of no shape":  {func() { x.IndexPut([]*tensor.Tensor{list}, env.Ones(5), false) }, "that Index gives"},
		"a mask of no shape":  {func() { x.Index(list.EqScalar(0).Slice(0, 0, 1)) }, "a mask has the shape"},
		"a mask of numbers":   {func() { x.MaskedScatter(y, y) }, "is f32, not bool"},
		"a view's shape":      {func() { x.SelectScatter(y, 0, 0) }, "of the view's shape"},
		"one diagonal":        {func() { x.DiagonalScatter(y, 0, 1, 1) }, "name two dimensions"},
		"bits of floats":      {func() { x.BitAnd(at) }, "not of f32"},
		"shifts of bools":     {func() { x.Eq(x).ShiftLeft(x.Eq(x)) }, "no numbers"},
	} {
		t.Run(name, func(t *testing.T) { fails(t, env, c.call, c.say) })
	}
	for name, call := range map[string]func() *tensor.Tensor{
		"IndexAdd": func() *tensor.Tensor { return x.IndexAdd(0, beyond, y) }, "IndexCopy": func() *tensor.Tensor { return x.IndexCopy(0, beyond, y) },
		"IndexFill": func() *tensor.Tensor { return x.IndexFill(0, beyond, 1) }, "Index": func() *tensor.Tensor { return x.Index(beyond) },
		"Index, of the second": func() *tensor.Tensor { return x.Index(list, beyond) },
		"IndexPut":             func() *tensor.Tensor { return x.IndexPut([]*tensor.Tensor{beyond}, y, false) },
		"Scatter":              func() *tensor.Tensor { return x.Scatter(0, beyond.Unsqueeze(1), y) },
		"MaskedScatter":        func() *tensor.Tensor { return x.MaskedScatter(x.Eq(x), y.Slice(0, 0, 1)) },
	} {
		t.Run(name, func(t *testing.T) { fails(t, open(t), func() { call().Floats() }, "out of range") })
	}
}
