package cpu

import (
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
)

const (
	convSteps  = 1024      // most rows of patches that are packed at a time, unless a channel has more taps
	convPacked = 144 << 10 // elements of packed patches at a time: they stay in the second cache
	convRows   = 64 << 10  // elements of weights that stay in it while panels pass by
	convUnits  = 16        // units of work to aim at
)

// implicit is the product of weights with patches, for each group: what convolutions and their gradients by the input
// are. Columns are worked on in blocks of panels, and rows of patches in slices of channels. Large products share out
// blocks; those of few blocks share out the parts of each.
type implicit[T kernels.Float] struct {
	patches
	weights
	shifts *shifts      // nil where patches are packed
	split  *splitter[T] // of the planes that are shifted, or nil
	groups int
	m      int  // rows of weights and planes of results in a group
	group  int  // elements between groups in the source
	to     grid // where results go
	base   int  // of the first
	part   int  // panels that blocks are cut from: all, or those of an image
	block  int  // panels
	blocks int  // of all groups
	each   int  // blocks of a group
	slices int
	slice  int // channels

	whole *loop[convArgs[T]]  // shares out blocks
	packs *loop[convSlice[T]] // the panels of one,
	moves *loop[convSlice[T]] // or its planes
	joins *loop[convSlice[T]] // and of these its panels,
	tiles *loop[convSlice[T]] // and its tiles
}

// weights says where the weight of a row, a channel and a tap lies: at row·m + channel·c + taps[i].
type weights struct {
	row, channel, group int
	taps                []int
}

// adjoin reports whether the weights of a channel's taps are neighbours.
func (w *weights) adjoin() bool {
	for i, t := range w.taps {
		if t != w.taps[0]+i {
			return false
		}
	}
	return true
}

// convArgs is the operands of a launch, and packed weights.
type convArgs[T any] struct{ y, x, w, bias, packed []T }

// convSlice is a slice of a block, under way.
type convSlice[T kernels.Float] struct {
	convArgs[T]
	space       *convScratch[T]
	group       int
	first, n    int // panels
	channel     int
	channels    int
	start, last bool
	direct      bool // patches are read from shifted planes
}

// plan cuts the product once its fields are set.
func (f *implicit[T]) plan() {
	f.byTap = len(f.taps()) <= 1 || !f.adjoin()
	taps := max(len(f.patches.taps), 1)
	f.slices = max(cuts(f.channels, max(convSteps/taps, 1)), 1)
	f.slice = cuts(f.channels, f.slices)
	most, images := max(convPacked/max(f.slice*taps*kernels.PanelCols, 1), 1), 1
	if f.shifts != nil {
		f.patches.apart, f.to.apart = true, true
		fit := f.shifts.most(&f.patches.grid, f.slice)
		if !kernels.ReadsSteps[T]() {
			fit = min(fit, most)
		}
		most, images = fit, f.patches.images
	}
	f.part = cuts(f.panels(), max(images, 1))
	f.block = max(cuts(f.part, max(cuts(f.part, most), 1)), 1)
	f.each = images * cuts(f.part, f.block)
	f.blocks = f.groups * f.each
	f.whole, f.packs, f.moves, f.tiles = newLoop(f.wholeBlocks), newLoop(f.pack), newLoop(f.shift), newLoop(f.multiply)
	f.joins = newLoop(f.gather)
}

func (f *implicit[T]) taps() []tap { return f.patches.taps }

// cuts is n / by, rounded up.
func cuts(n, by int) int { return (n + by - 1) / by }

func (f *implicit[T]) run(a convArgs[T]) {
	if f.m == 0 {
		return
	}
	if f.blocks >= convUnits/2 {
		f.whole.run(f.blocks, 1, a)
		return
	}
	f.wholeBlocks(&a, 0, f.blocks)
}

// wholeBlocks computes blocks of columns. The loops inside run on the workers if this is not a part of a loop itself.
func (f *implicit[T]) wholeBlocks(a *convArgs[T], lo, hi int) {
	pool := convScratchOf[T]()
	s := pool.get()
	defer pool.put(s)
	cut := cuts(f.part, f.block) // blocks of a part
	for u := lo; u < hi; u++ {
		first := u % cut * f.block
		c := convSlice[T]{convArgs: *a, space: s, group: u / f.each, n: min(f.block, f.part-first)}
		c.first = u%f.each/cut*f.part + first
		for i := range f.slices {
			c.channel = i * f.slice
			c.channels = max(min(f.slice, f.channels-c.channel), 0)
			c.start, c.last = i == 0, i == f.slices-1
			f.step(c)
		}
	}
}

// step computes a slice of a block.
func (f *implicit[T]) step(c convSlice[T]) {
	scratchOf(&c.space.c, c.n*f.m*kernels.PanelCols)
	c.direct = f.shifts != nil && kernels.ReadsSteps[T]()
	if !c.direct {
		scratchOf(&c.space.b, c.n*f.steps(&c)*kernels.PanelCols)
	}
	switch {
	case f.steps(&c) == 0:
	case f.shifts != nil:
		scratchOf(&c.space.shifted, f.space(&c))
		f.locateSteps(&c)
		f.moves.run(c.channels, 4, c)
		if !c.direct {
			f.joins.run(c.n, 1, c)
		}
	default:
		f.packs.run(c.n, 1, c)
	}
	t := f.tiling(&c)
	f.tiles.run(t.strips*t.across, 1, c)
}

// tiling is how the tiles of a slice are shared out: strips of some heights by parts of the panels.
type tiling struct {
	height, width int // of packed rows of weights, at most
	heights       int // of such rows
	tall, strips  int // heights in a strip, and strips
	across, each  int // parts of the panels, and panels in one
}

