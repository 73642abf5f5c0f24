package cuda

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

// precision is that of the op's products. Before Ampere no tensor core takes TF32 or bf16, and float32 is the faster: what
// may be rounded stays as it is.
func (b *builder) precision() ir.Precision {
	if b.d.older() {
		return ir.Highest
	}
	return b.op.Attr.Precision
}

// factor is operand i of a product as it is multiplied, in whatever precision: rounded to bf16 it is a copy, of the same
// strides unless those leave gaps.
func (b *builder) factor(i int) (*ir.Type, ref) {
	t := b.op.In(i)
	if b.precision() != ir.Medium {
		return t, b.in(i)
	}
	from, to := ir.Dense(t.DType, t.Span()), ir.Strided(dtype.BF16, t.Shape(), t.Strides())
	if t.Span() > t.Size() {
		from, to = t, ir.Dense(dtype.BF16, t.Shape()...)
	}
	if t.Size() == 0 {
		return to, b.in(i)
	}
	at := b.scratch(bytesOf(to, to.Span()))
	width := vectorOf(from.DType.Size())
	l := layoutOf(from)
	for _, p := range l.parts(mostElements) {
		chunks, _ := p.chunks(width)
		b.linear("cast_bf16_from_f32", chunks, 256, pointer(at.at(bytesOf(to, p.out))), pointer(b.in(i).at(bytesOf(from, p.at[0]))), p.param(width))
	}
	return to, at
}
