package lessons

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// L33 solves the first exercise: 100 features, 10 scores, on whatever device there is.
func L33(env *tensor.Env, n Numbers, w io.Writer) error {
	// A program of your own begins with env := tensor.Best(); here the device is chosen outside.
	model := nn.NewLinear(env, 100, 10)
	x := env.Randn(n["batch"], 100)
	y := model.Forward(x)
	fmt.Fprintln(w, x.Shape(), "→", y.Shape())
	fmt.Fprintln(w, "parameters:", nn.Count(model))
	return nil
}
