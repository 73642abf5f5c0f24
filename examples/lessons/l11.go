package lessons

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/tensor"
)

// L11 takes memory, lets it go, and asks at each moment who has it.
func L11(env *tensor.Env, n Numbers, w io.Writer) error {
	// The device's figures before anything is taken.
	dev := env.Device()
	before := dev.Memory()
	// A block, whose values end with it, takes so many MiB: each is 256 × 1,024 float32.
	env.Do(func(env *tensor.Env) *tensor.Tensor {
		env.Zeros(n["mib"], 256, 1024)
		// Used is what values hold: exactly what was asked for.
		now := dev.Memory()
		fmt.Fprintf(w, "live: %d MiB more\n", (now.Used-before.Used)>>20)
		// Reserved is what the allocator has taken of the device: never less. It is what nvidia-smi shows, besides the driver's own part.
		fmt.Fprintln(w, "reserved covers it:", now.Reserved.Current >= now.Allocated.Current)
		return nil
	})
	// The block has ended: its values are gone, and the allocator keeps their memory for the next ones.
	after := dev.Memory()
	fmt.Fprintf(w, "live behind the block: %d MiB more\n", (after.Used-before.Used)>>20)
	fmt.Fprintln(w, "reserved stays:", after.Reserved.Current > 0)
	return nil
}
