package cpu

import (
	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/device"
)

// Convolutions of 4×4 by steps of 2, and their gradients, of which that by the input is what a transposed convolution is. With
// rows of a picture counted from its padding on, row 2q+π meets the taps π and π+2 alone: each of four remainders of rows and
// columns has a kernel of 2×2 over positions q. Of those Winograd's F(2×2, 2×2) takes 9 products for 2×2 results in place of 16:
//
//	d0·g0 + d1·g1 = m0 + m1,  d1·g0 + d2·g1 = m1 - m2  of  m = (d0-d1)·g0, d1·(g0+g1), (d1-d2)·g1
//
// whose maps neither multiply nor round more than the sums do. Pictures are turned, so that the channels of a position are side by
// side; then maps of all tiles of a row are a few sums of vectors, and products are of matrices, tiles by channels.

const (
	halfTiles    = 256     // least tiles of all images: maps of weights cost as much as some 60
	halfLeast    = 12      // and of one: as many rows as fill the micro-kernels
	halfChannels = 16      // least channels of a group
	halfSpace    = 9 << 13 // elements of maps at a time, which stay in the second cache
	halfUnits    = 8       // of sums of weights to aim at
)

// byHalves reports whether results of h×w take fewer products, in tiles of 2×2 for each remainder by step.
func (g *convolution) byHalves(h, w, step int) bool {
	tiles := cuts(cuts(h, step), 2) * cuts(cuts(w, step), 2)
	return kernels.ReadsRows[float32]() && g.kh == 4 && g.kw == 4 && g.StrideH == 2 && g.StrideW == 2 && g.DilationH == 1 && g.DilationW == 1 &&
		min(g.cg, g.og) >= halfChannels && tiles >= halfLeast && g.n*tiles >= halfTiles
}

// halves is a picture turned and mapped: rows of positions, each of so many columns of the picture with their channels.
type halves struct {
	channels     int // side by side,
	lanes        int // of which so many are the picture's
	h, w         int
	image, plane int // elements apart
	columns      int // of the picture in a position
	left         int // the first of them
	tiles        int // of a row
	band         int // rows of tiles at a time
}

// wide is the elements of a position, and row those of a row: its even positions, and then the odd ones.
func (v *halves) wide() int { return v.columns * v.channels }
func (v *halves) row() int  { return (2*v.tiles + 1) * v.wide() }

// apart is the elements of one of nine maps. It is no multiple of a page, or they would share sets of a cache.
func (v *halves) apart() int { return v.band*v.tiles*v.wide() + kernels.PanelCols }

// halfScratch is what a unit works in.
type halfScratch struct{ line, rows, maps, more, sums, both, y []float32 }

var halfScratches = newSpare(func() (s halfScratch) { return })

// turn turns row y of a picture, with zeros around.
func (v *halves) turn(dst []float32, s *halfScratch, src []float32, y int) {
	if y < 0 || y >= v.h {
		clear(dst)
		return
	}
	n, wide := (2*v.tiles+1)*v.columns, v.wide()
	line := scratchOf(&s.line, n*v.channels)
	from, to := max(v.left, 0), min(v.left+n, v.w)
	clear(line[:(from-v.left)*v.channels])
	clear(line[(to-v.left)*v.channels:])
	kernels.Turn(asBits(line[(from-v.left)*v.channels:]), asBits(src[y*v.w+from:]), to-from, v.lanes, v.channels, v.plane)
	for i := range 2*v.tiles + 1 {
		at := i / 2
		if i%2 == 1 {
			at += v.tiles + 1
		}
		copy(dst[at*wide:][:wide], line[i*wide:])
	}
}

// turnRows turns n rows of a picture, every so many from y on.
func (v *halves) turnRows(s *halfScratch, src []float32, y, every, n int) []float32 {
	rows := scratchOf(&s.rows, n*v.row())
	for i := range n {
		v.turn(rows[i*v.row():][:v.row()], s, src, y+i*every)
	}
	return rows
}

