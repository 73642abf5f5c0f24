package cpu

import (
	"unsafe"

	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Convolutions are products of the weight with patches: a row for each tap (channel and kernel position) and a column
// for each output position of all images. Patches are packed from the input as the micro-kernels read them, a few
// panels at a time, so that they stay in the second-level cache. Planes may be small: a panel goes over many images.

func init() {
	offer(forFloats(precise(prepareConv32), prepareConv[float64]), ir.Conv2d)
	offer(forFloats(precise(prepareConvGradInput32), prepareConvGradInput[float64]), ir.Conv2dGradInput)
	offer(forFloats(precise(prepareConvGradWeight32), prepareConvGradWeight[float64]), ir.Conv2dGradWeight)
}

// convolution is the sizes of one: x[n,c,h,w] with w[o,c/groups,kh,kw] gives y[n,o,oh,ow].
type convolution struct {
	n, c, h, w int
	o, kh, kw  int
	oh, ow     int
	ir.Conv
	cg, og int // channels per group
	taps   int // rows of the matrix of patches: cg·kh·kw
}

func newConvolution(x, w, y *ir.Type, a *ir.Attr) *convolution {
	g := &convolution{
		n: x.Dim(0), c: x.Dim(1), h: x.Dim(2), w: x.Dim(3),
		o: w.Dim(0), kh: w.Dim(2), kw: w.Dim(3), oh: y.Dim(2), ow: y.Dim(3), Conv: a.Conv(),
	}
	g.cg, g.og = g.c/g.Groups, g.o/g.Groups
	g.taps = g.cg * g.kh * g.kw
	return g
}

// sizeOf is the bytes of n elements.
func sizeOf[T any](n int) int64 {
	var zero T
	return int64(n) * int64(unsafe.Sizeof(zero))
}

// newForward is y = x∗w + bias.
func newForward[T kernels.Float](g *convolution) *implicit[T] {
	area := g.kh * g.kw
	f := &implicit[T]{patches: g.seen(), groups: g.Groups, m: g.og,
		to:      grid{g.n, g.oh, g.ow, g.o * g.oh * g.ow, g.oh * g.ow, g.ow, 1, false},
		weights: weights{row: g.taps, channel: area, group: g.og * g.taps}}
	f.group = g.cg * f.plane
	for t := range area {
		f.weights.taps = append(f.weights.taps, t)
	}
	if s := splitOf(g); s.high == g.StrideH {
		f.shifts = newShifts(g.oh*g.ow, s.height, s.width, g.away(&s))
		f.split = newSplitter[T](g)
	}
	f.plan()
	return f
}

// prepareConv32 takes Winograd's form where it pays.
func prepareConv32(k *device.Kernel) (run, error) {
	x, w, y := k.Op.In(0), k.Op.In(1), k.Out[0]
	g := newConvolution(x, w, y, &k.Op.Attr)
	f := newWinograd(g, false)
	if f == nil {
		if f := newHalving(g, false); f != nil {
			return prepareHalving(k, f, 0, 1), nil
		}
		return prepareConv[float32](k)
	}
	k.Workspace = sizeOf[float32](f.size())
	inputs := k.Op.NumIn()
	return func(args []device.Arg, _ *device.Params) error {
		a := convArgs[float32]{y: elems[float32](args[0], y), x: elems[float32](args[1], x), w: elems[float32](args[2], w)}
		if inputs == 3 {
			a.bias = elems[float32](args[3], k.Op.In(2))
		}
		f.run(a, workspace[float32](args[1+inputs], 0, f.size()))
		return nil
	}, nil
}

func prepareConv[T kernels.Float](k *device.Kernel) (run, error) {
	x, w, y := k.Op.In(0), k.Op.In(1), k.Out[0]
	g := newConvolution(x, w, y, &k.Op.Attr)
	f := newForward[T](g)
	var split *splitter[T] // of all planes at once, where their parts are not copied anyway
	if f.shifts == nil {
		split = newSplitter[T](g)
	}
	k.Workspace = sizeOf[T](split.size())
	inputs := k.Op.NumIn()
	return func(args []device.Arg, _ *device.Params) error {
		a := convArgs[T]{y: elems[T](args[0], y), x: elems[T](args[1], x), w: elems[T](args[2], w)}
		if inputs == 3 {
			a.bias = elems[T](args[3], k.Op.In(2))
		}
		if split.size() > 0 {
			a.x = split.run(a.x, workspace[T](args[1+inputs], 0, split.size()))
		}
		f.run(a)
		return nil
	}, nil
}

// newBackward is the gradient by the input at rows top, top+StrideH, … and columns left, left+StrideW, …: a convolution
// of g with the taps that meet those, without steps.
func newBackward[T kernels.Float](g *convolution, top, left int) *implicit[T] {
	area, plane := g.kh*g.kw, g.oh*g.ow
	rows, cols := cuts(g.h-top, g.StrideH), cuts(g.w-left, g.StrideW)
	f := &implicit[T]{groups: g.Groups, m: g.cg, group: g.og * plane, base: top*g.w + left,
		to:      grid{g.n, rows, cols, g.c * g.h * g.w, g.h * g.w, g.StrideH * g.w, g.StrideW, false},
		patches: patches{channels: g.og, grid: grid{g.n, rows, cols, g.o * plane, plane, g.ow, 1, false}},
		weights: weights{row: area, channel: g.taps, group: g.og * g.taps}}
	var seen []away
	for t := range area {
		dy, dx := top+g.PadH-t/g.kw*g.DilationH, left+g.PadW-t%g.kw*g.DilationW
		if dy%g.StrideH != 0 || dx%g.StrideW != 0 {
			continue
		}
		dy, dx = dy/g.StrideH, dx/g.StrideW
		see := tap{at: dy*g.ow + dx}
		see.top, see.bottom = inside(dy, 1, g.oh, rows)
		see.left, see.right = inside(dx, 1, g.ow, cols)
		f.patches.taps, f.weights.taps = append(f.patches.taps, see), append(f.weights.taps, t)
		seen = append(seen, away{0, dy, dx})
	}
	f.shifts = newShifts(rows*cols, g.oh, g.ow, seen)
	f.plan()
	return f
}

func prepareConvGradInput32(k *device.Kernel) (run, error) {
	g, w, x := k.Op.In(0), k.Op.In(1), k.Out[0]
	c := newConvolution(x, w, g, &k.Op.Attr)
	f := newWinograd(c, true)
	if f == nil {
		if f := newHalving(c, true); f != nil {
			return prepareHalving(k, f, 0, 1), nil
		}
		if f := newWoven(c); f != nil {
			return prepareWoven(k, f), nil
		}
		return prepareConvGradInput[float32](k)
	}
	k.Workspace = sizeOf[float32](f.size())
	return func(args []device.Arg, _ *device.Params) error {
		a := convArgs[float32]{y: elems[float32](args[0], x), x: elems[float32](args[1], g), w: elems[float32](args[2], w)}
		f.run(a, workspace[float32](args[3], 0, f.size()))
		return nil
	}, nil
}

func prepareConvGradInput[T kernels.Float](k *device.Kernel) (run, error) {
	g, w, x := k.Op.In(0), k.Op.In(1), k.Out[0]
	c := newConvolution(x, w, g, &k.Op.Attr)
	var parts []*implicit[T]
	for top := range min(c.StrideH, c.h) {
		for left := range min(c.StrideW, c.w) {
			parts = append(parts, newBackward[T](c, top, left))
		}
	}
	return func(args []device.Arg, _ *device.Params) error {
		for _, f := range parts {
			f.run(convArgs[T]{y: elems[T](args[0], x), x: elems[T](args[1], g), w: elems[T](args[2], w)})
		}
		return nil
	}, nil
}
