package pytorch

import (
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// pattern is a tensor of small numbers, which PyTorch's side of a comparison made by the same formula:
// ((a·i + b) mod m - ⌊m/2⌋) / 2.
func pattern(env *tensor.Env, a, b, m int, shape ...int) *tensor.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32((a*i+b)%m-m/2) / 2
	}
	return tensor.From(env, v, shape...)
}

// TestMissing compares what the rows below give with what PyTorch 2 gave.

// "Layers and losses"
func missingLayers(env *tensor.Env) map[string]*tensor.Tensor {
	img := pattern(env, 5, 2, 11, 1, 4, 4, 4)
	seq, w := pattern(env, 5, 1, 9, 1, 2, 5), pattern(env, 4, 0, 7, 3, 2, 3)
	wt := pattern(env, 3, 2, 5, 4, 2, 3, 3)
	conv := tensor.Conv{Stride: [2]int{2, 2}, Padding: [2]int{1, 1}}

	// `F.conv1d(seq, w, padding=1)` | a layer is a function of its weight
	conv1d := (&nn.Conv1d{Weight: w, Padding: 1}).Forward(seq)

	return map[string]*tensor.Tensor{
		"conv1d": conv1d,
		"convT":  img.ConvTranspose2d(wt, nil, tensor.ConvTranspose{Conv: conv}),
	}
}

func TestMissing(t *testing.T) {
	want := map[string][]float64{
		"conv1d": {-2.75, 2.75, -1.75, -1.75, -1.25, 4.75, -3, 0, 0.75, -1.25, -3.5, -1.75, 1.75, -3.75, 4},
		"convT": {
			-0.25, -8.5, 2.25, 4, -3.5, -2.75, 1.75, 2.75, -1, 1.5, 2, -8, -0.5, 4.5, -4, -2.5, 1.25, 1.75, 1, 3.25, 0.75,
			-7.75, 0, 4.75, -5.25, -4.75, 0.5, 2.25, 0.5, 3.5, 0.25, -3.25, 0, 3.75, -0.25, 1, 6.5, 2.5, -7, 1.25, 7, 2.75,
			2.25, 4, -3.5, -2.75, 1.75, 4.25, -4, 1, 1, -4.5, -1.75, 3.75, -1.75, -4.5, 4.25, 4.25, 1.5, 4.25, 4.25, -6.75,
			-4, 3.75, -1.75, -4.5, 1, 1, 1, 1, 4.25, -6.75, -4, 7, -1.25, -9.5, -1.25, 1, 1, 1, 1, 1, 1, 1, -4, -6.75, 4.25,
			7, -4, -6.75, 4.25, -4.5, -1.75, 3.75, -1.75, -4.5, -1.75, 3.75,
		},
	}
	env := fresh(t, "cpu")
	for name, got := range missingLayers(env) {
		t.Run(name, func(t *testing.T) { testutil.Close(t, got.Floats(), want[name], 1e-5, 1e-5) })
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("nothing is compared with %v", want)
	}
}
