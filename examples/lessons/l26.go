package lessons

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/tensor"
)

const row = 64

// L26 moves a batch once, computes on the device, and reads one number.
func L26(env *tensor.Env, n Numbers, w io.Writer) error {
	// The rows of all steps, on the host.
	numbers := make([]float32, n["steps"]*row)
	for i := range numbers {
		numbers[i] = float32(i % row)
	}
	// One copy for all steps.
	x := tensor.From(env, numbers, n["steps"], row)
	total := env.Zeros(1)
	for step := range n["steps"] {
		// All on the device; the sum stays there.
		total = total.Add(x.Select(0, step).Sum())
	}
	// One read, at the end.
	fmt.Fprintf(w, "%.0f by 1 copy and 1 read\n", total.Item())
	return nil
}

// L26Wrong copies and reads in every step.
func L26Wrong(env *tensor.Env, n Numbers, w io.Writer) error {
	// One row, on the host.
	numbers := make([]float32, row)
	for i := range numbers {
		numbers[i] = float32(i)
	}
	// The sum so far, on the host, and how often it was read.
	total, reads := 0.0, 0
	for range n["steps"] {
		// The mistake, first half: a row goes over the bus alone, and the cost of a copy hardly depends on its size.
		x := tensor.From(env, numbers, row)
		// Second half: the sum comes back to be added by the host, which waits for it.
		total += x.Sum().Item()
		reads++
	}
	fmt.Fprintf(w, "%.0f by %d copies and %d reads\n", total, n["steps"], reads)
	return nil
}
