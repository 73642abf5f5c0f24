package cuda

import (
	"math"
	"unsafe"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(prepareSGD, ir.SGD)
	offer(prepareAdamW, ir.AdamW)
	offer(prepareSumSquares, ir.SumSquares)
}

const (
	tableSize  = 56   // tensors of a launch: what fits in 4 KiB of parameters
	tableChunk = 4096 // elements of a block
)

// tensorTable is the kernels' Tensors.
type tensorTable struct {
	in    [4][tableSize]uint64
	out   [3][tableSize]uint64
	size  [tableSize]int64
	first [tableSize + 2]uint32
}

// updated is a tensor with its operands; outs are fewer where some are only read.
type updated struct {
	t         *ir.Type
	ins, outs []ref
}

// tables calls launch with a table for each group of tensors of one dtype, and the blocks that it takes.
func tables(list []updated, launch func(dt dtype.DType, table param, blocks int)) {
	for _, dt := range []dtype.DType{dtype.F32, dtype.F64, dtype.F16, dtype.BF16} {
		var group []updated
		for _, u := range list {
			if u.t.DType == dt && u.t.Size() > 0 {
				group = append(group, u)
			}
		}
		for len(group) > 0 {
			n := min(len(group), tableSize)
			table, blocks := tableOf(group[:n])
			launch(dt, table, blocks)
			group = group[n:]
		}
	}
}

func tableOf(list []updated) (table param, blocks int) {
	var t tensorTable
	for i := range t.first {
		t.first[i] = math.MaxUint32
	}
	for i, u := range list {
		t.first[i], t.size[i] = uint32(blocks), int64(u.t.Size())
		blocks += ceilDiv(u.t.Size(), tableChunk)
	}
	table = blob(t)
	for i, u := range list {
		for j, r := range u.ins {
			table = table.placing(int(unsafe.Offsetof(t.in))+8*(j*tableSize+i), r)
		}
		for j, r := range u.outs {
			table = table.placing(int(unsafe.Offsetof(t.out))+8*(j*tableSize+i), r)
		}
	}
	return table, blocks
}

// groups are the operands of an optimizer after the scale, n to a parameter: p, g and state. All but g are results too.
func (b *builder) groups(n int) (list []updated) {
	for i := 1; i < b.op.NumIn(); i += n {
		u := updated{t: b.op.In(i)}
		for j := range n {
			u.ins = append(u.ins, b.in(i+j))
		}
		for j := range n - 1 {
			u.outs = append(u.outs, b.out(len(list)*(n-1)+j))
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

func prepareSGD(b *builder) error {
	kernel, n := "sgd", 2
	if b.op.Attr.Flag&ir.Momentum != 0 {
		kernel, n = "sgd_momentum", 3
	}
	tables(b.groups(n), func(dt dtype.DType, table param, blocks int) {
		b.run(suffixed(kernel, dt), [3]int{blocks, 1, 1}, [3]int{256, 1, 1}, 0,
			table, b.scaling(), i32(int(b.op.Attr.Flag)), scalar(0, dt), scalar(1, dt), scalar(2, dt))
	})
	return nil
}

func prepareAdamW(b *builder) error {
	tables(b.groups(4), func(dt dtype.DType, table param, blocks int) {
		params := []param{table, b.scaling(), i32(int(b.op.Attr.Flag))}
		for i := range b.op.Code.NumParams() {
			params = append(params, word(i))
		}
		b.run(suffixed("adamw", dt), [3]int{blocks, 1, 1}, [3]int{256, 1, 1}, 0, params...)
	})
	return nil
}

// prepareSumSquares plans a sum per chunk, and the sum of those in their order.
func prepareSumSquares(b *builder) error {
	var list []updated
	chunks := 0
	for i, t := range b.op.Ins() {
		list = append(list, updated{t: t, ins: []ref{b.in(i)}})
		chunks += ceilDiv(t.Size(), tableChunk)
	}
	sums, at := b.scratch(8*int64(max(chunks, 1))), int64(0)
	tables(list, func(dt dtype.DType, table param, blocks int) {
		b.run(suffixed("sum_squares", dt), [3]int{blocks, 1, 1}, [3]int{256, 1, 1}, 0, pointer(sums.at(at)), table)
		at += 8 * int64(blocks)
	})
	b.run(suffixed("sum_squares_total", b.outs[0].DType), [3]int{1, 1, 1}, [3]int{256, 1, 1}, 0, pointer(b.out(0)), pointer(sums), i64(chunks))
	return nil
}
