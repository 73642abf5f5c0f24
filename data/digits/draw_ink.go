package digits

import (
	"math"

	"github.com/warpline-ml/warpline/internal/rng"
)

// nib is the pen of one picture.
type nib struct {
	radius float64 // mean, in pixels
	taper  float64 // relative change of the radius from the path's middle to its end
	flat   float64 // relative change of the radius with the direction of the stroke
	dir    point   // direction in which flat acts, of length 1
	soft   float64 // width of the edge from no ink to full ink, in pixels
}

func newNib(r *rng.Stream) nib {
	n := nib{
		radius: max(penMin, min(penMax, penMean+mul(penSD, r.Norm()))),
		taper:  mul(penTaper, r.Norm()),
		flat:   mul(nibSD, r.Norm()),
		soft:   softMin + mul(softRange, r.Float64()),
	}
	x, y := r.Norm(), r.Norm()
	l := math.Sqrt(mul(x, x)+mul(y, y)) + 1e-9
	n.dir = point{x / l, y / l}
	return n
}

// at returns the pen's radius on the piece from a to b, at the share t of the
// path.
func (n *nib) at(a, b point, t float64) float64 {
	dx, dy := b.x-a.x, b.y-a.y
	along := mul(dx, n.dir.x) + mul(dy, n.dir.y)
	part := mul(along, along) / (mul(dx, dx) + mul(dy, dy) + 1e-9)
	w := 1 + mul(n.taper, mul(2, t)-1) + mul(n.flat, mul(2, part)-1)
	return mul(n.radius, max(0.5, w))
}

// canvas holds the share of each pixel that ink covers, in [0,1].
type canvas [side * side]float64

// draw inks the pieces of p with n.
func (c *canvas) draw(p *path, n *nib) {
	last := 0.0
	for i := 1; i < p.n; i++ {
		if p.starts[i] {
			last = 0
			continue
		}
		a, b := p.points[i-1], p.points[i]
		radius := n.at(a, b, float64(i)/float64(p.n))
		if last == 0 {
			last = radius
		}
		c.piece(a, b, last, radius, n.soft)
		last = radius
	}
}

// piece inks the straight piece from a to b whose radius goes from ra to rb.
// The ink fades over soft pixels around the edge.
func (c *canvas) piece(a, b point, ra, rb, soft float64) {
	edge := mul(0.5, soft)
	reach := max(ra, rb) + edge
	x0, x1 := clip(min(a.x, b.x)-reach), clip(max(a.x, b.x)+reach+1)
	y0, y1 := clip(min(a.y, b.y)-reach), clip(max(a.y, b.y)+reach+1)
	dx, dy := b.x-a.x, b.y-a.y
	inv := 1 / (mul(dx, dx) + mul(dy, dy) + 1e-9)
	ux, uy := mul(dx, inv), mul(dy, inv)
	full := max(0, min(ra, rb)-edge)
	far, near, slope := mul(reach, reach), mul(full, full), 1/soft
	for y := y0; y < y1; y++ {
		py := float64(y) + 0.5 - a.y
		row := c[y*side : y*side+side]
		for x := x0; x < x1; x++ {
			px := float64(x) + 0.5 - a.x
			t := max(0, min(1, mul(px, ux)+mul(py, uy)))
			ex, ey := px-mul(t, dx), py-mul(t, dy)
			d := mul(ex, ex) + mul(ey, ey)
			if d >= far {
				continue
			}
			ink := 1.0
			if d > near {
				ink = min(1, 0.5+mul(slope, ra+mul(t, rb-ra)-math.Sqrt(d)))
			}
			row[x] = max(row[x], ink)
		}
	}
}

// clip rounds v down into [0,side].
func clip(v float64) int { return int(max(0, min(side, v))) }

// develop turns coverage into levels, with the picture's brightness and a
// grain that only ink shows, and writes them to dst.
func (c *canvas) develop(dst []float32, r *rng.Stream) {
	level := mul(255, inkMin+mul(inkRange, r.Float64()))
	grain := mul(grainMax/128.0, r.Float64())
	var bits uint64 // the grain of the next pixels, a byte each
	left := 0
	for i, v := range c {
		if v == 0 {
			dst[i] = 0
			continue
		}
		if left == 0 {
			bits, left = r.Uint64(), 8
		}
		light := level + mul(grain, float64(int8(bits)))
		bits, left = bits>>8, left-1
		dst[i] = float32(int(max(0, min(255, mul(v, light)+0.5)))) / 255
	}
}
