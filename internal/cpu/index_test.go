package cpu

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// indicesFor draws indices below n.
func indicesFor(r *rand.Rand, t *ir.Type, n int) []float64 {
	v := make([]float64, t.Size())
	for i := range v {
		v[i] = float64(r.IntN(n))
	}
	return v
}

var gatherCases = []struct {
	x, idx []int
	axis   int
}{
	{[]int{10}, []int{4}, 0},
	{[]int{10}, []int{0}, 0},
	{[]int{300, 7}, []int{300, 1}, 1},
	{[]int{300, 7}, []int{200, 20}, 1},
	{[]int{5, 300}, []int{90, 300}, 0},
	{[]int{4, 6, 40}, []int{3, 50, 39}, 1},
	{[]int{2, 3, 4, 5}, []int{2, 3, 6, 1}, 2},
	{[]int{1, 3}, []int{1, 9}, 1},
}

// target is the place in x that element i of idx names.
func target(x, idx *ir.Type, axis, i int, index float64) int {
	at, step, rest := 0, 1, i
	for d := x.Rank() - 1; d >= 0; d-- {
		p := rest % idx.Dim(d)
		rest /= idx.Dim(d)
		if d == axis {
			p = int(index)
		}
		at += p * step
		step *= x.Dim(d)
	}
	return at
}

func TestGather(t *testing.T) {
	r := testutil.Rand(t)
	for _, dt := range dtype.All() {
		for _, c := range gatherCases {
			x, idx := ir.Dense(dt, c.x...), ir.Dense(dtype.I64, c.idx...)
			op := ir.New(ir.Gather, ir.Attr{Axis: int8(c.axis)}, x, idx)
			got := mustLaunch(t, op, ir.Params{}, numbersFor(r, x), indicesFor(r, idx, c.x[c.axis]))
			want := make([]float64, idx.Size())
			for i, v := range got.in[1] {
				want[i] = got.in[0][target(x, idx, c.axis, i, v)]
			}
			compare(t, op, got.out[0], want, 0, 0)
		}
	}
}

// sums has for each result of additions how many there were, and the sum of the absolute values.
type sums struct {
	n, size []float64
}

func newSums(first []float64) *sums {
	s := &sums{n: make([]float64, len(first)), size: make([]float64, len(first))}
	for i, v := range first {
		s.size[i] = math.Abs(v)
	}
	return s
}

func (s *sums) add(i int, v float64) {
	s.n[i]++
	s.size[i] += math.Abs(v)
}

// scale is for compare with precision: each of n additions in the order of the operands rounds a partial sum, which is at most
// size, by half a unit. Sums of 16 bits are rounded once.
func (s *sums) scale(dt dtype.DType) float64 {
	scale := 20.
	if dt == dtype.F32 || dt == dtype.F64 {
		for i, n := range s.n {
			scale = max(scale, n*s.size[i]/4)
		}
	}
	return scale
}

func TestScatterAdd(t *testing.T) {
	r := testutil.Rand(t)
	for _, dt := range numberTypes {
		for _, c := range gatherCases {
			x, idx := ir.Dense(dt, c.x...), ir.Dense(dtype.I64, c.idx...)
			src := ir.Dense(dt, c.idx...)
			op := ir.New(ir.ScatterAdd, ir.Attr{Axis: int8(c.axis)}, x, idx, src)
			got := mustLaunch(t, op, ir.Params{}, numbersFor(r, x), indicesFor(r, idx, c.x[c.axis]), numbersFor(r, src))
			want := append([]float64(nil), got.in[0]...)
			sums := newSums(got.in[0])
			for i, v := range got.in[1] {
				want[target(x, idx, c.axis, i, v)] += got.in[2][i]
				sums.add(target(x, idx, c.axis, i, v), got.in[2][i])
			}
			for i := range want {
				want[i] = held(dt, want[i])
			}
			compare(t, op, got.out[0], want, precision(dt), sums.scale(dt))
		}
	}
}

