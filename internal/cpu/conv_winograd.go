package cpu

import (
	"unsafe"

	"github.com/warpline-ml/warpline/internal/cpu/kernels"
)

// Convolutions of 3×3 without steps take 16 products for 2×2 results of two channels in place of 36, by Winograd's
// F(2×2, 3×3), where there are tiles enough to pay for the maps of weights. Tiles of pictures are mapped with channels side by
// side, so that each of the 16 products is one of matrices, tiles by channels, and there are no edges to look after. A block of
// tiles goes all the way while its squares are in the second cache.
//
// Results depend neither on the other pictures nor on the cuts. An infinity in a picture may be NaN in the results
// that see it.

const (
	winogradTiles    = 64       // least tiles
	winogradChannels = 16       // and least channels of a group for it
	winogradSpace    = 96 << 10 // elements of squares at a time
	winogradLanes    = kernels.WinogradLanes
)

// bySquares reports whether Winograd's form pays for h×w results of a convolution, or of its gradient.
func (g *convolution) bySquares(h, w int) bool {
	tiles := g.n * cuts(h, 2) * cuts(w, 2)
	return kernels.HasWinograd() && g.kh == 3 && g.kw == 3 && g.StrideH == 1 && g.StrideW == 1 && g.DilationH == 1 && g.DilationW == 1 &&
		min(g.cg, g.og) >= winogradChannels && tiles >= winogradTiles && 3*g.n*h*w >= 2*4*tiles
}

// mosaic cuts the results of all images in tiles of 2×2, whose rows, one after the other, are worked on in blocks.
type mosaic struct {
	images, rows, cols int // of tiles
	each, blocks       int // rows in a block
}

// newMosaic is that of h×w results, with about so many tiles in a block.
func newMosaic(images, h, w, most int) mosaic {
	t := mosaic{images: images, rows: cuts(h, 2), cols: cuts(w, 2)}
	all := images * t.rows
	t.each = cuts(all, cuts(all, max(most/t.cols, 1)))
	t.blocks = cuts(all, t.each)
	return t
}

// course is the rows of a block that lie on one image, from top on.
type course struct {
	image, top, rows int
	first            int // the tiles of the block before it
}

// courses appends those of a block, and returns the number of its tiles.
func (t *mosaic) courses(list []course, block int) ([]course, int) {
	at, tiles := block*t.each, 0
	for end := min(at+t.each, t.images*t.rows); at < end; {
		s := course{at / t.rows, at % t.rows, 0, tiles}
		s.rows = min(end-at, t.rows-s.top)
		list = append(list, s)
		at, tiles = at+s.rows, tiles+s.rows*t.cols
	}
	return list, tiles
}

// sight is what tiles see of planes: squares of side×side, those of the first tile from top rows above and left columns before
// the plane on.
type sight struct {
	channels, h, w  int
	image, plane    int // elements apart
	side, top, left int
	by              kernels.Winograd
	squares         placing
}

// placing says where the squares of tiles and channels are.
type placing struct {
	apart int // the elements of a square
	tile  int // tiles, whose channels are side by side,
	panel int // and panels of so many channels
}

// newPlacing has room for so many tiles, in one panel of all channels, or in panels of some.
func newPlacing(tiles, channels, panel int) placing {
	q := placing{tile: panel, panel: tiles * panel}
	q.apart = q.panel*cuts(channels, panel) + winogradLanes // no multiple of a page, or they would share sets of a cache
	return q
}

func (q *placing) size() int { return 16 * q.apart }

// squareScratch is what a unit works in.
type squareScratch struct {
	courses          []course
	of, by, sum, lay []float32
}

var squareScratches = newSpare(func() (s squareScratch) { return })

