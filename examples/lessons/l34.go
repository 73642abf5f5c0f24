package lessons

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// L34 tells of a part of a program how much memory it took at most, and how much it left behind.
func L34(env *tensor.Env, n Numbers, w io.Writer) error {
	// What stays, how bytes are told as MB, and the inner scope's figures.
	var left *tensor.Tensor
	mb := func(bytes int64) float64 { return float64(bytes) / 1e6 }
	var inner prof.Footprint
	// Scopes lie within each other, and each has a peak of its own.
	outer := prof.Memory(env, func() {
		inner = prof.Memory(env, func() {
			left = env.Do(func(env *tensor.Env) *tensor.Tensor {
				x := env.Ones(n["n"], n["n"])
				// Three values of n × n at most: x, its double and their sum.
				return x.Scale(2).Add(x)
			})
		})
	})
	// MB are 10⁶ bytes. Peak is the most at once, above what was there before; Net is what stayed.
	fmt.Fprintf(w, "peak %.3f MB, stayed %.3f MB\n", mb(inner.Peak-inner.Before), mb(inner.Net))
	fmt.Fprintln(w, "the outer scope saw as much:", outer.Peak == inner.Peak && left != nil)
	return nil
}