// fill maps n rows of tiles to s.maps. Three rows at a time are tiles of data, from every second on.
func (v *halves) fill(s *halfScratch, rows []float32, n int) {
	size, wide := v.row(), v.wide()
	s.maps = scratchOf(&s.maps, 9*v.apart())
	above, below := scratchOf(&s.both, 2*size)[:size], s.both[size:2*size]
	for i := range n {
		middle := rows[(2*i+1)*size:][:size]
		kernels.Sub(above, rows[2*i*size:][:size], middle)
		kernels.Sub(below, middle, rows[(2*i+2)*size:][:size])
		for r, row := range [...][]float32{above, middle, below} {
			even, odd := row, row[(v.tiles+1)*wide:]
			to := s.maps[3*r*v.apart()+i*v.tiles*wide:]
			kernels.Sub(to[:v.tiles*wide], even, odd)
			copy(to[v.apart():][:v.tiles*wide], odd)
			kernels.Sub(to[2*v.apart():][:v.tiles*wide], odd, even[wide:])
		}
	}
}

// halfTaps maps 2×2 taps of a 4×4 kernel to 9 weights, so many elements apart.
func halfTaps(dst []float32, apart int, w []float32, top, left int, back bool) {
	g := [4]float32{w[4*top+left], w[4*top+left+2], w[4*top+8+left], w[4*top+8+left+2]}
	if back {
		g[0], g[1], g[2], g[3] = g[3], g[2], g[1], g[0]
	}
	rows := [3][2]float32{{g[0], g[1]}, {g[0] + g[2], g[1] + g[3]}, {g[2], g[3]}}
	for r, x := range rows {
		dst[3*r*apart], dst[(3*r+1)*apart], dst[(3*r+2)*apart] = x[0], x[0]+x[1], x[1]
	}
}

// halfSums are products with nine maps for a panel of results, of which those of a remainder are so many apart.
type halfSums struct {
	tiles int // of a row
	apart int // elements of one of nine
	w     int // columns of results
	step  int
}

// deliver maps the sums of n rows of tiles to results of rows before one, the panel's channels side by side: those of the remainder
// (top, left).
func (f *halfSums) deliver(s *halfScratch, sums, y []float32, top, left, before, n int) {
	const panel = kernels.PanelCols
	size := n * f.tiles * panel
	both := scratchOf(&s.both, 6*size)
	for k := range 3 {
		m := sums[k*f.apart:]
		kernels.Add(both[k*size:][:size], m, m[3*f.apart:])
		kernels.Sub(both[(3+k)*size:][:size], m[3*f.apart:], m[6*f.apart:])
	}
	for i := range 2 * n {
		r := f.step*i + top
		if r >= before {
			break
		}
		from := both[i%2*3*size+i/2*f.tiles*panel:]
		for j := range f.tiles {
			m, at := from[j*panel:], f.step*2*j+left
			if at < f.w {
				kernels.Add(y[(r*f.w+at)*panel:][:panel], m, m[size:])
			}
			if at += f.step; at < f.w {
				kernels.Sub(y[(r*f.w+at)*panel:][:panel], m[size:], m[2*size:])
			}
		}
	}
}

// halving is such a convolution, or its gradient by the input.
type halving struct {
	*convolution
	data      halves
	sums      halfSums
	k, m      int // channels of data with their columns, and results, of a group
	h, w      int // of results
	bands     int // of an image
	back      bool
	maps, all *loop[convArgs[float32]]
}

// newHalving is y = x∗w + bias, or with back the gradient by x. It returns nil where that does not pay.
func newHalving(g *convolution, back bool) *halving {
	f := &halving{convolution: g, back: back, m: g.og, h: g.oh, w: g.ow}
	f.data = halves{channels: g.cg, lanes: g.cg, h: g.h, w: g.w, image: g.c * g.h * g.w, plane: g.h * g.w, columns: 2, left: -g.PadW}
	step := 1
	if back {
		f.m, f.h, f.w, step = g.cg, g.h, g.w, 2
		f.data = halves{channels: g.og, lanes: g.og, h: g.oh, w: g.ow, image: g.o * g.oh * g.ow, plane: g.oh * g.ow, columns: 1}
	}
	if !g.byHalves(f.h, f.w, step) {
		return nil
	}
	f.k = f.data.wide()
	f.data.tiles = cuts(cuts(f.w, step), 2)
	rows := cuts(cuts(f.h, step), 2)
	f.bands = cuts(rows, max(halfSpace/(9*f.data.tiles*(f.k+kernels.PanelCols)), 1))
	f.data.band = cuts(rows, f.bands)
	f.bands = cuts(rows, f.data.band)
	f.sums = halfSums{tiles: f.data.tiles, apart: f.data.band*f.data.tiles*kernels.PanelCols + kernels.PanelCols, w: f.w, step: step}
	f.maps, f.all = newLoop(f.mapWeights), newLoop(f.compute)
	return f
}

