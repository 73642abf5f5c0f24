package digits

import (
	"math"

	"github.com/warpline-ml/warpline/internal/rng"
)

// point is a position on the path: first in hundredths of the digit's height,
// after fitting in pixels.
type point struct{ x, y float64 }

// maxPoints bounds the points of a path. The longest glyphs need about half.
const maxPoints = 128

// maxKnots bounds the knots of one stroke.
const maxKnots = 16

// path is a drawn glyph as straight pieces. It lives on the stack.
type path struct {
	points [maxPoints]point
	starts [maxPoints]bool // points[i] begins a stroke: no piece leads to it
	n      int
}

// mul multiplies and rounds. The explicit conversion keeps the compiler from
// fusing the product into a following sum, which some platforms do and others
// do not.
func mul(a, b float64) float64 { return float64(a * b) }

// trace joins the jittered knots of every stroke of g by splines.
func (p *path) trace(g *glyph, r *rng.Stream) {
	for _, s := range g.strokes {
		var at [maxKnots]point
		jitter(&at, s, r)
		p.starts[p.n] = true
		p.add(at[0])
		for k := 1; k < len(s); k++ {
			before, after := k-1, k
			if k > 1 && s[k-1][2] != corner {
				before--
			}
			if k < len(s)-1 && s[k][2] != corner {
				after++
			}
			p.span(at[before], at[k-1], at[k], at[after])
		}
	}
}

// jitter displaces the knots of a stroke, its ends the most.
func jitter(at *[maxKnots]point, stroke []knot, r *rng.Stream) {
	for k, q := range stroke {
		sd := knotJitter
		if k == 0 || k == len(stroke)-1 {
			sd = endJitter
		}
		at[k] = point{float64(q[0]) + mul(sd, r.Norm()), float64(q[1]) + mul(sd, r.Norm())}
	}
}

// add appends q; a path that is full keeps what it has.
func (p *path) add(q point) {
	if p.n < maxPoints {
		p.points[p.n] = q
		p.n++
	}
}

// span appends the piece from b to c of the Catmull-Rom spline through a, b, c
// and d (Catmull and Rom, 1974), in steps of about pieceLength.
func (p *path) span(a, b, c, d point) {
	steps := 1 + int((math.Abs(c.x-b.x)+math.Abs(c.y-b.y))/pieceLength)
	for s := 1; s <= steps; s++ {
		t := float64(s) / float64(steps)
		p.add(point{catmullRom(a.x, b.x, c.x, d.x, t), catmullRom(a.y, b.y, c.y, d.y, t)})
	}
}

// catmullRom is the spline's cubic at t in [0,1], by Horner's rule.
func catmullRom(a, b, c, d, t float64) float64 {
	c3 := mul(3, b-c) + d - a
	c2 := mul(2, a) - mul(5, b) + mul(4, c) - d
	return b + mul(mul(0.5, t), c-a+mul(t, c2+mul(t, c3)))
}

// bounds returns the corners of the smallest box that holds the points.
func (p *path) bounds() (lo, hi point) {
	lo, hi = p.points[0], p.points[0]
	for _, q := range p.points[1:p.n] {
		lo = point{min(lo.x, q.x), min(lo.y, q.y)}
		hi = point{max(hi.x, q.x), max(hi.y, q.y)}
	}
	return lo, hi
}
