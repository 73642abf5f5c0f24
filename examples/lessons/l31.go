package lessons

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// weight is one parameter that is 1, and the sum of it is the loss: the gradient is 1 at every backward pass.
func weight(env *tensor.Env) (*tensor.Tensor, *optim.SGD) {
	p := nn.NewParam(env.Ones(1))
	p.SetPath("weight")
	params := func(yield func(string, *tensor.Tensor) bool) { yield("weight", p) }
	return p, optim.NewSGD(params, optim.SGDConfig{LR: 0.125})
}

// L31 takes a step for each backward pass. Step lets go of the gradients, so that there is nothing to forget.
func L31(env *tensor.Env, n Numbers, w io.Writer) error {
	// A weight whose gradient is 1, and its optimizer.
	p, opt := weight(env)
	for range n["steps"] {
		// One backward pass, and the gradient that it leaves.
		p.Sum().Backward()
		fmt.Fprint(w, "gradient ", p.Grad().Item()) //warpline:ok R13
		// The update, and the gradient is gone.
		opt.Step()
		fmt.Fprintln(w, ", behind the step there is none:", p.Grad() == nil)
	}
	return nil
}

// L31Wrong goes backward twice for each step.
func L31Wrong(env *tensor.Env, n Numbers, w io.Writer) error {
	// A weight whose gradient is 1, and its optimizer.
	p, opt := weight(env)
	for range n["steps"] {
		// The first backward pass is as it should be.
		p.Sum().Backward()
		// The mistake: a second backward pass adds to the gradient. Where that is meant, a batch in parts, the loss is scaled by its share.
		p.Sum().Backward()                           //warpline:ok V31
		fmt.Fprintln(w, "gradient", p.Grad().Item()) //warpline:ok R13
		opt.Step()
	}
	return nil
}
