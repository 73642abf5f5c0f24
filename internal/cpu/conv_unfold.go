package cpu

import "github.com/warpline-ml/warpline/internal/cpu/kernels"

// inside is the range of output indices in [lo, hi) that a tap at distance d from the first input sees in [0, n).
func inside(d, stride, n, lo, hi int) (from, to int) {
	from, to = lo, hi
	if d < 0 {
		from = max(from, (-d+stride-1)/stride)
	}
	if last := n - 1 - d; last < 0 {
		to = from
	} else {
		to = min(to, last/stride+1)
	}
	return min(from, hi), max(min(from, hi), to)
}

// unfold writes the matrix of channels planes of x for output rows r0 to r1: row by row what a tap sees at each
// position, 0 in the padding.
func unfold[T kernels.Float](g *convolution, col, x []T, channels, r0, r1 int) {
	n := (r1 - r0) * g.ow
	aligned := g.StrideH == 1 && g.StrideW == 1 && g.ow == g.w
	for c := range channels {
		plane := x[c*g.h*g.w:][:g.h*g.w]
		for i := range g.kh {
			for j := range g.kw {
				dy, dx := i*g.DilationH-g.PadH, j*g.DilationW-g.PadW
				if aligned {
					shift(g, col[:n], plane, dy, dx, r0, r1)
				} else {
					view(g, col[:n], plane, dy, dx, r0, r1)
				}
				col = col[n:]
			}
		}
	}
}

// shift is what a tap sees where output rows are as long as input rows: the plane from another place on, with zeros
// in the columns that came from the neighbouring rows.
func shift[T kernels.Float](g *convolution, dst, plane []T, dy, dx, r0, r1 int) {
	w := g.w
	from, to := inside(dy, 1, g.h, r0, r1)
	if from == to || dx <= -w || dx >= w {
		clear(dst)
		return
	}
	clear(dst[:(from-r0)*w])
	clear(dst[(to-r0)*w:])
	dst = dst[(from-r0)*w : (to-r0)*w]
	start := (from+dy)*w + dx
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

// view is what a tap sees in general.
func view[T kernels.Float](g *convolution, dst, plane []T, dy, dx, r0, r1 int) {
	from, to := inside(dx, g.StrideW, g.w, 0, g.ow)
	for r := r0; r < r1; r++ {
		row := dst[(r-r0)*g.ow:][:g.ow]
		y := r*g.StrideH + dy
		if y < 0 || y >= g.h || from == to {
			clear(row)
			continue
		}
		clear(row[:from])
		clear(row[to:])
		pick(row[from:to], plane[y*g.w+from*g.StrideW+dx:], g.StrideW)
	}
}

// folding is the gradient of x by units of one image and group: the unfolded gradient wᵀ·g, added up.
type folding[T kernels.Float] struct {
	*convolution
	rows  int
	space *spare[[]T]
	units *loop[convArgs[T]]
}

func newFolding[T kernels.Float](g *convolution) *folding[T] {
	f := &folding[T]{convolution: g, rows: g.tile(g.taps)}
	f.space = newBuffers[T](g.taps * f.rows * g.ow)
	f.units = newLoop(f.chunk)
	return f
}

func (f *folding[T]) chunk(a *convArgs[T], lo, hi int) {
	b := f.space.get()
	defer f.space.put(b)
	plane := f.oh * f.ow
	for u := lo; u < hi; u++ {
		grp, img := u%f.Groups, u/f.Groups
		dx := a.y[(img*f.c+grp*f.cg)*f.h*f.w:][:f.cg*f.h*f.w]
		clear(dx)
		w := rowsOf(a.w[grp*f.og*f.taps:], f.taps).t()
		for r0 := 0; r0 < f.oh; r0 += f.rows {
			r1 := min(r0+f.rows, f.oh)
			n := (r1 - r0) * f.ow
			gemm(f.taps, n, f.og, w, rowsOf(a.x[(img*f.o+grp*f.og)*plane+r0*f.ow:], plane), *b, n, false)
			fold(f.convolution, dx, *b, r0, r1)
		}
	}
}

// fold adds the rows of an unfolded matrix to the inputs that their taps see.
func fold[T kernels.Float](g *convolution, x, col []T, r0, r1 int) {
	n := (r1 - r0) * g.ow
	for c := range g.cg {
		plane := x[c*g.h*g.w:][:g.h*g.w]
		for i := range g.kh {
			for j := range g.kw {
				addView(g, plane, col[:n], i*g.DilationH-g.PadH, j*g.DilationW-g.PadW, r0, r1)
				col = col[n:]
			}
		}
	}
}

// addView is the transpose of view.
func addView[T kernels.Float](g *convolution, plane, src []T, dy, dx, r0, r1 int) {
	from, to := inside(dx, g.StrideW, g.w, 0, g.ow)
	for r := r0; r < r1; r++ {
		y := r*g.StrideH + dy
		if y < 0 || y >= g.h || from == to {
			continue
		}
		row := plane[y*g.w+from*g.StrideW+dx:]
		for i, v := range src[(r-r0)*g.ow+from : (r-r0)*g.ow+to] {
			row[i*g.StrideW] += v
		}
	}
}

// mirrored writes row i, an input channel, of the weight of the convolution that takes g back to x.
func mirrored[T kernels.Float](g *convolution, i int, a *convArgs[T]) {
	grp, c, area := i/g.cg, i%g.cg, g.kh*g.kw
	for o := range g.og {
		src := a.w[((grp*g.og+o)*g.cg+c)*area:][:area]
		dst := a.y[(i*g.og+o)*area:][:area]
		for j, v := range src {
			dst[area-1-j] = v
		}
	}
}
