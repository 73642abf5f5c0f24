package ref

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// TestAttentionUnderLeastMask: keys that a mask of great size hides alike have equal weights.
func TestAttentionUnderLeastMask(t *testing.T) {
	of := func(shape []int, f func(i int) float64) Array {
		a := Array{Type: ir.Dense(dtype.F64, shape...)}
		for i := range a.Type.Size() {
			a.Data = append(a.Data, f(i))
		}
		return a
	}
	const keys = 5
	for _, size := range []float64{1, 1e9, 1e18, math.MaxFloat32} {
		in := []Array{of([]int{1, 1, 1, 2}, func(int) float64 { return 1 }), of([]int{1, 1, keys, 2}, func(int) float64 { return 1 }),
			of([]int{1, 1, keys, 1}, func(i int) float64 { return float64(i) }), of([]int{1, 1, 1, keys}, func(int) float64 { return -size })}
		op := ir.New(ir.Attention, ir.Attr{}, in[0].Type, in[1].Type, in[2].Type, in[3].Type)
		p := ir.Scalars(1)
		out, err := Eval(&op, &p, in)
		if err != nil || math.Abs(out[0].Data[0]-2) > 1e-12 {
			t.Errorf("a mask of %g: %v, %v", -size, out, err)
		}
	}
}
