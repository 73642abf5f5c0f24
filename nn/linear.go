package nn

import (
	"math"

	"github.com/warpline-ml/warpline/tensor"
)

// Linear is y = Act(x·Wᵀ + b) over the last dimension: [..., in] to [..., out]. With Act the activation is a part of the
// product, and no pass of its own.
type Linear struct {
	Weight *tensor.Tensor `nn:"weight"` // [out, in]
	Bias   *tensor.Tensor `nn:"bias"`   // [out], or nil
	Act    tensor.Act     // NoAct unless set
	LoRA   *LoRA          `nn:""` // or nil; see [AddLoRA]
}

// NewLinear draws weight and bias uniformly from ±1/√in.
func NewLinear(env *tensor.Env, in, out int) *Linear {
	l := NewLinearNoBias(env, in, out)
	l.Bias = uniform(env, fanBound(in), out)
	return l
}

// NewLinearNoBias makes a layer without bias.
func NewLinearNoBias(env *tensor.Env, in, out int) *Linear {
	return &Linear{Weight: uniform(env, fanBound(in), out, in)}
}

// WithAct sets the layer's activation, and returns the layer.
func (l *Linear) WithAct(act tensor.Act) *Linear {
	l.Act = act
	return l
}

// fanBound is PyTorch's bound for weights and biases with n inputs: √3 · √(2/(1+5)) / √n, and 0 without inputs.
func fanBound(n int) float64 {
	if n == 0 {
		return 0
	}
	return 1 / math.Sqrt(float64(n))
}

// Forward applies the layer.
func (l *Linear) Forward(x *tensor.Tensor) *tensor.Tensor {
	in := enter(l, x)
	needs(l, "weight", l.Weight)
	if l.LoRA.beside() {
		return in.leave(tensor.Chain(in.x, func(x *tensor.Tensor) *tensor.Tensor {
			return activated(l.LoRA.add(x, x.Linear(l.Weight, l.Bias)), l.Act)
		}))
	}
	return in.leave(in.x.LinearAct(l.Weight, l.Bias, l.Act))
}

func (l *Linear) products(_, y *tensor.Tensor) int { return y.Size() * l.Weight.Dim(1) }

// Embedding looks up rows of a table: indices of any shape [...] to [..., width].
type Embedding struct {
	Weight *tensor.Tensor `nn:"weight"` // [rows, width]
}

// NewEmbedding draws the table from the standard normal distribution.
func NewEmbedding(env *tensor.Env, rows, width int) *Embedding {
	return &Embedding{env.Tidy(func(e *tensor.Env) *tensor.Tensor { return NewParam(e.Randn(rows, width)) })}
}

// Forward looks up indices.
func (l *Embedding) Forward(idx *tensor.Tensor) *tensor.Tensor {
	in := enter(l, idx)
	needs(l, "weight", l.Weight)
	return in.leave(l.Weight.Embedding(in.x))
}
