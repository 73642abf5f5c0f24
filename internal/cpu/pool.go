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

// pooling is a pooling of so many planes.
type pooling struct {
	planes int
	kernels.Pooling
}

func newPooling(x, y *ir.Type, a *ir.Attr) *pooling {
	p := a.Pool()
	return &pooling{x.Dim(0) * x.Dim(1), kernels.Pooling{H: x.Dim(2), W: x.Dim(3), OH: y.Dim(2), OW: y.Dim(3), KernelH: p.KernelH, KernelW: p.KernelW,
		StrideH: p.StrideH, StrideW: p.StrideW, PadH: p.PadH, PadW: p.PadW}}
}

func (g *pooling) in() int    { return g.H * g.W }
func (g *pooling) out() int   { return g.OH * g.OW }
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
	vectors := kernels.NewMaxPool(&g.Pooling)
	planes := newLoop(func(a *poolArgs[T], lo, hi int) {
		for i := lo; i < hi; i++ {
			in, out := a.plane(g, i)
			maxPlane(g, vectors, in, out, a.places[i*g.out():][:g.out()])
		}
	})
	return func(args []device.Arg, _ *device.Params) error {
		planes.run(g.planes, g.grain(), poolArgs[T]{y: elems[T](args[0], y), places: elems[int64](args[1], k.Out[1]), x: elems[T](args[2], x)})
		return nil
	}, nil
}

// maxPlane pools a plane, in assembly if it can.
func maxPlane[T kernels.Float](g *pooling, vectors *kernels.MaxPool, in, out []T, places []int64) {
	if x, ok := any(in).([]float32); ok && vectors.Plane(any(out).([]float32), places, x) {
		return
	}
	if g.Pairs() {
		maxPairs(g, in, out, places)
	} else {
		maxWindows(g, in, out, places)
	}
}

// wins reports whether v takes the place of the largest so far: the first of equals stays; of NaN the last does, as in
// PyTorch.
func wins[T kernels.Float](v, best T) bool { return v > best || v != v }

// maxPairs is the window of 2×2 without padding and overlap.
func maxPairs[T kernels.Float](g *pooling, x, y []T, places []int64) {
	for r := range g.OH {
		at := 2 * r * g.W
		top, low := x[at:][:2*g.OW], x[at+g.W:][:2*g.OW]
		out, place := y[r*g.OW:][:g.OW], places[r*g.OW:][:g.OW]
		if t, ok := any(top).([]float32); ok && pairs32(t, any(low).([]float32), any(out).([]float32), place, at, g.W) {
			continue
		}
		for c := range out {
			best, p := ofPairs(top[2*c], top[2*c+1], low[2*c], low[2*c+1])
			out[c], place[c] = best, int64(at+2*c+p&1+p>>1*g.W)
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
	for r := range g.OH {
		y0, y1 := g.Rows(r)
		for c := range g.OW {
			x0, x1 := g.Cols(c)
			y[r*g.OW+c], places[r*g.OW+c] = maxWindow(x, g.W, y0, y1, x0, x1)
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
			places := a.places[i*g.out():][:g.out()]
			if x, ok := any(in).([]float32); ok && kernels.MaxPairsGrad(&g.Pooling, x, any(out).([]float32), places) {
				continue
			}
			clear(in)
			for j, p := range places {
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
			return fmt.Errorf("place %d of element %d is outside of a plane of %d×%d; pass the places that max_pool2d gave", a.places[i], i, g.H, g.W)
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
	for r := range g.OH {
		y0, y1 := g.Rows(r)
		for c := range g.OW {
			x0, x1 := g.Cols(c)
			var sum T
			for i := y0; i < y1; i++ {
				for _, v := range x[i*g.W+x0 : i*g.W+x1] {
					sum += v
				}
			}
			y[r*g.OW+c] = sum * scale
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
	for r := range g.OH {
		y0, y1 := g.Rows(r)
		for c := range g.OW {
			x0, x1 := g.Cols(c)
			v := y[r*g.OW+c] * scale
			for i := y0; i < y1; i++ {
				row := x[i*g.W+x0 : i*g.W+x1]
				for j := range row {
					row[j] += v
				}
			}
		}
	}
}