// squaresOf maps what the tiles of courses see of a group's channels.
func (v *sight) squaresOf(t *mosaic, s *squareScratch, dst, src []float32) {
	width := 2*t.cols + v.side - 2
	for c := 0; c < v.channels; c += winogradLanes {
		for _, p := range s.courses {
			seen := scratchOf(&s.lay, (2*p.rows+v.side-2)*width*winogradLanes)
			v.layOut(seen, src[p.image*v.image+c*v.plane:], width, 2*p.top-v.top, min(winogradLanes, v.channels-c))
			to := kernels.Squares{At: c/v.squares.tile*v.squares.panel + c%v.squares.tile + p.first*v.squares.tile,
				Row: 4 * v.squares.apart, Col: v.squares.apart, Step: v.squares.tile, Line: t.cols * v.squares.tile}
			from := kernels.Squares{Row: width * winogradLanes, Col: winogradLanes, Step: 2 * winogradLanes, Line: 2 * width * winogradLanes}
			v.by.Apply(dst, to, seen, from, p.rows, t.cols, nil)
		}
	}
}

// layOut lays rows of a picture from y on with channels side by side, and zeros around.
func (v *sight) layOut(dst, src []float32, width, y, channels int) {
	from, to := min(max(v.left, 0), width), max(min(v.left+v.w, width), 0)
	for ; len(dst) > 0; dst, y = dst[width*winogradLanes:], y+1 {
		row := dst[:width*winogradLanes]
		if y < 0 || y >= v.h || from >= to {
			clear(row)
			continue
		}
		clear(row[:from*winogradLanes])
		clear(row[to*winogradLanes:])
		kernels.PackLanes(row[from*winogradLanes:], winogradLanes, src[y*v.w+from-v.left:], v.plane, 1, channels, to-from)
	}
}

// winograd is a convolution, or a gradient by its input, which is one with weights turned around.
type winograd struct {
	mosaic
	sight
	groups, m      int // results of a group
	group          int // elements between groups in the source
	h, w           int // of results
	out, in, turns int // elements between weights of results and of channels, and between groups
	back           bool
	sums           placing
	maps, units    *loop[convArgs[float32]]
}

// newWinograd is y = x∗w + bias, or with back the gradient by x. It returns nil where that does not pay.
func newWinograd(g *convolution, back bool) *winograd {
	f := &winograd{groups: g.Groups, m: g.og, h: g.oh, w: g.ow, out: 9 * g.cg, in: 9, turns: 9 * g.og * g.cg, back: back}
	f.sight = sight{channels: g.cg, h: g.h, w: g.w, image: g.c * g.h * g.w, plane: g.h * g.w, side: 4, top: g.PadH, left: g.PadW, by: kernels.WinogradInput}
	if back {
		f.m, f.h, f.w, f.out, f.in = g.cg, g.h, g.w, 9, 9*g.cg
		f.sight = sight{channels: g.og, h: g.oh, w: g.ow, image: g.o * g.oh * g.ow, plane: g.oh * g.ow, side: 4, top: 2 - g.PadH, left: 2 - g.PadW, by: kernels.WinogradInput}
	}
	if !g.bySquares(f.h, f.w) {
		return nil
	}
	f.group = f.channels * f.plane
	row := cuts(f.channels, winogradLanes) * winogradLanes
	f.mosaic = newMosaic(g.n, f.h, f.w, winogradSpace/(16*(row+kernels.PanelCols)))
	tiles := f.each * f.cols
	f.squares, f.sums = newPlacing(tiles, row, row), newPlacing(tiles, kernels.PanelCols, kernels.PanelCols)
	f.maps, f.units = newLoop(f.mapWeights), newLoop(f.compute)
	return f
}

// panels is the number of panels of results in a group, and weights the elements of the mapped weights of one.
func (f *winograd) panels() int { return cuts(f.m, kernels.PanelCols) }
func (f *winograd) weight() placing {
	return newPlacing(f.channels, kernels.PanelCols, kernels.PanelCols)
}

// size is the elements of all mapped weights.
func (f *winograd) size() int {
	w := f.weight()
	return f.groups * f.panels() * w.size()
}

// run computes y with space for the mapped weights.
func (f *winograd) run(a convArgs[float32], space []float32) {
	f.maps.run(f.groups*f.panels(), 1, convArgs[float32]{y: space, w: a.w})
	a.w = space
	f.units.run(f.groups*f.mosaic.blocks, 1, a)
}

