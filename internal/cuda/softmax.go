package cuda

import (
	"fmt"
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(prepareSoftmax("softmax"), ir.Softmax)
	offer(prepareSoftmax("logsoftmax"), ir.LogSoftmax)
	offer(prepareSoftmax("softmaxgrad"), ir.SoftmaxGrad)
	offer(prepareSoftmax("logsoftmaxgrad"), ir.LogSoftmaxGrad)
}

// A warp takes a row of up to warpRow elements, a block of blockRow threads a longer one.
const (
	warpRow  = 1024
	warps    = 8 // of a block whose warps take a row each
	blockRow = 512
)

// most32 is the largest size that kernels count in 32 bits: threads count up to a step of their block beyond it, 8 elements
// for each of at most 512.
const most32 = math.MaxInt32 - 512*8

// overRows plans a launch of a kernel that exists for both teams, over rows of d elements of dt.
func (b *builder) overRows(kernel string, dt dtype.DType, rows, d int, params ...param) error {
	if !dt.IsFloat() {
		return b.unsupported(dt)
	}
	return b.overRowsOf(kernel, dt.String(), rows, d, params...)
}

// overRowsOf is overRows of a kernel for types by name.
func (b *builder) overRowsOf(kernel, types string, rows, d int, params ...param) error {
	if d > most32 {
		return fmt.Errorf("%s of rows of %d elements, at most %d: %w", b.op.Code, d, most32, device.ErrUnsupported)
	}
	b.runRows(kernel, types, rows, d, params...)
	return nil
}

// runRows is overRowsOf a length that is known to be in order.
func (b *builder) runRows(kernel, types string, rows, d int, params ...param) {
	team, blocks, threads := "_warp", blocksFor(rows, warps), 32*warps
	if d > warpRow {
		team, blocks, threads = "_block", blocksFor(rows, 1), blockRow
	}
	b.run(kernel+team+"_"+types, [3]int{blocks, 1, 1}, [3]int{threads, 1, 1}, 0, params...)
}

// prepareSoftmax plans a kernel with the result, the operands, the number of rows and their length.
func prepareSoftmax(kernel string) prepare {
	return func(b *builder) error {
		t, d := b.outs[0], 1
		if t.Rank() > 0 {
			d = t.Dim(-1)
		}
		rows := t.Size() / max(d, 1)
		params := []param{pointer(b.out(0))}
		for i := range b.op.NumIn() {
			params = append(params, pointer(b.in(i)))
		}
		return b.overRows(kernel, t.DType, rows, d, append(params, i64(rows), i32(d))...)
	}
}
