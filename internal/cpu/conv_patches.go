package cpu

import (
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
)

// grid is positions on images, in rows and columns, and the elements between neighbours where they lie in memory.
// Panels are cut from the positions of all images, one after the other, or of each image apart.
type grid struct {
	images, rows, cols      int
	image, plane, row, step int
	apart                   bool
}

// perImage is the number of panels of an image apart.
func (g *grid) perImage() int { return cuts(g.rows*g.cols, kernels.PanelCols) }

func (g *grid) panels() int {
	if g.apart {
		return g.images * g.perImage()
	}
	return cuts(g.images*g.rows*g.cols, kernels.PanelCols)
}

// span is the first position of panel j and the number of its positions.
func (g *grid) span(j int) (first, n int) {
	plane := g.rows * g.cols
	if g.apart {
		at := j % g.perImage() * kernels.PanelCols
		return j/g.perImage()*plane + at, min(kernels.PanelCols, plane-at)
	}
	first = j * kernels.PanelCols
	return first, min(kernels.PanelCols, g.images*plane-first)
}

// tap is what one place of the kernel sees: in each plane the element at, from position (0, 0), and zeros outside of
// some rows and columns of positions.
type tap struct{ at, top, bottom, left, right int }

// all is the tap that sees every position as it lies.
func (g *grid) all() tap { return tap{0, 0, g.rows, 0, g.cols} }

// runs appends what the positions of panel j see by a tap. Neighbours in memory make one run.
func (g *grid) runs(list []kernels.Run, t *tap, j int) []kernels.Run {
	begin := len(list)
	first, lanes := g.span(j)
	img, r, c := first/(g.rows*g.cols), first/g.cols%g.rows, first%g.cols
	for lane := 0; lane < lanes; {
		n := min(g.cols-c, lanes-lane)
		from, to := max(c, t.left), min(c+n, t.right)
		if r >= t.top && r < t.bottom && from < to {
			list = g.join(list, begin, kernels.Run{Lane: lane + from - c, N: to - from, At: img*g.image + t.at + r*g.row + from*g.step})
		}
		lane += n
		if c += n; c == g.cols {
			c = 0
			if r++; r == g.rows {
				r, img = 0, img+1
			}
		}
	}
	return list
}

// join appends a run, to the last one since begin if it goes on from there.
func (g *grid) join(list []kernels.Run, begin int, r kernels.Run) []kernels.Run {
	if n := len(list); n > begin {
		if last := &list[n-1]; last.Lane+last.N == r.Lane && last.At+last.N*g.step == r.At {
			last.N += r.N
			return list
		}
	}
	return append(list, r)
}

// patches is the matrix that a convolution multiplies with: a row for each channel and tap, a column for each position.
// It is never in memory as a whole.
type patches struct {
	grid
	channels int // of a group
	taps     []tap
	byTap    bool // rows of a tap adjoin, else those of a channel
}

// packed is the distances of neighbouring taps and channels among rows of n channels.
func (p *patches) packed(n int) (tap, channel int) {
	if p.byTap {
		return n * kernels.PanelCols, kernels.PanelCols
	}
	return kernels.PanelCols, len(p.taps) * kernels.PanelCols
}

// packPatches packs panel j. The places of its result and of its channels are set.
func packPatches[T kernels.Float](p *patches, v *kernels.View, k *kernels.Packing[T], j int) {
	v.Clear()
	for i := range p.taps {
		v.Runs = p.runs(v.Runs, &p.taps[i], j)
		v.EndTap()
	}
	k.Pack(v)
}

// convScratch is what a unit of a convolution works in: packed parts of both matrices, and results on their way.
type convScratch[T kernels.Float] struct {
	a, b, c []T
	shifted []T // planes
	runs    []kernels.Run
	view    kernels.View
	steps   kernels.Steps
	tables  []kernels.Steps
	rows    []kernels.Panel[T]
}

// scratchOf grows a buffer; what it held is lost.
//
//go:noinline
func scratchOf[T any](b *[]T, n int) []T {
	if cap(*b) < n {
		*b = make([]T, n)
	}
	return (*b)[:n]
}

// All convolutions share scratch, so that it stays in the caches from one to the next.
var (
	convScratch32 = newSpare(func() (s convScratch[float32]) { return })
	convScratch64 = newSpare(func() (s convScratch[float64]) { return })
)

func convScratchOf[T kernels.Float]() *spare[convScratch[T]] {
	if s, ok := any(convScratch32).(*spare[convScratch[T]]); ok {
		return s
	}
	return any(convScratch64).(*spare[convScratch[T]])
}

// inside is the range of output indices in [0, n) that a tap at distance d from the first input sees in [0, size).
func inside(d, stride, size, n int) (from, to int) {
	if d < 0 {
		from = (-d + stride - 1) / stride
	}
	if last := size - 1 - d; last >= 0 {
		to = min(n, last/stride+1)
	}
	return min(from, to), to
}

