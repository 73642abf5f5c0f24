package tensor

import (
	"math"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Mask says which keys attention sees, and how large scores are. The zero value is PyTorch's default: all keys.
type Mask struct {
	Causal bool    // a query sees keys up to its own position
	Keys   *Tensor // broadcast to [batch, heads, queries, keys]: bool (true is seen) or added to the scores; nil: all
	Window *Window // how far from its own position a query sees; nil: everything
	Start  int     // the first query's position among the keys: how many of them a cache has from before
	Scale  float64 // of the scores; 0 means 1/√d
}

// Window is how far a query sees from its own position: at most Left keys before it and Right behind it, negative: all of
// that side. A model's "sliding window" of n positions, itself among them, is causal with a Left of n-1.
type Window struct{ Left, Right int }

// Attention is softmax(q·kᵀ/√d)·v over q[b,h,t,d], k[b,h,s,d], v[b,h,s,e]. Fewer heads of keys and values than of queries are
// shared by neighbouring queries' heads, of which each has as many (PyTorch's enable_gqa); nothing is copied for that but in
// Backward. A query that sees no key gives zeros.
func Attention(q, k, v *Tensor, m Mask) *Tensor {
	givenAll("Attention", []string{"the query", "the key", "the value"}, q, k, v)
	if q.Rank() != 4 || k.Rank() != 4 || v.Rank() != 4 {
		raise("Attention", "operands are [batch, heads, positions, width]", "queries %v, keys %v, values %v", q.Shape(), k.Shape(), v.Shape())
	}
	in := allInside("Attention", q, k, v, m.Keys)
	q, k, v, m.Keys = in[0], in[1], in[2], in[3]
	m.hide(q, q.Dim(2), k.Dim(2))
	b, h, t, s := q.Dim(0), q.Dim(1), q.Dim(2), k.Dim(2)
	groups := k.Dim(1)
	if groups == h {
		return m.attend(ir.Attention, []*Tensor{q, k, v}, b, h, t, s)
	}
	if groups == 0 || h%groups != 0 || v.Dim(1) != groups || k.Dim(0) != b || v.Dim(0) != b {
		raise("Attention", "as many of queries as of keys, or a multiple", "%d heads of queries, %d of keys, %d of values", h, groups, v.Dim(1))
	}
	shared := func(x *Tensor) *Tensor {
		return x.Reshape(b*groups, 1, s, x.Dim(3)).Expand(b*groups, h/groups, s, x.Dim(3))
	}
	if m.Keys != nil && !slices.Equal(leading(m.Keys), []int{1, 1}) {
		m.Keys = m.Keys.Expand(b, h, t, s).Reshape(b*groups, h/groups, t, s)
	}
	y := m.attend(ir.Attention, []*Tensor{q.Reshape(b*groups, h/groups, t, q.Dim(3)), shared(k), shared(v)}, b*groups, h/groups, t, s)
	return y.Reshape(b, h, t, v.Dim(3))
}

// SelfAttention is [Attention] to queries, keys and values that lie in one qkv[b,t,3,h,d], as one product gives them. The
// result [b,t,h,d] lies as the next product reads it; nothing is copied, and neither are gradients.
func SelfAttention(qkv *Tensor, m Mask) *Tensor {
	qkv.given("SelfAttention", "the operand")
	if qkv.Rank() != 5 || qkv.Dim(2) != 3 {
		raise("SelfAttention", "the operand is [batch, positions, 3, heads, width]", "shape %v", qkv.Shape())
	}
	in := allInside("SelfAttention", qkv, m.Keys)
	b, t, h := qkv.Dim(0), qkv.Dim(1), qkv.Dim(3)
	m.Keys = in[1]
	m.hide(in[0], t, t)
	return m.attend(ir.SelfAttention, in[:1], b, h, t, t)
}

// attend runs an op of attention under the mask m.Keys, which may be nil, expanded to a shape.
func (m Mask) attend(code ir.Code, in []*Tensor, shape ...int) *Tensor {
	if keys := m.Keys; keys != nil {
		if keys.DType() != dtype.Bool {
			keys = keys.Cast(in[0].DType())
		}
		in = append(in, keys.Expand(shape...))
	}
	scale := m.Scale
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(in[0].Dim(-1)))
	}
	return apply(code, ir.Attr{Causal: m.Causal}, ir.Scalars(scale), in...)[0]
}

// hide brings what the op does not know, windows and positions of queries, into the mask of t queries and s keys, of the
// modes of like.
func (m *Mask) hide(like *Tensor, t, s int) {
	if m.Start < 0 {
		raise("Attention", "keys count from 0", "the first query's position is %d", m.Start)
	}
	left, right := m.span(t, s)
	if m.Causal = right == 0 && m.Start == 0; m.Causal { // the op knows, and skips what nobody sees
		right = -1
	}
	seen := m.band(like.env, t, s, left, right)
	switch {
	case seen == nil:
	case m.Keys == nil:
		m.Keys = seen
	case m.Keys.DType() == dtype.Bool:
		m.Keys = m.Keys.And(seen)
	default:
		keys := m.Keys.Cast(like.DType())
		m.Keys = Where(seen, keys, keys.FullLike(math.Inf(-1)))
	}
}

// span is how far the queries see to either side; negative: all of it.
func (m *Mask) span(t, s int) (left, right int) {
	left, right = -1, -1
	if w := m.Window; w != nil {
		left, right = w.Left, w.Right
	}
	if m.Causal {
		right = 0
	}
	if left >= m.Start+t-1 {
		left = -1
	}
	if right >= 0 && m.Start+right >= s-1 {
		right = -1
	}
	return left, right
}

// Seen is which of s keys each of t queries sees by Causal, Window and Start, as bool[t, s], true where it does; nil: all.
func (m Mask) Seen(e *Env, t, s int) *Tensor {
	left, right := m.span(t, s)
	return m.band(e, t, s, left, right)
}

// band is where keys are at most left before a query and right behind it, negative: anywhere; nil: everywhere.
func (m *Mask) band(e *Env, t, s, left, right int) *Tensor {
	if left < 0 && right < 0 {
		return nil
	}
	behind := e.Arange(s).Sub(e.Arange(t).AddScalar(float64(m.Start)).Unsqueeze(1))
	switch {
	case left < 0:
		return behind.LeScalar(float64(right))
	case right < 0:
		return behind.GeScalar(float64(-left))
	}
	return behind.GeScalar(float64(-left)).And(behind.LeScalar(float64(right)))
}

// leading are the sizes of batch and heads of a mask.
func leading(keys *Tensor) []int {
	shape := []int{1, 1}
	if lead := keys.Rank() - 2; lead > 0 {
		copy(shape[2-lead:], keys.Shape()[:lead])
	}
	return shape
}
