package nn

import (
	"math"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// MultiheadAttention is PyTorch's: queries, keys and values, each from where one likes and of its own width, are projected,
// each head computes softmax(q·kᵀ/√d)·v on its share d of the width, and one more product mixes the heads. [Attention] is
// the form for one source, with GPT-2's names.
type MultiheadAttention struct {
	InProj     *tensor.Tensor `nn:"in_proj_weight"` // [3·width, width], or nil where widths differ
	QProj      *tensor.Tensor `nn:"q_proj_weight"`  // [width, width], and the next two of their own widths; nil with InProj
	KProj      *tensor.Tensor `nn:"k_proj_weight"`
	VProj      *tensor.Tensor `nn:"v_proj_weight"`
	InBias     *tensor.Tensor `nn:"in_proj_bias"` // [3·width], or nil
	BiasK      *tensor.Tensor `nn:"bias_k"`       // [1, 1, width], a key that all see, or nil
	BiasV      *tensor.Tensor `nn:"bias_v"`       // [1, 1, width], its value
	Out        *Linear        `nn:"out_proj"`     // width to width
	Heads      int
	Dropout    float64 // of weights, while training
	BatchFirst bool
	ZeroKey    bool
}

// MultiheadConfig describes [NewMultiheadAttention]. The zero value but for Heads is PyTorch's default.
type MultiheadConfig struct {
	Heads      int // divides the width
	KeyWidth   int // 0: that of queries
	ValueWidth int // 0: that of queries
	Dropout    float64
	NoBias     bool
	BatchFirst bool // values are [n, t, width], not [t, n, width]
	BiasKV     bool // one more key and value, which are learned
	ZeroKey    bool // one more key and value of zeros
}

// NewMultiheadAttention initialises as PyTorch: weights of inputs uniform in ±√(6/(in+out)), the last in ±1/√width, biases 0,
// learned keys and values normal with the deviation √(1/width).
func NewMultiheadAttention(env *tensor.Env, width int, c MultiheadConfig) *MultiheadAttention {
	if c.Heads < 1 || width%c.Heads != 0 {
		tensor.Raise("nn.NewMultiheadAttention", "the width must be a multiple of the heads", "width %d in %d heads", width, c.Heads)
	}
	l := &MultiheadAttention{Heads: c.Heads, Dropout: c.Dropout, BatchFirst: c.BatchFirst, ZeroKey: c.ZeroKey}
	kw, vw := c.KeyWidth, c.ValueWidth
	if kw == 0 {
		kw = width
	}
	if vw == 0 {
		vw = width
	}
	glorot := func(out, in int) *tensor.Tensor { return uniform(env, math.Sqrt(6/float64(in+out)), out, in) }
	if kw == width && vw == width {
		l.InProj = glorot(3*width, width)
	} else {
		l.QProj, l.KProj, l.VProj = glorot(width, width), glorot(width, kw), glorot(width, vw)
	}
	l.Out = NewLinearNoBias(env, width, width)
	if !c.NoBias {
		l.InBias, l.Out.Bias = full(env, 0, 3*width), full(env, 0, width)
	}
	if c.BiasKV {
		l.BiasK, l.BiasV = full(env, 0, 1, 1, width), full(env, 0, 1, 1, width)
		InitXavierNormal(l.BiasK, 1)
		InitXavierNormal(l.BiasV, 1)
	}
	return l
}

// Sight says which keys a query sees. The zero value: all.
type Sight struct {
	Causal bool           // a query sees keys up to its own position
	Window *tensor.Window // how far from its own position a query sees; nil: everything
	Cache  *KVCache       // keys and values from before, which those given join: the queries stand behind them; nil: none
	Keys   *tensor.Tensor // bool [n, s], true for keys that take part, which is the opposite of PyTorch's padding mask; or added to scores
	Pairs  *tensor.Tensor // bool [t, s], [n·heads, t, s] or [n, heads, t, s], true where a query sees a key; or added to scores
}

// Forward is self-attention without a mask.
func (l *MultiheadAttention) Forward(x *tensor.Tensor) *tensor.Tensor {
	return l.Attend(x, x, x, Sight{})
}

// Attend gives for queries [t, n, width], keys [s, n, key width] and values [s, n, value width], samples first with
// BatchFirst, results as the queries. Without a dimension of samples results have none either. A query that sees no key
// gets zeros before the last product.
func (l *MultiheadAttention) Attend(q, k, v *tensor.Tensor, s Sight) *tensor.Tensor {
	in := enter(l, q)
	k, v = source(q, in.x, k, v)
	y, _ := l.attend(in.x, k, v, s, false)
	return in.leave(y)
}

// AttendWeights is [MultiheadAttention.Attend] with the weights, [n, heads, t, s]; PyTorch's are their mean over heads. In
// training they are those after dropout.
func (l *MultiheadAttention) AttendWeights(q, k, v *tensor.Tensor, s Sight) (y, weights *tensor.Tensor) {
	in := enter(l, q)
	k, v = source(q, in.x, k, v)
	y, weights = l.attend(in.x, k, v, s, true)
	weights, y = in.leavePair(y, weights)
	return y, weights
}

// source keeps keys and values that are the queries what the queries have become.
func source(was, is, k, v *tensor.Tensor) (*tensor.Tensor, *tensor.Tensor) {
	if was == k && k == v {
		return is, is
	}
	return k, v
}

func (l *MultiheadAttention) attend(q, k, v *tensor.Tensor, s Sight, need bool) (y, weights *tensor.Tensor) {
	if q.Rank() == 2 && k.Rank() == 2 && v.Rank() == 2 {
		at := 1
		if l.BatchFirst {
			at = 0
		}
		one := q.Unsqueeze(at)
		if k, v = source(q, one, k, v); k != one {
			k, v = k.Unsqueeze(at), v.Unsqueeze(at)
		}
		y, weights = l.attend(one, k, v, s, need)
		if weights != nil {
			weights = weights.Squeeze(0)
		}
		return y.Squeeze(at), weights
	}
	l.check(q, k, v)
	if self := q == k && k == v; !l.BatchFirst {
		if q = q.Transpose(0, 1); self {
			k, v = q, q
		} else {
			k, v = k.Transpose(0, 1), v.Transpose(0, 1)
		}
	}
	n, t, width := q.Dim(0), q.Dim(1), q.Dim(2)
	q, k, v = l.project(q, k, v)
	more := 0
	k, v, more = l.extended(k, v)
	heads := func(x *tensor.Tensor) *tensor.Tensor {
		return x.Reshape(n, x.Dim(1), l.Heads, width/l.Heads).Transpose(1, 2)
	}
	q, k, v = heads(q), heads(k), heads(v)
	at := tensor.Mask{Causal: s.Causal, Window: s.Window}
	if s.Cache != nil {
		k, v, at.Start = l.cached(s.Cache, k, v, more)
	}
	drops, fused := l.Dropout > 0 && q.Env().Training(), tensor.Mask{}
	if !need && !drops && more == 0 { // the operation knows positions itself
		at, fused = fused, at
	}
	seen, added := l.masks(s, at, q, k.Dim(2), more)
	if need || drops {
		weights = softly(q, k, seen, added)
		if drops {
			weights = weights.Dropout(l.Dropout)
		}
		y = weights.MatMul(v)
	} else {
		fused.Keys = oneMask(seen, added)
		y = tensor.Attention(q, k, v, fused)
	}
	y = l.Out.Forward(y.Transpose(1, 2).Reshape(n, t, width))
	if !l.BatchFirst {
		y = y.Transpose(0, 1)
	}
	return y, weights
}

// check refuses shapes that do not fit.
func (l *MultiheadAttention) check(q, k, v *tensor.Tensor) {
	if l.Out == nil || l.InProj == nil && (l.QProj == nil || l.KProj == nil || l.VProj == nil) {
		missing(l, "weight")
	}
	at := 1
	if l.BatchFirst {
		at = 0
	}
	if q.Rank() != 3 || k.Rank() != 3 || v.Rank() != 3 || k.Dim(at) != q.Dim(at) || v.Dim(at) != q.Dim(at) || k.Dim(1-at) != v.Dim(1-at) {
		tensor.Raise("nn.MultiheadAttention", "values are [positions, samples, width], with BatchFirst [samples, positions, width], keys as many as values",
			"queries %v, keys %v, values %v", q.Shape(), k.Shape(), v.Shape())
	}
}

// project is queries, keys and values after their products, the three of one source by one.
func (l *MultiheadAttention) project(q, k, v *tensor.Tensor) (pq, pk, pv *tensor.Tensor) {
	width := q.Dim(2)
	if l.InProj != nil && q == k && k == v {
		all := q.Linear(l.InProj, l.InBias).Split(2, width, width, width)
		return all[0], all[1], all[2]
	}
	weights := []*tensor.Tensor{l.QProj, l.KProj, l.VProj}
	// Parameters follow what they meet; their parts would bring modes of their own.
	if l.InProj != nil {
		weights = l.InProj.In(q.Env()).Split(0, width, width, width)
	}
	biases := make([]*tensor.Tensor, 3)
	if l.InBias != nil {
		biases = l.InBias.In(q.Env()).Split(0, width, width, width)
	}
	return q.Linear(weights[0], biases[0]), k.Linear(weights[1], biases[1]), v.Linear(weights[2], biases[2])
}

// extended is keys and values [n, s, width] with those that the layer adds, and how many these are.
func (l *MultiheadAttention) extended(k, v *tensor.Tensor) (*tensor.Tensor, *tensor.Tensor, int) {
	more, n, width := 0, k.Dim(0), k.Dim(2)
	if l.BiasK != nil {
		k, v = tensor.Cat(1, k, l.BiasK.In(k.Env()).Cast(k.DType()).Expand(n, 1, width)), tensor.Cat(1, v, l.BiasV.In(v.Env()).Cast(v.DType()).Expand(n, 1, width))
		more++
	}
	if l.ZeroKey {
		k, v = k.Pad(1, 0, 1, 0), v.Pad(1, 0, 1, 0)
		more++
	}
	return k, v, more
}

// cached is all keys and values with those of a cache, and how many it had.
func (l *MultiheadAttention) cached(c *KVCache, k, v *tensor.Tensor, more int) (keys, values *tensor.Tensor, start int) {
	if more > 0 {
		tensor.Raise("nn.MultiheadAttention", "a layer without BiasKV and ZeroKey can", "a cache would keep the %d keys that the layer adds each time", more)
	}
	start = c.Len()
	keys, values = c.Add(k, v)
	return keys, values, start
}

// masks are what is seen, as bool, and what is added to scores, each to be broadcast to [n, heads, t, s], or nil. The last
// keys, which the layer has added, are seen by all.
func (l *MultiheadAttention) masks(s Sight, at tensor.Mask, q *tensor.Tensor, keys, more int) (seen, added *tensor.Tensor) {
	n, t, own := q.Dim(0), q.Dim(2), keys-more
	take := func(m *tensor.Tensor) {
		if m.DType() == dtype.Bool {
			if m = m.Cast(dtype.U8).Pad(-1, 0, more, 1).Cast(dtype.Bool); seen != nil {
				m = seen.And(m)
			}
			seen = m
			return
		}
		if m = m.Cast(q.DType()).Pad(-1, 0, more, 0); added != nil {
			m = added.Add(m)
		}
		added = m
	}
	if m := at.Seen(q.Env(), t, own); m != nil {
		take(m)
	}
	if m := s.Pairs; m != nil {
		switch shape := m.Shape(); {
		case slices.Equal(shape, []int{t, own}), slices.Equal(shape, []int{n, l.Heads, t, own}):
		case slices.Equal(shape, []int{n * l.Heads, t, own}):
			m = m.Reshape(n, l.Heads, t, own)
		default:
			tensor.Raise("nn.MultiheadAttention", "it is [queries, keys], [samples·heads, queries, keys] or [samples, heads, queries, keys]", "a mask of pairs of shape %v for %d queries and %d keys", shape, t, own)
		}
		take(m)
	}
	if m := s.Keys; m != nil {
		if m.Rank() == 1 {
			m = m.Unsqueeze(0)
		}
		if !slices.Equal(m.Shape(), []int{n, own}) {
			tensor.Raise("nn.MultiheadAttention", "it is [samples, keys]", "a mask of keys of shape %v for %d samples of %d keys", m.Shape(), n, own)
		}
		take(m.Unsqueeze(1).Unsqueeze(1))
	}
	return seen, added
}

// oneMask is both masks as the one that the fused operation takes.
func oneMask(seen, added *tensor.Tensor) *tensor.Tensor {
	if added == nil {
		return seen
	}
	if seen == nil {
		return added
	}
	return tensor.Where(seen, added, number(added, math.Inf(-1)))
}

// softly is the weights of attention: softmax(q·kᵀ/√d), zeros where nothing is seen.
func softly(q, k, seen, added *tensor.Tensor) *tensor.Tensor {
	return tensor.Chain(q, func(q *tensor.Tensor) *tensor.Tensor {
		scores := q.Scale(1 / math.Sqrt(float64(max(q.Dim(-1), 1)))).MatMul(k.Transpose(-2, -1))
		if added != nil {
			scores = scores.Add(added)
		}
		if seen == nil {
			return scores.Softmax(-1)
		}
		// Finite, so that a row that sees nothing has a gradient of 0 and not NaN.
		weights := tensor.Where(seen, scores, number(scores, -6e4)).Softmax(-1)
		return tensor.Where(seen, weights, number(weights, 0))
	})
}

// products counts those of scores and values, and of the inputs; the layer inside counts its own.
func (l *MultiheadAttention) products(x, y *tensor.Tensor) int {
	at := 0
	if l.BatchFirst && x.Rank() == 3 {
		at = 1
	}
	return 3*x.Size()*y.Dim(-1) + 2*x.Size()*x.Dim(at)
}
