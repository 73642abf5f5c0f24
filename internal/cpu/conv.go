package cpu

import (
	"unsafe"

	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Convolutions are products. Per image and group, the input is unfolded into a matrix with a row for each tap (channel
// and kernel position) and a column for each output position, a few output rows at a time, so that it stays in the
// second-level cache. What needs no unfolding (1×1, stride 1, no padding) is multiplied as it lies.

func init() {
	offer(forFloats(prepareConv[float32], prepareConv[float64]), ir.Conv2d)
	offer(forFloats(prepareConvGradInput[float32], prepareConvGradInput[float64]), ir.Conv2dGradInput)
	offer(forFloats(prepareConvGradWeight[float32], prepareConvGradWeight[float64]), ir.Conv2dGradWeight)
}

// convolution is the sizes of one: x[n,c,h,w] with w[o,c/groups,kh,kw] gives y[n,o,oh,ow].
type convolution struct {
	n, c, h, w int
	o, kh, kw  int
	oh, ow     int
	ir.Conv
	cg, og int // channels per group
	taps   int // rows of the unfolded matrix: cg·kh·kw
}

func newConvolution(x, w, y *ir.Type, a *ir.Attr) *convolution {
	g := &convolution{
		n: x.Dim(0), c: x.Dim(1), h: x.Dim(2), w: x.Dim(3),
		o: w.Dim(0), kh: w.Dim(2), kw: w.Dim(3), oh: y.Dim(2), ow: y.Dim(3), Conv: a.Conv(),
	}
	return g.split()
}

func (g *convolution) split() *convolution {
	g.cg, g.og = g.c/g.Groups, g.o/g.Groups
	g.taps = g.cg * g.kh * g.kw
	return g
}

// plain reports whether the input is its own unfolded matrix.
func (g *convolution) plain() bool {
	return g.kh == 1 && g.kw == 1 && g.StrideH == 1 && g.StrideW == 1 && g.PadH == 0 && g.PadW == 0
}

// unfolded is the number of elements an unfolded matrix should have at most.
const unfolded = 96 << 10

// tile is the number of output rows that are unfolded at a time when there are taps rows in the matrix.
func (g *convolution) tile(taps int) int {
	rows := min(max(unfolded/max(taps*g.ow, 1), 1), max(g.oh, 1))
	tiles := (g.oh + rows - 1) / rows
	return (g.oh + tiles - 1) / max(tiles, 1)
}

// forward is y = x∗w + bias over units of one image, group and tile.
type forward[T kernels.Float] struct {
	*convolution
	rows  int // of a tile
	tiles int
	space *spare[[]T]
	units *loop[convArgs[T]]
}

type convArgs[T any] struct{ y, x, w, bias []T }

func newForward[T kernels.Float](g *convolution) *forward[T] {
	f := &forward[T]{convolution: g, rows: g.tile(g.taps), tiles: 1}
	if g.plain() {
		f.rows = g.oh
	} else {
		f.tiles = (g.oh + f.rows - 1) / max(f.rows, 1)
		f.space = newBuffers[T](g.taps * f.rows * g.ow)
	}
	f.units = newLoop(f.chunk)
	return f
}

func (f *forward[T]) run(a convArgs[T]) {
	if f.taps == 0 {
		f.constant(a)
		return
	}
	f.units.run(f.n*f.Groups*f.tiles, max(1, 1<<18/max(f.og*f.taps*f.rows*f.ow, 1<<8)), a)
}

// constant is the result without taps.
func (f *forward[T]) constant(a convArgs[T]) {
	clear(a.y)
	if plane := f.oh * f.ow; a.bias != nil && plane > 0 {
		for i := 0; i < len(a.y); i += plane {
			fill(a.y[i:][:plane], a.bias[i/plane%f.o])
		}
	}
}

func (f *forward[T]) chunk(a *convArgs[T], lo, hi int) {
	var col []T
	if f.space != nil {
		b := f.space.get()
		defer f.space.put(b)
		col = *b
	}
	for u := lo; u < hi; u++ {
		tile, grp, img := u%f.tiles, u/f.tiles%f.Groups, u/(f.tiles*f.Groups)
		x := a.x[(img*f.c+grp*f.cg)*f.h*f.w:][:f.cg*f.h*f.w]
		r0 := tile * f.rows
		r1 := min(r0+f.rows, f.oh)
		n := (r1 - r0) * f.ow
		in := rowsOf(x, f.h*f.w)
		if f.space != nil {
			unfold(f.convolution, col, x, f.cg, r0, r1)
			in = rowsOf(col, n)
		}
		plane := f.oh * f.ow
		y := a.y[(img*f.o+grp*f.og)*plane+r0*f.ow:]
		if a.bias != nil {
			for i, b := range a.bias[grp*f.og:][:f.og] {
				fill(y[i*plane:][:n], b)
			}
		}
		gemm(f.og, n, f.taps, rowsOf(a.w[grp*f.og*f.taps:], f.taps), in, y, plane, a.bias != nil)
	}
}

func prepareConv[T kernels.Float](k *device.Kernel) (run, error) {
	x, w, y := k.Op.In(0), k.Op.In(1), k.Out[0]
	f := newForward[T](newConvolution(x, w, y, &k.Op.Attr))
	biased := k.Op.NumIn() == 3
	return func(args []device.Arg, _ *device.Params) error {
		a := convArgs[T]{y: elems[T](args[0], y), x: elems[T](args[1], x), w: elems[T](args[2], w)}
		if biased {
			a.bias = elems[T](args[3], k.Op.In(2))
		}
		f.run(a)
		return nil
	}, nil
}

// prepareConvGradInput chooses between two forms. With stride 1 the gradient is itself a convolution, of g with the
// mirrored weight, whose channels change places. Else what a product with the transposed weight gives is folded back.
func prepareConvGradInput[T kernels.Float](k *device.Kernel) (run, error) {
	g, w, x := k.Op.In(0), k.Op.In(1), k.Out[0]
	c := newConvolution(x, w, g, &k.Op.Attr)
	padH, padW := c.DilationH*(c.kh-1)-c.PadH, c.DilationW*(c.kw-1)-c.PadW
	if c.StrideH != 1 || c.StrideW != 1 || padH < 0 || padW < 0 {
		f := newFolding[T](c)
		return func(args []device.Arg, _ *device.Params) error {
			f.units.run(c.n*c.Groups, max(1, 1<<18/max(c.og*c.taps*c.oh*c.ow, 1<<8)),
				convArgs[T]{y: elems[T](args[0], x), x: elems[T](args[1], g), w: elems[T](args[2], w)})
			return nil
		}, nil
	}
	back := &convolution{n: c.n, c: c.o, h: c.oh, w: c.ow, o: c.c, kh: c.kh, kw: c.kw, oh: c.h, ow: c.w, Conv: c.Conv}
	back.PadH, back.PadW = padH, padW
	f := newForward[T](back.split())
	var zero T
	k.Workspace = int64(w.Size()) * int64(unsafe.Sizeof(zero))
	mirror := newLoop(func(a *convArgs[T], lo, hi int) {
		for i := lo; i < hi; i++ {
			mirrored(c, i, a)
		}
	})
	return func(args []device.Arg, _ *device.Params) error {
		a := convArgs[T]{y: elems[T](args[0], x), x: elems[T](args[1], g)}
		if w.Size() > 0 {
			a.w = workspace[T](args[3], 0, w.Size())
			mirror.run(c.c, grainOf(c.og*c.kh*c.kw), convArgs[T]{y: a.w, w: elems[T](args[2], w)})
		}
		f.run(a)
		return nil
	}, nil
}
