package cpu

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	offer(forFloats(prepareMaxPool[float32], prepareMaxPool[float64]), ir.MaxPool2d)
	offer(forFloats(prepareMaxPoolGrad[float32], prepareMaxPoolGrad[float64]), ir.MaxPool2dGrad)
	offer(forFloats(prepareAvgPool[float32], prepareAvgPool[float64]), ir.AvgPool2d)
	offer(forFloats(prepareAvgPoolGrad[float32], prepareAvgPoolGrad[float64]), ir.AvgPool2dGrad)
}

// pooling is the sizes of a pooling of planes of h×w to oh×ow.
type pooling struct {
	planes, h, w, oh, ow int
	ir.Pool
}

func newPooling(x, y *ir.Type, a *ir.Attr) *pooling {
	return &pooling{x.Dim(0) * x.Dim(1), x.Dim(2), x.Dim(3), y.Dim(2), y.Dim(3), a.Pool()}
}

// rows and cols are the part of the window of an output row or column that lies within the plane.
func (g *pooling) rows(r int) (lo, hi int) {
	lo = r*g.StrideH - g.PadH
	return max(lo, 0), min(lo+g.KernelH, g.h)
}

func (g *pooling) cols(c int) (lo, hi int) {
	lo = c*g.StrideW - g.PadW
	return max(lo, 0), min(lo+g.KernelW, g.w)
}

func (g *pooling) in() int    { return g.h * g.w }
func (g *pooling) out() int   { return g.oh * g.ow }
func (g *pooling) grain() int { return grainOf(g.out() * g.KernelH * g.KernelW) }

type poolArgs[T any] struct {
	x, y   []T
	places []int64
	bad    fault
}

// plane cuts the arguments of plane i out.
func (a *poolArgs[T]) plane(g *pooling, i int) (x, y []T) {
	return a.x[i*g.in():][:g.in()], a.y[i*g.out():][:g.out()]
}

func prepareMaxPool[T kernels.Float](k *device.Kernel) (run, error) {
	x, y := k.Op.In(0), k.Out[0]
	g := newPooling(x, y, &k.Op.Attr)
	if g.in() == 0 && y.Size() > 0 {
		return nil, fmt.Errorf("max_pool2d of %s: there is no largest value in an empty plane", x)
	}
	planes := newLoop(func(a *poolArgs[T], lo, hi int) {
		for i := lo; i < hi; i++ {
			in, out := a.plane(g, i)
			places := a.places[i*g.out():][:g.out()]
			if g.pairs() {
				maxPairs(g, in, out, places)
			} else {
				maxWindows(g, in, out, places)
			}
		}
	})
	return func(args []device.Arg, _ *device.Params) error {
		planes.run(g.planes, g.grain(), poolArgs[T]{y: elems[T](args[0], y), places: elems[int64](args[1], k.Out[1]), x: elems[T](args[2], x)})
		return nil
	}, nil
}

// pairs reports the common case of windows of 2×2 side by side.
func (g *pooling) pairs() bool {
	return g.Pool == ir.Pool{KernelH: 2, KernelW: 2, StrideH: 2, StrideW: 2}
}

// wins reports whether v takes the place of the largest so far: the first of equals stays; of NaN the last does, as in
// PyTorch.
func wins[T kernels.Float](v, best T) bool { return v > best || v != v }

// maxPairs is the window of 2×2 without padding and overlap.
func maxPairs[T kernels.Float](g *pooling, x, y []T, places []int64) {
	for r := range g.oh {
		at := 2 * r * g.w
		top, low := x[at:][:2*g.ow], x[at+g.w:][:2*g.ow]
		out, place := y[r*g.ow:][:g.ow], places[r*g.ow:][:g.ow]
		if t, ok := any(top).([]float32); ok && pairs32(t, any(low).([]float32), any(out).([]float32), place, at, g.w) {
			continue
		}
		for c := range out {
			best, p := ofPairs(top[2*c], top[2*c+1], low[2*c], low[2*c+1])
			out[c], place[c] = best, int64(at+2*c+p&1+p>>1*g.w)
		}
	}
}

// pairs32 is a row of windows; false when there may be a NaN among them.
func pairs32(top, low, out []float32, place []int64, at, w int) bool {
	var won [256]uint8
	for lo := 0; lo < len(out); lo += len(won) {
		n := min(len(won), len(out)-lo)
		if !kernels.MaxPairs(out[lo:lo+n], won[:n], top[2*lo:], low[2*lo:]) {
			return false
		}
		for c, p := range won[:n] {
			place[lo+c] = int64(at + 2*(lo+c) + int(p&1) + int(p>>1)*w)
		}
	}
	return true
}