// panels is the number of panels of results in a group; parts that of products of a result: with back remainders of rows and columns
// with results of their own, else those of rows, whose sums are one.
func (f *halving) panels() int { return cuts(f.m, kernels.PanelCols) }
func (f *halving) parts() int {
	if f.back {
		return 4
	}
	return 2
}

// weight is the elements of one of the nine maps of weights, and size those of all.
func (f *halving) weight() int { return f.k*kernels.PanelCols + 16 }
func (f *halving) size() int   { return 9 * f.weight() * f.Groups * f.parts() * f.panels() }

// run computes the result in a.y, with space for the mapped weights.
func (f *halving) run(a convArgs[float32], space []float32) {
	f.maps.run(f.Groups*f.parts()*f.panels(), 1, convArgs[float32]{y: space, w: a.w})
	a.packed = space
	f.all.run(f.n*f.Groups*f.bands, 1, a)
}

// mapWeights maps panels of weights: a row of results for each channel of data.
func (f *halving) mapWeights(a *convArgs[float32], lo, hi int) {
	const panel = kernels.PanelCols
	for u := lo; u < hi; u++ {
		group, part, first := u/(f.parts()*f.panels()), u/f.panels()%f.parts(), u%f.panels()*panel
		dst := a.y[u*9*f.weight():]
		for k := range f.k {
			for j := range min(panel, f.m-first) {
				o, c, top, left := first+j, k%f.cg, part, k/f.cg
				if f.back {
					o, c, top, left = k, first+j, part/2, part%2
				}
				halfTaps(dst[k*panel+j:], f.weight(), a.w[((group*f.og+o)*f.cg+c)*16:], top, left, f.back)
			}
		}
	}
}

// compute computes bands of images.
func (f *halving) compute(a *convArgs[float32], lo, hi int) {
	s := halfScratches.get()
	defer halfScratches.put(s)
	each := 2 * f.sums.step * f.data.band // rows of results
	for u := lo; u < hi; u++ {
		img, group, band := u/(f.Groups*f.bands), u/f.bands%f.Groups, u%f.bands
		rows := min(each, f.h-band*each)
		src := a.x[img*f.data.image+group*f.data.channels*f.data.plane:]
		y := scratchOf(&s.y, f.panels()*rows*f.w*kernels.PanelCols)
		if f.back {
			f.scatter(s, a, y, src, group, band, rows)
		} else {
			f.gather(s, a, y, src, group, band, rows)
		}
		for i := range f.panels() {
			first := i * kernels.PanelCols
			plane, n := f.h*f.w, min(kernels.PanelCols, f.m-first)
			dst := a.y[((img*f.Groups+group)*f.m+first)*plane+band*each*f.w:]
			kernels.Turn(asBits(dst), asBits(y[first*rows*f.w:]), n, rows*f.w, plane, kernels.PanelCols)
			for c := range n {
				if a.bias != nil {
					part := dst[c*plane:][:rows*f.w]
					kernels.Affine(part, part, 1, a.bias[group*f.m+first+c])
				}
			}
		}
	}
}

// gather computes so many rows of the convolution: of both remainders of rows sums are added to the same.
func (f *halving) gather(s *halfScratch, a *convArgs[float32], y, src []float32, group, band, rows int) {
	n := cuts(rows, 2)
	for part := range 2 {
		data := f.data.turnRows(s, src, 2*2*f.data.band*band+part-f.PadH, 2, 2*n+1)
		f.data.fill(s, data, n)
		f.multiply(s, a, group, part, n, part > 0)
	}
	f.deliver(s, y, 0, 0, rows, n)
}

// scatter computes so many rows of the gradient by the input: of each remainder by itself.
func (f *halving) scatter(s *halfScratch, a *convArgs[float32], y, src []float32, group, band, rows int) {
	n, more := cuts(rows, 4), f.PadH%2
	for left := range 2 {
		v := f.data
		v.left = (left+f.PadW)/2 - 1
		data := v.turnRows(s, src, f.PadH/2-1+2*v.band*band, 1, 2*n+1+more)
		for top := range 2 {
			v.fill(s, data[top*more*v.row():], n)
			f.multiply(s, a, group, (top+f.PadH)%2*2+(left+f.PadW)%2, n, false)
			f.deliver(s, y, top, left, rows, n)
		}
	}
}

