package lessons

import (
	"fmt"
	"io"
	"math"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// L08 is all that a step of training has: forward, loss, backward, update, and one number for people.
func L08(env *tensor.Env, n Numbers, w io.Writer) error {
	// The seed belongs to the env; the same seed gives the same numbers on every device.
	env = env.Seed(7)
	model := nn.NewLinear(env, 16, 3)
	opt := optim.NewSGD(nn.Params(model), optim.SGDConfig{LR: 0.1})
	x, y := env.Randn(n["batch"], 16), env.RandInt(0, 3, n["batch"])
	var first, last float64
	for step := range n["steps"] {
		// Forward and loss: work is asked for, and a graph remembers it.
		loss := nn.CrossEntropy(model.Forward(x), y)
		// Backward fills the parameters' gradients, and lets the graph go.
		loss.Backward()
		// Step applies the gradients and drops them: there is nothing to zero.
		opt.Step()
		// The one wait of a step: the log wants a number.
		if last = loss.Item(); step == 0 { //warpline:ok R13
			first = last
		}
	}
	fmt.Fprintln(w, "the loss is finite:", !math.IsNaN(first) && !math.IsInf(first, 0))
	fmt.Fprintf(w, "first %.4f, last %.4f\n", first, last)
	return nil
}
