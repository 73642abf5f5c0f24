package cuda

import (
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(prepareDrawn("uniform"), ir.Uniform)
	offer(prepareDrawn("normal"), ir.Normal)
	offer(prepareRandInt, ir.RandInt)
	offer(prepareDropout, ir.Dropout)
}

// perBlock is how many elements of dt a block of random bits makes.
func perBlock(dt dtype.DType) int {
	if dt == dtype.F64 {
		return 2
	}
	return 4
}

// drawn plans a kernel that fills y from blocks that make n elements each.
func (b *builder) drawn(kernel string, y *ir.Type, n int, from, to param) {
	b.linear(suffixed(kernel, y.DType), ceilDiv(y.Size(), n), 256, pointer(b.out(0)), from, to, raw(2), i64(y.Size()), blob(placesOf(y)))
}

func prepareDrawn(kernel string) prepare {
	return func(b *builder) error {
		y := b.outs[0]
		b.drawn(kernel, y, perBlock(y.DType), raw(0), raw(1))
		return nil
	}
}

func prepareRandInt(b *builder) error {
	b.drawn("rand_int", b.outs[0], 2, raw(0), raw(1))
	return nil
}

func prepareDropout(b *builder) error {
	y := b.outs[0]
	b.linear(suffixed("dropout", y.DType), (y.Size()+3)/4, 256, pointer(b.out(0)), pointer(b.in(0)), raw(0), raw(1), i64(y.Size()))
	return nil
}
