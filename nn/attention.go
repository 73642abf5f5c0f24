package nn

import (
	"cmp"
	"math"

	"github.com/warpline-ml/warpline/tensor"
)

// Attention is multi-head self-attention over [batch, positions, width]: one product gives queries, keys and values, each
// head computes softmax(q·kᵀ/√d)·v on its share d of the width, one more product mixes the heads. Names are GPT-2's.
type Attention struct {
	QKV     *Linear `nn:"c_attn"` // width to 3·width: queries, keys, values
	Proj    *Linear `nn:"c_proj"` // width to width
	Heads   int
	Causal  bool           // a position sees itself and those before it
	Dropout float64        // of the weights, while training
	Window  *tensor.Window // how far a position sees; nil: everything
}

// AttentionConfig describes an attention layer.
type AttentionConfig struct {
	Heads   int // divides the width
	Causal  bool
	Dropout float64
	Window  *tensor.Window // how far a position sees; nil: everything
	NoBias  bool
}

// NewAttention initialises as PyTorch's MultiheadAttention: the first weight uniform in ±√(6/(width+3·width)), the
// second in ±1/√width, biases zero.
func NewAttention(env *tensor.Env, width int, c AttentionConfig) *Attention {
	if c.Heads < 1 || width%c.Heads != 0 {
		tensor.Raise("nn.NewAttention", "the width must be a multiple of the heads", "width %d in %d heads", width, c.Heads)
	}
	l := &Attention{Heads: c.Heads, Causal: c.Causal, Dropout: c.Dropout, Window: c.Window}
	l.QKV = &Linear{Weight: uniform(env, math.Sqrt(6/(4*float64(width))), 3*width, width)}
	l.Proj = NewLinearNoBias(env, width, width)
	if !c.NoBias {
		l.QKV.Bias, l.Proj.Bias = full(env, 0, 3*width), full(env, 0, width)
	}
	return l
}

// Forward attends to all positions, or the earlier ones when Causal.
func (l *Attention) Forward(x *tensor.Tensor) *tensor.Tensor { return l.ForwardMasked(x, nil) }

// ForwardMasked attends only to keys that take part: keys is bool [batch, positions], true for those; nil means all. A
// position that sees no key gets zeros before the last product.
func (l *Attention) ForwardMasked(x, keys *tensor.Tensor) *tensor.Tensor {
	if x.Rank() != 3 {
		tensor.Raise("nn.Attention", "give [batch, positions, width]", "input of shape %v", x.Shape())
	}
	in := enter(l, x)
	start := in.x
	if keys != nil {
		start, keys = tensor.Join(start, keys), keys.Reshape(keys.Dim(0), 1, 1, keys.Dim(1))
	}
	return in.leave(tensor.RunPart(tensor.PartAttention, start, func() string { return place(l) }, func(x *tensor.Tensor) *tensor.Tensor {
		return l.forward(x, keys)
	}))
}

// forward is the layer with keys as bool[batch, 1, 1, positions], or nil.
func (l *Attention) forward(x, keys *tensor.Tensor) *tensor.Tensor {
	b, t, width := x.Dim(0), x.Dim(1), x.Dim(2)
	return tensor.Chain(x, l.QKV.Forward, func(qkv *tensor.Tensor) *tensor.Tensor {
		return l.attend(qkv.Reshape(b, t, 3, l.Heads, width/l.Heads), keys)
	}, func(y *tensor.Tensor) *tensor.Tensor { return y.Reshape(b, t, width) }, l.Proj.Forward)
}

// attend gives [batch, positions, heads, width of a head]. It is the fused operation where that does the same: it has no
// dropout of weights.
func (l *Attention) attend(qkv, keys *tensor.Tensor) *tensor.Tensor {
	if l.Dropout == 0 || !qkv.Env().Training() {
		return tensor.SelfAttention(qkv, tensor.Mask{Causal: l.Causal, Keys: keys, Window: l.Window})
	}
	apart := qkv.Permute(2, 0, 3, 1, 4)
	return l.dropping(apart.Select(0, 0), apart.Select(0, 1), apart.Select(0, 2), keys).Permute(0, 2, 1, 3)
}

// dropping is attention with dropout of weights, over [batch, heads, positions, width].
func (l *Attention) dropping(q, k, v, keys *tensor.Tensor) *tensor.Tensor {
	seen := l.seen(q.Env(), q.Dim(-2), keys)
	unseen := func(v float64) func(*tensor.Tensor) *tensor.Tensor {
		return func(t *tensor.Tensor) *tensor.Tensor {
			if seen == nil {
				return t
			}
			return tensor.Where(seen, t, t.Env().FullOf(t.DType(), v))
		}
	}
	return tensor.Chain(q,
		func(q *tensor.Tensor) *tensor.Tensor { return q.MatMul(k.Transpose(-2, -1)) },
		func(scores *tensor.Tensor) *tensor.Tensor { return scores.Scale(1 / math.Sqrt(float64(q.Dim(-1)))) },
		unseen(-6e4), // finite, so that a row that sees nothing has a gradient of 0 and not NaN
		func(scores *tensor.Tensor) *tensor.Tensor { return scores.Softmax(-1) },
		unseen(0),
		func(weights *tensor.Tensor) *tensor.Tensor { return weights.Dropout(l.Dropout) },
		func(weights *tensor.Tensor) *tensor.Tensor { return weights.MatMul(v) })
}

// seen is the mask of t queries by keys, true where a query sees a key; nil when all do.
func (l *Attention) seen(env *tensor.Env, t int, keys *tensor.Tensor) *tensor.Tensor {
	seen := tensor.Mask{Causal: l.Causal, Window: l.Window}.Seen(env, t, t)
	if seen == nil || keys == nil {
		return cmp.Or(seen, keys)
	}
	return seen.And(keys)
}

// ForwardCached is Forward for positions behind those that past has, whose keys and values join it: the results for x alone.
func (l *Attention) ForwardCached(x *tensor.Tensor, past *KVCache) *tensor.Tensor {
	if x.Rank() != 3 {
		tensor.Raise("nn.Attention", "give [batch, positions, width]", "input of shape %v", x.Shape())
	}
	in := enter(l, x)
	b, t, width := x.Dim(0), x.Dim(1), x.Dim(2)
	return in.leave(tensor.Chain(in.x, l.QKV.Forward, func(qkv *tensor.Tensor) *tensor.Tensor {
		apart := qkv.Reshape(b, t, 3, l.Heads, width/l.Heads).Permute(2, 0, 3, 1, 4)
		m := tensor.Mask{Causal: l.Causal, Window: l.Window, Start: past.Len()}
		k, v := past.Add(apart.Select(0, 1), apart.Select(0, 2))
		return tensor.Attention(apart.Select(0, 0), k, v, m)
	}, func(y *tensor.Tensor) *tensor.Tensor { return y.Transpose(1, 2).Reshape(b, t, width) }, l.Proj.Forward))
}

// products counts those of scores and values; the layers inside count their own.
func (l *Attention) products(x, _ *tensor.Tensor) int { return 2 * x.Size() * x.Dim(1) }