// multiply multiplies the maps of n rows of tiles with those of weights.
func (f *halving) multiply(s *halfScratch, a *convArgs[float32], group, part, n int, more bool) {
	const panel = kernels.PanelCols
	sums := scratchOf(&s.sums, f.panels()*9*f.sums.apart)
	p := kernels.Panel[float32]{Rows: n * f.sums.tiles, K: f.k, ARow: f.k, ACol: 1, CRow: panel, Accumulate: more}
	for i := range f.panels() {
		p.Cols = min(panel, f.m-i*panel)
		w := a.packed[((group*f.parts()+part)*f.panels()+i)*9*f.weight():]
		for e := range 9 {
			p.A, p.B, p.C = s.maps[e*f.data.apart():], w[e*f.weight():], sums[(i*9+e)*f.sums.apart:]
			p.Multiply()
		}
	}
}

// deliver maps the sums of all panels.
func (f *halving) deliver(s *halfScratch, y []float32, top, left, rows, n int) {
	for i := range f.panels() {
		f.sums.deliver(s, s.sums[i*9*f.sums.apart:], y[i*kernels.PanelCols*rows*f.w:], top, left, rows, n)
	}
}

// prepareHalving has a convolution or a gradient computed by f, of the operands x and w, perhaps with a bias. The workspace has
// mapped weights.
func prepareHalving(k *device.Kernel, f *halving, x, w int) run {
	k.Workspace = sizeOf[float32](f.size())
	inputs := k.Op.NumIn()
	return func(args []device.Arg, _ *device.Params) error {
		a := convArgs[float32]{y: elems[float32](args[0], k.Out[0]), x: elems[float32](args[1+x], k.Op.In(x)), w: elems[float32](args[1+w], k.Op.In(w))}
		if inputs == 3 {
			a.bias = elems[float32](args[3], k.Op.In(2))
		}
		f.run(a, workspace[float32](args[1+inputs], 0, f.size()))
		return nil
	}
}

// halvingGrad is the gradient by the weight: sums, over the tiles of all images, of products of the maps of pictures, as the
// convolution has them, with those of gradients in the place of weights. A unit is a group and a range of bands of images, with
// sums of its own in the workspace, a row for each channel of a position; those of ranges are added in their order.
type halvingGrad struct {
	*convolution
	data, grads   halves
	bands, ranges int
	wide          int // columns of sums
	all, join     *loop[convArgs[float32]]
}

// newHalvingGrad returns nil where it does not pay.
func newHalvingGrad(g *convolution) *halvingGrad {
	const panel = kernels.PanelCols
	tiles, rows := cuts(g.ow, 2), cuts(g.oh, 2)
	if !g.byHalves(g.oh, g.ow, 1) || g.n*tiles*rows < g.cg+g.og {
		return nil
	}
	f := &halvingGrad{convolution: g, wide: cuts(g.og, panel) * panel}
	f.data = halves{channels: g.cg, lanes: g.cg, h: g.h, w: g.w, image: g.c * g.h * g.w, plane: g.h * g.w, columns: 2, left: -g.PadW, tiles: tiles}
	f.grads = halves{channels: panel, h: g.oh, w: g.ow, image: g.o * g.oh * g.ow, plane: g.oh * g.ow, columns: 1, tiles: tiles}
	f.bands = cuts(rows, max(halfSpace/(9*tiles*(2*g.cg+f.wide)), 1))
	f.data.band = cuts(rows, f.bands)
	f.grads.band, f.bands = f.data.band, cuts(rows, f.data.band)
	f.ranges = min(cuts(halfUnits, g.Groups), g.n*f.bands)
	f.all, f.join = newLoop(f.add), newLoop(f.finish)
	return f
}

// sums is the elements of the sums of a unit, and size those of all.
func (f *halvingGrad) sums() int { return 9 * 2 * f.data.wide() * f.wide }
func (f *halvingGrad) size() int { return f.ranges * f.Groups * f.sums() }

