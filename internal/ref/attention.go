package ref

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	set(attention, ir.Attention)
	set(attentionGrad, ir.AttentionGrad)
}

// heads are the operands of an attention. mask may be nil.
type heads struct {
	q, k, v, mask *Array
	scale         float64
	causal        bool
	t, s, d, e    int
}

func (c *call) heads(first int, mask int) heads {
	h := heads{q: &c.in[first], k: &c.in[first+1], v: &c.in[first+2], scale: c.scalar(0), causal: c.op.Attr.Causal}
	if mask < len(c.in) {
		h.mask = &c.in[mask]
	}
	h.t, h.d, h.s, h.e = h.q.dim(2), h.q.dim(3), h.k.dim(2), h.v.dim(3)
	return h
}

// scores of row r, counted over batches, heads and positions; -Inf where a key is not seen.
func (h *heads) scores(r int) []float64 {
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
	h := c.heads(0, 3)
	o, lse := make([]float64, c.out[0].Size()), make([]float64, c.out[1].Size())
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
	return c.results(o, lse)
}

// attentionGrad: with p the weights, dv = pᵀ·g, ds = p·(g·vᵀ - Σ g·o), dq = scale·ds·k, dk = scale·dsᵀ·q.
func attentionGrad(c *call) ([]Array, error) {
	h := c.heads(1, 6)
	g, o, lse := c.in[0].Data, c.in[4].Data, c.in[5].Data
	dq, dk, dv := make([]float64, len(h.q.Data)), make([]float64, len(h.k.Data)), make([]float64, len(h.v.Data))
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
	return c.results(dq, dk, dv)
}
