package cuda

import (
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(prepareAttention, ir.Attention)
	offer(prepareAttentionGrad, ir.AttentionGrad)
	offer(prepareSelfAttention, ir.SelfAttention)
	offer(prepareSelfAttentionGrad, ir.SelfAttentionGrad)
}

// headRows is the kernels' HeadRows.
type headRows struct{ Batch, Head, Row int64 }

// headSizes is the kernels' Heads.
type headSizes struct {
	Count, T, S, D, E, Causal, Mask, PerBatch int32
	Q, K, V, O                                headRows
}

// attention is an attention or its gradient: q[count,t,d], k[count,s,d], v[count,s,e] of dt.
type attention struct {
	b                 *builder
	dt                dtype.DType
	count, t, s, d, e int
	sizes             headSizes
	mask              param
}

// rowsOf is the layout of a [b,h,t,d] whose rows are contiguous.
func rowsOf(t *ir.Type) headRows {
	s := t.Strides()
	return headRows{int64(s[0]), int64(s[1]), int64(s[2])}
}

// inRows is operand i as the kernels take it, its rows contiguous or, of a mask, all of it: where it lies otherwise a copy
// is planned.
func (b *builder) inRows(i int, mask bool) (ref, *ir.Type) {
	t := b.op.In(i)
	if t.IsDense() || !mask && (t.Strides()[3] == 1 || t.Dim(3) == 1) {
		return b.in(i), t
	}
	dense := t.AsDense()
	to := b.scratch(int64(dense.Bytes()))
	b.copy(to, dense, b.in(i), t)
	return to, dense
}

// attentionOf reads the types of q, k and v; mask is the operand that may be there.
func (b *builder) attentionOf(q, k, v *ir.Type, mask int) (*attention, error) {
	a := &attention{dt: q.DType, count: q.Dim(0) * q.Dim(1), t: q.Dim(2), s: v.Dim(2), d: q.Dim(3), e: v.Dim(3)}
	o := ir.Dense(q.DType, q.Dim(0), q.Dim(1), q.Dim(2), v.Dim(3))
	a.sizes.Q, a.sizes.K, a.sizes.V, a.sizes.O = rowsOf(q), rowsOf(k), rowsOf(v), rowsOf(o)
	return a, a.complete(b, q.Dim(1), mask)
}

// selfAttentionOf reads the type of qkv[b,t,3,h,d].
func (b *builder) selfAttentionOf(qkv *ir.Type, mask int) (*attention, error) {
	t, h, d := qkv.Dim(1), qkv.Dim(3), qkv.Dim(4)
	inside := func(row int) headRows { return headRows{int64(t * row), int64(d), int64(row)} }
	a := &attention{dt: qkv.DType, count: qkv.Dim(0) * h, t: t, s: t, d: d, e: d}
	a.sizes.Q, a.sizes.O = inside(3*h*d), inside(h*d)
	a.sizes.K, a.sizes.V = a.sizes.Q, a.sizes.Q
	return a, a.complete(b, h, mask)
}

// complete fills in what follows from the sizes and the op.
func (a *attention) complete(b *builder, heads, mask int) error {
	a.b, a.mask = b, b.optional(mask)
	s := &a.sizes
	if !a.dt.IsFloat() || max(a.count, a.t, a.s, a.d, a.e, int(s.Q.Row), int(s.K.Row), int(s.V.Row), int(s.O.Row)) > most32 {
		return b.unsupported(a.dt)
	}
	s.Count, s.T, s.S, s.D, s.E, s.PerBatch = int32(a.count), int32(a.t), int32(a.s), int32(a.d), int32(a.e), int32(max(heads, 1))
	if b.op.Attr.Causal {
		s.Causal = 1
	}
	if mask < b.op.NumIn() {
		if s.Mask = 2; b.op.In(mask).DType == dtype.Bool {
			s.Mask = 1
		}
	}
	return nil
}

// thirds are the places of q, k and v in one operand.
func (a *attention) thirds(r ref) []param {
	third := a.sizes.O.Row * int64(a.dt.Size())
	return []param{pointer(r), pointer(r.at(third)), pointer(r.at(2 * third))}
}

func prepareAttention(b *builder) error {
	var qkv []param
	var types []*ir.Type
	for i := range 3 {
		at, t := b.inRows(i, false)
		qkv, types = append(qkv, pointer(at)), append(types, t)
	}
	a, err := b.attentionOf(types[0], types[1], types[2], 3)
	if err != nil {
		return err
	}
	if b.op.NumIn() == 4 {
		at, _ := b.inRows(3, true)
		a.mask = pointer(at)
	}
	a.forward(qkv)
	return b.err
}

func prepareSelfAttention(b *builder) error {
	a, err := b.selfAttentionOf(b.op.In(0), 1)
	if err != nil {
		return err
	}
	a.forward(a.thirds(b.in(0)))
	return nil
}

func (a *attention) forward(qkv []param) {
	params := append([]param{pointer(a.b.out(0)), pointer(a.b.out(1))}, append(qkv, a.mask)...)
	if width := a.width(); width > 0 {
		a.runTiled("attention_tiled", a.t, 1, forwardTiling(a.dt, width), params...)
	} else {
		a.runAny("attention_any", a.count*a.t, max(a.e, 1), params...)
	}
}

