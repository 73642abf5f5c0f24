package cpu

import (
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
)

// shiftedGrad is the gradient by the weight where planes are large enough to be copied once for each distance of columns, as
// [shifts] are: what a tap sees is then a row of memory for each channel, which micro-kernels take as it lies. The product is
// formed transposed, a row for a channel and a tap and a column for a result: of its operands only the gradient of the results
// is turned, which has no taps. A unit is a group, a block of its input channels and a range of pieces, bands of rows of
// images, with sums of its own; those of ranges are added in their order.
type shiftedGrad struct {
	*convolution
	split
	planes        *shifts
	parts         *splitter[float32]
	band, bands   int // rows of results in a piece, and pieces of an image
	block, blocks int // channels
	each, ranges  int // pieces of a range
	wide          int // columns of sums
	units, join   *loop[convArgs[float32]]
}

const (
	shiftedSteps    = 512      // positions in a piece, of rows that are shorter: their gradients stay in the first cache
	shiftedSpace    = 48 << 10 // elements of shifted planes at a time
	shiftedLeast    = 64       // positions of an image,
	shiftedChannels = 4        // input channels
	shiftedResults  = 8        // and results of a group from which it pays
)

// newShiftedGrad returns nil where it does not pay.
func newShiftedGrad(g *convolution) *shiftedGrad {
	s, area := splitOf(g), g.kh*g.kw
	if !kernels.ReadsRows[float32]() || s.high != g.StrideH || g.n == 0 || area < 2 ||
		g.oh*g.ow < shiftedLeast || g.cg < shiftedChannels || g.og < shiftedResults {
		return nil
	}
	f := &shiftedGrad{convolution: g, split: s, planes: shiftsOf(s.height, s.width, g.away(&s)), parts: newSplitter[float32](g)}
	f.wide = cuts(g.og, kernels.PanelCols) * kernels.PanelCols
	f.bands = cuts(g.oh, max(shiftedSteps/g.ow, 1))
	f.band = cuts(g.oh, f.bands)
	f.bands = cuts(g.oh, f.band)
	most := shiftedSpace / (len(f.planes.cols) * (f.band + f.planes.more) * g.ow)
	f.blocks = cuts(g.cg, max(min(most, 2*weightColumns/area), 1))
	f.block = cuts(g.cg, f.blocks)
	f.blocks = cuts(g.cg, f.block)
	pieces := g.n * f.bands
	f.each = cuts(pieces, min(cuts(weightUnits, g.Groups*f.blocks), pieces))
	f.ranges = cuts(pieces, f.each)
	f.units, f.join = newLoop(f.add), newLoop(f.finish)
	return f
}

// sums is the elements of the sums of a unit, and size those of all.
func (f *shiftedGrad) sums() int { return f.kh * f.kw * f.block * f.wide }
func (f *shiftedGrad) size() int { return f.ranges * f.Groups * f.blocks * f.sums() }

// run computes the gradient in a.w, of a.x and the gradient a.y, with space for the sums.
func (f *shiftedGrad) run(a convArgs[float32], space []float32) {
	f.units.run(f.ranges*f.Groups*f.blocks, 1, convArgs[float32]{x: a.x, y: a.y, w: space})
	f.join.run(f.c, 1, convArgs[float32]{w: a.w, x: space})
}

// add computes the sums of units.
func (f *shiftedGrad) add(a *convArgs[float32], lo, hi int) {
	pool := convScratchOf[float32]()
	s := pool.get()
	defer pool.put(s)
	for u := lo; u < hi; u++ {
		grp, first := u/f.blocks%f.Groups, u%f.blocks*f.block
		sums := a.w[u*f.sums():][:f.sums()]
		from := u / (f.blocks * f.Groups) * f.each
		for piece := from; piece < min(from+f.each, f.n*f.bands); piece++ {
			f.piece(a, s, sums, grp, first, piece, piece > from)
		}
	}
}

// piece adds what a piece gives to the sums of a block of channels from one on.
func (f *shiftedGrad) piece(a *convArgs[float32], s *convScratch[float32], sums []float32, grp, first, piece int, more bool) {
	const panel = kernels.PanelCols
	img, top := piece/f.bands, piece%f.bands*f.band
	rows, channels := min(f.band, f.oh-top), min(f.block, f.cg-first)
	steps, apart := rows*f.ow, f.apart(rows)
	shifted, turned := scratchOf(&s.shifted, channels*apart), scratchOf(&s.b, f.wide*steps)
	for i := range channels {
		plane := a.x[(img*f.c+grp*f.cg+first+i)*f.h*f.w:][:f.h*f.w]
		shiftChannel(f.planes, shifted[i*apart:], f.parts.parted(&s.c, plane, top+f.planes.top, rows+f.planes.more), f.ow, top, rows)
	}
	for left := 0; left < f.og; left += panel {
		p := kernels.Panel[float32]{Rows: channels, Cols: min(panel, f.og-left), K: steps, ARow: apart, ACol: 1, CRow: f.wide, Accumulate: more}
		p.B = turned[left*steps:][:panel*steps]
		kernels.PackLanes(p.B, panel, a.y[(img*f.o+grp*f.og+left)*f.oh*f.ow+top*f.ow:], f.oh*f.ow, 1, p.Cols, steps)
		for t, at := range f.planes.places {
			p.A, p.C = shifted[(at.col*(rows+f.planes.more)+at.row)*f.ow:], sums[t*f.block*f.wide+left:]
			p.Multiply()
		}
	}
}

// apart is the distance between channels of shifted planes for so many rows. It is no multiple of a page, or the rows of a tile would
// share a set of the cache.
func (f *shiftedGrad) apart(rows int) int {
	n := len(f.planes.cols) * (rows + f.planes.more) * f.ow
	if n%1024 == 0 {
		n += kernels.PanelCols
	}
	return n
}

// finish joins the sums of the ranges of input channels, and writes them where they belong.
func (f *shiftedGrad) finish(a *convArgs[float32], lo, hi int) {
	pool := convScratchOf[float32]()
	s := pool.get()
	defer pool.put(s)
	row, area := scratchOf(&s.a, f.og), f.kh*f.kw
	for c := lo; c < hi; c++ {
		grp, channel := c/f.cg, c%f.cg
		for t := range area {
			from := (grp*f.blocks+channel/f.block)*f.sums() + (t*f.block+channel%f.block)*f.wide
			copy(row, a.x[from:])
			for r := 1; r < f.ranges; r++ {
				kernels.Add(row, row, a.x[r*f.Groups*f.blocks*f.sums()+from:][:f.og])
			}
			for o, v := range row {
				a.w[((grp*f.og+o)*f.cg+channel)*area+t] = v
			}
		}
	}
}
