package lessons

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// L25 is a function that never asks where it runs: the batch brings the place along.
func L25(env *tensor.Env, n Numbers, w io.Writer) error {
	// In a program of your own this is the only line about devices: env := tensor.Best().
	model := nn.Sequential{nn.NewLinear(env, 10, 20), nn.ReLU{}, nn.NewLinear(env, 20, 2)}
	predict := func(x *tensor.Tensor) *tensor.Tensor {
		// Without a graph and in evaluation mode, wherever x is.
		return model.Forward(x.In(x.Env().NoGrad().Eval()))
	}
	y := predict(env.Randn(n["batch"], 10))
	fmt.Fprintln(w, y.Shape(), "where its input was:", y.Env().Device() == env.Device())
	return nil
}
