package lessons

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// L28 measures so that somebody else gets the same answer: shapes as in training, warmed up, many runs, spread told.
func L28(env *tensor.Env, n Numbers, w io.Writer) error {
	// A square matrix, and a product that is timed so many times, after a warm-up.
	x := env.Randn(n["n"], n["n"])
	t, err := prof.Timer{Runs: n["runs"]}.Time(env, func(env *tensor.Env) { x.In(env).MatMul(x) })
	if err != nil {
		return err
	}
	// Two numbers that must not be mixed: how long the device worked, and how long the host took to ask.
	// The host computes in the call itself, so that there it asks for nothing.
	fmt.Fprintln(w, "both are known:", t.Median > 0 && (t.Enqueue > 0 || t.Hosted))
	// A multiply and an add for each of n³ pairs. A rate that no such card has is an error, not a result.
	fmt.Fprintf(w, "%d FLOP a run, %d runs\n", t.FLOPs, len(t.Runs))
	return nil
}
