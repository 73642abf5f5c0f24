package examples

import (
	"errors"
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// Microbatches splits a batch finer after running out of memory, and accumulates the gradients of the parts.
func Microbatches(env *tensor.Env, steps int, w io.Writer) error {
	model := mlp(env, 4, 64, 3)
	opt := optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 1e-2})
	retries, parts := 0, 1
	for b, err := range data.Batches(env, blobs(120), data.Config{Size: 60, Steps: steps}) {
		if err != nil {
			return err
		}
		env.Device().SetLimit(env.Device().Memory().Used + 40<<10)
		for {
			_, err := b.Env.Try(func(*tensor.Env) *tensor.Tensor {
				for mb := range data.Split(b, parts) {
					nn.CrossEntropy(model.Forward(mb.X), mb.Y).Scale(mb.Fraction()).Backward()
				}
				return nil
			})
			if err == nil {
				break
			}
			var oom *tensor.OOMError
			if !errors.As(err, &oom) || parts > 60 {
				return err
			}
			opt.Discard()
			retries++
			parts *= 2
		}
		env.Device().SetLimit(0)
		opt.Step()
	}
	fmt.Fprintf(w, "it retried: %v\n", retries > 0)
	return nil
}
