package examples

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// Captured trains two copies of a model with dropout, one by a captured step, and compares them.
func Captured(env *tensor.Env, steps int, w io.Writer) error {
	var plain, captured []*tensor.Tensor
	for _, capture := range []bool{false, true} {
		env := env.Seed(5)
		model := nn.Sequential{nn.NewLinear(env, 4, 16), nn.ReLU{}, nn.Dropout{P: 0.2}, nn.NewLinear(env, 16, 3)}
		opt := optim.NewAdamW(nn.Params(model), optim.AdamWConfig{Clip: 1})
		schedule := optim.Cosine(1e-2, 1e-4, steps)
		step := func(b *data.Pair) *tensor.Tensor {
			loss := nn.CrossEntropy(model.Forward(b.X), b.Y)
			loss.Backward()
			opt.Step()
			return loss
		}
		weights := &plain
		if capture {
			step, weights = tensor.Capture(env, step).Run, &captured
		}
		done := 0
		for b, err := range data.Batches(env, blobs(50), data.Config{Size: 16, Steps: steps, Shuffle: true}) {
			if err != nil {
				return err
			}
			opt.SetLR(schedule(done))
			step(b)
			done++
		}
		for _, p := range nn.Params(model) {
			*weights = append(*weights, p)
		}
	}
	same := true
	for i, p := range plain {
		same = same && p.Sub(captured[i]).Abs().Max().Item() == 0
	}
	fmt.Fprintf(w, "the same weights, to the bit: %v\n", same)
	return nil
}
