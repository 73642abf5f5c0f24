package cuda_test

import (
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ref"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestScatterAddInOrder compares long lines with additions one after the other in f32, bit for bit: the order is part of
// the operation. The destinations need keys of one, two and three digits of the sort.
func TestScatterAddInOrder(t *testing.T) {
	run, r := launches(t), testutil.Rand(t)
	for _, c := range []struct{ size, n int }{{3, 2049}, {300, 5000}, {70000, 4097}, {1, 70}, {256, 65}} {
		x, src := normals(r, ir.Dense(dtype.F32, c.size)), normals(r, ir.Dense(dtype.F32, c.n))
		idx, want := make([]int64, c.n), make([]float32, c.size)
		for i, v := range x.Data {
			want[i] = float32(v)
		}
		for i := range idx {
			idx[i] = int64(r.IntN(c.size))
			want[idx[i]] += float32(src.Data[i])
		}
		got := run(ir.ScatterAdd, ir.Attr{}, ir.Params{}, x, ref.Ints(ir.Dense(dtype.I64, c.n), idx...), src)[0]
		for i, w := range want {
			if float32(got.Data[i]) != w {
				t.Fatalf("%d into %d: element %d is %v, want %v", c.n, c.size, i, got.Data[i], w)
			}
		}
	}
}

// TestEmbeddingGradOfOneRow has all gradients meet in one row of the table, and wide rows.
func TestEmbeddingGradOfOneRow(t *testing.T) {
	run, r := launches(t), testutil.Rand(t)
	for _, c := range []struct{ n, rows, width int }{{2100, 3, 7}, {33, 5, 1025}, {64, 1, 3}} {
		g := small(r, ir.Dense(dtype.F32, c.n, c.width))
		idx := make([]int64, c.n)
		for i := range idx {
			idx[i] = int64(c.rows - 1)
		}
		in := []ref.Array{g, ref.Ints(ir.Dense(dtype.I64, c.n), idx...)}
		attr := ir.Attr{Out: ir.Dense(dtype.F32, c.rows, c.width)}
		equal(t, g.Type.String(), run(ir.EmbeddingGrad, attr, ir.Params{}, in...), ir.EmbeddingGrad, attr, ir.Params{}, in...)
	}
}

// TestCatOfMany joins more operands than a launch takes, of all alignments.
func TestCatOfMany(t *testing.T) {
	run, r := launches(t), testutil.Rand(t)
	for _, dt := range []dtype.DType{dtype.F32, dtype.U8} {
		var in []ref.Array
		for i := range 130 {
			in = append(in, small(r, ir.Dense(dt, 3, i%9)))
		}
		attr := ir.Attr{Axis: 1}
		equal(t, "cat", run(ir.Cat, attr, ir.Params{}, in...), ir.Cat, attr, ir.Params{}, in...)
	}
}

// TestMaxPoolGradOfStrays has places outside of their windows, in planes of more elements than shared memory holds.
func TestMaxPoolGradOfStrays(t *testing.T) {
	run, r := launches(t), testutil.Rand(t)
	attr := ir.Pool{KernelH: 3, KernelW: 2, StrideH: 2, StrideW: 2, PadH: 1}.Attr()
	attr.Out = ir.Dense(dtype.F32, 1, 2, 61, 70)
	g := small(r, ir.Dense(dtype.F32, 1, 2, 31, 35))
	places := make([]int64, g.Type.Size())
	for i := range places {
		places[i] = int64(r.IntN(61 * 70))
	}
	in := []ref.Array{g, ref.Ints(ir.Dense(dtype.I64, g.Type.Shape()...), places...)}
	equal(t, "max_pool2d_grad", run(ir.MaxPool2dGrad, attr, ir.Params{}, in...), ir.MaxPool2dGrad, attr, ir.Params{}, in...)
}
