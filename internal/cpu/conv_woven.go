package cpu

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
)

// woven is the gradient by the input of a convolution, which a transposed one is, where planes are worth copying: a product for each
// remainder of the rows and columns of the input by the steps, of the taps that meet it. All see the same shifted planes, whose
// rows are as long as those of the first remainder. Columns of the remainders are woven to whole rows as they go to memory.
// Weights are packed once.
type woven struct {
	*convolution
	planes        *shifts
	from          grid        // positions of a remainder, as rows of the gradient's planes
	parts         []wovenPart // by remainders of rows, and of columns
	wide          int         // remainders of columns
	each          int         // panels of a unit
	slices, slice int         // channels of the gradient at a time
	strips, width int         // of packed weights
	packs, units  *loop[convArgs[float32]]
}

// wovenLanes is a multiple of the columns of a tile on some levels: sums have room for what is more than lanes.
const wovenLanes = 16

// wovenPart is a remainder: its taps, and how many those before it have.
type wovenPart struct {
	before int
	taps   []int
	places []seat
}

// newWoven returns nil where it does not pay.
func newWoven(g *convolution) *woven {
	if !kernels.ReadsSteps[float32]() || g.h*g.w == 0 || g.kh*g.kw == 0 {
		return nil
	}
	plane := g.oh * g.ow
	f := &woven{convolution: g, wide: min(g.StrideW, g.w)}
	f.from = grid{g.n, cuts(g.h, g.StrideH), cuts(g.w, g.StrideW), g.o * plane, plane, g.ow, 1, true}
	if !f.findTaps() {
		return nil
	}
	most := 1
	for _, p := range f.parts {
		most = max(most, len(p.taps))
	}
	f.slices = max(cuts(g.og, max(convSteps/most, 1)), 1)
	f.slice = cuts(g.og, f.slices)
	rows, width := kernels.PanelRows[float32]()
	f.strips, f.width = cuts(g.cg, rows), width
	f.each = min(f.planes.most(&f.from, f.slice), f.from.perImage())
	if f.slices > 1 {
		f.each = min(f.each, max(convPacked/(len(f.parts)*g.cg*kernels.PanelCols), 1))
	}
	if few := g.n * g.Groups; few*cuts(f.from.perImage(), f.each) < convUnits/2 {
		f.each = min(f.each, cuts(f.from.perImage(), cuts(convUnits/2, max(few, 1))))
	}
	f.packs, f.units = newLoop(f.pack), newLoop(f.compute)
	return f
}

// findTaps finds what taps see, and reports whether planes are worth copying.
func (f *woven) findTaps() bool {
	var seen []away
	for top := range min(f.StrideH, f.h) {
		for left := range f.wide {
			p := wovenPart{before: len(seen)}
			for t := range f.kh * f.kw {
				dy, dx := top+f.PadH-t/f.kw*f.DilationH, left+f.PadW-t%f.kw*f.DilationW
				if dy%f.StrideH == 0 && dx%f.StrideW == 0 {
					p.taps = append(p.taps, t)
					seen = append(seen, away{0, dy / f.StrideH, dx / f.StrideW})
				}
			}
			f.parts = append(f.parts, p)
		}
	}
	if f.planes = newShifts(f.from.rows*f.from.cols, f.oh, f.ow, seen); f.planes == nil {
		return false
	}
	for i := range f.parts {
		p := &f.parts[i]
		p.places = f.planes.places[p.before:][:len(p.taps)]
	}
	return true
}

// packed is the elements of a strip's weights in a slice, and size those of all.
func (f *woven) packed() int { return len(f.planes.places) * f.slice * f.width }
func (f *woven) size() int   { return f.Groups * f.slices * f.strips * f.packed() }

// run computes the gradient in a.y of that in a.x, with space for the weights.
func (f *woven) run(a convArgs[float32], space []float32) {
	f.packs.run(f.Groups*f.slices*f.strips, 1, convArgs[float32]{y: space, w: a.w})
	a.packed = space
	f.units.run(f.n*f.Groups*cuts(f.from.perImage(), f.each), 1, a)
}

// strip is the channels of a strip.
func (f *woven) strip(i int) (from, n int) { return share(i, f.strips, f.cg) }

// pack packs the weights of strips.
func (f *woven) pack(a *convArgs[float32], lo, hi int) {
	area := f.kh * f.kw
	for u := lo; u < hi; u++ {
		row, n := f.strip(u % f.strips)
		first := u / f.strips % f.slices * f.slice
		channels := min(f.slice, f.og-first)
		w := a.w[(u/(f.strips*f.slices)*f.og+first)*f.taps+row*area:]
		dst := a.y[u*f.packed():]
		for _, p := range f.parts {
			for i, t := range p.taps {
				kernels.PackLanes(dst[(p.before+i)*channels*f.width:], f.width, w[t:], area, f.taps, n, channels)
			}
		}
	}
}

// wovenUnit is panels of a group on an image, and a slice of the channels that they see, under way.
type wovenUnit struct {
	*convScratch[float32]
	x, y, w  []float32 // the gradient from the slice on, the result of the group, and the slice's weights
	b        []float32 // the shifted planes from a panel on
	first, n int       // panels
	channels int
	more     bool // not the first slice
	last     bool
}

