package lessons

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/tickets"
	"github.com/warpline-ml/warpline/tensor"
)

// L17 reads ahead: while the device works on a batch, the next ones are drawn, packed and copied.
func L17(env *tensor.Env, n Numbers, w io.Writer) error {
	// Tickets drawn from a seed, enough for three batches.
	train, _ := tickets.Split(3*n["batch"], 1)
	// Workers read ahead of the loop. Their memory is pinned by itself, and a batch is one copy, however many fields it has.
	c := data.Config{Size: n["batch"], Workers: n["workers"]}
	batches, samples := 0, 0
	for b, err := range data.Batches(env, train, c) {
		if err != nil {
			return err
		}
		// The batch is on env's device when the loop sees it; the copy was asked for earlier, on a queue of its own.
		batches, samples = batches+1, samples+b.X.Dim(0)
	}
	fmt.Fprintf(w, "%d batches, %d tickets\n", batches, samples)
	return nil
}