func TestEmbedding(t *testing.T) {
	r := testutil.Rand(t)
	for _, dt := range dtype.All() {
		for _, c := range []struct{ idx, w []int }{{[]int{3, 4}, []int{5, 6}}, {[]int{}, []int{1, 3}}, {[]int{0}, []int{2, 2}}, {[]int{500}, []int{60, 130}}, {[]int{4}, []int{3, 2500}}} {
			w, idx := ir.Dense(dt, c.w...), ir.Dense(dtype.I64, c.idx...)
			op := ir.New(ir.Embedding, ir.Attr{}, w, idx)
			got := mustLaunch(t, op, ir.Params{}, numbersFor(r, w), indicesFor(r, idx, c.w[0]))
			d := c.w[1]
			var want []float64
			for _, v := range got.in[1] {
				want = append(want, got.in[0][int(v)*d:(int(v)+1)*d]...)
			}
			compare(t, op, got.out[0], want, 0, 0)
			if ir.EmbeddingGrad.Row().Class.Has(dt) {
				testEmbeddingGrad(t, r, w, idx, got.in[1])
			}
		}
	}
}

func testEmbeddingGrad(t *testing.T, r *rand.Rand, w, idx *ir.Type, index []float64) {
	t.Helper()
	d := w.Dim(1)
	g := ir.Dense(w.DType, append(append([]int(nil), idx.Shape()...), d)...)
	op := ir.New(ir.EmbeddingGrad, ir.Attr{Out: w}, g, idx)
	got := mustLaunch(t, op, ir.Params{}, numbersFor(r, g), index)
	want := make([]float64, w.Size())
	sums := newSums(want)
	for i, v := range index {
		for j := range d {
			want[int(v)*d+j] += got.in[0][i*d+j]
			sums.add(int(v)*d+j, got.in[0][i*d+j])
		}
	}
	for i := range want {
		want[i] = held(w.DType, want[i])
	}
	compare(t, op, got.out[0], want, precision(w.DType), sums.scale(w.DType))
}

