package cuda

import (
	"fmt"
	"math"
	"slices"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(prepareGradNorm, ir.GradNorm)
	offer(prepareCastAll, ir.CastAll)
	offer(prepareLossScale, ir.LossScale)
	offer(prepareSGD, ir.SGD)
	offer(prepareAdamW, ir.AdamW)
	offer(prepareSumSquares, ir.SumSquares)
}

// tableChunk is the elements of a block.
const tableChunk = 4096

// tensorTable is the kernels' Tensors: how many operands, results and numbers a tensor has, and how many tensors fit in the
// 4 KiB of a launch's parameters.
type tensorTable struct{ ins, outs, numbers, tensors int }

// updated is a tensor with its operands; outs are fewer where some are only read. number is that of the update, if any.
type updated struct {
	t                 *ir.Type
	ins, outs, number []ref
}

// launches calls launch with a table for each group of tensors of one dtype, and the blocks that it takes.
func (t tensorTable) launches(list []updated, launch func(dt dtype.DType, table param, blocks int)) {
	for _, dt := range []dtype.DType{dtype.F32, dtype.F64, dtype.F16, dtype.BF16} {
		var group []updated
		for _, u := range list {
			if u.t.DType == dt && u.t.Size() > 0 {
				group = append(group, u)
			}
		}
		for part := range slices.Chunk(group, t.tensors) {
			table, blocks := t.of(part)
			launch(dt, table, blocks)
		}
	}
}

// of is the table of some tensors. What is not there begins behind all blocks.
func (t tensorTable) of(list []updated) (table param, blocks int) {
	pointers := t.ins + t.outs + t.numbers
	sizes, first := make([]int64, t.tensors), slices.Repeat([]uint32{math.MaxUint32}, t.tensors+2)
	for i, u := range list {
		sizes[i], first[i] = int64(u.t.Size()), uint32(blocks)
		blocks += ceilDiv(u.t.Size(), tableChunk)
	}
	table = blob(slices.Concat(make([]byte, 8*pointers*t.tensors), blob(sizes).bytes, blob(first).bytes))
	for i, u := range list {
		column := 0
		place := func(refs []ref, columns int) {
			for j, r := range refs {
				table = table.placing(8*((column+j)*t.tensors+i), r)
			}
			column += columns
		}
		place(u.ins, t.ins)
		place(u.outs, t.outs)
		place(u.number, t.numbers)
	}
	return table, blocks
}

// groups are the operands of an optimizer after the scale, n to a parameter: p, g, state and, as the fifth, the number of
// the update. All but g and that are results too.
func (b *builder) groups(n int) (list []updated) {
	out := 0
	for i := 1; i < b.op.NumIn(); i += n {
		u := updated{t: b.op.In(i)}
		for j := range n {
			switch at := b.in(i + j); {
			case j == 4:
				u.number = []ref{at}
			default:
				u.ins = append(u.ins, at)
			}
			if j != 1 && j != 4 {
				u.outs = append(u.outs, b.out(out))
				out++
			}
		}
		list = append(list, u)
	}
	return list
}

// scaling is the kernels' Scale.
func (b *builder) scaling() param {
	kinds := map[dtype.DType]uint64{dtype.F32: 0, dtype.F64: 1, dtype.F16: 2, dtype.BF16: 3}
	return blob([2]uint64{0, kinds[b.op.In(0).DType]}).placing(0, b.in(0))
}

// update plans an optimizer's launches; of is the order in which its kernels take the launch's parameters.
func (b *builder) update(kernel string, n int, of ...int) {
	tensorTable{4, 3, 1, 48}.launches(b.groups(n), func(dt dtype.DType, table param, blocks int) {
		params := []param{table, b.scaling(), i32(int(b.op.Attr.Flag))}
		for _, i := range of {
			params = append(params, raw(i))
		}
		b.run(suffixed(kernel, dt), [3]int{blocks, 1, 1}, [3]int{256, 1, 1}, 0, params...)
	})
}

func prepareSGD(b *builder) error {
	kernel, n := "sgd", 2
	if b.op.Attr.Flag&ir.Momentum != 0 {
		kernel, n = "sgd_momentum", 3
	}
	b.update(kernel, n, 0, 3, 1, 2, 4)
	return nil
}

func prepareAdamW(b *builder) error {
	b.update("adamw", 5, 0, 5, 1, 2, 3, 4, 6)
	return nil
}

// chunkSums plans a sum of squares per chunk of some operands, and returns where they lie and their number.
func (b *builder) chunkSums(from int) (sums ref, chunks int) {
	var list []updated
	for i, t := range b.op.Ins()[from:] {
		list = append(list, updated{t: t, ins: []ref{b.in(from + i)}})
		chunks += ceilDiv(t.Size(), tableChunk)
	}
	sums = b.scratch(8 * int64(max(chunks, 1)))
	at := int64(0)
	tensorTable{1, 0, 0, 200}.launches(list, func(dt dtype.DType, table param, blocks int) {
		b.run(suffixed("sum_squares", dt), [3]int{blocks, 1, 1}, [3]int{256, 1, 1}, 0, pointer(sums.at(at)), table)
		at += 8 * int64(blocks)
	})
	return sums, chunks
}

// prepareSumSquares plans a sum per chunk, and the sum of those in their order.
func prepareSumSquares(b *builder) error {
	sums, chunks := b.chunkSums(0)
	b.run(suffixed("sum_squares_total", b.outs[0].DType), [3]int{1, 1, 1}, [3]int{256, 1, 1}, 0, pointer(b.out(0)), pointer(sums), i64(chunks))
	return nil
}

func prepareGradNorm(b *builder) error {
	sums, chunks := b.chunkSums(2)
	params := []param{}
	for i := range b.outs {
		params = append(params, pointer(b.out(i)))
	}
	params = append(params, pointer(b.in(0)), pointer(b.in(1)), i64(b.outs[3].Size()), pointer(sums), i64(chunks), raw(0), raw(1), raw(2))
	b.run(suffixed("grad_norm", b.outs[0].DType), [3]int{1, 1, 1}, [3]int{256, 1, 1}, 0, params...)
	return nil
}

func prepareCastAll(b *builder) error {
	to := b.op.Attr.DType
	if to != dtype.F16 && to != dtype.BF16 {
		return b.unsupported(to)
	}
	var list []updated
	for i, t := range b.op.Ins() {
		if t.DType != dtype.F32 {
			return b.unsupported(t.DType)
		}
		list = append(list, updated{t: t, ins: []ref{b.in(i)}, outs: []ref{b.out(i)}})
	}
	tensorTable{1, 1, 0, 144}.launches(list, func(_ dtype.DType, table param, blocks int) {
		b.run(suffixed("cast_all", to), [3]int{blocks, 1, 1}, [3]int{256, 1, 1}, 0, table)
	})
	return nil
}

// flagTable is the kernels' Flags.
type flagTable [256]uint64

func prepareLossScale(b *builder) error {
	var t flagTable
	n := b.op.NumIn() - 3
	if n > len(t) {
		return fmt.Errorf("%s of %d optimizers, at most %d: %w", b.op.Code, n, len(t), device.ErrUnsupported)
	}
	flags := blob(t)
	for i := range n {
		flags = flags.placing(8*i, b.in(3+i))
	}
	b.run("loss_scale", [3]int{1, 1, 1}, [3]int{32, 1, 1}, 0, pointer(b.out(0)), pointer(b.out(1)), pointer(b.out(2)), pointer(b.in(0)), pointer(b.in(2)),
		flags, i32(n), raw(0), raw(1), raw(2))
	return nil
}
