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
	offer(inF32(func(k *device.Kernel) (run, error) {
		return byFloat(k, prepareAttention[float32], prepareAttention[float64])
	}), ir.Attention)
	offer(forFloats(prepareAttentionGrad[float32], prepareAttentionGrad[float64]), ir.AttentionGrad)
	offer(forFloats(prepareSelfAttention[float32], prepareSelfAttention[float64]), ir.SelfAttention)
	offer(forFloats(prepareSelfAttentionGrad[float32], prepareSelfAttentionGrad[float64]), ir.SelfAttentionGrad)
}

// The sizes of blocks: scores of 64×256 are 64 KiB of f32.
const (
	queryBlock = 64
	keyBlock   = 256
)

// heads is the sizes of an attention, q[heads,t,d], k[heads,s,d], v[heads,s,e], and where rows of its operands lie; o's
// are also g's.
type heads struct {
	count, t, s, d, e int
	causal            bool
	q, k, v, o        headRows
}

// headRows is where the rows of an operand lie: distances, in elements, of batches, heads, rows of a head, and neighbours
// in a row.
type headRows struct{ per, batch, head, row, col int }

// at is the place of a row of a head, counted over all batches.
func (l *headRows) at(head, row int) int { return head/l.per*l.batch + head%l.per*l.head + row*l.row }

// rowsFrom are the rows of a head of x from one on.
func rowsFrom[T any](l *headRows, x []T, head, row int) matrix[T] {
	return matrix[T]{x[l.at(head, row):], l.row, l.col}
}

// headRowsOf is that of a [b,h,t,d].
func headRowsOf(t *ir.Type) headRows {
	if t.Size() == 0 { // there is one place
		return headRows{per: 1, col: 1}
	}
	s := t.Strides()
	return headRows{t.Dim(1), s[0], s[1], s[2], s[3]}
}

func headsOf(q, k, v *ir.Type, causal bool) *heads {
	o := ir.Dense(q.DType, q.Dim(0), q.Dim(1), q.Dim(2), v.Dim(3))
	return &heads{q.Dim(0) * q.Dim(1), q.Dim(2), v.Dim(2), q.Dim(3), v.Dim(3), causal, headRowsOf(q), headRowsOf(k), headRowsOf(v), headRowsOf(o)}
}

// selfHeads are those of qkv[b,t,3,h,d].
func selfHeads(qkv *ir.Type, causal bool) *heads {
	b, t, h, d := qkv.Dim(0), qkv.Dim(1), qkv.Dim(3), qkv.Dim(4)
	inside := func(row int) headRows { return headRows{max(h, 1), t * row, d, row, 1} }
	qkvs, o := inside(3*h*d), inside(h*d)
	return &heads{b * h, t, t, d, d, causal, qkvs, qkvs, qkvs, o}
}

// sees is the number of keys before which those that query i sees end, by causality.
func (h *heads) sees(i int) int {
	if h.causal {
		return min(i+1, h.s)
	}
	return h.s
}

type attentionArgs[T kernels.Float] struct {
	o, lse, q, k, v []T
	bias            []T    // mask that is added, or nil
	seen            []bool // mask that selects, or nil
	mask            headRows
	scale           T
	g, dq, dk, dv   []T // of the gradient
}

func (a *attentionArgs[T]) setMask(arg device.Arg, t *ir.Type) {
	if t.DType == dtype.Bool {
		a.seen = elems[bool](arg, t)
	} else {
		a.bias = values[T](arg, t.Span())
	}
	a.mask = headRowsOf(t)
}

// thirds are the parts of x[b,t,3,h,d], each from its first element on.
func thirds[T any](h *heads, x []T) (q, k, v []T) {
	n := min(h.q.per*h.d, len(x))
	return x, x[n:], x[min(2*n, len(x)):]
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
	attend := newAttention[T](headsOf(op.In(0), op.In(1), op.In(2), op.Attr.Causal))
	return func(args []device.Arg, p *device.Params) error {
		a := attentionArgs[T]{o: elems[T](args[0], k.Out[0]), lse: elems[T](args[1], k.Out[1]), q: elems[T](args[2], op.In(0)),
			k: elems[T](args[3], op.In(1)), v: elems[T](args[4], op.In(2)), scale: T(scalar(p, 0))}
		if op.NumIn() == 4 {
			a.setMask(args[5], op.In(3))
		}
		attend(a)
		return nil
	}, nil
}

