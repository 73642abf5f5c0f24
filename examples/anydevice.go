package examples

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// AnyDevice is the same program on whatever device env is of: on a null device it computes nothing, and the memory it
// needs is the memory it would need.
func AnyDevice(env *tensor.Env, steps int, w io.Writer) error {
	env.Device().ResetPeak()
	before := env.Device().Memory().Used
	model := mlp(env, 4, 16, 3)
	opt := optim.NewAdamW(nn.Params(model), optim.AdamWConfig{LR: 1e-2})
	for b, err := range data.Batches(env, blobs(60), data.Config{Size: 10, Steps: steps}) {
		if err != nil {
			return err
		}
		nn.CrossEntropy(model.Forward(b.X), b.Y).Backward()
		opt.Step()
	}
	fmt.Fprintf(w, "peak %d bytes\n", env.Device().Memory().Peak-before)
	return nil
}
