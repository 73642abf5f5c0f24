package cuda

import (
	"fmt"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(prepareAttention, ir.Attention)
	offer(prepareAttentionGrad, ir.AttentionGrad)
}

// headSizes is the kernels' Heads.
type headSizes struct{ Count, T, S, D, E, Causal, Mask int32 }

// attention is an attention or its gradient: q[count,t,d], k[count,s,d], v[count,s,e] of dt.
type attention struct {
	b                 *builder
	dt                dtype.DType
	count, t, s, d, e int
	sizes             headSizes
	mask              param
}

// attentionOf reads the types of q and v; mask is the operand that may be there.
func (b *builder) attentionOf(q, v *ir.Type, mask int) (*attention, error) {
	a := &attention{b: b, dt: q.DType, count: q.Dim(0) * q.Dim(1), t: q.Dim(2), s: v.Dim(2), d: q.Dim(3), e: v.Dim(3), mask: b.optional(mask)}
	if !a.dt.IsFloat() || max(a.count, a.t, a.s, a.d, a.e) > most32 {
		return nil, b.unsupported(a.dt)
	}
	a.sizes = headSizes{Count: int32(a.count), T: int32(a.t), S: int32(a.s), D: int32(a.d), E: int32(a.e)}
	if b.op.Attr.Causal {
		a.sizes.Causal = 1
	}
	if mask < b.op.NumIn() {
		if a.sizes.Mask = 2; b.op.In(mask).DType == dtype.Bool {
			a.sizes.Mask = 1
		}
	}
	return a, nil
}

func prepareAttention(b *builder) error {
	a, err := b.attentionOf(b.op.In(0), b.op.In(2), 3)
	if err != nil {
		return err
	}
	params := []param{pointer(b.out(0)), pointer(b.out(1)), pointer(b.in(0)), pointer(b.in(1)), pointer(b.in(2)), a.mask}
	if width := a.width(); width > 0 {
		a.runTiled("attention_tiled", a.t, 1, forwardTiling(a.dt, width), params...)
	} else {
		a.runAny("attention_any", a.count*a.t, max(a.e, 1), params...)
	}
	return nil
}

// padding is what the number of queries of a head is rounded up to in the statistics.
const padding = 64

func prepareAttentionGrad(b *builder) error {
	a, err := b.attentionOf(b.op.In(1), b.op.In(3), 6)
	if err != nil {
		return err
	}
	queries := a.count * roundUp(a.t, padding)
	stats := pointer(b.scratch(int64(max(queries, 1)) * int64(2*ir.Wide(a.dt).Size())))
	b.run(suffixed("attention_statistics", a.dt), [3]int{blocksFor(queries, warps), 1, 1}, [3]int{32 * warps, 1, 1}, 0,
		stats, pointer(b.in(0)), pointer(b.in(4)), pointer(b.in(5)), blob(a.sizes))
	from := []param{pointer(b.in(0)), pointer(b.in(1)), pointer(b.in(2)), pointer(b.in(3)), a.mask, stats}
	dq, dk, dv := pointer(b.out(0)), pointer(b.out(1)), pointer(b.out(2))
	to := func(results ...param) []param { return append(results, from...) }
	width := a.width()
	tiling := gradTiling(a.dt, width)
	switch {
	case width == 0:
		a.runAny("attentiongrad_any_q", a.count*a.t, a.d, to(dq)...)
		a.runAny("attentiongrad_any_kv", a.count*a.s, max(a.d, a.e), to(dk, dv)...)
		return nil
	case width == 128 && a.dt != dtype.F32: // the sums of dk and dv together do not fit the registers
		a.runTiled("attentiongrad_tiled_k", a.s, 2, tiling, to(dk)...)
		a.runTiled("attentiongrad_tiled_v", a.s, 1, tiling, to(dv)...)
	default:
		a.runTiled("attentiongrad_tiled_kv", a.s, 2, tiling, to(dk, dv)...)
	}
	a.runTiled("attentiongrad_tiled_q", a.t, 2, tiling, to(dq)...)
	return nil
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

// gradTiling is that of the gradient's kernels.
func gradTiling(dt dtype.DType, width int) headTiling {
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

// tiledThreads is the number of threads of a block of the attention_tiled kernels.
const tiledThreads = 128

func (a *attention) runTiled(kernel string, rows, own int, t headTiling, params ...param) {
	kernel = fmt.Sprintf("%s_%d", kernel, t.width)
	if a.sizes.Mask != 0 {
		kernel += "_masked"
	}
	blocks := a.count * ceilDiv(rows, t.rows)
	a.b.run(suffixed(kernel, a.dt), [3]int{blocks, 1, 1}, [3]int{tiledThreads, 1, 1}, t.shared(own, a.dt), append(params, blob(a.sizes), scalar(0, a.dt))...)
}
