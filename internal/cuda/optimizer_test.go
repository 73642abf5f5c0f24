package cuda_test

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ref"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestManyTensors updates more tensors than one launch takes, of several dtypes and sizes, and demands the bits of
// updating each alone.
func TestManyTensors(t *testing.T) {
	run, r := launches(t), testutil.Rand(t)
	scale := ref.Floats(ir.Dense(dtype.F32), 0.5)
	p := ir.Scalars(1e-2, 0.9, 0.99, 1e-8, 0.1, 1, 0)
	dtypes := []dtype.DType{dtype.F32, dtype.F64, dtype.BF16}
	all := []ref.Array{scale}
	var sizes []int
	for i := range 130 {
		n := []int{1, 4, 0, 33, 128, 4096, 5003}[i%7]
		sizes = append(sizes, n)
		ty := ir.Dense(dtypes[i%3], n)
		for j := range 4 {
			a := normals(r, ty)
			for k := range a.Data {
				if j == 3 {
					a.Data[k] = math.Abs(a.Data[k])
				}
			}
			all = append(all, a)
		}
		all = append(all, ref.Ints(ir.Dense(dtype.I64), int64(1+i%4)))
	}
	got := run(ir.AdamW, ir.Attr{}, p, all...)
	for i := 0; i < len(sizes); i += 13 {
		group := all[1+5*i : 6+5*i]
		alone := run(ir.AdamW, ir.Attr{}, p, append([]ref.Array{scale}, group...)...)
		for j, a := range alone {
			for k, w := range a.Data {
				if v := got[3*i+j].Data[k]; v != w {
					t.Fatalf("tensor %d, result %d, element %d is %v among many, %v alone", i, j, k, v, w)
				}
			}
		}
	}
	var want float64
	for i := range sizes {
		ty := all[1+5*i].Type
		all[1+5*i] = small(r, ty)
		for _, v := range all[1+5*i].Data {
			want += v * v
		}
	}
	var params []ref.Array
	for i := range sizes {
		params = append(params, all[1+5*i])
	}
	if got := run(ir.SumSquares, ir.Attr{}, ir.Params{}, params...)[0].Data[0]; got != want {
		t.Errorf("the sum of squares is %v, want %v", got, want)
	}
}
