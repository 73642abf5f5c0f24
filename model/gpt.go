package model

import (
	"fmt"
	"math"
	"strings"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// GPTConfig describes a GPT-2; the JSON names are those of transformers' config.json.
type GPTConfig struct {
	Vocab   int     `json:"vocab_size"`
	Context int     `json:"n_positions"`
	Layers  int     `json:"n_layer"`
	Heads   int     `json:"n_head"`
	Width   int     `json:"n_embd"`
	Dropout float64 `json:"resid_pdrop"` // of embeddings, attention weights and residual branches
	Eps     float64 `json:"layer_norm_epsilon"`
}

// Check reports sizes that no model can have.
func (c GPTConfig) Check() error {
	for _, f := range []struct {
		name string
		v    int
	}{{"vocab", c.Vocab}, {"context", c.Context}, {"layers", c.Layers}, {"heads", c.Heads}, {"width", c.Width}} {
		if f.v < 1 {
			return fmt.Errorf("%s is %d, it must be at least 1", f.name, f.v)
		}
	}
	if c.Width%c.Heads != 0 {
		return fmt.Errorf("width %d is not a multiple of %d heads", c.Width, c.Heads)
	}
	if c.Dropout < 0 || c.Dropout >= 1 {
		return fmt.Errorf("dropout %v is not in [0, 1)", c.Dropout)
	}
	return nil
}

// GPT is GPT-2 (Radford et al., 2019): token and position embeddings, blocks of attention and MLP with the norm before
// each, a last norm, and scores from the token embedding itself. Names are transformers'.
type GPT struct {
	Config      GPTConfig
	Transformer *Transformer `nn:"transformer"`
}

// Transformer is the body of a GPT.
type Transformer struct {
	WTE     *nn.Embedding `nn:"wte"` // also the head: scores are products with its rows
	WPE     *nn.Embedding `nn:"wpe"`
	H       []*Block      `nn:"h"`
	LNF     *nn.LayerNorm `nn:"ln_f"`
	dropout float64
}

// Block is one layer of a GPT.
type Block struct {
	LN1  *nn.LayerNorm `nn:"ln_1"`
	Attn *nn.Attention `nn:"attn"`
	LN2  *nn.LayerNorm `nn:"ln_2"`
	MLP  *MLP          `nn:"mlp"`
}

// MLP is the two linear layers of a block, four times as wide between them.
type MLP struct {
	FC      *nn.Linear `nn:"c_fc"` // with GELU by tanh
	Proj    *nn.Linear `nn:"c_proj"`
	dropout float64
}

// NewGPT draws weights from N(0, 0.02²), those that end a residual branch from N(0, 0.02²/(2·layers)); biases are 0.
func NewGPT(env *tensor.Env, c GPTConfig) *GPT {
	if c.Eps == 0 {
		c.Eps = 1e-5
	}
	g := &GPT{Config: c, Transformer: &Transformer{
		WTE: nn.NewEmbedding(env, c.Vocab, c.Width), WPE: nn.NewEmbedding(env, c.Context, c.Width),
		LNF: norm(env, c), dropout: c.Dropout,
	}}
	for range c.Layers {
		g.Transformer.H = append(g.Transformer.H, newBlock(env, c))
	}
	nn.Init(g, func(path string, p *tensor.Tensor) {
		switch {
		case strings.HasSuffix(path, "bias"):
			p.FillInPlace(0)
		case p.Rank() == 2:
			std := 0.02
			if strings.HasSuffix(path, "c_proj.weight") {
				std /= math.Sqrt(2 * float64(c.Layers))
			}
			env.NoGrad().Tidy(func(e *tensor.Env) *tensor.Tensor { return p.CopyInPlace(e.Randn(p.Shape()...).Scale(std)) })
		}
	})
	return g
}

func norm(env *tensor.Env, c GPTConfig) *nn.LayerNorm {
	l := nn.NewLayerNorm(env, c.Width)
	l.Eps = c.Eps
	return l
}

func newBlock(env *tensor.Env, c GPTConfig) *Block {
	return &Block{
		LN1: norm(env, c), LN2: norm(env, c),
		Attn: nn.NewAttention(env, c.Width, nn.AttentionConfig{Heads: c.Heads, Causal: true, Dropout: c.Dropout}),
		MLP:  &MLP{FC: nn.NewLinear(env, c.Width, 4*c.Width).WithAct(tensor.ActGELUTanh), Proj: nn.NewLinear(env, 4*c.Width, c.Width), dropout: c.Dropout},
	}
}

// Forward adds attention and MLP to x[batch, positions, width].
func (b *Block) Forward(x *tensor.Tensor) *tensor.Tensor { return b.forward(x, b.Attn.Forward) }

func (b *Block) forward(x *tensor.Tensor, attend step) *tensor.Tensor {
	return tensor.Chain(x, func(x *tensor.Tensor) *tensor.Tensor {
		sum, branch := tensor.ChainPair(x, nil, b.steps(attend)...)
		return sum.Add(branch)
	})
}

// Steps are Forward but for the last sum: see [nn.Residual].
func (b *Block) Steps() []nn.PairStep { return b.steps(b.Attn.Forward) }

func (b *Block) steps(attend step) []nn.PairStep {
	return []nn.PairStep{
		b.LN1.ForwardAdd,
		func(x, y *tensor.Tensor) (*tensor.Tensor, *tensor.Tensor) {
			return x, tensor.Chain(y, attend, dropout(b.MLP.dropout))
		},
		b.LN2.ForwardAdd,
		func(x, y *tensor.Tensor) (*tensor.Tensor, *tensor.Tensor) { return x, b.MLP.Forward(y) },
	}
}

// dropout is a step of a chain.
func dropout(p float64) step {
	return func(x *tensor.Tensor) *tensor.Tensor { return x.Dropout(p) }
}

// Forward is proj(gelu(fc(x))).
func (m *MLP) Forward(x *tensor.Tensor) *tensor.Tensor {
	return tensor.Chain(x, m.FC.Forward, m.Proj.Forward, dropout(m.dropout))
}

// Hidden is the last layer's output for tokens i64[batch, positions].
func (g *GPT) Hidden(tokens *tensor.Tensor) *tensor.Tensor {
	g.fits(tokens.Dim(1))
	if !tokens.Env().Parted() {
		return g.hidden(tokens, 0, nil)
	}
	return g.hidden(tokens, 0, func(i int) step {
		return func(x *tensor.Tensor) *tensor.Tensor { return nn.Block(g.Transformer.H[i], x) }
	})
}

// fits refuses more positions than the context has.
func (g *GPT) fits(n int) {
	if n > g.Config.Context {
		tensor.Raise("model.GPT", "shorten the input, or choose a larger context", "%d positions, the context is %d", n, g.Config.Context)
	}
}

// step is one of a chain.
type step = func(*tensor.Tensor) *tensor.Tensor

// hidden is Hidden of tokens from position start on, through block(i) for block i; nil: through the blocks as they are.
func (g *GPT) hidden(tokens *tensor.Tensor, start int, block func(i int) step) *tensor.Tensor {
	t := g.Transformer
	steps := []step{t.WTE.Forward, func(x *tensor.Tensor) *tensor.Tensor {
		return x.Add(t.WPE.Weight.In(x.Env()).Slice(0, start, start+tokens.Dim(1)))
	}, dropout(t.dropout)}
	if block == nil {
		return tensor.Chain(tokens, append(steps, func(x *tensor.Tensor) *tensor.Tensor {
			_, y := t.LNF.ForwardAdd(nn.AddAll(x, t.H))
			return y
		})...)
	}
	for i := range t.H {
		steps = append(steps, block(i))
	}
	return tensor.Chain(tokens, append(steps, t.LNF.Forward)...)
}

// Forward gives scores [batch, positions, vocab] of the next token for tokens i64[batch, positions].
func (g *GPT) Forward(tokens *tensor.Tensor) *tensor.Tensor {
	return g.Scores(g.Hidden(tokens))
}

// Loss is the mean cross-entropy of Forward's scores against the tokens that follow, labels i64[batch, positions], without
// ever holding all scores: see [nn.LinearCrossEntropy].
func (g *GPT) Loss(tokens, labels *tensor.Tensor, opts ...nn.CrossEntropyOption) *tensor.Tensor {
	return g.loss(g.Hidden(tokens), labels, opts)
}

func (g *GPT) loss(hidden, labels *tensor.Tensor, opts []nn.CrossEntropyOption) *tensor.Tensor {
	return nn.LinearCrossEntropy(hidden, g.Transformer.WTE.Weight, labels, opts...)
}

// Scores are the products of hidden values with the token embedding.
func (g *GPT) Scores(hidden *tensor.Tensor) *tensor.Tensor {
	return hidden.Linear(g.Transformer.WTE.Weight, nil)
}

// Transposed tells which published weights are stored as [in, out]: transformers keeps GPT-2's products so.
func (g *GPT) Transposed(name string) bool {
	for _, suffix := range []string{"c_attn.weight", "c_proj.weight", "c_fc.weight"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// String tells the sizes of a transformer.
func (t *Transformer) String() string {
	return fmt.Sprintf("transformer of %d blocks, width %d", len(t.H), t.WTE.Weight.Dim(1))
}

// String tells the sizes of an MLP.
func (m *MLP) String() string {
	return fmt.Sprintf("MLP of %d, %d, %d", m.FC.Weight.Dim(1), m.FC.Weight.Dim(0), m.Proj.Weight.Dim(0))
}
