package lessons

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/tensor"
)

// L04 is arithmetic: what a model that learns by Adam needs in float32, whatever else it does.
func L04(_ *tensor.Env, n Numbers, w io.Writer) error {
	// The number that may be changed is in millions.
	parameters := 1e6 * float64(n["millions"])
	// Four numbers of four bytes for each parameter: the weight, its gradient, and Adam's two averages.
	bytes := parameters * (4 + 4 + 4 + 4)
	// GiB are 2³⁰ bytes, as memory is counted; GB would be 10⁹, as disks are sold.
	fmt.Fprintf(w, "%.2f GiB at least\n", bytes/(1<<30))
	// A floor: activations, the batch, workspaces of kernels and what the allocator rounds come on top.
	fmt.Fprintln(w, "without activations, buffers and what the allocator keeps")
	return nil
}
