package cpu

import (
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Attention goes over blocks of queries and blocks of keys, so that only a block of scores exists at a time, with the
// online softmax of Milakov and Gimelshein (arXiv 1805.02867) as in FlashAttention (arXiv 2205.14135).
//
// A query that sees no key has the result 0 and the log-sum-exp -∞, and gives no gradient. (PyTorch's plain form has
// NaN there.)

func init() {
	offer(forFloats(prepareAttention[float32], prepareAttention[float64]), ir.Attention)
	offer(forFloats(prepareAttentionGrad[float32], prepareAttentionGrad[float64]), ir.AttentionGrad)
}

// The sizes of blocks: scores of 64×256 are 64 KiB of f32.
const (
	queryBlock = 64
	keyBlock   = 256
)

// heads is the sizes of an attention: q[heads,t,d], k[heads,s,d], v[heads,s,e].
type heads struct {
	count, t, s, d, e int
	causal            bool
}

func headsOf(q, v *ir.Type, causal bool) *heads {
	return &heads{q.Dim(0) * q.Dim(1), q.Dim(2), v.Dim(2), q.Dim(3), v.Dim(3), causal}
}

// sees is the number of keys before which those that query i sees end, by causality.
func (h *heads) sees(i int) int {
	if h.causal {
		return min(i+1, h.s)
	}
	return h.s
}

type attentionArgs[T any] struct {
	o, lse, q, k, v []T
	bias            []T    // mask that is added, or nil
	seen            []bool // mask that selects, or nil
	scale           T
	g, dq, dk, dv   []T // of the gradient
}

func (a *attentionArgs[T]) setMask(arg device.Arg, t *ir.Type) {
	if t.DType == dtype.Bool {
		a.seen = elems[bool](arg, t)
	} else {
		a.bias = values[T](arg, t.Span())
	}
}

// scoreBlock is a rectangle of scores: queries of one head from q0 to q1 and keys from k0 to k1.
type scoreBlock struct{ head, q0, q1, k0, k1 int }

func (b *scoreBlock) width() int { return b.k1 - b.k0 }

// workspace of one chunk.
type attentionSpace[T any] struct {
	q      []T       // scaled queries
	scores []T       // of a block
	high   []T       // largest score of each query
	total  []float64 // sum of exponentials
	grads  []T       // of the scores
	delta  []T       // Σ g·o of each query
}

func newAttentionSpace[T kernels.Float](h *heads) attentionSpace[T] {
	rows, cols := min(queryBlock, h.t), min(keyBlock, h.s)
	return attentionSpace[T]{make([]T, rows*h.d), make([]T, rows*cols), make([]T, rows), make([]float64, rows), make([]T, rows*cols), make([]T, rows)}
}

func prepareAttention[T kernels.Float](k *device.Kernel) (run, error) {
	op := &k.Op
	h := headsOf(op.In(0), op.In(2), op.Attr.Causal)
	f := newAttending[T](h)
	f.blocks = (h.t + queryBlock - 1) / queryBlock
	units := newLoop(f.forward)
	return func(args []device.Arg, p *device.Params) error {
		a := attentionArgs[T]{o: elems[T](args[0], k.Out[0]), lse: elems[T](args[1], k.Out[1]), q: elems[T](args[2], op.In(0)),
			k: elems[T](args[3], op.In(1)), v: elems[T](args[4], op.In(2)), scale: T(scalar(p, 0))}
		if op.NumIn() == 4 {
			a.setMask(args[5], op.In(3))
		}
		units.run(h.count*f.blocks, max(1, 1<<18/max(queryBlock*h.s*(h.d+h.e), 1<<8)), a)
		return nil
	}, nil
}

// attending is a prepared attention or its gradient.
type attending[T kernels.Float] struct {
	*heads
	blocks int // of queries
	space  *spare[attentionSpace[T]]
}

func newAttending[T kernels.Float](h *heads) *attending[T] {
	return &attending[T]{heads: h, space: newSpare(func() attentionSpace[T] { return newAttentionSpace[T](h) })}
}

func (f *attending[T]) forward(a *attentionArgs[T], lo, hi int) {
	s := f.space.get()
	defer f.space.put(s)
	for u := lo; u < hi; u++ {
		q0 := u % f.blocks * queryBlock
		f.queries(a, s, u/f.blocks, q0, min(q0+queryBlock, f.t))
	}
}

// queries computes the results of a block of queries.
func (f *attending[T]) queries(a *attentionArgs[T], s *attentionSpace[T], head, q0, q1 int) {
	rows := q1 - q0
	o := a.o[(head*f.t+q0)*f.e:][:rows*f.e]
	f.scaled(a, s, head, q0, q1)
	fill(s.high, T(math.Inf(-1)))
	clear(s.total)
	clear(o)
	last := f.sees(q1 - 1)
	for k0 := 0; k0 < last; k0 += keyBlock {
		b := scoreBlock{head, q0, q1, k0, min(k0+keyBlock, last)}
		f.score(a, s, &b)
		for i := range rows {
			f.soften(s, &b, i, o[i*f.e:][:f.e])
		}
		gemm(rows, f.e, b.width(), rowsOf(s.scores, b.width()), rowsOf(a.v[(head*f.s+k0)*f.e:], f.e), o, f.e, true)
	}
	for i := range rows {
		total, high := s.total[i], s.high[i]
		a.lse[head*f.t+q0+i] = high + T(math.Log(total))
		if total != 0 {
			times(o[i*f.e:][:f.e], T(1/total))
		}
	}
}

// scaled puts scale·q of a block in s.
func (f *attending[T]) scaled(a *attentionArgs[T], s *attentionSpace[T], head, q0, q1 int) {
	rescale(s.q, a.q[(head*f.t+q0)*f.d:(head*f.t+q1)*f.d], 0, a.scale, 0)
}

// score computes the scores of a block; those that a mask or causality hides are -∞.
func (f *attending[T]) score(a *attentionArgs[T], s *attentionSpace[T], b *scoreBlock) {
	n := b.width()
	gemm(b.q1-b.q0, n, f.d, rowsOf(s.q, f.d), rowsOf(a.k[(b.head*f.s+b.k0)*f.d:], f.d).t(), s.scores, n, false)
	low := T(math.Inf(-1))
	for i := range b.q1 - b.q0 {
		row := s.scores[i*n:][:n]
		at := (b.head*f.t+b.q0+i)*f.s + b.k0
		if a.bias != nil {
			for j, v := range a.bias[at:][:n] {
				row[j] += v
			}
		}
		if a.seen != nil {
			for j, seen := range a.seen[at:][:n] {
				if !seen {
					row[j] = low
				}
			}
		}
		fill(row[min(max(f.sees(b.q0+i)-b.k0, 0), n):], low)
	}
}

// soften turns row i of the scores into exp(score - high) and brings the sum and the result so far to the new high.
func (f *attending[T]) soften(s *attentionSpace[T], b *scoreBlock, i int, o []T) {
	n := b.width()
	row := s.scores[i*n:][:n]
	old := s.high[i]
	high := max(old, largest(row))
	s.high[i] = high
	if old != high && !math.IsInf(float64(old), -1) {
		r := math.Exp(float64(old - high))
		s.total[i] *= r
		times(o, T(r))
	}
	s.total[i] += expInto(row, row, finite(high))
}

// finite replaces -∞, the log-sum-exp of nothing, by 0, so that exp(-∞ - it) is 0.
func finite[T kernels.Float](v T) T {
	if math.IsInf(float64(v), -1) {
		return 0
	}
	return v
}
