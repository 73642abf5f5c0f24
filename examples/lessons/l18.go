package lessons

import (
	"fmt"
	"io"
	"strings"

	"github.com/warpline-ml/warpline/tensor"
)

// L18 reads the allocator's figures, of which PyTorch's have the same names.
func L18(env *tensor.Env, n Numbers, w io.Writer) error {
	// The figures are the device's.
	dev := env.Device()
	// The peak is the most since the last reset: without one it is of the whole program.
	dev.ResetPeak()
	before := dev.Memory()
	env.Do(func(env *tensor.Env) *tensor.Tensor {
		env.Zeros(n["mib"], 256, 1024)
		return nil
	})
	m := dev.Memory()
	// What is live now, and what was live at most.
	fmt.Fprintf(w, "allocated now: %d MiB more\n", (m.Used-before.Used)>>20)
	fmt.Fprintf(w, "at the peak:   %d MiB more\n", (m.Peak-before.Used)>>20)
	// What the allocator has taken, and what there is in all.
	fmt.Fprintln(w, "reserved within the total:", m.Reserved.Current <= dev.Properties().Memory)
	// A table for people, and the same counts by PyTorch's keys for programs.
	fmt.Fprintln(w, "a table of more than 5 lines:", len(strings.Split(dev.MemorySummary(), "\n")) > 5)
	fmt.Fprintln(w, "the count of allocations is there:", dev.MemoryStats()["allocation.all.allocated"] > 0)
	return nil
}