// run computes the gradient in a.w, of a.x and the gradient a.y, with space for the sums.
func (f *halvingGrad) run(a convArgs[float32], space []float32) {
	f.all.run(f.ranges*f.Groups, 1, convArgs[float32]{x: a.x, y: a.y, w: space})
	f.join.run(2*f.data.wide()*f.Groups, 8, convArgs[float32]{w: a.w, x: space})
}

// add computes the sums of units.
func (f *halvingGrad) add(a *convArgs[float32], lo, hi int) {
	s := halfScratches.get()
	defer halfScratches.put(s)
	for u := lo; u < hi; u++ {
		from, n := share(u/f.Groups, f.ranges, f.n*f.bands)
		for piece := range n {
			f.piece(a, s, a.w[u*f.sums():][:f.sums()], u%f.Groups, from+piece, piece > 0)
		}
	}
}

// piece adds what a band of an image gives.
func (f *halvingGrad) piece(a *convArgs[float32], s *halfScratch, sums []float32, group, piece int, more bool) {
	const panel = kernels.PanelCols
	img, first := piece/f.bands, piece%f.bands*f.grads.band
	n := min(f.grads.band, cuts(f.oh, 2)-first)
	size, k := 9*f.grads.apart(), f.data.wide()
	grads := scratchOf(&s.more, f.wide/panel*size)
	for i := 0; i < f.og; i += panel {
		v := f.grads
		v.lanes = min(panel, f.og-i)
		v.mapGrads(s, grads[i/panel*size:], a.y[img*v.image+(group*f.og+i)*v.plane:], first, n)
	}
	p := kernels.Panel[float32]{Rows: k, K: n * f.data.tiles, ARow: 1, ACol: k, CRow: f.wide, Accumulate: more}
	for part := range 2 {
		data := f.data.turnRows(s, a.x[img*f.data.image+group*f.cg*f.data.plane:], 2*2*first+part-f.PadH, 2, 2*n+1)
		f.data.fill(s, data, n)
		for e := range 9 {
			for i := 0; i < f.og; i += panel {
				p.Cols = min(panel, f.og-i)
				p.A, p.B = s.maps[e*f.data.apart():], grads[i/panel*size+e*f.grads.apart():]
				p.C = sums[(e*2+part)*k*f.wide+i:]
				p.Multiply()
			}
		}
	}
}

// mapGrads maps gradients of n rows of tiles, from one on, as weights are mapped.
func (v *halves) mapGrads(s *halfScratch, dst, src []float32, first, n int) {
	row, line, apart := v.row(), v.tiles*v.channels, v.apart()
	data := v.turnRows(s, src, 2*first, 1, 2*n)
	both := scratchOf(&s.both, row)
	for i := range n {
		above, below := data[2*i*row:][:row], data[(2*i+1)*row:][:row]
		kernels.Add(both, above, below)
		for r, x := range [...][]float32{above, both, below} {
			even, odd := x, x[line+v.channels:]
			to := dst[3*r*apart+i*line:]
			copy(to[:line], even)
			kernels.Add(to[apart:][:line], even, odd)
			copy(to[2*apart:][:line], odd)
		}
	}
}

// finish joins the sums of the ranges of a channel of a position, and maps them to the gradients of its taps.
func (f *halvingGrad) finish(a *convArgs[float32], lo, hi int) {
	s := halfScratches.get()
	defer halfScratches.put(s)
	k, wide := f.data.wide(), f.wide
	m, t := scratchOf(&s.sums, 9*wide), scratchOf(&s.both, 6*wide)
	for u := lo; u < hi; u++ {
		group, part, c := u/(2*k), u/k%2, u%k
		for e := range 9 {
			row := m[e*wide:][:wide]
			clear(row)
			for r := range f.ranges {
				kernels.Add(row, row, a.x[(r*f.Groups+group)*f.sums()+((e*2+part)*k+c)*wide:])
			}
		}
		kernels.Add(t[:3*wide], m, m[3*wide:])
		kernels.Sub(t[3*wide:], m[3*wide:], m[6*wide:])
		for i := range 2 {
			x := t[3*i*wide:]
			for o := range f.og {
				w := a.w[((group*f.og+o)*f.cg+c%f.cg)*16+(2*i+part)*4+c/f.cg:]
				w[0], w[2] = x[o]+x[wide+o], x[wide+o]-x[2*wide+o]
			}
		}
	}
}
