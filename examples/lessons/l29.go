package lessons

import (
	"errors"
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// L29 has no device to get wrong: everything comes from one env, and what comes from elsewhere is moved whole.
func L29(env *tensor.Env, n Numbers, w io.Writer) error {
	// Another device than env, and a layer in env.
	away, err := elsewhere(env)
	if err != nil {
		return err
	}
	model := nn.NewLinear(env, n["n"], 2)
	// Where the input comes from does not matter, if the first thing is to move it.
	x := tensor.Move(env, away.Ones(1, n["n"]))
	fmt.Fprintln(w, model.Forward(x).Shape())
	return nil
}

// L29Wrong forgets to move the input.
func L29Wrong(env *tensor.Env, n Numbers, w io.Writer) error {
	// Another device than env, and a layer in env.
	away, err := elsewhere(env)
	if err != nil {
		return err
	}
	model := nn.NewLinear(env, n["n"], 2)
	// The mistake. PyTorch: Expected all tensors to be on the same device, but found at least two devices.
	_, err = env.Try(func(*tensor.Env) *tensor.Tensor { return model.Forward(away.Ones(1, n["n"])) })
	var wrong *tensor.Error
	if !errors.As(err, &wrong) {
		return fmt.Errorf("an operation on two devices went through: %v", err)
	}
	fmt.Fprintf(w, "%s: an error with a hint: %v\n", wrong.Op, wrong.Hint != "")
	return nil
}
