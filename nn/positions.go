package nn

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// Rotary turns queries and keys by angles that grow with their position, so that their products hang on distances only (Su et
// al., 2021): pair i of width/2 by position·Base^(-2i/width).
type Rotary struct {
	Base        float64 // 0 means 10000
	Width       int     // of each head's width, how much is turned; 0 means all
	Interleaved bool    // pairs are neighbours, as in the paper and in Llama's own code; otherwise of the two halves, as Transformers has them
	Stretch     float64 // positions are divided by it, for longer contexts; 0 means 1
}

// Forward turns x[..., t, width] at positions from 0.
func (r Rotary) Forward(x *tensor.Tensor) *tensor.Tensor { return r.At(x, nil) }

// At turns x[..., t, width] at the given positions, whole numbers of a shape that broadcasts to [..., t]; nil: from 0.
func (r Rotary) At(x, positions *tensor.Tensor) *tensor.Tensor {
	if x.Rank() < 2 || r.Width < 0 || r.Width > x.Dim(-1) || r.width(x)%2 != 0 {
		tensor.Raise("nn.Rotary", "values are [..., positions, width], what is turned is even and no more than the width", "%+v for shape %v", r, x.Shape())
	}
	if positions == nil {
		positions = x.Env().Arange(x.Dim(-2))
	}
	return tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor {
		width := r.width(x)
		turned := r.turn(x.Slice(-1, 0, width), positions)
		if width == x.Dim(-1) {
			return turned
		}
		return tensor.Cat(-1, turned, x.Slice(-1, width, x.Dim(-1)))
	})
}

func (r Rotary) width(x *tensor.Tensor) int {
	if r.Width > 0 {
		return r.Width
	}
	return x.Dim(-1)
}

// turn is x of which all is turned. Angles are float32 at least.
func (r Rotary) turn(x, positions *tensor.Tensor) *tensor.Tensor {
	half, wide := x.Dim(-1)/2, dtype.F32
	if x.DType() == dtype.F64 {
		wide = dtype.F64
	}
	base, stretch := r.Base, r.Stretch
	if base == 0 {
		base = 10000
	}
	if stretch == 0 {
		stretch = 1
	}
	rate := x.Env().Arange(half).Cast(wide).Scale(-math.Log(base) / float64(max(half, 1))).Exp()
	angle := positions.In(x.Env()).Cast(wide).Scale(1 / stretch).Unsqueeze(-1).Mul(rate)
	sin, cos := angle.Sin().Cast(x.DType()), angle.Cos().Cast(x.DType())
	shape := x.Shape()
	if r.Interleaved {
		pairs := x.Reshape(append(append([]int{}, shape[:len(shape)-1]...), half, 2)...)
		a, b := pairs.Select(-1, 0), pairs.Select(-1, 1)
		return tensor.Stack(-1, a.Mul(cos).Sub(b.Mul(sin)), b.Mul(cos).Add(a.Mul(sin))).Reshape(shape...)
	}
	a, b := x.Slice(-1, 0, half), x.Slice(-1, half, 2*half)
	return tensor.Cat(-1, a.Mul(cos).Sub(b.Mul(sin)), b.Mul(cos).Add(a.Mul(sin)))
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