// ofPairs is the winner of four and its place.
func ofPairs[T kernels.Float](v0, v1, v2, v3 T) (best T, place int) {
	best = v0
	if wins(v1, best) {
		best, place = v1, 1
	}
	if wins(v2, best) {
		best, place = v2, 2
	}
	if wins(v3, best) {
		best, place = v3, 3
	}
	return best, place
}

func maxWindows[T kernels.Float](g *pooling, x, y []T, places []int64) {
	for r := range g.oh {
		y0, y1 := g.rows(r)
		for c := range g.ow {
			x0, x1 := g.cols(c)
			y[r*g.ow+c], places[r*g.ow+c] = maxWindow(x, g.w, y0, y1, x0, x1)
		}
	}
}

// maxWindow is the winner of rows y0 to y1-1 and columns x0 to x1-1 of a plane of width w, and its place in the plane.
func maxWindow[T kernels.Float](x []T, w, y0, y1, x0, x1 int) (best T, place int64) {
	at := y0*w + x0
	best = x[at]
	for i := y0; i < y1; i++ {
		for j, v := range x[i*w+x0 : i*w+x1] {
			if wins(v, best) {
				best, at = v, i*w+x0+j
			}
		}
	}
	return best, int64(at)
}

func prepareMaxPoolGrad[T kernels.Float](k *device.Kernel) (run, error) {
	y, x := k.Op.In(0), k.Out[0]
	g := newPooling(x, y, &k.Op.Attr)
	planes := newLoop(func(a *poolArgs[T], lo, hi int) {
		for i := lo; i < hi; i++ {
			in, out := a.plane(g, i)
			clear(in)
			for j, p := range a.places[i*g.out():][:g.out()] {
				if uint64(p) >= uint64(len(in)) {
					a.bad.at(i*g.out() + j)
					continue
				}
				in[p] += out[j]
			}
		}
	})
	return func(args []device.Arg, _ *device.Params) error {
		a := planes.run(g.planes, grainOf(g.in()), poolArgs[T]{x: elems[T](args[0], x), y: elems[T](args[1], y), places: elems[int64](args[2], k.Op.In(1))})
		if i, bad := a.bad.first(); bad {
			return fmt.Errorf("place %d of element %d is outside of a plane of %d×%d; pass the places that max_pool2d gave", a.places[i], i, g.h, g.w)
		}
		return nil
	}, nil
}

func prepareAvgPool[T kernels.Float](k *device.Kernel) (run, error) {
	x, y := k.Op.In(0), k.Out[0]
	g := newPooling(x, y, &k.Op.Attr)
	planes := newLoop(func(a *poolArgs[T], lo, hi int) {
		for i := lo; i < hi; i++ {
			in, out := a.plane(g, i)
			avgPlane(g, in, out)
		}
	})
	return func(args []device.Arg, _ *device.Params) error {
		planes.run(g.planes, g.grain(), poolArgs[T]{y: elems[T](args[0], y), x: elems[T](args[1], x)})
		return nil
	}, nil
}

func avgPlane[T kernels.Float](g *pooling, x, y []T) {
	scale := 1 / T(g.KernelH*g.KernelW)
	for r := range g.oh {
		y0, y1 := g.rows(r)
		for c := range g.ow {
			x0, x1 := g.cols(c)
			var sum T
			for i := y0; i < y1; i++ {
				for _, v := range x[i*g.w+x0 : i*g.w+x1] {
					sum += v
				}
			}
			y[r*g.ow+c] = sum * scale
		}
	}
}

func prepareAvgPoolGrad[T kernels.Float](k *device.Kernel) (run, error) {
	y, x := k.Op.In(0), k.Out[0]
	g := newPooling(x, y, &k.Op.Attr)
	planes := newLoop(func(a *poolArgs[T], lo, hi int) {
		for i := lo; i < hi; i++ {
			in, out := a.plane(g, i)
			clear(in)
			spreadPlane(g, in, out)
		}
	})
	return func(args []device.Arg, _ *device.Params) error {
		planes.run(g.planes, g.grain(), poolArgs[T]{x: elems[T](args[0], x), y: elems[T](args[1], y)})
		return nil
	}, nil
}

func spreadPlane[T kernels.Float](g *pooling, x, y []T) {
	scale := 1 / T(g.KernelH*g.KernelW)
	for r := range g.oh {
		y0, y1 := g.rows(r)
		for c := range g.ow {
			x0, x1 := g.cols(c)
			v := y[r*g.ow+c] * scale
			for i := y0; i < y1; i++ {
				row := x[i*g.w+x0 : i*g.w+x1]
				for j := range row {
					row[j] += v
				}
			}
		}
	}
}
