package nn

import (
	"cmp"

	"github.com/warpline-ml/warpline/tensor"
)

// TransformerConfig describes the layers of a Transformer (Vaswani et al., 2017). Zero fields are PyTorch's defaults but for
// Heads, which must be given.
type TransformerConfig struct {
	Heads       int
	Inner       int     // width of the layer between; 0 means 2048
	Dropout     float64 // of weights and of each branch, while training; PyTorch's default is 0.1, ours none
	Act         Module  // nil means ReLU{}
	Eps         float64 // of norms; 0 means 1e-5
	BatchFirst  bool    // values are [n, t, width], not [t, n, width]
	NormFirst   bool    // norms stand before branches, not behind sums
	NoBias      bool
	NoFinalNorm bool // of [NewTransformerEncoder] and [NewTransformerDecoder]: they end without a norm
}

func (c *TransformerConfig) attention(env *tensor.Env, width int) *MultiheadAttention {
	return NewMultiheadAttention(env, width, MultiheadConfig{Heads: c.Heads, Dropout: c.Dropout, NoBias: c.NoBias, BatchFirst: c.BatchFirst})
}

func (c *TransformerConfig) norm(env *tensor.Env, width int) *LayerNorm {
	l := NewLayerNorm(env, width)
	if l.Eps = cmp.Or(c.Eps, 1e-5); c.NoBias {
		l.Bias = nil
	}
	return l
}

// finalNorm is the norm behind all layers, or nil.
func (c *TransformerConfig) finalNorm(env *tensor.Env, width int) *LayerNorm {
	if c.NoFinalNorm {
		return nil
	}
	return c.norm(env, width)
}

// final is x by a norm that may be nil.
func final(norm *LayerNorm, x *tensor.Tensor) *tensor.Tensor {
	if norm == nil {
		return x
	}
	return norm.Forward(x)
}

func (c *TransformerConfig) linear(env *tensor.Env, in, out int) *Linear {
	if c.NoBias {
		return NewLinearNoBias(env, in, out)
	}
	return NewLinear(env, in, out)
}

// feedForward is the second branch of a layer.
func feedForward(x *tensor.Tensor, first, second *Linear, act Module, dropout float64) *tensor.Tensor {
	if act == nil {
		act = ReLU{}
	}
	return second.Forward(act.Forward(first.Forward(x)).Dropout(dropout)).Dropout(dropout)
}

