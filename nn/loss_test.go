package nn

import (
	"fmt"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

// TestCrossEntropyFarFromZero: what is added to all logits changes neither the loss nor its gradient, which are PyTorch's in
// float32.
func TestCrossEntropyFarFromZero(t *testing.T) {
	base := []float32{0, 1, -2, 3.5, 2, 2, 0.5, -1, -4, 0.25, 1.75, 0, 1, -1, 0.5, 0.125, 3, -3, 0, 1.5}
	labels := []int64{3, 1, -100, 0, 2}
	for smoothing, want := range map[float64]struct {
		loss float64
		grad []float64
	}{
		0: {1.2359803915023804, []float64{0.00676241, 0.018382134, 0.000915193, -0.026059732, 0.109990805, -0.140009195, 0.024542265, 0.005476119, 0, 0,
			0, 0, -0.134191066, 0.015673032, 0.070241667, 0.048276346, 0.196017563, 0.000485879, -0.240240857, 0.043737434}},
		0.1: {1.3476990461349487, []float64{0.000512409, 0.012132132, -0.005334808, -0.007309733, 0.103740789, -0.121259198, 0.018292261, -0.000773881, 0,
			0, 0, 0, -0.115441069, 0.00942303, 0.063991658, 0.042026341, 0.189767554, -0.005764121, -0.221490845, 0.037487432}},
	} {
		for _, device := range []string{"cpu", "sim:0"} {
			env, err := tensor.Fresh(device)
			if err != nil {
				t.Fatal(err)
			}
			for _, offset := range []float32{0, 1e6, -1e6} {
				moved := make([]float32, len(base))
				for i, v := range base {
					moved[i] = v + offset
				}
				for _, mean := range []bool{true, false} {
					t.Run(fmt.Sprint(device, offset, smoothing, mean), func(t *testing.T) {
						x := tensor.From(env, moved, 5, 4).RequireGrad()
						y := tensor.From(env, labels, 5)
						loss := CrossEntropy(x, y, Smoothing(smoothing))
						if !mean { // the other kernel, of a loss per row
							loss = CrossEntropy(x, y, Smoothing(smoothing), Unreduced()).Sum().Scale(0.25)
						}
						testutil.Close(t, loss.Floats(), []float64{want.loss}, 5e-7, 0)
						testutil.Close(t, tensor.Grad(loss, x)[0].Floats(), want.grad, 1e-6, 2e-7)
					})
				}
			}
		}
	}
}
