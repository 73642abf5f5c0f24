package lessons

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/plan"
	"github.com/warpline-ml/warpline/tensor"
)

// L13 is an operation whose elements know nothing of each other, and what that is on a card.
func L13(env *tensor.Env, n Numbers, w io.Writer) error {
	// A matrix of random numbers, about half of them below zero.
	x := env.Randn(n["rows"], n["columns"])
	// One instruction for many elements: a thread takes some, 32 threads are a warp and run together.
	y := x.ReLU()
	fmt.Fprintln(w, "nothing below zero:", y.Min().Item() >= 0)
	// A card from the table: 108 multiprocessors of 64 lanes for float32.
	card, err := plan.Card("a100-80")
	if err != nil {
		return err
	}
	lanes := card.SMs * card.SM().Float32
	elements := x.Size()
	fmt.Fprintf(w, "%d elements, %d warps, %.2f for each of %d lanes\n", elements, (elements+31)/32, float64(elements)/float64(lanes), lanes)
	// But it is no arithmetic that takes the time: each element is read once and written once.
	bytes := float64(2 * x.Bytes())
	fmt.Fprintf(w, "%.2f MB at %d GB/s: %.2f µs\n", bytes/1e6, card.Bandwidth, bytes/float64(card.Bandwidth)/1e3)
	return nil
}
