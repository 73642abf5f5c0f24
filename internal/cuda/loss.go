package cuda

import "github.com/warpline-ml/warpline/internal/ir"

func init() {
	offer(prepareCrossEntropy, ir.CrossEntropy)
	offer(prepareCrossEntropyGrad, ir.CrossEntropyGrad)
}

func prepareCrossEntropy(b *builder) error {
	return b.entropy("crossentropy", pointer(b.out(0)), pointer(b.out(1)), pointer(b.in(0)), pointer(b.in(1)))
}

func prepareCrossEntropyGrad(b *builder) error {
	return b.entropy("crossentropygrad", pointer(b.out(0)), pointer(b.in(0)), pointer(b.in(1)), pointer(b.in(2)), pointer(b.in(3)))
}

// entropy plans a kernel over rows of logits; the smoothing and the ignored label are the launch's parameters.
func (b *builder) entropy(kernel string, params ...param) error {
	x := b.op.In(0)
	rows, d := x.Dim(0), x.Dim(1)
	return b.overRows(kernel, x.DType, rows, d, append(params, i64(rows), i32(d), scalar(0, x.DType), word(1), fault(), serial())...)
}
