package model

import (
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// ViTConfig describes a vision transformer beside its pictures.
type ViTConfig struct {
	Patch          int `json:"patch"`      // side of a patch in pixels, which divides height and width
	Model          int `json:"model_size"` // width of tokens, which AttentionHeads divides
	Depth          int `json:"depth"`      // layers
	AttentionHeads int `json:"num_heads"`
}

// ViT is a vision transformer (Dosovitskiy et al., 2021): patches become tokens by a convolution, with a learned position each and a token
// for the class before them; layers of attention and MLP with the norm before each; a last norm, and scores from the class's token.
type ViT struct {
	Patches   *nn.Conv2d     `nn:"conv_proj"`
	Class     *tensor.Tensor `nn:"class_token"`   // [1, 1, model]
	Positions *tensor.Tensor `nn:"pos_embedding"` // [1, patches + 1, model]
	Layers    []*ViTLayer    `nn:"layers"`
	Norm      *nn.LayerNorm  `nn:"ln"`
	Head      *nn.Linear     `nn:"head"`
}

// ViTLayer is a layer of a [ViT].
type ViTLayer struct {
	Norm1 *nn.LayerNorm `nn:"ln_1"`
	Attn  *nn.Attention `nn:"attn"`
	Norm2 *nn.LayerNorm `nn:"ln_2"`
	Up    *nn.Linear    `nn:"mlp_up"`
	Down  *nn.Linear    `nn:"mlp_down"`
}

// NewViT makes a model whose class token and positions begin small and at random.
func NewViT(env *tensor.Env, c ImageConfig, v ViTConfig) *ViT {
	tokens := c.Height/v.Patch*(c.Width/v.Patch) + 1
	small := func(shape ...int) *tensor.Tensor {
		return env.Tidy(func(env *tensor.Env) *tensor.Tensor { return nn.NewParam(env.Randn(shape...).Scale(0.02)) })
	}
	m := &ViT{
		Patches:   nn.NewConv2d(env, c.Channels, v.Model, v.Patch, nn.ConvConfig{Stride: v.Patch}),
		Class:     small(1, 1, v.Model),
		Positions: small(1, tokens, v.Model),
		Norm:      nn.NewLayerNorm(env, v.Model),
		Head:      nn.NewLinear(env, v.Model, c.Classes),
	}
	for range v.Depth {
		m.Layers = append(m.Layers, &ViTLayer{
			nn.NewLayerNorm(env, v.Model), nn.NewAttention(env, v.Model, nn.AttentionConfig{Heads: v.AttentionHeads}),
			nn.NewLayerNorm(env, v.Model), nn.NewLinear(env, v.Model, 4*v.Model), nn.NewLinear(env, 4*v.Model, v.Model),
		})
	}
	return m
}

// Forward gives scores [n, classes] of pictures [n, channels, height, width].
func (m *ViT) Forward(x *tensor.Tensor) *tensor.Tensor {
	p := m.Patches.Forward(x)
	n, width := p.Dim(0), p.Dim(1)
	tokens := p.Reshape(n, width, -1).Transpose(1, 2)
	h := tensor.Cat(1, m.Class.Expand(n, 1, width), tokens).Add(m.Positions)
	for _, l := range m.Layers {
		h = nn.Block(l, h)
	}
	return m.Head.Forward(m.Norm.Forward(h.Select(1, 0)))
}

// Forward adds what attention and MLP make of h [n, tokens, model].
func (l *ViTLayer) Forward(h *tensor.Tensor) *tensor.Tensor {
	h = h.Add(l.Attn.Forward(l.Norm1.Forward(h)))
	return h.Add(l.Down.Forward(l.Up.Forward(l.Norm2.Forward(h)).GELU()))
}
