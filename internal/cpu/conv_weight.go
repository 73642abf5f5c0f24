package cpu

import (
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
)

// weightGrad is dw = Σ g·patchesᵀ over the positions of all images. A unit is a group, a block of its input channels
// and a range of panels of positions. With several ranges each has its own sum in the workspace, and the sums are added
// in the order of the positions.
type weightGrad[T kernels.Float] struct {
	*convolution
	x, g   patches // what taps see, and the gradient itself
	block  int     // channels
	blocks int
	ranges int
	panels int // in a range
	slice  int // panels that are packed at a time
	units  *loop[convArgs[T]]
	join   *loop[convArgs[T]]
}

const (
	weightColumns = 288       // of dw that a unit computes, roughly
	weightPacked  = 128 << 10 // elements of packed patches at a time
	weightUnits   = 8         // to aim at
)

func newWeightGrad[T kernels.Float](g *convolution) *weightGrad[T] {
	area, plane := max(g.kh*g.kw, 1), g.oh*g.ow
	f := &weightGrad[T]{convolution: g, x: g.seen()}
	f.g = patches{channels: g.og, grid: grid{g.n, g.oh, g.ow, g.o * plane, plane, g.ow, 1, false}, byTap: true}
	f.g.taps = []tap{f.g.all()}
	f.blocks = max(cuts(g.cg, max(weightColumns/area, 1)), 1)
	f.block = max(cuts(g.cg, f.blocks), 1)
	f.blocks = cuts(g.cg, f.block)
	all := f.g.grid.panels()
	f.slice = max(min(weightPacked/(max(f.block*area, g.og, 1)*kernels.PanelCols), all), 1)
	f.ranges = max(min(cuts(weightUnits, max(g.Groups*f.blocks, 1)), cuts(all, f.slice)), 1)
	f.panels = max(cuts(all, f.ranges), 1)
	f.ranges = max(cuts(all, f.panels), 1)
	f.units, f.join = newLoop(f.chunk), newLoop(f.add)
	return f
}

func prepareConvGradWeight32(k *device.Kernel) (run, error) {
	g, x, w := k.Op.In(0), k.Op.In(1), k.Out[0]
	c := newConvolution(x, w, g, &k.Op.Attr)
	f := newWinogradGrad(c)
	if f == nil {
		if f := newHalvingGrad(c); f != nil {
			return prepareSums(k, f), nil
		}
		if f := newShiftedGrad(c); f != nil {
			return prepareSums(k, f), nil
		}
		return prepareConvGradWeight[float32](k)
	}
	return prepareSums(k, f), nil
}

// prepareSums has the gradient computed by f. The workspace has its sums.
func prepareSums(k *device.Kernel, f interface {
	size() int
	run(a convArgs[float32], space []float32)
}) run {
	g, x, w := k.Op.In(0), k.Op.In(1), k.Out[0]
	k.Workspace = sizeOf[float32](f.size())
	return func(args []device.Arg, _ *device.Params) error {
		a := convArgs[float32]{w: elems[float32](args[0], w), y: elems[float32](args[1], g), x: elems[float32](args[2], x)}
		f.run(a, workspace[float32](args[3], 0, f.size()))
		return nil
	}
}

func prepareConvGradWeight[T kernels.Float](k *device.Kernel) (run, error) {
	g, x, w := k.Op.In(0), k.Op.In(1), k.Out[0]
	c := newConvolution(x, w, g, &k.Op.Attr)
	f, split := newWeightGrad[T](c), newSplitter[T](c)
	k.Workspace = aligned(sizeOf[T](split.size()))
	sums := k.Workspace
	if f.ranges > 1 {
		k.Workspace += sizeOf[T](f.ranges * w.Size())
	}
	return func(args []device.Arg, _ *device.Params) error {
		a := convArgs[T]{w: elems[T](args[0], w), y: elems[T](args[1], g), x: elems[T](args[2], x)}
		if split.size() > 0 {
			a.x = split.run(a.x, workspace[T](args[3], 0, split.size()))
		}
		switch {
		case w.Size() == 0:
		case f.ranges == 1:
			f.units.run(f.Groups*f.blocks, 1, a)
		default:
			parts := a
			parts.w = workspace[T](args[3], sums, f.ranges*w.Size())
			f.units.run(f.Groups*f.blocks*f.ranges, 1, parts)
			f.join.run(w.Size(), 1<<13, convArgs[T]{w: a.w, x: parts.w})
		}
		return nil
	}, nil
}

