package lessons

import (
	"fmt"
	"io"
	"time"

	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// L10 times a product of matrices by the device's own clock.
func L10(env *tensor.Env, n Numbers, w io.Writer) error {
	// A square matrix of so many rows.
	x := env.Randn(n["n"], n["n"])
	// Runs that do not count come first: they load modules and fill the allocator.
	timer := prof.Timer{Warmup: n["warmup"], Runs: n["runs"]}
	// A mark before the work and one behind it, both in the device's queue; where the host computes, its clock.
	t, err := timer.Time(env, func(env *tensor.Env) { x.In(env).MatMul(x) })
	if err != nil {
		return err
	}
	// A median and quartiles, not a mean: one interrupted run must not decide.
	fmt.Fprintf(w, "%d runs of %d FLOP, each took time: %v\n", len(t.Runs), t.FLOPs, t.Median > 0)
	fmt.Fprintln(w, "quartiles in order:", t.Lower <= t.Median && t.Median <= t.Upper)
	return nil
}

// L10Wrong reads the host's clock around a call that may only ask for work.
func L10Wrong(env *tensor.Env, n Numbers, w io.Writer) error {
	// A square matrix, and the time on the host's clock.
	x := env.Randn(n["n"], n["n"])
	before := time.Now()
	// The mistake: no warm-up, one run, and on a card the call returns before the product is done.
	x.MatMul(x)
	enqueue := time.Since(before)
	// Waiting behind it shows what the clock had not seen.
	env.Sync()
	fmt.Fprintln(w, "the clock before the wait saw less than the clock behind it:", enqueue <= time.Since(before))
	return nil
}