// residual adds a branch to x, with its norm before the branch or behind the sum.
func residual(x *tensor.Tensor, norm *LayerNorm, first bool, branch func(x *tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
	if first {
		return x.Add(branch(norm.Forward(x)))
	}
	return norm.Forward(x.Add(branch(x)))
}

// TransformerEncoderLayer is PyTorch's: self-attention and a feed-forward branch, of [t, n, width].
type TransformerEncoderLayer struct {
	SelfAttn  *MultiheadAttention `nn:"self_attn"`
	Linear1   *Linear             `nn:"linear1"`
	Linear2   *Linear             `nn:"linear2"`
	Norm1     *LayerNorm          `nn:"norm1"`
	Norm2     *LayerNorm          `nn:"norm2"`
	Act       Module              `nn:"-"`
	Dropout   float64
	NormFirst bool
}

// NewTransformerEncoderLayer makes a layer of a width.
func NewTransformerEncoderLayer(env *tensor.Env, width int, c TransformerConfig) *TransformerEncoderLayer {
	inner := cmp.Or(c.Inner, 2048)
	return &TransformerEncoderLayer{c.attention(env, width), c.linear(env, width, inner), c.linear(env, inner, width),
		c.norm(env, width), c.norm(env, width), c.Act, c.Dropout, c.NormFirst}
}

// Forward encodes without a mask.
func (l *TransformerEncoderLayer) Forward(x *tensor.Tensor) *tensor.Tensor {
	return l.Encode(x, Sight{})
}

// Encode encodes where queries see what s says.
func (l *TransformerEncoderLayer) Encode(x *tensor.Tensor, s Sight) *tensor.Tensor {
	in := enter(l, x)
	x = residual(in.x, l.Norm1, l.NormFirst, func(x *tensor.Tensor) *tensor.Tensor {
		return l.SelfAttn.Attend(x, x, x, s).Dropout(l.Dropout)
	})
	return in.leave(residual(x, l.Norm2, l.NormFirst, func(x *tensor.Tensor) *tensor.Tensor {
		return feedForward(x, l.Linear1, l.Linear2, l.Act, l.Dropout)
	}))
}

// TransformerDecoderLayer is PyTorch's: self-attention, attention to what an encoder gives, and a feed-forward branch.
type TransformerDecoderLayer struct {
	SelfAttn  *MultiheadAttention `nn:"self_attn"`
	CrossAttn *MultiheadAttention `nn:"multihead_attn"`
	Linear1   *Linear             `nn:"linear1"`
	Linear2   *Linear             `nn:"linear2"`
	Norm1     *LayerNorm          `nn:"norm1"`
	Norm2     *LayerNorm          `nn:"norm2"`
	Norm3     *LayerNorm          `nn:"norm3"`
	Act       Module              `nn:"-"`
	Dropout   float64
	NormFirst bool
}

// NewTransformerDecoderLayer makes a layer of a width.
func NewTransformerDecoderLayer(env *tensor.Env, width int, c TransformerConfig) *TransformerDecoderLayer {
	inner := cmp.Or(c.Inner, 2048)
	return &TransformerDecoderLayer{c.attention(env, width), c.attention(env, width), c.linear(env, width, inner), c.linear(env, inner, width),
		c.norm(env, width), c.norm(env, width), c.norm(env, width), c.Act, c.Dropout, c.NormFirst}
}

// Decode decodes x[t, n, width] with memory[s, n, width], where x sees itself as own says and memory as other says.
func (l *TransformerDecoderLayer) Decode(x, memory *tensor.Tensor, own, other Sight) *tensor.Tensor {
	in := enter(l, x)
	x = residual(in.x, l.Norm1, l.NormFirst, func(x *tensor.Tensor) *tensor.Tensor {
		return l.SelfAttn.Attend(x, x, x, own).Dropout(l.Dropout)
	})
	x = residual(x, l.Norm2, l.NormFirst, func(x *tensor.Tensor) *tensor.Tensor {
		return l.CrossAttn.Attend(x, memory, memory, other).Dropout(l.Dropout)
	})
	return in.leave(residual(x, l.Norm3, l.NormFirst, func(x *tensor.Tensor) *tensor.Tensor {
		return feedForward(x, l.Linear1, l.Linear2, l.Act, l.Dropout)
	}))
}

// TransformerEncoder is layers of an encoder, and a norm.
type TransformerEncoder struct {
	Layers []*TransformerEncoderLayer `nn:"layers"`
	Norm   *LayerNorm                 `nn:"norm"` // or nil
}

// NewTransformerEncoder makes layers of a width, and a norm behind them.
func NewTransformerEncoder(env *tensor.Env, layers, width int, c TransformerConfig) *TransformerEncoder {
	l := &TransformerEncoder{}
	for range layers {
		l.Layers = append(l.Layers, NewTransformerEncoderLayer(env, width, c))
	}
	l.Norm = c.finalNorm(env, width)
	return l
}

// Forward encodes without a mask.
func (l *TransformerEncoder) Forward(x *tensor.Tensor) *tensor.Tensor { return l.Encode(x, Sight{}) }

// Encode encodes where queries see what s says.
func (l *TransformerEncoder) Encode(x *tensor.Tensor, s Sight) *tensor.Tensor {
	for _, layer := range l.Layers {
		x = layer.Encode(x, s)
	}
	return final(l.Norm, x)
}

// TransformerDecoder is layers of a decoder, and a norm.
type TransformerDecoder struct {
	Layers []*TransformerDecoderLayer `nn:"layers"`
	Norm   *LayerNorm                 `nn:"norm"` // or nil
}

// NewTransformerDecoder makes layers of a width, and a norm behind them.
func NewTransformerDecoder(env *tensor.Env, layers, width int, c TransformerConfig) *TransformerDecoder {
	l := &TransformerDecoder{}
	for range layers {
		l.Layers = append(l.Layers, NewTransformerDecoderLayer(env, width, c))
	}
	l.Norm = c.finalNorm(env, width)
	return l
}

// Decode decodes x[t, n, width] with memory[s, n, width], where x sees itself as own says and memory as other says.
func (l *TransformerDecoder) Decode(x, memory *tensor.Tensor, own, other Sight) *tensor.Tensor {
	for _, layer := range l.Layers {
		x = layer.Decode(x, memory, own, other)
	}
	return final(l.Norm, x)
}