// tiling makes strips whose weights stay in the second cache while panels pass by, if blocks are shared out; else it
// makes parts for all workers.
func (f *implicit[T]) tiling(c *convSlice[T]) tiling {
	t := tiling{tall: 1, across: 1}
	t.height, t.width = kernels.PanelRows[T]()
	heights := cuts(f.m, t.height)
	t.heights, t.height = heights, cuts(f.m, heights)
	if f.blocks >= convUnits/2 {
		t.tall = max(min(heights, convRows/max(t.height*f.steps(c), 1)), 1)
	} else {
		t.across = max(min(c.n, convUnits/heights), 1)
	}
	t.strips, t.each = cuts(heights, t.tall), cuts(c.n, t.across)
	return t
}

// share is part i of n things in parts that differ by one at most: where it begins, and what it has.
func share(i, parts, n int) (from, count int) {
	from = i * n / parts
	return from, (i+1)*n/parts - from
}

// steps is the rows of patches in a slice.
func (f *implicit[T]) steps(c *convSlice[T]) int { return c.channels * len(f.taps()) }

// pack packs panels of a slice.
func (f *implicit[T]) pack(c *convSlice[T], lo, hi int) {
	pool := convScratchOf[T]()
	s := pool.get()
	defer pool.put(s)
	size := f.steps(c) * kernels.PanelCols
	k := kernels.Packing[T]{Src: c.x[c.group*f.group+c.channel*f.plane:], SrcRow: f.plane, Rows: c.channels}
	k.DstTap, k.DstRow = f.packed(c.channels)
	for j := lo; j < hi; j++ {
		k.Dst = c.space.b[j*size:][:size]
		packPatches(&f.patches, &s.view, &k, c.first+j)
	}
}

// multiply computes strips of rows by parts of the panels of columns.
func (f *implicit[T]) multiply(c *convSlice[T], lo, hi int) {
	pool := convScratchOf[T]()
	s := pool.get()
	defer pool.put(s)
	t := f.tiling(c)
	size := f.steps(c) * t.width
	a := scratchOf(&s.a, t.tall*size)
	for u := lo; u < hi; u++ {
		first, part := u%t.strips*t.tall, u/t.strips
		s.rows = s.rows[:0]
		for i := range min(t.tall, t.heights-first) {
			top, n := share(first+i, t.heights, f.m)
			p := kernels.Panel[T]{Rows: n, K: f.steps(c)}
			f.locate(&p, c, a[i*size:][:size], top, t.width)
			s.rows = append(s.rows, p)
		}
		for j := part * t.each; j < min((part+1)*t.each, c.n); j++ {
			for i := range s.rows {
				top, _ := share(first+i, t.heights, f.m)
				f.tile(&s.rows[i], c, s, top, j)
			}
		}
	}
	clear(s.rows)
}

// locate tells a tile where its rows of weights are, packed if they do not lie as it reads them.
func (f *implicit[T]) locate(p *kernels.Panel[T], c *convSlice[T], space []T, top, width int) {
	if p.K == 0 {
		return
	}
	w := c.w[c.group*f.weights.group+top*f.weights.row+c.channel*f.weights.channel:]
	n, rows := len(f.weights.taps), p.Rows
	if !f.byTap && f.weights.channel == n || f.byTap && n == 1 && f.weights.channel == 1 {
		p.A, p.ARow, p.ACol = w[f.weights.taps[0]:], f.weights.row, 1
		return
	}
	p.A, p.ARow, p.ACol = space, 1, width
	if f.byTap {
		for i, t := range f.weights.taps {
			kernels.PackLanes(p.A[i*c.channels*width:], width, w[t:], f.weights.row, f.weights.channel, rows, c.channels)
		}
		return
	}
	kernels.PackTaps(p.A, width, w[f.weights.taps[0]:], f.weights.row, f.weights.channel, rows, n, c.channels)
}

// tile computes one tile, where it belongs if that is one run of memory, else on the side.
func (f *implicit[T]) tile(p *kernels.Panel[T], c *convSlice[T], s *convScratch[T], top, j int) {
	if c.direct && p.K > 0 {
		p.B, p.Steps = f.panelOf(c, j), &c.space.steps
	} else {
		size := p.K * kernels.PanelCols
		p.B = c.space.b[j*size:][:size]
	}
	all := f.to.all()
	s.runs = f.to.runs(s.runs[:0], &all, c.first+j)
	y := c.y[f.base+(c.group*f.m+top)*f.to.plane:]
	direct := len(s.runs) == 1 && f.to.step == 1
	if direct {
		p.C, p.CRow, p.Cols = y[s.runs[0].At:], f.to.plane, s.runs[0].N
	} else {
		p.C, p.CRow, p.Cols = c.space.c[(j*f.m+top)*kernels.PanelCols:], kernels.PanelCols, kernels.PanelCols
	}
	p.Accumulate = !c.start || c.bias != nil
	if c.start && c.bias != nil {
		for i, v := range c.bias[c.group*f.m+top:][:p.Rows] {
			fill(p.C[i*p.CRow:][:p.Cols], v)
		}
	}
	p.Multiply()
	if c.last && !direct {
		deliver(y, f.to.plane, f.to.step, p, s.runs)
	}
}

// deliver writes the rows of a tile to the planes they belong to.
func deliver[T kernels.Float](y []T, plane, step int, p *kernels.Panel[T], runs []kernels.Run) {
	for i := range p.Rows {
		for _, r := range runs {
			to, from := y[i*plane+r.At:], p.C[i*p.CRow+r.Lane:][:r.N]
			if step == 1 {
				copy(to, from)
				continue
			}
			for l, v := range from {
				to[l*step] = v
			}
		}
	}
}
