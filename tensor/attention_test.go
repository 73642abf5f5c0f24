package tensor_test

import (
	"math"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// TestAttentionUnderLeastMask: masks made of the least number of a type, as published models have them, leave a query
// whose keys are all masked with equal weights, and hide the keys beside one that is seen.
func TestAttentionUnderLeastMask(t *testing.T) {
	env := open(t)
	const width = 24
	for dt, least := range map[dtype.DType]float64{dtype.F32: -math.MaxFloat32, dtype.BF16: -0x1.fep127, dtype.F16: -65504} {
		for _, keys := range []int{3, 70} {
			mask := make([]float32, 2*keys)
			for i := range mask {
				mask[i] = float32(least)
			}
			mask[keys+1] = 0 // the second query sees the second key
			q, k := tensor.NewParam(env.FullOf(dt, 1, 1, 1, 2, width)), tensor.NewParam(env.FullOf(dt, 1, 1, 1, keys, width))
			v := tensor.NewParam(env.Arange(keys).Cast(dt).Reshape(1, 1, keys, 1).Expand(1, 1, keys, width).Clone())
			y := tensor.Attention(q, k, v, tensor.Mask{Keys: tensor.From(env, mask, 2, keys)})
			for i, want := range []float64{float64(keys-1) / 2, 1} {
				if got := y.Select(2, i).Mean().Item(); math.Abs(got-want) > 0.01*want {
					t.Errorf("%s, %d keys: query %d gets %v, want %v", dt, keys, i, got, want)
				}
			}
			y.Sum().Backward()
			for what, p := range map[string]*tensor.Tensor{"q": q, "k": k, "v": v} {
				if x := p.Grad().Abs().Sum().Item(); math.IsNaN(x) || math.IsInf(x, 0) {
					t.Errorf("%s, %d keys: the gradient of %s is %v", dt, keys, what, p.Grad())
				}
			}
		}
	}
}
