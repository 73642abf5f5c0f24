package tensor

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
)

// Rotary describes [Tensor.Rotary]. The zero value is Llama's as Transformers has it.
type Rotary struct {
	Base        float64 // 0 means 10000
	Width       int     // of each head's width, how much is turned; 0 means all
	Interleaved bool    // pairs are neighbours, as in the paper, GPT-J and Llama's own code; otherwise of the two halves, as in Transformers' Llama and GPT-NeoX
	Stretch     float64 // positions are divided by it, for longer contexts; 0 means 1
	Start       int     // position of the first of those that are not given
}

// Rotary turns queries or keys [..., t, width] by angles that grow with their position, so that their products hang on
// distances only (Su et al., 2021): pair i of width/2 by position·Base^(-2i/width). Positions are whole numbers of a shape that
// broadcasts to [..., t]; nil: from r.Start on. Angles are float32 at least.
func (t *Tensor) Rotary(r Rotary, positions *Tensor) *Tensor {
	t = t.floated()
	width := r.Width
	if width == 0 && t.Rank() > 0 {
		width = t.Dim(-1)
	}
	if t.Rank() < 2 || width < 0 || width > t.Dim(-1) || width%2 != 0 {
		raise("Rotary", "values are [..., positions, width], what is turned is even and no more than the width", "%+v for shape %v", r, t.Shape())
	}
	if positions == nil {
		positions = t.env.Arange(t.Dim(-2)).AddScalar(float64(r.Start))
	}
	return Chain(t, func(x *Tensor) *Tensor {
		turned := r.turn(x.Slice(-1, 0, width), positions)
		if width == x.Dim(-1) {
			return turned
		}
		return Cat(-1, turned, x.Slice(-1, width, x.Dim(-1)))
	})
}

// turn is x of which all is turned.
func (r Rotary) turn(x, positions *Tensor) *Tensor {
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
	rate := x.env.Arange(half).Cast(wide).Scale(-math.Log(base) / float64(max(half, 1))).Exp()
	angle := positions.In(x.env).Cast(wide).Scale(1 / stretch).Unsqueeze(-1).Mul(rate)
	sin, cos := angle.Sin().Cast(x.DType()), angle.Cos().Cast(x.DType())
	shape := x.Shape()
	if r.Interleaved {
		pairs := x.Reshape(append(append([]int{}, shape[:len(shape)-1]...), half, 2)...)
		a, b := pairs.Select(-1, 0), pairs.Select(-1, 1)
		return Stack(-1, a.Mul(cos).Sub(b.Mul(sin)), b.Mul(cos).Add(a.Mul(sin))).Reshape(shape...)
	}
	a, b := x.Slice(-1, 0, half), x.Slice(-1, half, 2*half)
	return Cat(-1, a.Mul(cos).Sub(b.Mul(sin)), b.Mul(cos).Add(a.Mul(sin)))
}
