package model

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/rng"
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
	FC      *nn.Linear `nn:"c_fc"`
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
			p.CopyInPlace(env.Randn(p.Shape()...).In(env.NoGrad()).Scale(std))
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
		MLP:  &MLP{FC: nn.NewLinear(env, c.Width, 4*c.Width), Proj: nn.NewLinear(env, 4*c.Width, c.Width), dropout: c.Dropout},
	}
}

// Forward adds attention and MLP to x[batch, positions, width].
func (b *Block) Forward(x *tensor.Tensor) *tensor.Tensor {
	x = x.Add(b.Attn.Forward(b.LN1.Forward(x)).Dropout(b.MLP.dropout))
	return x.Add(b.MLP.Forward(b.LN2.Forward(x)))
}

// Forward is proj(gelu(fc(x))).
func (m *MLP) Forward(x *tensor.Tensor) *tensor.Tensor {
	return m.Proj.Forward(m.FC.Forward(x).GELUTanh()).Dropout(m.dropout)
}

// Hidden is the last layer's output for tokens i64[batch, positions].
func (g *GPT) Hidden(tokens *tensor.Tensor, wrap func(nn.Module) nn.Module) *tensor.Tensor {
	t := g.Transformer
	n := tokens.Dim(1)
	if n > g.Config.Context {
		tensor.Raise("model.GPT", "shorten the input, or choose a larger context", "%d positions, the context is %d", n, g.Config.Context)
	}
	x := t.WTE.Forward(tokens).Add(t.WPE.Weight.Slice(0, 0, n)).Dropout(t.dropout)
	for _, b := range t.H {
		x = wrap(b).Forward(x)
	}
	return t.LNF.Forward(x)
}

// Forward gives scores [batch, positions, vocab] of the next token for tokens i64[batch, positions].
func (g *GPT) Forward(tokens *tensor.Tensor) *tensor.Tensor {
	return g.Scores(g.Hidden(tokens, func(m nn.Module) nn.Module { return m }))
}

// ForwardRecompute is Forward that keeps nothing of a block but its input, and runs it again in Backward.
func (g *GPT) ForwardRecompute(tokens *tensor.Tensor) *tensor.Tensor {
	return g.Scores(g.Hidden(tokens, nn.Recompute))
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

// SampleConfig says how tokens are chosen. Temperature 0 takes the likeliest; TopK 0 considers all.
type SampleConfig struct {
	Temperature float64
	TopK        int
	Seed        uint64
}

// Generate continues a prompt, of at least one token, by n tokens. Each is chosen when the loop asks for it.
func (g *GPT) Generate(env *tensor.Env, prompt []int64, n int, c SampleConfig) iter.Seq[int64] {
	if len(prompt) == 0 {
		tensor.Raise("GPT.Generate", "give at least one token, 0 for example", "there is no prompt to continue")
	}
	prompt = slices.Clone(prompt)
	return func(yield func(int64) bool) {
		tokens := slices.Clone(prompt)
		stream := rng.Stream{Key: rng.Fold(rng.Key(c.Seed), 1)}
		for i := range n {
			next := choose(g.last(env, uint64(i), tokens), c, &stream)
			if tokens = append(tokens, next); !yield(next) {
				return
			}
		}
	}
}

// last are the scores of what follows tokens, computed in a scope of their own.
func (g *GPT) last(env *tensor.Env, turn uint64, tokens []int64) []float64 {
	window := tokens[max(0, len(tokens)-g.Config.Context):]
	e, scope := env.NoGrad().Eval().Scope(turn)
	defer scope.End()
	return g.Forward(tensor.From(e, window, 1, len(window))).Select(1, -1).Floats()
}

// choose draws a token from softmax(logits/temperature) over the k likeliest.
func choose(logits []float64, c SampleConfig, s *rng.Stream) int64 {
	order := make([]int, len(logits))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case logits[a] > logits[b]:
			return -1
		case logits[a] < logits[b]:
			return 1
		}
		return 0
	})
	if c.Temperature == 0 {
		return int64(order[0])
	}
	if c.TopK > 0 {
		order = order[:min(c.TopK, len(order))]
	}
	total := 0.0
	weight := func(i int) float64 { return math.Exp((logits[i] - logits[order[0]]) / c.Temperature) }
	for _, i := range order {
		total += weight(i)
	}
	u := s.Float64() * total
	for _, i := range order {
		if u -= weight(i); u < 0 {
			return int64(i)
		}
	}
	return int64(order[len(order)-1])
}
