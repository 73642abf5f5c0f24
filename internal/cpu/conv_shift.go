package cpu

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/cpu/kernels"
)

const (
	shiftLeast  = 128       // positions on an image from which shifts pay, if they fill panels,
	shiftAlways = 192       // and if they do not
	shiftSpace  = 176 << 10 // elements of shifted planes at a time
)

// shifts reads patches where taps do not step over what they see: planes, or the parts of a [split] one. Parts are copied once for
// each distance of columns that taps have, with zeros where they see nothing, in rows as long as those of the grid. There, what a tap
// sees is the part from some place on: kernels that can take it from there, else it is packed in whole vectors. Panels then do
// not go on from one image to the next.
type shifts struct {
	h, w   int // of a part of a plane of the source
	top    int // the least distance of rows
	more   int // rows that taps see beyond those of the grid
	cols   []shifted
	places []seat
}

// shifted is a copy of a part, so many columns away.
type shifted struct{ part, dx int }

// seat is a tap: its rows from top on, and its copy among cols.
type seat struct{ row, col int }

// away is the part that a tap sees, and the rows and columns that it is away by.
type away struct{ part, dy, dx int }

// newShifts returns nil where patches of so many positions on an image are better packed. It needs what each tap sees.
func newShifts(plane, h, w int, taps []away) *shifts {
	if plane < shiftLeast || plane < shiftAlways && plane%kernels.PanelCols != 0 || len(taps) < 2 {
		return nil
	}
	return shiftsOf(h, w, taps)
}

// shiftsOf is shifts for some taps, of parts with h rows and w columns.
func shiftsOf(h, w int, taps []away) *shifts {
	s := &shifts{h: h, w: w, top: taps[0].dy}
	bottom := s.top
	for _, a := range taps {
		s.top, bottom = min(s.top, a.dy), max(bottom, a.dy)
		if c := (shifted{a.part, a.dx}); !slices.Contains(s.cols, c) {
			s.cols = append(s.cols, c)
		}
	}
	s.more = bottom - s.top
	for _, a := range taps {
		s.places = append(s.places, seat{a.dy - s.top, slices.Index(s.cols, shifted{a.part, a.dx})})
	}
	return s
}

// most is the number of panels whose shifted planes of so many channels fit in the space.
func (s *shifts) most(g *grid, channels int) int {
	rows := shiftSpace/max(len(s.cols)*channels*g.cols, 1) - s.more - 2
	return max(rows*g.cols/kernels.PanelCols, 1)
}

// band is the rows of the grid that n panels from the first on see, all on one image.
func (g *grid) band(first, n int) (top, rows int) {
	plane := g.rows * g.cols
	from := first * kernels.PanelCols % (g.perImage() * kernels.PanelCols)
	to := min(from+n*kernels.PanelCols, plane)
	top = from / g.cols
	return top, (to-1)/g.cols + 1 - top
}

// shift copies the planes of channels for a block.
func (f *implicit[T]) shift(c *convSlice[T], lo, hi int) {
	s, g := f.shifts, &f.patches.grid
	top, rows := g.band(c.first, c.n)
	img, size := c.first/g.perImage(), g.plane
	if f.split != nil {
		size = f.split.h * f.split.w
	}
	pool := convScratchOf[T]()
	space := pool.get()
	defer pool.put(space)
	for i := lo; i < hi; i++ {
		plane := c.x[((c.group*f.group+img*g.image)/g.plane+c.channel+i)*size:][:size]
		plane = f.split.parted(&space.c, plane, top+s.top, rows+s.more)
		shiftChannel(s, c.space.shifted[i*len(s.cols)*(rows+s.more)*g.cols:], plane, g.cols, top, rows)
	}
}

// shiftChannel copies a channel's parts for so many rows of the grid from one on.
func shiftChannel[T kernels.Float](s *shifts, dst, plane []T, cols, top, rows int) {
	size := (rows + s.more) * cols
	for j, col := range s.cols {
		to, part := dst[j*size:][:size], plane[col.part*s.h*s.w:][:s.h*s.w]
		if cols == s.w {
			shiftPlane(to, part, s, top+s.top, col.dx)
			continue
		}
		shiftRows(to, part, s, cols, top+s.top, col.dx)
	}
}

// shiftRows copies a plane from row y and column dx on, row by row, with zeros where there is nothing.
func shiftRows[T kernels.Float](dst, plane []T, s *shifts, cols, y, dx int) {
	from, to := inside(dx, 1, s.w, cols)
	for ; len(dst) > 0; dst, y = dst[cols:], y+1 {
		row := dst[:cols]
		if y < 0 || y >= s.h || from == to {
			clear(row)
			continue
		}
		clear(row[:from])
		copy(row[from:to], plane[y*s.w+from+dx:])
		clear(row[to:])
	}
}

// shiftPlane copies a plane from row y and column dx on, where rows of both are of one length: in one piece, with zeros
// then in the columns that came from neighbouring rows.
func shiftPlane[T kernels.Float](dst, plane []T, s *shifts, y, dx int) {
	w := s.w
	rows := len(dst) / w
	from, to := inside(y, 1, s.h, rows)
	if from == to || dx <= -w || dx >= w {
		clear(dst)
		return
	}
	clear(dst[:from*w])
	clear(dst[to*w:])
	dst = dst[from*w : to*w]
	start := (from+y)*w + dx
	copy(dst[max(-start, 0):], plane[max(start, 0):])
	left, width := 0, -dx
	if dx > 0 {
		left, width = w-dx, dx
	}
	for ; width > 0; width-- {
		for i := left; i < len(dst); i += w {
			dst[i] = 0
		}
		left++
	}
}

// panelOf is what panel j of a block sees of its shifted planes, by its steps.
func (f *implicit[T]) panelOf(c *convSlice[T], j int) []T {
	top, _ := f.patches.band(c.first, c.n)
	from := (c.first + j) % f.part * kernels.PanelCols
	return c.space.shifted[from-top*f.patches.cols:]
}

// gather packs panels from shifted planes.
func (f *implicit[T]) gather(c *convSlice[T], lo, hi int) {
	size := f.steps(c) * kernels.PanelCols
	for j := lo; j < hi; j++ {
		kernels.Gather(c.space.b[j*size:][:size], f.panelOf(c, j), &c.space.steps)
	}
}

// locateSteps notes where the rows of patches are among the shifted planes of a block.
func (f *implicit[T]) locateSteps(c *convSlice[T]) {
	s, g := f.shifts, &f.patches.grid
	_, rows := g.band(c.first, c.n)
	rows += s.more
	at := func(channel int, p seat) int { return ((channel*len(s.cols)+p.col)*rows + p.row) * g.cols }
	steps := &c.space.steps
	steps.Clear()
	if f.byTap {
		for _, p := range s.places {
			for i := range c.channels {
				steps.Add(at(i, p))
			}
		}
		return
	}
	for i := range c.channels {
		for _, p := range s.places {
			steps.Add(at(i, p))
		}
	}
}

// space is the elements of the shifted planes of a block. Panels are read whole, beyond the last.
func (f *implicit[T]) space(c *convSlice[T]) int {
	_, rows := f.patches.band(c.first, c.n)
	return c.channels*len(f.shifts.cols)*(rows+f.shifts.more)*f.patches.cols + kernels.PanelCols
}
