package lessons

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/tensor"
)

// losses is a loss as a training has it, small enough to know: the mean of 2 and 3.
func losses(env *tensor.Env) *tensor.Tensor { return tensor.From(env, []float32{2, 3}, 2).Mean() }

// L09 reports a loss now and then, without holding the device up.
func L09(env *tensor.Env, n Numbers, w io.Writer) error {
	// The number that was asked for and is not here yet, how many have come, and the last of them.
	var asked *tensor.Pending
	var reports int
	var last float64
	// As many steps as the number says.
	for step := range n["steps"] {
		// What was asked for a while ago is there by now: reading it holds nobody up.
		if asked != nil && asked.Ready() {
			last, asked, reports = asked.Value(), nil, reports+1
		}
		loss := losses(env)
		// Only every so many steps a value is wanted at all, and then it is asked for without waiting.
		if step%n["every"] == 0 && asked == nil {
			asked = loss.Later()
		}
	}
	// The end of a run may wait.
	if asked != nil {
		last, reports = asked.Value(), reports+1
	}
	fmt.Fprintf(w, "loss %.1f, reported %d times\n", last, reports)
	return nil
}

// L09Wrong prints the loss in every step: "just one print".
func L09Wrong(env *tensor.Env, n Numbers, w io.Writer) error {
	// The device counts its waits by line, from here on.
	env.Device().ResetSyncs()
	// The last loss, and the loop of steps.
	var last float64
	for range n["steps"] {
		// The mistake: Item waits until the device has done everything that was asked for, and then the device waits for the host.
		last = losses(env).Item()
	}
	fmt.Fprintf(w, "loss %.1f, read %d times\n", last, n["steps"])
	return nil
}
