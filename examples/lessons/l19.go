package lessons

import (
	"fmt"
	"io"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// deep is four layers, each of which keeps its input for the backward pass.
func deep(env *tensor.Env, width int, wrap func(nn.Module) nn.Module) nn.Sequential {
	var s nn.Sequential
	for range 4 {
		s = append(s, wrap(nn.Sequential{nn.NewLinear(env, width, width), nn.GELU{}}))
	}
	return s
}

func plain(m nn.Module) nn.Module { return m }

// kept is what a forward pass of a model in env keeps for its backward pass, in bytes.
func kept(env *tensor.Env, model nn.Module, x *tensor.Tensor) int64 {
	return prof.Memory(env, func() { model.Forward(x.In(env)).Mean() }).Kept
}

// L19 lets go, records nothing, and computes again in place of keeping.
func L19(env *tensor.Env, n Numbers, w io.Writer) error {
	// Four blocks, plainly and with each of them computed again in the backward pass.
	model, again := deep(env, n["width"], plain), deep(env, n["width"], nn.Recompute)
	x := env.Ones(n["batch"], n["width"])
	// What a plain forward pass keeps, in bytes.
	all := kept(env, model, x)
	// First: a block ends, and its values go at once. What the allocator keeps of them EmptyCache returns; of live values it frees none.
	env.Do(func(env *tensor.Env) *tensor.Tensor { env.Zeros(1 << 20); return nil })
	live := env.Device().Memory().Used
	if err := env.Device().EmptyCache(); err != nil {
		return err
	}
	fmt.Fprintln(w, "live values that EmptyCache took:", live-env.Device().Memory().Used)
	// Second: who only predicts records nothing.
	fmt.Fprintln(w, "kept without recording:", kept(env.NoGrad(), model, x))
	// Third: of each block only its input is kept; the backward pass computes the rest a second time.
	fmt.Fprintln(w, "recomputing keeps less than half:", 2*kept(env, again, x) < all)
	return nil
}

// L19Wrong scores a model and forgets to say that no gradient is wanted.
func L19Wrong(env *tensor.Env, n Numbers, w io.Writer) error {
	// Four blocks and a batch to score.
	model := deep(env, n["width"], plain)
	x := env.Ones(n["batch"], n["width"])
	// The mistake: a graph is recorded for a backward pass that never comes, and holds every layer's input.
	fmt.Fprintln(w, "kept for no one:", kept(env, model, x) > 0)
	return nil
}