func (f *weightGrad[T]) chunk(a *convArgs[T], lo, hi int) {
	pool := convScratchOf[T]()
	s := pool.get()
	defer pool.put(s)
	for u := lo; u < hi; u++ {
		part, blk, grp := u/(f.blocks*f.Groups), u%f.blocks, u/f.blocks%f.Groups
		first := part * f.panels
		last := min(first+f.panels, f.g.grid.panels())
		dw := a.w[(part*f.o+grp*f.og)*f.taps+blk*f.block*f.kh*f.kw:]
		for j := first; j == first || j < last; j += f.slice {
			f.step(a, s, dw, grp, blk*f.block, j, min(f.slice, last-j), j > first)
		}
	}
}

// step adds what n panels of positions from j on give to a block of channels from c on.
func (f *weightGrad[T]) step(a *convArgs[T], s *convScratch[T], dw []T, grp, c, j, n int, add bool) {
	channels := min(f.block, f.cg-c)
	cols := channels * f.kh * f.kw
	steps := 0
	if n > 0 {
		_, last := f.g.span(j + n - 1)
		steps = (n-1)*kernels.PanelCols + last
		f.packColumns(s, a.x[(grp*f.cg+c)*f.x.plane:], channels, steps, j, n)
		f.packRows(s, a.y[grp*f.og*f.g.plane:], j, n)
	}
	rows, _ := kernels.PanelRows[T]()
	rows = cuts(f.og, cuts(f.og, rows))
	for top := 0; top < f.og; top += rows {
		p := kernels.Panel[T]{Rows: min(rows, f.og-top), K: steps, ARow: f.rowsApart(n), ACol: 1, CRow: f.taps, Accumulate: add}
		p.A = s.a[min(top*p.ARow, len(s.a)):]
		for left := 0; left < cols; left += kernels.PanelCols {
			p.Cols = min(kernels.PanelCols, cols-left)
			p.B, p.C = s.b[left*steps:], dw[top*f.taps+left:]
			p.Multiply()
		}
	}
}

// rowsApart is the distance between rows of the gradient of n panels. It is no multiple of a page, or they would share
// a set of the cache.
func (f *weightGrad[T]) rowsApart(n int) int { return (n + 1) * kernels.PanelCols }

// packColumns packs what n panels of positions see of some channels as panels whose columns are taps.
func (f *weightGrad[T]) packColumns(s *convScratch[T], x []T, channels, steps, j, n int) {
	const size = kernels.PanelCols
	cols := channels * f.kh * f.kw
	seen, b := scratchOf(&s.c, cols*size), scratchOf(&s.b, cuts(cols, size)*size*steps)
	k := kernels.Packing[T]{Dst: seen, Src: x, SrcRow: f.x.plane, Rows: channels}
	k.DstTap, k.DstRow = f.x.packed(channels)
	for i := range n {
		packPatches(&f.x, &s.view, &k, j+i)
		_, lanes := f.g.span(j + i)
		for left := 0; left < cols; left += size {
			kernels.PackLanes(b[left*steps+i*size*size:], size, seen[left*size:], size, 1, min(size, cols-left), lanes)
		}
	}
}

// packRows lays out n panels of the gradient as rows of positions.
func (f *weightGrad[T]) packRows(s *convScratch[T], g []T, j, n int) {
	apart := f.rowsApart(n)
	rows := scratchOf(&s.a, f.og*apart)
	k := kernels.Packing[T]{DstRow: apart, Src: g, SrcRow: f.g.plane, Rows: f.og}
	for i := range n {
		k.Dst = rows[i*kernels.PanelCols:]
		packPatches(&f.g, &s.view, &k, j+i)
	}
}

// add joins the sums of the ranges.
func (f *weightGrad[T]) add(a *convArgs[T], lo, hi int) {
	dw := a.w[lo:hi]
	copy(dw, a.x[lo:hi])
	for p := 1; p < f.ranges; p++ {
		for i, v := range a.x[p*len(a.w)+lo : p*len(a.w)+hi] {
			dw[i] += v
		}
	}
}
