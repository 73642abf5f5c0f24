package cuda

import (
	"fmt"
	"math"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(prepareMaxPool, ir.MaxPool2d)
	offer(prepareMaxPoolGrad, ir.MaxPool2dGrad)
	offer(prepareAvgPool, ir.AvgPool2d)
	offer(prepareAvgPoolGrad, ir.AvgPool2dGrad)
}

// pooling is the kernels' Pool.
type pooling struct {
	planes                                         int64
	h, w, oh, ow                                   divisor64
	kernelH, kernelW, strideH, strideW, padH, padW int32
}

// poolingOf is a pooling of planes of x to planes of y.
func poolingOf(x, y *ir.Type, a *ir.Attr) (param, error) {
	for _, side := range x.Shape()[2:] {
		if side > math.MaxInt32-2*math.MaxInt16 {
			return param{}, fmt.Errorf("pooling of %s, whose planes have a side above 2^31: %w", x, device.ErrUnsupported)
		}
	}
	d := &a.Dims
	return blob(pooling{int64(x.Dim(0) * x.Dim(1)), divideBy(x.Dim(2)), divideBy(x.Dim(3)), divideBy(y.Dim(2)), divideBy(y.Dim(3)),
		d[0], d[1], d[2], d[3], d[4], d[5]}), nil
}

func prepareMaxPool(b *builder) error {
	x, y := b.op.In(0), b.outs[0]
	if x.Dim(2)*x.Dim(3) == 0 && y.Size() > 0 {
		return fmt.Errorf("max_pool2d of %s: there is no largest value in an empty plane", x)
	}
	p, err := poolingOf(x, y, &b.op.Attr)
	b.linear(suffixed("max_pool2d", x.DType), y.Size(), 256, pointer(b.out(0)), pointer(b.out(1)), pointer(b.in(0)), p)
	return err
}

func prepareAvgPool(b *builder) error {
	x, y := b.op.In(0), b.outs[0]
	p, err := poolingOf(x, y, &b.op.Attr)
	b.linear(suffixed("avg_pool2d", x.DType), y.Size(), 256, pointer(b.out(0)), pointer(b.in(0)), p)
	return err
}

func prepareAvgPoolGrad(b *builder) error {
	y, x := b.op.In(0), b.outs[0]
	p, err := poolingOf(x, y, &b.op.Attr)
	b.linear(suffixed("avg_pool2d_grad", x.DType), x.Size(), 256, pointer(b.out(0)), pointer(b.in(0)), p)
	return err
}

// prepareMaxPoolGrad gives each plane a block of as many threads as it keeps busy.
func prepareMaxPoolGrad(b *builder) error {
	y, x := b.op.In(0), b.outs[0]
	p, err := poolingOf(x, y, &b.op.Attr)
	threads := min(max(powerOf2(x.Dim(2)*x.Dim(3)), 32), 256)
	b.run(suffixed("max_pool2d_grad", x.DType), [3]int{x.Dim(0) * x.Dim(1), 1, 1}, [3]int{threads, 1, 1}, 0,
		pointer(b.out(0)), pointer(b.in(0)), pointer(b.in(1)), p, fault(), serial())
	return err
}