func prepareAttentionGrad(b *builder) error {
	a, err := b.attentionOf(b.op.In(1), b.op.In(2), b.op.In(3), 6)
	if err != nil {
		return err
	}
	a.backward([]param{pointer(b.out(0)), pointer(b.out(1)), pointer(b.out(2))}, b.in(0), b.in(4), b.in(5),
		[]param{pointer(b.in(1)), pointer(b.in(2)), pointer(b.in(3))})
	return nil
}

func prepareSelfAttentionGrad(b *builder) error {
	a, err := b.selfAttentionOf(b.op.In(1), 4)
	if err != nil {
		return err
	}
	a.backward(a.thirds(b.out(0)), b.in(0), b.in(2), b.in(3), a.thirds(b.in(1)))
	return nil
}

// padding is what the number of queries of a head is rounded up to in the statistics.
const padding = 64

// backward plans seven products of queries by keys: the scores and g·vᵀ for dq and again for dk and dv, and one for each of
// the three.
func (a *attention) backward(grads []param, g, o, lse ref, qkv []param) {
	queries := a.count * roundUp(a.t, padding)
	stats := pointer(a.b.scratch(int64(max(queries, 1)) * int64(2*ir.Wide(a.dt).Size())))
	a.b.run(suffixed("attention_statistics", a.dt), [3]int{blocksFor(queries, warps), 1, 1}, [3]int{32 * warps, 1, 1}, 0,
		stats, pointer(g), pointer(o), pointer(lse), blob(a.sizes))
	from := append(append([]param{pointer(g)}, qkv...), a.mask, stats)
	dq, dkv := slices.Concat(grads[:1], from), slices.Concat(grads[1:], from)
	if width := a.width(); width > 0 {
		a.runTiled("attentiongrad_tiled_kv", a.s, 2, keyTiling(a.dt, width), dkv...)
		a.runTiled("attentiongrad_tiled_q", a.t, 2, queryTiling(a.dt, width), dq...)
		return
	}
	a.runAny("attentiongrad_any_q", a.count*a.t, a.d, dq...)
	a.runAny("attentiongrad_any_kv", a.count*a.s, max(a.d, a.e), dkv...)
}

// anyColumns is how many columns of a result a warp of the attention_any kernels has.
const anyColumns = 128

// runAny plans a kernel in which a warp has a row and anyColumns of its columns.
func (a *attention) runAny(kernel string, rows, columns int, params ...param) {
	grid := [3]int{blocksFor(rows, warps), ceilDiv(columns, anyColumns), 1}
	a.b.run(suffixed(kernel, a.dt), grid, [3]int{32 * warps, 1, 1}, 0, append(params, blob(a.sizes), scalar(0, a.dt))...)
}

// width is the number of columns that the attention_tiled kernels pad rows to, 0 where there are no such kernels.
func (a *attention) width() int {
	if a.dt == dtype.F64 {
		return 0
	}
	for _, width := range []int{32, 64, 128} {
		if max(a.d, a.e) <= width {
			return width
		}
	}
	return 0
}

// headTiling is how the attention_tiled kernels of a dtype and width cut their work: the rows of a result that a block
// owns, the rows of the other side that it takes at once, and whether it passes weights through shared memory. The Kits
// in the kernels' sources say the same.
type headTiling struct {
	width, rows, loop int
	passes            bool
}

// forwardTiling is that of attention_tiled.
func forwardTiling(dt dtype.DType, width int) headTiling {
	switch {
	case dt != dtype.F32 && width == 128:
		return headTiling{width, 64, 32, false}
	case dt != dtype.F32:
		return headTiling{width, 64, 64, false}
	case width == 128:
		return headTiling{width, 64, 16, true}
	}
	return headTiling{width, 64, 32, true}
}

// keyTiling is that of the gradients of keys and values.
func keyTiling(dt dtype.DType, width int) headTiling {
	t := queryTiling(dt, width)
	if dt != dtype.F32 && width == 128 { // the sums of both take half of the registers
		t.loop = 16
	}
	return t
}

// queryTiling is that of the gradient of queries.
func queryTiling(dt dtype.DType, width int) headTiling {
	switch {
	case dt != dtype.F32:
		return headTiling{width, 64, 32, false}
	case width == 128:
		return headTiling{width, 32, 16, true}
	}
	return headTiling{width, 64, 32, true}
}

// shared is the shared memory of a block that holds own operands of its rows, and two stages of two tiles. Rows of tiles
// have 128 bytes or a multiple.
func (t headTiling) shared(own int, dt dtype.DType) int {
	bytes := max(t.width*dt.Size(), 128) * (own*t.rows + 4*t.loop)
	if t.passes {
		bytes += t.rows * t.loop * 4
	}
	return bytes
}

// olderShared is the shared memory that a block of a card before the base may have.
const olderShared = 64 << 10

// tiledThreads is the number of threads of a block of the attention_tiled kernels.
const tiledThreads = 128

func (a *attention) runTiled(kernel string, rows, own int, t headTiling, params ...param) {
	kernel = fmt.Sprintf("%s_%d", kernel, t.width)
	if a.dt != dtype.F32 && (a.sizes.Mask != 0 || a.b.d.older()) { // the others have one kernel for both
		kernel += "_masked"
	}
	if a.b.d.older() && t.shared(own, a.dt) > olderShared {
		t.rows /= 2
	}
	blocks := a.count * ceilDiv(rows, t.rows)
	a.b.run(suffixed(kernel, a.dt), [3]int{blocks, 1, 1}, [3]int{tiledThreads, 1, 1}, t.shared(own, a.dt), append(params, blob(a.sizes), scalar(0, a.dt))...)
}
