package nn

import (
	"math"

	"github.com/warpline-ml/warpline/tensor"
)

// Linear is y = x·Wᵀ + b over the last dimension: [..., in] to [..., out].
type Linear struct {
	Weight *tensor.Tensor `nn:"weight"` // [out, in]
	Bias   *tensor.Tensor `nn:"bias"`   // [out], or nil
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

// fanBound is PyTorch's bound for weights and biases with n inputs: √3 · √(2/(1+5)) / √n, and 0 without inputs.
func fanBound(n int) float64 {
	if n == 0 {
		return 0
	}
	return 1 / math.Sqrt(float64(n))
}

// Forward applies the layer.
func (l *Linear) Forward(x *tensor.Tensor) *tensor.Tensor {
	return note(l, x, x.Linear(l.Weight, l.Bias))
}

func (l *Linear) products(_, y *tensor.Tensor) int { return y.Size() * l.Weight.Dim(1) }

// Embedding looks up rows of a table: indices of any shape [...] to [..., width].
type Embedding struct {
	Weight *tensor.Tensor `nn:"weight"` // [rows, width]
}

// NewEmbedding draws the table from the standard normal distribution.
func NewEmbedding(env *tensor.Env, rows, width int) *Embedding {
	return &Embedding{NewParam(env.Randn(rows, width))}
}

// Forward looks up indices.
func (l *Embedding) Forward(idx *tensor.Tensor) *tensor.Tensor {
	return note(l, idx, l.Weight.Embedding(idx))
}
