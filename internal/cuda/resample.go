package cuda

import "github.com/warpline-ml/warpline/internal/ir"

func init() {
	offer(prepareResample, ir.Resample)
	offer(prepareResampleGrad, ir.ResampleGrad)
}

// resampling is the kernels' Resampling.
type resampling struct {
	outer             int64
	n, out, inner     divisor64
	curve, corners    int32
	step, reach, wide float64
}

// resamplingOf is the resampling of x.
func resamplingOf(x *ir.Type, a *ir.Attr) param {
	r, v := a.Resampling(), splitAt(x, a.Axis)
	p := resampling{outer: int64(v.outer), n: divideBy(v.n), out: divideBy(r.Size), inner: divideBy(v.inner), curve: int32(r.Curve), corners: a.Dims[2], step: r.Step, reach: 2}
	if r.Curve > ir.Cubics {
		p.reach, p.wide = r.Reach()
	}
	return blob(p)
}

func prepareResample(b *builder) error {
	x, y := b.op.In(0), b.outs[0]
	b.linear(suffixed("resample", x.DType), y.Size(), 256, pointer(b.out(0)), pointer(b.in(0)), resamplingOf(x, &b.op.Attr))
	return nil
}

func prepareResampleGrad(b *builder) error {
	x := b.outs[0]
	b.linear(suffixed("resample_grad", x.DType), x.Size(), 256, pointer(b.out(0)), pointer(b.in(0)), resamplingOf(x, &b.op.Attr))
	return nil
}
