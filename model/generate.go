package model

import (
	"iter"
	"math"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/rng"
	"github.com/warpline-ml/warpline/internal/sorting"
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

// past has the keys and values of the first positions.
type past struct {
	g      *GPT
	env    *tensor.Env
	caches []*nn.KVCache
	parts  []part // of the computation of one token; recorded when there is a past
}

// part is a token's way from one attention to the next: it begins with the token and its position, and ends with queries, keys
// and values of a layer, or with scores.
type part struct {
	*tensor.Program
	q, k, v, scores *tensor.Tensor
}

func newPast(g *GPT, env *tensor.Env) *past {
	return &past{g: g, env: env, caches: g.Caches(env)}
}

// last are the scores of what follows tokens, computed in a scope of their own.
func (p *past) last(turn uint64, tokens []int64) []float64 {
	e, scope := p.env.Scope(turn)
	defer scope.End()
	window := tokens[max(0, len(tokens)-p.g.Config.Context):]
	switch {
	case len(window) < len(tokens):
		return p.g.final(p.g.Hidden(tokens64(e, window)))
	case p.len() > 0 && len(tokens) == p.len()+1:
		return p.next(e, tokens[p.len()])
	}
	for _, c := range p.caches {
		c.Truncate(0)
	}
	return p.g.final(p.g.continued(tokens64(e, tokens), p.caches))
}

// len is the number of positions whose keys and values are there.
func (p *past) len() int { return p.caches[0].Len() }

func tokens64(e *tensor.Env, tokens []int64) *tensor.Tensor {
	return tensor.From(e, tokens, 1, len(tokens))
}

// final are the scores of the last position of hidden values.
func (g *GPT) final(hidden *tensor.Tensor) []float64 {
	return g.Scores(hidden.Slice(1, hidden.Dim(1)-1, hidden.Dim(1))).Floats()
}

// Caches are empty caches of keys and values for [GPT.Continue], one of each block, as long as the context.
func (g *GPT) Caches(env *tensor.Env) []*nn.KVCache {
	list := make([]*nn.KVCache, len(g.Transformer.H))
	for i := range list {
		list[i] = nn.NewKVCache(env, g.Config.Context)
	}
	return list
}

// Continue gives scores [batch, positions, vocab] of the next token for tokens i64[batch, positions] that stand behind those
// that the caches have, which they join. The env has no gradients: env.NoGrad().Eval().
func (g *GPT) Continue(tokens *tensor.Tensor, caches []*nn.KVCache) *tensor.Tensor {
	return g.Scores(g.continued(tokens, caches))
}

// continued is the last layer's output for tokens behind those that the caches have.
func (g *GPT) continued(tokens *tensor.Tensor, caches []*nn.KVCache) *tensor.Tensor {
	if len(caches) != len(g.Transformer.H) {
		tensor.Raise("GPT.Continue", "make them with GPT.Caches", "%d caches for %d blocks", len(caches), len(g.Transformer.H))
	}
	start := caches[0].Len()
	g.fits(start + tokens.Dim(1))
	return g.hidden(tokens, start, func(i int) step {
		b := g.Transformer.H[i]
		return func(x *tensor.Tensor) *tensor.Tensor {
			return b.forward(x, func(x *tensor.Tensor) *tensor.Tensor { return b.Attn.ForwardCached(x, caches[i]) })
		}
	})
}

// next are the scores after one more token.
func (p *past) next(e *tensor.Env, token int64) []float64 {
	if p.parts == nil {
		p.record()
	}
	x := tensor.From(e, []int64{token, int64(p.len())}, 2, 1, 1)
	for i, c := range p.caches {
		at := &p.parts[i]
		at.Run(x)
		m := tensor.Mask{Start: c.Len(), Window: p.g.Transformer.H[i].Attn.Window}
		k, v := c.Add(at.k, at.v)
		x = tensor.Attention(at.q.In(e), k, v, m).Reshape(1, 1, p.g.Config.Width)
	}
	end := &p.parts[len(p.caches)]
	end.Run(x)
	return end.scores.Floats()
}

// record runs the parts once, on a token and results of attention that are none.
func (p *past) record() {
	t, width := p.g.Transformer, p.g.Config.Width
	var x *tensor.Tensor // the residual stream
	embed := func(ids *tensor.Tensor) *tensor.Tensor {
		y := t.WTE.Forward(ids.Select(0, 0)).Add(t.WPE.Forward(ids.Select(0, 1)))
		x, y = t.H[0].LN1.ForwardAdd(y, nil)
		return t.H[0].Attn.QKV.Forward(y)
	}
	p.parts = append(p.parts, p.split(tensor.Record(p.env.FullOf(dtype.I64, 0, 2, 1, 1), embed)))
	for i, b := range t.H {
		after := func(y *tensor.Tensor) *tensor.Tensor {
			x, y = b.LN2.ForwardAdd(x, b.Attn.Proj.Forward(y))
			if y = b.MLP.Proj.Forward(b.MLP.FC.Forward(y)); i+1 < len(t.H) {
				x, y = t.H[i+1].LN1.ForwardAdd(x, y)
				return t.H[i+1].Attn.QKV.Forward(y)
			}
			_, y = t.LNF.ForwardAdd(x, y)
			return p.g.Scores(y)
		}
		run, y := tensor.Record(p.env.FullOf(p.parts[0].k.DType(), 0, 1, 1, width), after)
		if i+1 < len(t.H) {
			p.parts = append(p.parts, p.split(run, y))
		} else {
			p.parts = append(p.parts, part{Program: run, scores: y})
		}
	}
}

// split is the part that ends with queries, keys and values.
func (p *past) split(run *tensor.Program, qkv *tensor.Tensor) part {
	heads, width := p.g.Config.Heads, p.g.Config.Width
	third := func(i int) *tensor.Tensor {
		return qkv.Slice(2, i*width, (i+1)*width).Reshape(1, heads, 1, width/heads)
	}
	return part{run, third(0), third(1), third(2), nil}
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
	sorting.By(order, func(a, b int) int {
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
