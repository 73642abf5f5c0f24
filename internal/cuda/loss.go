package cuda

import "github.com/warpline-ml/warpline/internal/ir"

func init() {
	offer(prepareCrossEntropy, ir.CrossEntropy)
	offer(prepareCrossEntropyGrad, ir.CrossEntropyGrad)
}

// fewRows is how many short rows one block computes the mean loss of, as in the kernel's source.
const fewRows = 128

// prepareCrossEntropy plans the losses of rows and, where their mean is asked for, a sum by one block. Of few rows one
// block does both.
func prepareCrossEntropy(b *builder) error {
	x := b.op.In(0)
	rows, d := x.Dim(0), x.Dim(1)
	logits, labels := pointer(b.in(0)), pointer(b.in(1))
	switch {
	case b.op.Attr.Flag&ir.Mean == 0:
		return b.entropy("crossentropy", pointer(b.out(0)), pointer(b.out(1)), logits, labels)
	case rows <= fewRows && d <= warpRow:
		b.run(suffixed("crossentropy_few", x.DType), [3]int{1, 1, 1}, [3]int{blockRow, 1, 1}, 0, append([]param{pointer(b.out(0)), pointer(b.out(1)), pointer(b.out(2)),
			logits, labels}, b.labelling()...)...)
		return nil
	}
	loss := b.scratch(int64(rows) * int64(ir.Wide(x.DType).Size()))
	err := b.entropy("crossentropy", pointer(loss), pointer(b.out(1)), logits, labels)
	if err == nil {
		b.run(suffixed("crossentropy_mean", x.DType), [3]int{1, 1, 1}, [3]int{blockRow, 1, 1}, 0,
			pointer(b.out(0)), pointer(b.out(2)), pointer(loss), labels, i64(rows), raw(1), i32(0))
	}
	return err
}

func prepareCrossEntropyGrad(b *builder) error {
	return b.entropy("crossentropygrad", pointer(b.out(0)), pointer(b.in(0)), pointer(b.in(1)), pointer(b.in(2)), pointer(b.in(3)), b.optional(4))
}

// labelling is the parameters that kernels of losses end with: the sizes, the smoothing and the ignored label, which are
// the launch's, and what a wrong label needs.
func (b *builder) labelling() []param {
	x := b.op.In(0)
	return []param{i64(x.Dim(0)), i32(x.Dim(1)), number(0, x.DType), raw(1), fault(), serial()}
}

// entropy plans a kernel over rows of logits.
func (b *builder) entropy(kernel string, params ...param) error {
	x := b.op.In(0)
	return b.overRows(kernel, x.DType, x.Dim(0), x.Dim(1), append(params, b.labelling()...)...)
}
