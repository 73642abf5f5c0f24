package nn

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// Rotary turns queries and keys by their positions: [tensor.Rotary] as a layer.
type Rotary struct {
	Base        float64 // 0 means 10000
	Width       int     // of each head's width, how much is turned; 0 means all
	Interleaved bool    // pairs are neighbours, as in the paper and in Llama's own code; otherwise of the two halves, as Transformers has them
	Stretch     float64 // positions are divided by it, for longer contexts; 0 means 1
	Start       int     // position of the first of those that are not given: behind a [KVCache] its Len
}

// Forward turns x[..., t, width] at positions from Start.
func (r Rotary) Forward(x *tensor.Tensor) *tensor.Tensor { return r.At(x, nil) }

// At turns x[..., t, width] at the given positions, whole numbers of a shape that broadcasts to [..., t]; nil: from Start.
func (r Rotary) At(x, positions *tensor.Tensor) *tensor.Tensor {
	return x.Rotary(tensor.Rotary(r), positions)
}

// ALiBi is what is added to scores of attention so that far keys count less, by a slope of each head (Press et al., 2021).
type ALiBi struct {
	Heads     int
	Symmetric bool // keys behind the query count less with distance, too; otherwise more, which only a causal mask hides
}

// Bias is float32 [1, heads, t, s], of the last t of s positions as queries, for [tensor.Mask].
func (a ALiBi) Bias(env *tensor.Env, t, s int) *tensor.Tensor {
	if a.Heads < 1 || t < 1 || s < t {
		tensor.Raise("nn.ALiBi", "heads and queries are from 1, keys as many as queries or more", "%d heads, %d queries, %d keys", a.Heads, t, s)
	}
	return env.Tidy(func(e *tensor.Env) *tensor.Tensor {
		far := e.Arange(s).Sub(e.Arange(t).AddScalar(float64(s - t)).Unsqueeze(1)).Cast(dtype.F32)
		if a.Symmetric {
			far = far.Abs().Neg()
		}
		return far.Mul(a.slopes(e).Reshape(1, a.Heads, 1, 1))
	})
}

// slopes are 2^(-8i/n) for the n heads of a power of two; more heads have every second one of those of twice as many.
func (a ALiBi) slopes(e *tensor.Env) *tensor.Tensor {
	n := 1
	for 2*n <= a.Heads {
		n *= 2
	}
	powers := func(heads, step, of int) *tensor.Tensor {
		return e.Arange(heads).Cast(dtype.F32).Scale(float64(step)).AddScalar(1).Scale(-8 / float64(of) * math.Ln2).Exp()
	}
	if n == a.Heads {
		return powers(n, 1, n)
	}
	return tensor.Cat(0, powers(n, 1, n), powers(a.Heads-n, 2, 2*n))
}
