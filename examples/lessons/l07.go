package lessons

import (
	"fmt"
	"io"
	"strings"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// L07 checks a model and a batch before a run of hours, for a device that need not be there.
func L07(env *tensor.Env, n Numbers, w io.Writer) error {
	// A model and a batch in one place: what the check is to confirm.
	model := nn.NewLinear(env, 768, 3)
	b := ticketBatch(env, n["batch"])
	// For the device that they are on: nothing to say.
	fmt.Fprintln(w, "here:", nn.Preflight(env, model, b) == nil)
	// For a card by name. A device's name is a value: no card is opened, and none is needed.
	err := nn.PreflightFor("cuda:7", model, b)
	if err == nil {
		return fmt.Errorf("nothing here is on cuda:7")
	}
	// All offenders at once, each by its path: the layer's and the batch's.
	for _, path := range []string{"weight", "bias", "Features", "Mask", "Labels"} {
		fmt.Fprintf(w, "cuda:7 lacks %s: %v\n", path, strings.Contains(err.Error(), path))
	}
	return nil
}