// The error of an index names it, its place and the size, and the first of several is reported on any number of threads.
func TestIndexOutOfRange(t *testing.T) {
	x, idx := ir.Dense(dtype.F32, 7, 40), ir.Dense(dtype.I64, 600, 40)
	row := ir.Dense(dtype.I64, 600)
	zeros := func(t *ir.Type) []float64 { return make([]float64, t.Size()) }
	for _, bad := range []float64{7, -1, 1 << 40} {
		v := zeros(idx)
		v[3*40+5], v[500*40+2] = bad, 9
		u := zeros(row)
		u[3], u[500] = bad, 9
		wide := ir.Dense(dtype.F32, 600, 40)
		for _, c := range []struct {
			op    ir.Op
			in    [][]float64
			place string
		}{
			{ir.New(ir.Gather, ir.Attr{}, x, idx), [][]float64{zeros(x), v}, "[3 5]"},
			{ir.New(ir.ScatterAdd, ir.Attr{}, x, idx, wide), [][]float64{zeros(x), v, zeros(wide)}, "[3 5]"},
			{ir.New(ir.Embedding, ir.Attr{}, x, row), [][]float64{zeros(x), u}, "[3]"},
			{ir.New(ir.EmbeddingGrad, ir.Attr{Out: x}, wide, row), [][]float64{zeros(wide), u}, "[3]"},
		} {
			_, err := launch(t, c.op, ir.Params{}, c.in...)
			if err == nil {
				t.Errorf("%s accepted index %g", c.op.Code, bad)
				continue
			}
			for _, part := range []string{c.place, "7 entries"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		}
	}
}

func TestCat(t *testing.T) {
	r := testutil.Rand(t)
	for _, dt := range dtype.All() {
		for _, c := range []struct {
			shapes [][]int
			axis   int
		}{
			{[][]int{{3}}, 0},
			{[][]int{{3}, {0}, {5}}, 0},
			{[][]int{{2, 3, 4}, {2, 1, 4}, {2, 2, 4}, {2, 5, 4}, {2, 1, 4}, {2, 1, 4}}, 1},
			{[][]int{{300, 50}, {300, 90}}, 1},
			{[][]int{{50, 300}, {90, 300}}, 0},
			{[][]int{{0, 3}, {0, 2}}, 1},
		} {
			var types []*ir.Type
			var in [][]float64
			outer := 1
			for _, d := range c.shapes[0][:c.axis] {
				outer *= d
			}
			for _, s := range c.shapes {
				types = append(types, ir.Dense(dt, s...))
				in = append(in, numbersFor(r, types[len(types)-1]))
			}
			op := ir.New(ir.Cat, ir.Attr{Axis: int8(c.axis)}, types...)
			got := mustLaunch(t, op, ir.Params{}, in...)
			var want []float64
			for o := range outer {
				for _, v := range got.in {
					want = append(want, v[o*len(v)/outer:(o+1)*len(v)/outer]...)
				}
			}
			compare(t, op, got.out[0], want, 0, 0)
		}
	}
}

func TestPad(t *testing.T) {
	r := testutil.Rand(t)
	for _, dt := range dtype.All() {
		for _, shape := range [][]int{{5}, {0}, {1}, {3, 4, 5}, {130, 140}} {
			for axis := range shape {
				for _, dims := range [][3]int32{{0, 0, 0}, {2, 1, 0}, {0, 3, 2}, {1, 0, 1}} {
					x := ir.Dense(dt, shape...)
					op := ir.New(ir.Pad, ir.Attr{Axis: int8(axis), Dims: [ir.MaxRank]int32{dims[0], dims[1], dims[2]}}, x)
					got := mustLaunch(t, op, ir.Scalars(1), numbersFor(r, x))
					compare(t, op, got.out[0], paddedRef(x, got.in[0], axis, dims), 0, 0)
				}
			}
		}
	}
}

func paddedRef(x *ir.Type, v []float64, axis int, dims [3]int32) []float64 {
	inner := 1
	for _, d := range x.Shape()[axis+1:] {
		inner *= d
	}
	n := x.Dim(axis)
	width := int(dims[0]+dims[1]) + n + max(n-1, 0)*int(dims[2])
	outer := 1
	for _, d := range x.Shape()[:axis] {
		outer *= d
	}
	want := make([]float64, outer*width*inner)
	for i := range want {
		want[i] = 1
	}
	for i, a := range v {
		l, j, o := i%inner, i/inner%n, i/inner/n
		want[(o*width+int(dims[0])+j*int(dims[2]+1))*inner+l] = a
	}
	return want
}

func BenchmarkIndex(b *testing.B) {
	w, idx := ir.Dense(dtype.F32, 65, 384), ir.Dense(dtype.I64, 1024)
	g := ir.Dense(dtype.F32, 1024, 384)
	b.Run("embedding", func(b *testing.B) { bench(b, ir.New(ir.Embedding, ir.Attr{}, w, idx), ir.Params{}) })
	b.Run("embedding_grad", func(b *testing.B) { bench(b, ir.New(ir.EmbeddingGrad, ir.Attr{Out: w}, g, idx), ir.Params{}) })
	b.Run("gather", func(b *testing.B) {
		bench(b, ir.New(ir.Gather, ir.Attr{Axis: 1}, g, ir.Dense(dtype.I64, 1024, 1)), ir.Params{})
	})
	b.Run("cat", func(b *testing.B) { bench(b, ir.New(ir.Cat, ir.Attr{Axis: 1}, g, g), ir.Params{}) })
	b.Run("pad", func(b *testing.B) {
		bench(b, ir.New(ir.Pad, ir.Attr{Axis: 1, Dims: [ir.MaxRank]int32{1, 1, 0}}, g), ir.Params{})
	})
}
