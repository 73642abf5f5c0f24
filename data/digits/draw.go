package digits

import (
	"math"

	"github.com/warpline-ml/warpline/internal/rng"
)

// side is the height and the width of a picture.
const side = 28

// The spread of the hand. Lengths up to the fit are in hundredths of the
// digit's height, lengths after it in pixels; sd names a standard deviation.
const (
	knotJitter  = 2.7 // sd of a knot
	endJitter   = 4.2 // sd of the ends of a stroke
	pieceLength = 10  // longest step along a spline

	warpSD    = 0.075 // sd of each coefficient of the warp
	slantMean = 0.15  // shear to the right, per unit of height
	slantSD   = 0.23
	turnSD    = 0.13 // rotation in radians, nearly
	aspectSD  = 0.17 // width over height, relative

	boxSide   = 20.0 // MNIST fits digits into a box of this side
	boxSD     = 0.06 // relative
	shiftSD   = 1.0  // displacement of the centre of mass
	penMean   = 1.25 // radius
	penSD     = 0.35
	penMin    = 0.6
	penMax    = 2.4
	penTaper  = 0.15 // sd of the relative change of radius along the path
	nibSD     = 0.15 // sd of the relative change of radius with the direction
	softMin   = 0.9  // width of the edge from black to white
	softRange = 0.9
	inkMin    = 0.8 // brightness, where more than 1 saturates
	inkRange  = 0.5
	grainMax  = 24 // largest deviation of an inked pixel, in levels
)

// Draw draws sample i of the set named by seed into the first 784 values of
// dst, row by row from the top left, each a multiple of 1/255 in [0,1], 0 being
// the paper and 1 full ink. It returns the digit drawn, 0 to 9. The same seed
// and i give the same picture on every platform; any i is valid. Draw
// allocates nothing and may be called concurrently. It panics if dst is shorter
// than 784.
func Draw(dst []float32, seed uint64, i int) (label uint8) {
	dst = dst[:side*side]
	r := rng.Stream{Key: rng.Fold(rng.Key(seed), uint64(i))}
	label = uint8(r.IntN(len(glyphs)))
	var p path
	p.trace(pick(glyphs[label], &r), &r)
	p.warp(&r)
	p.lean(&r)
	n := newNib(&r)
	p.fit(n.radius, &r)
	var c canvas
	c.draw(&p, &n)
	c.develop(dst, &r)
	return label
}

// pick chooses one of the ways of writing a digit, by weight.
func pick(ways []glyph, r *rng.Stream) *glyph {
	total := 0
	for i := range ways {
		total += ways[i].weight
	}
	i, at := 0, r.IntN(total)
	for ; at >= ways[i].weight; i++ {
		at -= ways[i].weight
	}
	return &ways[i]
}

// warp moves the points by a random polynomial of second and third degree of
// their place, which bends strokes and shifts proportions smoothly. It leaves
// them centred, in units of half the digit's height.
func (p *path) warp(r *rng.Stream) {
	lo, hi := p.bounds()
	mid := point{mul(0.5, lo.x+hi.x), mul(0.5, lo.y+hi.y)}
	unit := 2 / max(hi.y-lo.y, hi.x-lo.x)
	var a, b [5]float64
	for k := range a {
		a[k], b[k] = mul(warpSD, r.Norm()), mul(warpSD, r.Norm())
	}
	for i := range p.points[:p.n] {
		q := point{mul(p.points[i].x-mid.x, unit), mul(p.points[i].y-mid.y, unit)}
		xx, xy, yy := mul(q.x, q.x), mul(q.x, q.y), mul(q.y, q.y)
		m := [5]float64{xx, xy, yy, mul(xy, q.x), mul(yy, q.y)}
		p.points[i] = point{q.x + dot(&a, &m), q.y + dot(&b, &m)}
	}
}

// dot returns the inner product of a and b.
func dot(a, b *[5]float64) float64 {
	s := 0.0
	for k := range a {
		s += mul(a[k], b[k])
	}
	return s
}

// lean stretches, slants and turns the points.
func (p *path) lean(r *rng.Stream) {
	aspect := max(0.5, 1+mul(aspectSD, r.Norm()))
	slant := slantMean + mul(slantSD, r.Norm())
	half := mul(turnSD/2, r.Norm()) // tangent of half the angle
	cos := (1 - mul(half, half)) / (1 + mul(half, half))
	sin := mul(2, half) / (1 + mul(half, half))
	for i := range p.points[:p.n] {
		q := p.points[i]
		x := mul(q.x, aspect) - mul(q.y, slant)
		p.points[i] = point{mul(cos, x) - mul(sin, q.y), mul(sin, x) + mul(cos, q.y)}
	}
}

// fit scales the path, with the pen's width around it, into the box and puts
// its centre of mass at the picture's centre, nearly.
func (p *path) fit(radius float64, r *rng.Stream) {
	lo, hi := p.bounds()
	spread := max(-2, min(2, r.Norm()))
	box := mul(boxSide, 1+mul(boxSD, spread)) - mul(2, radius)
	scale := box / max(hi.x-lo.x, hi.y-lo.y)
	c := p.mass()
	at := point{side/2 + mul(shiftSD, r.Norm()), side/2 + mul(shiftSD, r.Norm())}
	for i := range p.points[:p.n] {
		q := p.points[i]
		p.points[i] = point{at.x + mul(scale, q.x-c.x), at.y + mul(scale, q.y-c.y)}
	}
}

// mass returns the centre of mass of the path, a line of even weight.
func (p *path) mass() point {
	var sum point
	total := 0.0
	for i := 1; i < p.n; i++ {
		if p.starts[i] {
			continue
		}
		a, b := p.points[i-1], p.points[i]
		dx, dy := b.x-a.x, b.y-a.y
		l := math.Sqrt(mul(dx, dx) + mul(dy, dy))
		sum.x += mul(l, a.x+b.x)
		sum.y += mul(l, a.y+b.y)
		total += 2 * l
	}
	return point{sum.x / total, sum.y / total}
}