// mapWeights maps panels of weights: a row of results for each channel.
func (f *winograd) mapWeights(a *convArgs[float32], lo, hi int) {
	s := squareScratches.get()
	defer squareScratches.put(s)
	to := f.weight()
	from := kernels.Squares{Row: 3 * winogradLanes, Col: winogradLanes, Step: 9 * winogradLanes}
	if f.back {
		from.At, from.Row, from.Col = 8*winogradLanes, -from.Row, -from.Col
	}
	packed := scratchOf(&s.lay, f.channels*9*winogradLanes)
	for u := lo; u < hi; u++ {
		first := u % f.panels() * kernels.PanelCols
		for i := first; i < min(first+kernels.PanelCols, f.m); i += winogradLanes {
			w, lanes := a.w[u/f.panels()*f.turns+i*f.out:], min(winogradLanes, f.m-i)
			if f.back {
				kernels.PackTaps(packed, winogradLanes, w, f.out, f.in, lanes, 9, f.channels)
			} else {
				kernels.PackLanes(packed, winogradLanes, w, f.out, 1, lanes, 9*f.channels)
			}
			kernels.WinogradWeight.Apply(a.y[u*to.size():], kernels.Squares{At: i - first, Row: 4 * to.apart, Col: to.apart, Step: to.tile}, packed, from, 1, f.channels, nil)
		}
	}
}

// compute computes blocks of tiles.
func (f *winograd) compute(a *convArgs[float32], lo, hi int) {
	s := squareScratches.get()
	defer squareScratches.put(s)
	weight := f.weight()
	for u := lo; u < hi; u++ {
		group, tiles := u/f.mosaic.blocks, 0
		s.courses, tiles = f.courses(s.courses[:0], u%f.mosaic.blocks)
		of, sum := scratchOf(&s.of, f.squares.size()), scratchOf(&s.sum, f.sums.size())
		f.squaresOf(&f.mosaic, s, of, a.x[group*f.group:])
		for i := 0; i < f.m; i += kernels.PanelCols {
			p := kernels.Panel[float32]{Rows: tiles, Cols: min(kernels.PanelCols, f.m-i), K: f.channels, ARow: f.squares.tile, ACol: 1, CRow: f.sums.tile}
			w := a.w[(group*f.panels()+i/kernels.PanelCols)*weight.size():]
			for e := range 16 {
				p.A, p.B, p.C = of[e*f.squares.apart:], w[e*weight.apart:], sum[e*f.sums.apart:]
				p.Multiply()
			}
			for c := 0; c < p.Cols; c += winogradLanes {
				f.deliver(a, s, group*f.m+i+c, sum[c:], min(winogradLanes, p.Cols-c))
			}
		}
	}
}

// deliver maps sums to the results of some channels, and lays those out as planes.
func (f *winograd) deliver(a *convArgs[float32], s *squareScratch, channel int, sum []float32, channels int) {
	var bias []float32
	if a.bias != nil {
		var b [winogradLanes]float32
		copy(b[:], a.bias[channel:][:channels])
		bias = b[:]
	}
	width, plane := 2*f.cols, f.h*f.w
	for _, p := range s.courses {
		y := scratchOf(&s.lay, 2*p.rows*width*winogradLanes)
		from := kernels.Squares{At: p.first * f.sums.tile, Row: 4 * f.sums.apart, Col: f.sums.apart, Step: f.sums.tile, Line: f.cols * f.sums.tile}
		to := kernels.Squares{Row: width * winogradLanes, Col: winogradLanes, Step: 2 * winogradLanes, Line: 2 * width * winogradLanes}
		kernels.WinogradOutput.Apply(y, to, sum, from, p.rows, f.cols, bias)
		dst := a.y[(p.image*f.groups*f.m+channel)*plane+2*p.top*f.w:]
		rows := min(2*p.rows, f.h-2*p.top)
		if width == f.w { // they go on from row to row
			kernels.Turn(asBits(dst), asBits(y), channels, rows*width, plane, winogradLanes)
			continue
		}
		for r := range rows {
			kernels.Turn(asBits(dst[r*f.w:]), asBits(y[r*width*winogradLanes:]), channels, f.w, plane, winogradLanes)
		}
	}
}

// asBits views elements as the words they are stored in.
func asBits(x []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}
