package kernels

import (
	"slices"
	"sync"

	"github.com/warpline-ml/warpline/internal/par"
)

// Products in Go, where there is no assembly. C is cut into square tiles. Each
// packs the columns of B that it needs, a slice of k at a time, in panels of
// goCols columns side by side; rows of A are read in pairs as they lie.
const (
	goTile  = 64      // rows and columns of a tile
	goSlice = 256     // steps of k in a slice
	goCols  = 4       // columns of a panel: 2×4 sums, and what they need, fit in 15 registers
	fewRows = 4       // with fewer rows packing does not pay
	goWork  = 1 << 16 // least multiply-adds to share
)

// A goProduct is a batch of products, cut into tiles.
type goProduct[T Float] struct {
	Product[T]
	batch      []BatchDim
	rows, cols int // tiles in a product
}

func multiplyGo[T Float](p *Product[T], batch []BatchDim, count int) {
	g := goProduct[T]{*p, batch, ceilDiv(p.M, goTile), ceilDiv(p.N, goTile)}
	tiles := count * g.rows * g.cols
	work := min(p.M, goTile) * min(p.N, goTile) * max(p.K, 1)
	if tiles > 1 && tiles*work >= goWork {
		shareGo(p, slices.Clone(batch), tiles, ceilDiv(goWork/2, work))
		return
	}
	g.run(0, tiles)
}

// shareGo runs the tiles on all threads. It makes a goProduct of its own,
// which par moves to the heap: the other must not go there.
func shareGo[T Float](p *Product[T], batch []BatchDim, tiles, grain int) {
	g := goProduct[T]{*p, batch, ceilDiv(p.M, goTile), ceilDiv(p.N, goTile)}
	par.For(tiles, grain, g.run)
}

// run computes the tiles from lo to hi.
func (g *goProduct[T]) run(lo, hi int) {
	scratch := scratchOf[T]()
	panels := scratch.Get().(*[goTile * goSlice]T)
	defer scratch.Put(panels)
	for t := lo; t < hi; t++ {
		each := g.rows * g.cols
		p := g.element(g.batch, t/each)
		p.tile(t%each/g.cols*goTile, t%g.cols*goTile, panels)
	}
}

var (
	scratch32 = sync.Pool{New: func() any { return new([goTile * goSlice]float32) }}
	scratch64 = sync.Pool{New: func() any { return new([goTile * goSlice]float64) }}
)

// scratchOf returns the pool of buffers for packed columns of B.
func scratchOf[T Float]() *sync.Pool {
	if _, ok := any(T(0)).(float32); ok {
		return &scratch32
	}
	return &scratch64
}

// row is the part of row i of C from column left on that belongs to its tile.
func (p *Product[T]) row(i, left int) []T {
	return p.C[i*p.CRow+left : i*p.CRow+min(left+goTile, p.N)]
}

// tile computes the tile of C whose first element is (top, left).
func (p *Product[T]) tile(top, left int, panels *[goTile * goSlice]T) {
	bottom := min(top+goTile, p.M)
	if !p.Accumulate {
		for i := top; i < bottom; i++ {
			clear(p.row(i, left))
		}
	}
	if p.M < fewRows {
		for i := top; i < bottom; i++ {
			p.addRow(i, left)
		}
	} else {
		for l := 0; l < p.K; l += goSlice {
			k := min(goSlice, p.K-l)
			p.packColumns(left, l, k, panels)
			for i := top; i < bottom; i += 2 {
				p.addPair(i, min(i+1, bottom-1), left, l, k, panels)
			}
		}
	}
	for i := top; i < bottom; i++ {
		p.finish(p.row(i, left), i, left)
	}
}

// packColumns packs k steps from l on of the columns of a tile. Panels beyond
// the last column hold zeros.
func (p *Product[T]) packColumns(left, l, k int, panels *[goTile * goSlice]T) {
	width := min(goTile, p.N-left)
	for j := 0; j < width; j += goCols {
		panel := panels[j*k : (j+goCols)*k]
		n := min(goCols, width-j)
		if n < goCols {
			clear(panel)
		}
		for i := range n {
			from := (left+j+i)*p.BCol + l*p.BRow
			for s := range k {
				panel[s*goCols+i] = p.B[from+s*p.BRow]
			}
		}
	}
}

// addPair adds a slice of k to the part of rows i and next in a tile; at the
// end of the tile they are the same row, of which one sum is used.
func (p *Product[T]) addPair(i, next, left, l, k int, panels *[goTile * goSlice]T) {
	x, y := p.A[i*p.ARow+l*p.ACol:], p.A[next*p.ARow+l*p.ACol:]
	c, d := p.row(i, left), p.row(next, left)
	for j := 0; j < len(c); j += goCols {
		sx, sy := pairSums(x, y, p.ACol, panels[j*k:(j+goCols)*k])
		for n := range min(goCols, len(c)-j) {
			c[j+n] += sx[n]
			if next != i {
				d[j+n] += sy[n]
			}
		}
	}
}

// pairSums multiplies two rows, whose elements are step apart, with a panel.
func pairSums[T Float](x, y []T, step int, panel []T) (sx, sy [goCols]T) {
	var x0, x1, x2, x3, y0, y1, y2, y3 T
	for at := 0; len(panel) >= goCols; at += step {
		b := (*[goCols]T)(panel)
		u, v := x[at], y[at]
		x0 += u * b[0]
		y0 += v * b[0]
		x1 += u * b[1]
		y1 += v * b[1]
		x2 += u * b[2]
		y2 += v * b[2]
		x3 += u * b[3]
		y3 += v * b[3]
		panel = panel[goCols:]
	}
	return [goCols]T{x0, x1, x2, x3}, [goCols]T{y0, y1, y2, y3}
}

// addRow adds a row of A times B, as it lies, to the part of row i of C in a
// tile.
func (p *Product[T]) addRow(i, left int) {
	c := p.row(i, left)
	if p.BCol == 1 {
		for l := range p.K {
			x := p.A[i*p.ARow+l*p.ACol]
			for j, v := range p.B[l*p.BRow+left:][:len(c)] {
				c[j] += x * v
			}
		}
		return
	}
	for j := range c {
		var sum T
		for l := range p.K {
			sum += p.A[i*p.ARow+l*p.ACol] * p.B[l*p.BRow+(left+j)*p.BCol]
		}
		c[j] += sum
	}
}