func prepareSelfAttention[T kernels.Float](k *device.Kernel) (run, error) {
	op := &k.Op
	h := selfHeads(op.In(0), op.Attr.Causal)
	attend := newAttention[T](h)
	return func(args []device.Arg, p *device.Params) error {
		a := attentionArgs[T]{o: elems[T](args[0], k.Out[0]), lse: elems[T](args[1], k.Out[1]), scale: T(scalar(p, 0))}
		a.q, a.k, a.v = thirds(h, elems[T](args[2], op.In(0)))
		if op.NumIn() == 2 {
			a.setMask(args[3], op.In(1))
		}
		attend(a)
		return nil
	}, nil
}

// newAttention runs attention over blocks of queries.
func newAttention[T kernels.Float](h *heads) func(attentionArgs[T]) {
	f := newAttending[T](h)
	f.blocks = (h.t + queryBlock - 1) / queryBlock
	units, grain := newLoop(f.forward), max(1, 1<<18/max(min(queryBlock, h.t)*h.s*(h.d+h.e), 1<<8))
	return func(a attentionArgs[T]) { units.run(h.count*f.blocks, grain, a) }
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
	f.scaled(a, s, head, q0, q1)
	fill(s.high, T(math.Inf(-1)))
	clear(s.total)
	for i := range rows {
		clear(f.outRow(a, head, q0+i))
	}
	last := f.sees(q1 - 1)
	for k0 := 0; k0 < last; k0 += keyBlock {
		b := scoreBlock{head, q0, q1, k0, min(k0+keyBlock, last)}
		f.score(a, s, &b)
		for i := range rows {
			f.soften(s, &b, i, f.outRow(a, head, q0+i))
		}
		gemm(rows, f.e, b.width(), rowsOf(s.scores, b.width()), rowsFrom(&f.v, a.v, head, k0), a.o[f.o.at(head, q0):], f.o.row, true)
	}
	for i := range rows {
		total, high := s.total[i], s.high[i]
		a.lse[head*f.t+q0+i] = high + T(math.Log(total))
		if total != 0 {
			times(f.outRow(a, head, q0+i), T(1/total))
		}
	}
}

// outRow is a row of the result.
func (f *attending[T]) outRow(a *attentionArgs[T], head, i int) []T {
	return a.o[f.o.at(head, i):][:f.e]
}

// scaled puts scale·q of a block in s.
func (f *attending[T]) scaled(a *attentionArgs[T], s *attentionSpace[T], head, q0, q1 int) {
	for i := range q1 - q0 {
		q, from := s.q[i*f.d:][:f.d], a.q[f.q.at(head, q0+i):]
		if f.q.col != 1 {
			for j := range q {
				q[j] = from[j*f.q.col]
			}
			from = q
		}
		rescale(q, from[:f.d], 0, a.scale, 0)
	}
}

// score computes the scores of a block; those that a mask or causality hides are -∞.
func (f *attending[T]) score(a *attentionArgs[T], s *attentionSpace[T], b *scoreBlock) {
	n := b.width()
	gemm(b.q1-b.q0, n, f.d, rowsOf(s.q, f.d), rowsFrom(&f.k, a.k, b.head, b.k0).t(), s.scores, n, false)
	low := T(math.Inf(-1))
	for i := range b.q1 - b.q0 {
		row := s.scores[i*n:][:n]
		if a.bias != nil || a.seen != nil {
			a.cover(row, b, i)
		}
		fill(row[min(max(f.sees(b.q0+i)-b.k0, 0), n):], low)
	}
}

// cover brings the mask into the scores of query i of a block.
func (a *attentionArgs[T]) cover(row []T, b *scoreBlock, i int) {
	at, step := a.mask.at(b.head, b.q0+i)+b.k0*a.mask.col, a.mask.col
	switch {
	case a.bias != nil && step == 1:
		for j, v := range a.bias[at:][:len(row)] {
			row[j] += v
		}
	case a.bias != nil:
		for j := range row {
			row[j] += a.bias[at+j*step]
		}
	default:
		for j := range row {
			if !a.seen[at+j*step] {
				row[j] = T(math.Inf(-1))
			}
		}
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
