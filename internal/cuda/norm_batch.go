package cuda

import "github.com/warpline-ml/warpline/internal/ir"

func init() {
	offer(prepareBatchNorm, ir.BatchNorm)
	offer(prepareBatchNormEval, ir.BatchNormEval)
	offer(prepareBatchNormGrad, ir.BatchNormGrad)
	offer(prepareTrackMoments, ir.TrackMoments)
}

// channels is the kernels' Channels.
type channels struct {
	N, PerRange int64
	C, S        int32
	Ranges      int32
	_           int32
}

// batchThreads is the number of threads of a block of the kernels.
const batchThreads = 256

// batch is how x[n,c,s] is cut into blocks.
type batch struct {
	channels    channels
	grid, block [3]int
}

// batchOf takes 32 channels to a block where runs are short. Ranges have at least 8 values for each thread, and a whole
// number of the kernels' steps.
func (b *builder) batchOf(x *ir.Type) (*batch, error) {
	n, c, s := x.Dim(0), x.Dim(1), x.Dim(2)
	if !x.DType.IsFloat() || max(c, s) > most32 {
		return nil, b.unsupported(x.DType)
	}
	if x.Size() == 0 {
		return &batch{}, nil
	}
	wide := 1
	if s < 8 {
		wide = 32
	}
	tiles := ceilDiv(c, wide)
	perRange, _ := rangesOf(n*s, tiles, 8*batchThreads/wide)
	perRange = roundUp(perRange, 4)
	ranges := ceilDiv(n*s, perRange)
	return &batch{channels{N: int64(n), PerRange: int64(perRange), C: int32(c), S: int32(s), Ranges: int32(ranges)},
		[3]int{tiles, ranges, 1}, [3]int{wide, batchThreads / wide, 1}}, nil
}

// parts reserves a pair of numbers for each range of each channel.
func (t *batch) parts(b *builder, x *ir.Type) param {
	return pointer(b.scratch(int64(t.channels.Ranges) * int64(t.channels.C) * int64(2*ir.Wide(x.DType).Size())))
}

func (t *batch) run(b *builder, kernel string, x *ir.Type, params ...param) {
	b.run(suffixed(kernel, x.DType), t.grid, t.block, 0, params...)
}

func prepareBatchNorm(b *builder) error {
	x := b.op.In(0)
	t, err := b.batchOf(x)
	if err != nil {
		return err
	}
	parts := t.parts(b, x)
	t.run(b, "batchnorm_moments", x, parts, pointer(b.in(0)), blob(t.channels))
	t.run(b, "batchnorm", x, pointer(b.out(0)), pointer(b.out(1)), pointer(b.out(2)), pointer(b.in(0)), pointer(b.in(1)), pointer(b.in(2)),
		b.optional(3), parts, blob(t.channels), scalar(0, x.DType), b.relu())
	return nil
}

// relu is whether the activation is ReLU, else there is none.
func (b *builder) relu() param {
	if b.op.Attr.Act == ir.ActReLU {
		return i32(1)
	}
	return i32(0)
}

func prepareBatchNormEval(b *builder) error {
	x := b.op.In(0)
	t, err := b.batchOf(x)
	if err != nil {
		return err
	}
	t.run(b, "batchnorm", x, pointer(b.out(0)), pointer(b.in(1)), pointer(b.in(2)), pointer(b.in(0)), pointer(b.in(3)), pointer(b.in(4)),
		b.optional(5), i64(0), blob(t.channels), scalar(0, x.DType), b.relu())
	return nil
}

// prepareBatchNormGrad fills dw and db with zeros where no channel has a value. Where the gradient of what was added is
// wanted, the first kernel leaves it for the second to read.
func prepareBatchNormGrad(b *builder) error {
	x := b.op.In(1)
	t, err := b.batchOf(x)
	if err != nil {
		return err
	}
	if x.Size() == 0 {
		bytes := int64(x.Dim(1) * ir.Wide(x.DType).Size())
		b.zero(b.out(1), bytes)
		b.zero(b.out(2), bytes)
		return nil
	}
	parts, y := t.parts(b, x), b.optional(5)
	dr, behind, mask := i64(0), pointer(b.in(0)), y
	if b.op.Attr.Flag&ir.Residual != 0 {
		dr = pointer(b.out(3))
		behind, mask = dr, i64(0)
	}
	t.run(b, "batchnormgrad_sums", x, parts, dr, pointer(b.in(0)), pointer(b.in(1)), pointer(b.in(2)), pointer(b.in(3)), y,
		blob(t.channels), scalar(0, x.DType))
	t.run(b, "batchnormgrad", x, pointer(b.out(0)), pointer(b.out(1)), pointer(b.out(2)), behind, pointer(b.in(1)), pointer(b.in(2)),
		pointer(b.in(3)), pointer(b.in(4)), mask, parts, blob(t.channels), scalar(0, x.DType))
	return nil
}

func prepareTrackMoments(b *builder) error {
	t := b.op.In(0)
	if t.DType.Size() < 4 {
		return b.unsupported(t.DType)
	}
	var params []param
	for i := range b.outs {
		params = append(params, pointer(b.out(i)))
	}
	for i := range b.op.NumIn() {
		params = append(params, pointer(b.in(i)))
	}
	params = append(params, i32(t.Size()), scalar(0, t.DType), scalar(1, t.DType))
	b.run(suffixed("track_moments", t.DType), [3]int{max(ceilDiv(t.Size(), 256), 1), 1, 1}, [3]int{256, 1, 1}, 0, params...)
	return nil
}
