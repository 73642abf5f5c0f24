package lessons

import (
	"errors"
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// L05 gives each token of each ticket three scores: one for each outcome.
func L05(env *tensor.Env, n Numbers, w io.Writer) error {
	// 768 features in, 3 scores out: the weights are made on env's device.
	model := nn.NewLinear(env, 768, 3)
	// Tickets × tokens × features, also made there.
	x := env.Randn(n["batch"], n["tokens"], 768)
	// The last dimension is multiplied; those before it stay.
	logits := model.Forward(x)
	fmt.Fprintln(w, "logits", logits.Shape())
	// Where the model is, as one answer, or an error if it lies in two places.
	d, err := nn.DeviceOf(model)
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "all on one device:", d == x.Env().Device() && d == logits.Env().Device())
	return nil
}

// L05Wrong multiplies weights of one device by a batch of another.
func L05Wrong(env *tensor.Env, n Numbers, w io.Writer) error {
	// Another device than env: the one that the batch stays on.
	away, err := elsewhere(env)
	if err != nil {
		return err
	}
	// The layer is where it should be.
	model := nn.NewLinear(env, 768, 3)
	// The mistake: the batch is where it was made, and nobody moved it.
	x := away.Randn(n["batch"], n["tokens"], 768)
	// Try turns the operation's panic into an error; without it the program ends at the line of the call.
	_, err = env.Try(func(*tensor.Env) *tensor.Tensor { return model.Forward(x) })
	var wrong *tensor.Error
	if !errors.As(err, &wrong) {
		return fmt.Errorf("an operation on two devices went through: %v", err)
	}
	// The error names the operation and the line, here and not where a result is read.
	fmt.Fprintf(w, "%s refuses, at a line of this file: %v\n", wrong.Op, wrong.Line != "")
	return nil
}

// elsewhere is a device that env's is not: one without arithmetic, which costs nothing to open.
func elsewhere(env *tensor.Env) (*tensor.Env, error) {
	if env.Device().Name() == "null:t4" {
		return tensor.Open("cpu")
	}
	return tensor.Open("null:t4")
}
