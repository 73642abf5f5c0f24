package ref

import (
	"math"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	set(attention, ir.Attention)
	set(attentionGrad, ir.AttentionGrad)
	set(selfAttention, ir.SelfAttention)
	set(selfAttentionGrad, ir.SelfAttentionGrad)
}

// heads are the operands of an attention. mask may be nil.
type heads struct {
	q, k, v, mask *Array
	scale         float64
	causal        bool
	t, s, d, e    int
}

// heads of operands q, k and v; operand mask may be there.
func (c *call) heads(qkv []Array, mask int) heads {
	h := heads{q: &qkv[0], k: &qkv[1], v: &qkv[2], scale: c.scalar(0), causal: c.op.Attr.Causal}
	if mask < len(c.in) {
		h.mask = &c.in[mask]
	}
	h.t, h.d, h.s, h.e = h.q.dim(2), h.q.dim(3), h.k.dim(2), h.v.dim(3)
	return h
}

// permuted is an array with its dimensions in another order.
func permuted(a Array, dims ...int) Array {
	var attr ir.Attr
	for i, d := range dims {
		attr.Dims[i] = int32(d)
	}
	op := ir.New(ir.Permute, attr, a.Type)
	out, err := Eval(&op, nil, []Array{a})
	if err != nil {
		panic(err) // a mistake in this package
	}
	return Floats(out[0].Type.AsDense(), out[0].Data...)
}

// HeadsInside is x[b,h,t,d] of x[b,t,h,d], and the other way round.
func HeadsInside(x Array) Array { return permuted(x, 0, 2, 1, 3) }

// Heads are the arrays [b,h,t,d] of q, k and v of x[b,t,3,h,d].
func Heads(x Array) []Array {
	apart := permuted(x, 2, 0, 3, 1, 4)
	n := len(x.Data) / 3
	out := make([]Array, 3)
	for i := range out {
		out[i] = Floats(ir.Dense(x.Type.DType, apart.Type.Shape()[1:]...), apart.Data[i*n:][:n]...)
	}
	return out
}

// Packed undoes Heads.
func Packed(qkv []Array) Array {
	shape := append([]int{3}, qkv[0].Type.Shape()...)
	return permuted(Floats(ir.Dense(qkv[0].Type.DType, shape...), slices.Concat(qkv[0].Data, qkv[1].Data, qkv[2].Data)...), 1, 3, 0, 2, 4)
}

// scores of row r, counted over batches, heads and positions; -Inf where a key is not seen.
func (h heads) scores(r int) []float64 {
	b, t := r/h.t, r%h.t
	out := make([]float64, h.s)
	for j := range out {
		for i := range h.d {
			out[j] += h.scale * h.q.Data[r*h.d+i] * h.k.Data[(b*h.s+j)*h.d+i]
		}
		switch {
		case h.causal && j > t:
			out[j] = math.Inf(-1)
		case h.mask == nil:
		case h.mask.Type.DType == dtype.Bool && h.mask.int(r*h.s+j) == 0:
			out[j] = math.Inf(-1)
		case h.mask.Type.DType != dtype.Bool:
			out[j] += h.mask.Data[r*h.s+j]
		}
	}
	return out
}

// weights turns scores into exp(score - lse), or zeros where no key is seen.
func weights(scores []float64, lse float64) []float64 {
	for j, v := range scores {
		if scores[j] = 0; !math.IsInf(lse, -1) {
			scores[j] = math.Exp(v - lse)
		}
	}
	return scores
}

func attention(c *call) ([]Array, error) {
	o, lse := c.heads(c.in, 3).attention()
	return c.results(o, lse)
}

func selfAttention(c *call) ([]Array, error) {
	h := c.heads(Heads(c.in[0]), 1)
	o, lse := h.attention()
	return c.results(HeadsInside(Floats(h.q.Type, o...)).Data, lse)
}

func (h heads) attention() (o, lse []float64) {
	n := h.q.dim(0) * h.q.dim(1) * h.t
	o, lse = make([]float64, n*h.e), make([]float64, n)
	for r := range lse {
		s := h.scores(r)
		lse[r] = logSumExp(s)
		m, sum := shifted(s) // the log of the sum is lost beside scores of great size
		for j, v := range s {
			w := 0.0
			if !math.IsInf(m, -1) {
				w = math.Exp(v-m) / sum
			}
			for i := range h.e {
				o[r*h.e+i] += w * h.v.Data[(r/h.t*h.s+j)*h.e+i]
			}
		}
	}
	return o, lse
}

func attentionGrad(c *call) ([]Array, error) {
	dq, dk, dv := c.heads(c.in[1:4], 6).gradient(c.in[0].Data, c.in[4].Data, c.in[5].Data)
	return c.results(dq, dk, dv)
}

func selfAttentionGrad(c *call) ([]Array, error) {
	h := c.heads(Heads(c.in[1]), 4)
	dq, dk, dv := h.gradient(HeadsInside(c.in[0]).Data, HeadsInside(c.in[2]).Data, c.in[3].Data)
	t := h.q.Type
	return c.one(Packed([]Array{Floats(t, dq...), Floats(t, dk...), Floats(t, dv...)}).Data)
}

// gradient: with p the weights, dv = pᵀ·g, ds = p·(g·vᵀ - Σ g·o), dq = scale·ds·k, dk = scale·dsᵀ·q.
func (h heads) gradient(g, o, lse []float64) (dq, dk, dv []float64) {
	dq, dk, dv = make([]float64, len(h.q.Data)), make([]float64, len(h.k.Data)), make([]float64, len(h.v.Data))
	for r := range lse {
		var along float64
		for i := r * h.e; i < (r+1)*h.e; i++ {
			along += g[i] * o[i]
		}
		for j, w := range weights(h.scores(r), lse[r]) {
			key := r/h.t*h.s + j
			ds := -along
			for i := range h.e {
				ds += g[r*h.e+i] * h.v.Data[key*h.e+i]
				dv[key*h.e+i] += w * g[r*h.e+i]
			}
			for i := range h.d {
				dq[r*h.d+i] += h.scale * w * ds * h.k.Data[key*h.d+i]
				dk[key*h.d+i] += h.scale * w * ds * h.q.Data[r*h.d+i]
			}
		}
	}
	return dq, dk, dv
}
