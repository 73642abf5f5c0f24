package cuda

import (
	"fmt"
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(prepareConv, ir.Conv2d)
	offer(prepareConvGradInput, ir.Conv2dGradInput)
	offer(prepareConvGradWeight, ir.Conv2dGradWeight)
}

// convParam is the kernels' struct Conv: x[n,c,h,w] with w[o,c/groups,kh,kw] gives y[n,o,oh,ow].
type convParam struct {
	N, C, H, W, O, KH, KW, OH, OW int32
	StrideH, StrideW, PadH, PadW  int32
	DilationH, DilationW, Groups  int32
}

// convolution is the sizes of one, in int.
type convolution struct {
	x, w, y *ir.Type
	ir.Conv
	dt   dtype.DType
	tf32 bool // f32 operands are rounded so
}

func newConvolution(b *builder, x, w, y *ir.Type) (*convolution, error) {
	c := &convolution{x, w, y, b.op.Attr.Conv(), y.DType, b.precision() == ir.High}
	for _, t := range []*ir.Type{x, w, y} {
		for _, d := range t.Shape() {
			if d > math.MaxInt32 {
				return nil, fmt.Errorf("%s over %v, a size over 2^31: %w", b.op.Code, t, device.ErrUnsupported)
			}
		}
	}
	for _, n := range []int{x.Size() / max(x.Dim(0), 1), w.Size(), y.Size() / max(y.Dim(0), 1)} {
		if n > math.MaxInt32 {
			return nil, fmt.Errorf("%s with %d elements in an image or weight, over 2^31: %w", b.op.Code, n, device.ErrUnsupported)
		}
	}
	return c, nil
}

func (c *convolution) param() param {
	d := func(t *ir.Type, i int) int32 { return int32(t.Dim(i)) }
	return blob(convParam{
		d(c.x, 0), d(c.x, 1), d(c.x, 2), d(c.x, 3), d(c.w, 0), d(c.w, 2), d(c.w, 3), d(c.y, 2), d(c.y, 3),
		int32(c.StrideH), int32(c.StrideW), int32(c.PadH), int32(c.PadW), int32(c.DilationH), int32(c.DilationW), int32(c.Groups),
	})
}

func prepareConv(b *builder) error {
	c, err := newConvolution(b, b.op.In(0), b.op.In(1), b.outs[0])
	if err != nil {
		return err
	}
	if p := c.forward(); c.worthTiles(p) {
		c.planForward(b, p.tiled())
		return nil
	}
	b.linear(suffixed("conv_direct", c.dt), c.y.Size(), 128, pointer(b.out(0)), pointer(b.in(0)), pointer(b.in(1)), c.bias(b), c.param())
	return nil
}

// bias is the address of the third operand, or null.
func (c *convolution) bias(b *builder) param {
	if b.op.NumIn() == 3 {
		return pointer(b.in(2))
	}
	return i64(0)
}

func prepareConvGradInput(b *builder) error {
	c, err := newConvolution(b, b.outs[0], b.op.In(1), b.op.In(0))
	if err != nil {
		return err
	}
	if p := c.gradInput(); c.worthTiles(p) {
		c.planGradInput(b, p.tiled())
		return nil
	}
	b.linear(suffixed("conv_direct_input", c.dt), c.x.Size(), 128, pointer(b.out(0)), pointer(b.in(0)), pointer(b.in(1)), c.param())
	return nil
}

func prepareConvGradWeight(b *builder) error {
	c, err := newConvolution(b, b.op.In(1), b.outs[0], b.op.In(0))
	if err != nil {
		return err
	}
	if p := c.gradWeight(); c.worthTiles(p) {
		c.planGradWeight(b, p.tiled())
		return nil
	}
	b.run(suffixed("conv_direct_weight", c.dt), tileGrid(c.w.Size()), [3]int{128, 1, 1}, 0, pointer(b.out(0)), pointer(b.in(0)), pointer(b.in(1)), c.param())
	return nil
}

// sides is the product that a convolution is, for each group: rows×terms by terms×cols.
type sides struct {
	rows, cols, terms, groups int
	side                      int // of the tiles
}

// tiled chooses large tiles if they are many and mostly full.
func (p sides) tiled() sides {
	p.side = 128
	if p.tiles() < leastLarge || 2*p.rows*p.cols*p.groups < p.tiles()*p.side*p.side {
		p.side = convSide
	}
	return p
}

func (c *convolution) forward() sides {
	return sides{c.w.Dim(0) / c.Groups, c.y.Dim(0) * c.y.Dim(2) * c.y.Dim(3), c.w.Dim(1) * c.w.Dim(2) * c.w.Dim(3), c.Groups, convSide}
}