// divided is a whole number by another, rounded down, and the remainder.
func divided(a, by int) (q, rest int) {
	rest = (a%by + by) % by
	return (a - rest) / by, rest
}

// seen is what the output positions of a convolution see of its input, or of its input [split] by rows and columns.
func (g *convolution) seen() patches {
	s := splitOf(g)
	p := patches{channels: g.cg, grid: grid{images: g.n, rows: g.oh, cols: g.ow, image: g.c * s.plane(), plane: s.plane(), row: g.StrideH / s.high * s.width, step: 1}}
	for i := range g.kh {
		for j := range g.kw {
			dy, dx := i*g.DilationH-g.PadH, j*g.DilationW-g.PadW
			part, y, x := s.place(dy, dx)
			t := tap{at: part*s.height*s.width + y*s.width + x}
			t.top, t.bottom = inside(dy, g.StrideH, g.h, g.oh)
			t.left, t.right = inside(dx, g.StrideW, g.w, g.ow)
			p.taps = append(p.taps, t)
		}
	}
	return p
}

// split is a plane's parts by the remainders of its rows and columns, one after the other: what a tap of a convolution that steps
// sees along a row is adjacent there, and so are rows. A plane that is not stepped over along its rows stays as it is.
type split struct {
	high, wide    int // parts of rows and columns
	height, width int // of a part
}

func splitOf(g *convolution) split {
	if g.StrideW == 1 {
		return split{1, 1, g.h, g.w}
	}
	return split{g.StrideH, g.StrideW, cuts(g.h, g.StrideH), cuts(g.w, g.StrideW)}
}

func (s *split) plane() int { return s.high * s.wide * s.height * s.width }

// place is the part that has a row and a column, and where there.
func (s *split) place(row, column int) (part, y, x int) {
	y, i := divided(row, s.high)
	x, j := divided(column, s.wide)
	return i*s.wide + j, y, x
}

// away is what the taps of a convolution see of its split input.
func (g *convolution) away(s *split) (list []away) {
	for t := range g.kh * g.kw {
		part, dy, dx := s.place(t/g.kw*g.DilationH-g.PadH, t%g.kw*g.DilationW-g.PadW)
		list = append(list, away{part, dy, dx})
	}
	return list
}

// splitter splits the input of a convolution that steps over columns.
type splitter[T kernels.Float] struct {
	split
	h, w, planes int
	loop         *loop[convArgs[T]]
}

// newSplitter returns nil where nothing needs to be split.
func newSplitter[T kernels.Float](g *convolution) *splitter[T] {
	if g.StrideW == 1 {
		return nil
	}
	s := &splitter[T]{split: splitOf(g), h: g.h, w: g.w, planes: g.n * g.c}
	s.loop = newLoop(s.rows)
	return s
}

// size is the elements of the split input.
func (s *splitter[T]) size() int {
	if s == nil {
		return 0
	}
	return s.planes * s.plane()
}

// run returns x as it is to be seen, in the space if it must be split.
func (s *splitter[T]) run(x, space []T) []T {
	if s == nil {
		return x
	}
	s.loop.run(s.planes, grainOf(s.h*s.w), convArgs[T]{y: space, x: x})
	return space
}

// rows splits planes.
func (s *splitter[T]) rows(a *convArgs[T], lo, hi int) {
	for p := lo; p < hi; p++ {
		s.cut(a.y[p*s.plane():][:s.plane()], a.x[p*s.h*s.w:][:s.h*s.w], 0, s.height)
	}
}

// cut splits a plane, for the rows from one to another of its parts. What a part lacks, compared with the first, is zero.
func (s *splitter[T]) cut(y, x []T, from, end int) {
	apart := s.height * s.width
	for i := range s.high {
		to := y[i*s.wide*apart:]
		for r := from; r < end; r++ {
			at := (r*s.high + i) * s.w
			row := x[min(at, len(x)):min(at+s.w, len(x))]
			if s.wide == 2 && len(row) == 2*s.width {
				kernels.Apart(to[r*s.width:], to[apart+r*s.width:], row)
				continue
			}
			s.cutRow(to[r*s.width:], row)
		}
	}
}

// cutRow splits a row for each part of columns.
func (s *splitter[T]) cutRow(to, row []T) {
	for j := range s.wide {
		part, n := to[j*s.height*s.width:][:s.width], 0
		if j < len(row) {
			n = cuts(len(row)-j, s.wide)
			pick(part[:n], row[j:], s.wide)
		}
		clear(part[n:])
	}
}

// parted is a plane as [shiftChannel] reads so many rows of it from one on: in the space, if it must be split.
func (s *splitter[T]) parted(space *[]T, plane []T, from, rows int) []T {
	if s == nil {
		return plane
	}
	y := scratchOf(space, s.plane())
	s.cut(y, plane, max(from, 0), min(from+rows, s.height))
	return y
}
