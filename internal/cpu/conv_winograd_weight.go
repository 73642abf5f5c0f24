package cpu

import (
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
)

const (
	winogradUnits = 8         // to aim at
	winogradSums  = 128 << 10 // elements of a unit's sums, unless 32 channels have more
)

// winogradGrad is the gradient by the weight: sums, over the tiles of all images, of products of the squares of both operands,
// which are mapped to weights once. A unit is a group, a block of its input channels and a range of blocks of tiles, each with
// sums of its own in the workspace; those of ranges are added in their order.
type winogradGrad struct {
	*convolution
	mosaic
	x, g        sight
	block       int // channels, in panels
	blocks      int
	ranges      int
	units, join *loop[convArgs[float32]]
}

// newWinogradGrad returns nil where it does not pay.
func newWinogradGrad(g *convolution) *winogradGrad {
	tiles := g.n * cuts(g.oh, 2) * cuts(g.ow, 2)
	if !g.bySquares(g.oh, g.ow) || tiles < g.cg+g.og {
		return nil
	}
	const panel = kernels.PanelCols
	f := &winogradGrad{convolution: g}
	f.blocks = cuts(g.cg, max(winogradSums/(16*g.og)/panel, 1)*panel)
	f.block = cuts(cuts(g.cg, f.blocks), panel) * panel
	f.blocks = cuts(g.cg, f.block)
	row := cuts(g.og, winogradLanes) * winogradLanes
	f.mosaic = newMosaic(g.n, g.oh, g.ow, winogradSpace/(16*(f.block+row))+1)
	all := f.each * f.cols
	f.x = sight{channels: f.block, h: g.h, w: g.w, image: g.c * g.h * g.w, plane: g.h * g.w, side: 4, top: g.PadH, left: g.PadW,
		by: kernels.WinogradInput, squares: newPlacing(all, f.block, panel)}
	f.g = sight{channels: g.og, h: g.oh, w: g.ow, image: g.o * g.oh * g.ow, plane: g.oh * g.ow, side: 2,
		by: kernels.WinogradGrad, squares: newPlacing(all, row, row)}
	f.ranges = min(cuts(winogradUnits, g.Groups*f.blocks), f.mosaic.blocks)
	f.units, f.join = newLoop(f.add), newLoop(f.finish)
	return f
}

// sums is the elements of the sums of a unit.
func (f *winogradGrad) sums() int { return 16 * f.og * f.block }

// size is the elements of all sums.
func (f *winogradGrad) size() int { return f.ranges * f.Groups * f.blocks * f.sums() }

// run computes the gradient in a.w, of a.x and the gradient a.y, with space for the sums.
func (f *winogradGrad) run(a convArgs[float32], space []float32) {
	f.units.run(f.ranges*f.Groups*f.blocks, 1, convArgs[float32]{x: a.x, y: a.y, w: space})
	f.join.run(f.Groups*f.blocks*f.og, 8, convArgs[float32]{w: a.w, x: space})
}

// add computes the sums of units.
func (f *winogradGrad) add(a *convArgs[float32], lo, hi int) {
	s := squareScratches.get()
	defer squareScratches.put(s)
	for u := lo; u < hi; u++ {
		grp, block, part := u/f.blocks%f.Groups, u%f.blocks, u/f.blocks/f.Groups
		x := f.x
		x.channels = min(f.block, f.cg-block*f.block)
		from, to := part*f.mosaic.blocks/f.ranges, (part+1)*f.mosaic.blocks/f.ranges
		for b := from; b < to; b++ {
			tiles := 0
			s.courses, tiles = f.courses(s.courses[:0], b)
			x.squaresOf(&f.mosaic, s, scratchOf(&s.by, x.squares.size()), a.x[(grp*f.cg+block*f.block)*x.plane:])
			f.g.squaresOf(&f.mosaic, s, scratchOf(&s.of, f.g.squares.size()), a.y[grp*f.og*f.g.plane:])
			f.multiply(s, a.w[u*f.sums():][:f.sums()], x.channels, tiles, b > from)
		}
	}
}

// multiply adds the products of a block of tiles.
func (f *winogradGrad) multiply(s *squareScratch, sum []float32, channels, tiles int, add bool) {
	p := kernels.Panel[float32]{Rows: f.og, K: tiles, ARow: 1, ACol: f.g.squares.tile, CRow: f.block, Accumulate: add}
	for e := range 16 {
		p.A = s.of[e*f.g.squares.apart:]
		for c := 0; c < channels; c += kernels.PanelCols {
			p.Cols = min(kernels.PanelCols, channels-c)
			p.B = s.by[e*f.x.squares.apart+c/kernels.PanelCols*f.x.squares.panel:]
			p.C = sum[e*f.og*f.block+c:]
			p.Multiply()
		}
	}
}

// finish joins the sums of ranges, and maps them to the gradients of weights.
func (f *winogradGrad) finish(a *convArgs[float32], lo, hi int) {
	s := squareScratches.get()
	defer squareScratches.put(s)
	sum, w := scratchOf(&s.sum, 16*f.block), scratchOf(&s.lay, 9*f.block)
	for u := lo; u < hi; u++ {
		unit, o := u/f.og, u%f.og
		first := unit % f.blocks * f.block
		channels := min(f.block, f.cg-first)
		for e := range 16 {
			row := sum[e*f.block:][:channels]
			for part := range f.ranges {
				more := a.x[(part*f.Groups*f.blocks+unit)*f.sums()+(e*f.og+o)*f.block:][:channels]
				if part == 0 {
					copy(row, more)
				} else {
					kernels.Add(row, row, more)
				}
			}
		}
		kernels.WinogradWeightGrad.Apply(w, kernels.Squares{Row: 3 * winogradLanes, Col: winogradLanes, Step: 9 * winogradLanes},
			sum, kernels.Squares{Row: 4 * f.block, Col: f.block, Step: winogradLanes}, 1, cuts(channels, winogradLanes), nil)
		dw := a.w[((unit/f.blocks*f.og+o)*f.cg+first)*9:]
		for c := 0; c < channels; c += winogradLanes {
			kernels.Turn(asBits(dw[9*c:]), asBits(w[9*c:]), min(winogradLanes, channels-c), 9, 9, winogradLanes)
		}
	}
}
