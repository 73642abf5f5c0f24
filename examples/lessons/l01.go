package lessons

import (
	"fmt"
	"io"
	"slices"

	"github.com/warpline-ml/warpline/tensor"
)

// L01 asks two questions that are not the same: is a device there, and can this process compute on it?
func L01(env *tensor.Env, _ Numbers, w io.Writer) error {
	// What is there: "cpu" always, then what the driver lists. A card in this list may still refuse this process.
	listed := tensor.Devices()
	fmt.Fprintln(w, "the host is listed:", slices.Contains(listed, "cpu"))
	// What can be used: only an operation that ends with the right number answers that.
	two := env.Full(2, 1)
	sum := two.Add(env.Full(3, 1))
	fmt.Fprintln(w, "this process computes 2 + 3 =", sum.Item())
	return nil
}
