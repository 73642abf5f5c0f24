package model

import (
	"iter"
	"math"
	"slices"

	"github.com/warpline-ml/warpline/internal/rng"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// SampleConfig says how tokens are chosen. Temperature 0 takes the likeliest; TopK 0 considers all.
type SampleConfig struct {
	Temperature float64
	TopK        int
	Seed        uint64
}

// Generate continues a prompt, of at least one token, by n tokens. Each is chosen when the loop asks for it. Keys and values
// of the tokens so far are kept while they fit the context; beyond it each token is computed from the last of them anew,
// because all positions have changed. The weights must not
// change while the loop runs.
func (g *GPT) Generate(env *tensor.Env, prompt []int64, n int, c SampleConfig) iter.Seq[int64] {
	if len(prompt) == 0 {
		tensor.Raise("GPT.Generate", "give at least one token, 0 for example", "there is no prompt to continue")
	}
	prompt = slices.Clone(prompt)
	return func(yield func(int64) bool) {
		e, scope := env.NoGrad().Eval().Scope(0)
		defer scope.End()
		tokens, past := slices.Clone(prompt), newPast(g, e)
		stream := rng.Stream{Key: rng.Fold(rng.Key(c.Seed), 1)}
		for i := range n {
			next := choose(past.last(uint64(i), tokens), c, &stream)
			if tokens = append(tokens, next); !yield(next) {
				return
			}
		}
	}
}

// past has the keys and values of the first n positions.
type past struct {
	g      *GPT
	env    *tensor.Env
	layers []kept
	n      int
}

// kept is what a layer keeps: rows[1, context, 2, heads, width of a head], and its parts as attention takes them.
type kept struct{ rows, k, v *tensor.Tensor }

func newPast(g *GPT, env *tensor.Env) *past {
	return &past{g: g, env: env, layers: make([]kept, len(g.Transformer.H))}
}

// last are the scores of what follows tokens, computed in a scope of their own.
func (p *past) last(turn uint64, tokens []int64) []float64 {
	e, scope := p.env.Scope(turn)
	defer scope.End()
	window := tokens[max(0, len(tokens)-p.g.Config.Context):]
	var hidden *tensor.Tensor
	if len(window) < len(tokens) {
		hidden = p.g.Hidden(tensor.From(e, window, 1, len(window)), func(m nn.Module) nn.Module { return m })
	} else {
		hidden = p.g.hidden(tensor.From(e, tokens[p.n:], 1, len(tokens)-p.n), p.n, p.block)
		p.n = len(tokens)
	}
	return p.g.Scores(hidden.Slice(1, hidden.Dim(1)-1, hidden.Dim(1))).Floats()
}

// block is block i, whose attention sees the past.
func (p *past) block(i int) step {
	b := p.g.Transformer.H[i]
	return func(x *tensor.Tensor) *tensor.Tensor {
		return b.forward(x, func(x *tensor.Tensor) *tensor.Tensor { return p.attend(i, b.Attn, x) })
	}
}

// attend is a.Forward for x[1, positions, width] after the past, which it keeps. After a past there is one position.
func (p *past) attend(i int, a *nn.Attention, x *tensor.Tensor) *tensor.Tensor {
	t, width, d := x.Dim(1), x.Dim(2), x.Dim(2)/a.Heads
	l := &p.layers[i]
	return tensor.Chain(x, a.QKV.Forward, func(qkv *tensor.Tensor) *tensor.Tensor {
		qkv = qkv.Reshape(1, t, 3, a.Heads, d)
		if l.rows == nil {
			l.rows = p.env.FullOf(qkv.DType(), 0, 1, p.g.Config.Context, 2, a.Heads, d)
			parts := l.rows.Permute(2, 0, 3, 1, 4)
			l.k, l.v = parts.Select(0, 0), parts.Select(0, 1)
		}
		l.rows.Slice(1, p.n, p.n+t).CopyInPlace(qkv.Slice(2, 1, 3))
		if p.n == 0 {
			return tensor.SelfAttention(qkv, tensor.Mask{Causal: a.Causal})
		}
		q := qkv.Slice(2, 0, 1).Reshape(1, a.Heads, 1, d)
		return tensor.Attention(q, l.k.Slice(2, 0, p.n+1), l.v.Slice(2, 0, p.n+1), tensor.Mask{})
	}, func(y *tensor.Tensor) *tensor.Tensor { return y.Reshape(1, t, width) }, a.Proj.Forward)
}

// choose draws a token from softmax(logits/temperature) over the k likeliest.
func choose(logits []float64, c SampleConfig, s *rng.Stream) int64 {
	if c.Temperature == 0 {
		return likeliest(logits)
	}
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

// likeliest is the first token of the highest score.
func likeliest(logits []float64) int64 {
	best := 0
	for i, v := range logits {
		if v > logits[best] {
			best = i
		}
	}
	return int64(best)
}