func (c *convolution) gradInput() sides {
	return sides{c.w.Dim(1), c.x.Dim(0) * c.x.Dim(2) * c.x.Dim(3), c.w.Dim(0) / c.Groups * c.w.Dim(2) * c.w.Dim(3), c.Groups, convSide}
}

func (c *convolution) gradWeight() sides {
	p := c.forward()
	return sides{p.rows, p.terms, p.cols, c.Groups, convSide}
}

// convSide is the side of a convolution's small tiles.
const convSide = 64

// worthTiles reports whether a dtype has tiles and a product fills enough of them. An element on its own costs some 40
// instructions per term, in a tile hardly more than one.
func (c *convolution) worthTiles(p sides) bool {
	const least = 32
	if !p.tileable(c.dt) || c.tf32 { // which only tiles have
		return p.tileable(c.dt)
	}
	full := func(n, to int) float64 { return float64(n) / float64(roundUp(n, to)) }
	return full(p.rows, convSide)*full(p.cols, convSide)*full(p.terms, 128/c.dt.Size()) >= 1.0/least
}

// tileable reports whether there are kernels for tiles of a product at all.
func (p sides) tileable(dt dtype.DType) bool {
	return dt != dtype.F64 && min(p.rows, p.cols, p.terms) > 0 && max(p.rows, p.cols, p.terms, p.tiles()*fullGrid) < math.MaxInt32-convSide
}

func (p sides) param(work int) param {
	return blob([4]int32{int32(p.rows), int32(p.cols), int32(p.terms), int32(work)})
}

func (p sides) tiles() int { return ceilDiv(p.rows, p.side) * ceilDiv(p.cols, p.side) * p.groups }

// run plans a kernel for tiles, which has two stages of two operands in shared memory.
func (c *convolution) run(b *builder, name string, p sides, tiles int, params ...param) {
	threads := 128
	if c.dt == dtype.F32 && !c.tf32 {
		threads = p.side * p.side / 64
	}
	b.run(c.kernel(fmt.Sprint(name, p.side)), tileGrid(tiles), [3]int{threads, 1, 1}, 2*2*p.side*128, params...)
}

// kernel is the name of one for the tensors.
func (c *convolution) kernel(name string) string {
	if c.tf32 {
		return name + "_tf32"
	}
	return suffixed(name, c.dt)
}

// taps plans the table of so many taps, filled up to whole tiles.
func (c *convolution) taps(b *builder, n, input int) ref {
	const size = 16
	padded := roundUp(n, 128)
	table := b.scratch(int64(padded) * size)
	b.linear(c.kernel("conv_taps"), padded, 128, pointer(table), c.param(), i32(n), i32(padded), i32(input))
	return table
}

func (c *convolution) planForward(b *builder, p sides) {
	table := c.taps(b, p.terms, 0)
	c.run(b, "conv", p, p.tiles(),
		pointer(b.out(0)), pointer(b.in(1)), pointer(b.in(0)), c.bias(b), pointer(table), p.param(p.tiles()), c.param(), i32(0))
}

func (c *convolution) planGradInput(b *builder, p sides) {
	turned := b.scratch(int64(c.w.Size() * c.dt.Size()))
	b.linear(c.kernel("conv_turn"), c.w.Size(), 256, pointer(turned), pointer(b.in(1)), c.param())
	table := c.taps(b, p.terms, 1)
	c.run(b, "conv", p, p.tiles(),
		pointer(b.out(0)), pointer(turned), pointer(b.in(0)), i64(0), pointer(table), p.param(p.tiles()), c.param(), i32(1))
}

func (c *convolution) planGradWeight(b *builder, p sides) {
	table := c.taps(b, p.cols, 0)
	splits, perSplit := cutTerms(p.terms, p.tiles(), 128/c.dt.Size())
	partial := i64(0)
	var parts ref
	if splits > 1 {
		parts = b.scratch(int64(splits) * int64(c.w.Size()) * 4)
		partial = pointer(parts)
	}
	c.run(b, "conv_weight", p, p.tiles()*splits,
		pointer(b.out(0)), pointer(b.in(0)), pointer(b.in(1)), partial, pointer(table), p.param(p.tiles()*splits), c.param(), i32(splits), i32(perSplit))
	if splits > 1 {
		sum := partSum{c: b.out(0), parts: parts, perBatch: p.rows * p.cols, size: c.w.Size(), cols: p.cols, splits: splits}
		sum.plan(b, c.dt)
	}
}
