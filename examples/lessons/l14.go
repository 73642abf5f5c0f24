package lessons

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/tensor"
)

// L14 asks what is known of a device.
func L14(env *tensor.Env, _ Numbers, w io.Writer) error {
	// How many there are, the host among them.
	fmt.Fprintln(w, "at least one device:", len(tensor.Devices()) >= 1)
	// There is no current device. An env is of one, and what it makes stays there.
	p := env.Device().Properties()
	fmt.Fprintln(w, "it has its name:", p.Name == env.Device().Name())
	fmt.Fprintln(w, "memory is known:", p.Memory > 0)
	// Compute capability and multiprocessors are a GPU's; of the host they are zero.
	fmt.Fprintln(w, "a GPU has both, the host neither:", (p.Multiprocessors > 0) == (p.Compute[0] > 0))
	return nil
}
