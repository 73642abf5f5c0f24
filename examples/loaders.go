package examples

import (
	"fmt"
	"io"
	"math"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// Loaders walks two loaders together and a third one inside. Each has a name, so each draws its own random numbers.
func Loaders(env *tensor.Env, steps int, w io.Writer) error {
	model := mlp(env, 4, 8, 3)
	opt := optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 1e-2})
	left := data.Batches(env, blobs(60), data.Config{Size: 10, Steps: steps})
	right := data.Batches(env, blobs(30), data.Config{Size: 5, Steps: steps, Name: "right"})
	same, kept := 0, 0.0
	for z, err := range data.Zip(left, right) {
		if err != nil {
			return err
		}
		loss := nn.CrossEntropy(model.Forward(z.A.X), z.A.Y).Add(nn.CrossEntropy(model.Forward(z.B.X), z.B.Y))
		if z.A.Env.Randn(1).Item() == z.B.Env.Randn(1).Item() { //warpline:ok R13
			same++
		}
		loss.Backward()
		var mean *tensor.Tensor
		for inner, err := range data.Batches(z.A.Env, blobs(20), data.Config{Size: 10, Name: "inner"}) {
			if err != nil {
				return err
			}
			mean = model.Forward(inner.X.In(inner.Env.NoGrad())).Mean().In(z.A.Env)
			kept = mean.Item()
		}
		opt.Step()
	}
	fmt.Fprintf(w, "equal draws: %d; a finite mean: %v\n", same, !math.IsNaN(kept))
	return nil
}