// compute computes units.
func (f *woven) compute(a *convArgs[float32], lo, hi int) {
	pool := convScratchOf[float32]()
	s := pool.get()
	defer pool.put(s)
	each := cuts(f.from.perImage(), f.each)
	for u := lo; u < hi; u++ {
		grp, img, first := u/each%f.Groups, u/(each*f.Groups), u%each*f.each
		c := wovenUnit{convScratch: s, first: first, n: min(f.each, f.from.perImage()-first)}
		c.y = a.y[(img*f.c+grp*f.cg)*f.h*f.w:]
		for i := range f.slices {
			c.channels, c.more, c.last = min(f.slice, f.og-i*f.slice), i > 0, i == f.slices-1
			c.x = a.x[img*f.from.image+(grp*f.og+i*f.slice)*f.from.plane:]
			c.w = a.packed[(grp*f.slices+i)*f.strips*f.packed():]
			f.step(&c)
		}
	}
}

// step computes a slice of a unit.
func (f *woven) step(c *wovenUnit) {
	top, rows := f.from.band(c.first, c.n)
	size := len(f.planes.cols) * (rows + f.planes.more) * f.from.cols
	scratchOf(&c.shifted, c.channels*size+kernels.PanelCols)
	for i := range c.channels {
		shiftChannel(f.planes, c.shifted[i*size:], c.x[i*f.from.plane:], f.from.cols, top, rows)
	}
	f.locate(c, rows+f.planes.more)
	scratchOf(&c.c, f.sums(c.n))
	for j := range c.n {
		at, lanes := f.from.span(c.first + j)
		c.b = c.shifted[at%(f.from.rows*f.from.cols)-top*f.from.cols:]
		f.panel(c, j, at%(f.from.rows*f.from.cols), lanes)
	}
}

// sums is the elements of the sums of n panels: those of a row of remainders, or of all where slices add to them.
func (f *woven) sums(n int) int {
	if f.slices > 1 {
		return n * len(f.parts) * f.cg * kernels.PanelCols
	}
	return f.wide * f.cg * kernels.PanelCols
}

// locate notes where the rows of patches of each remainder are among shifted planes of so many rows.
func (f *woven) locate(c *wovenUnit, rows int) {
	c.tables = slices.Grow(c.tables[:0], len(f.parts))[:len(f.parts)]
	for i, p := range f.parts {
		c.tables[i].Clear()
		for _, at := range p.places {
			for channel := range c.channels {
				c.tables[i].Add(((channel*len(f.planes.cols)+at.col)*rows + at.row) * f.from.cols)
			}
		}
	}
}

// panel computes panel j of a unit: so many lanes from a position on.
func (f *woven) panel(c *wovenUnit, j, at, lanes int) {
	const cols = kernels.PanelCols
	if len(f.parts) == 1 {
		f.tiles(c, 0, c.y[at:], f.h*f.w, lanes)
		return
	}
	for part := 0; part < len(f.parts); part += f.wide {
		sums := c.c[:f.sums(c.n)]
		if f.slices > 1 {
			sums = sums[(j*len(f.parts)+part)*f.cg*cols:]
		}
		for left := range f.wide {
			f.tiles(c, part+left, sums[left*f.cg*cols:], cols, min(cuts(lanes, wovenLanes)*wovenLanes, cols))
		}
		if c.last {
			f.weave(c.y, sums, part/f.wide, at, lanes)
		}
	}
}

// tiles computes a panel of a remainder for all channels.
func (f *woven) tiles(c *wovenUnit, part int, y []float32, apart, cols int) {
	p := &f.parts[part]
	for i := range f.strips {
		top, n := f.strip(i)
		t := kernels.Panel[float32]{Rows: n, Cols: cols, K: c.channels * len(p.taps), ARow: 1, ACol: f.width, C: y[top*apart:], CRow: apart, Accumulate: c.more}
		if t.K > 0 {
			t.A, t.B, t.Steps = c.w[i*f.packed()+p.before*c.channels*f.width:], c.b, &c.tables[part]
		}
		t.Multiply()
	}
}

// weave writes the sums of a row of remainders to the rows that they belong to, from a position of the remainders on.
func (f *woven) weave(y, sums []float32, top, at, lanes int) {
	for i := range f.cg {
		plane, from := y[i*f.h*f.w:][:f.h*f.w], sums[i*kernels.PanelCols:]
		for lane := 0; lane < lanes; {
			row, col := (at+lane)/f.from.cols*f.StrideH+top, (at+lane)%f.from.cols
			n := min(f.from.cols-col, lanes-lane)
			if row < f.h {
				to := plane[row*f.w+col*f.StrideW : min(row*f.w+(col+n)*f.StrideW, (row+1)*f.w)]
				f.weaveRow(to, from[lane:])
			}
			lane += n
		}
	}
}

// weaveRow writes a piece of a row.
func (f *woven) weaveRow(to, from []float32) {
	apart := f.cg * kernels.PanelCols // between remainders
	switch {
	case f.StrideW == 1:
		copy(to, from)
	case f.StrideW == 2 && f.wide == 2:
		kernels.Weave(to, from, from[apart:])
	default:
		for left := range f.wide {
			for l, at := 0, left; at < len(to); l, at = l+1, at+f.StrideW {
				to[at] = from[left*apart+l]
			}
		}
	}
}

// prepareWoven has the gradient computed by f, whose packed weights are the workspace.
func prepareWoven(k *device.Kernel, f *woven) run {
	g, w, x := k.Op.In(0), k.Op.In(1), k.Out[0]
	k.Workspace = sizeOf[float32](f.size())
	return func(args []device.Arg, _ *device.Params) error {
		f.run(convArgs[float32]{y: elems[float32](args[0], x), x: elems[float32](args[1], g), w: elems[float32](args[2], w)},
			workspace[float32](args[3], 0, f.size()))
		return nil
	}
}
