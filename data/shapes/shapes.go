// Package shapes draws discs, squares and triangles on a ground, to be told from it pixel by pixel: a set for segmentation that needs no
// files. What is shape and what is ground is a matter of texture alone. Both are waves of one height in a direction of their own, short
// ones in shapes and long ones in the ground, so that grey values are spread alike in both, and no threshold of the picture finds the
// shapes: the best of all has a mean IoU below 0.6 even where it is chosen for each picture, and is told which side of it is shape.
package shapes

import (
	"math"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/rng"
)

// Side is the height and the width of a picture.
const Side = 64

// Classes are what a pixel may be, by label.
var Classes = []string{"ground", "shape"}

// DefaultSeed names the set that [Split] hands out.
const DefaultSeed = 1

// Lengths in pixels.
const (
	smallest, largest = 12, 20 // radius of the circle around a shape
	shortWave         = 3      // and up to so much more
	longWave          = 12
	tries             = 8 // places that are tried for up to three shapes
)

// height and noise are how far grey values go from the middle: by waves, and at random.
const height, noise = 0.4, 0.1

// Set is a run of consecutive samples of the set that Seed names: pictures float32 [1, Side, Side] from 0 to 1, and labels int64
// [Side, Side], places in [Classes]. It draws them whenever they are read, and keeps none. It may be used by several goroutines at once.
type Set struct {
	Seed  uint64
	First int // index of the first sample; any index is valid
	N     int
}

// Split returns train and test samples of the default set, which have none in common. The test set is the same whatever the size of the
// other.
func Split(train, test int) (Set, Set) {
	return Set{DefaultSeed, 0, train}, Set{DefaultSeed, -test, test}
}

// Len implements [data.Source].
func (s Set) Len() int { return max(s.N, 0) }

// Fields implements [data.Source].
func (s Set) Fields() []data.Field {
	return []data.Field{{DType: dtype.F32, Shape: []int{1, Side, Side}}, {DType: dtype.I64, Shape: []int{Side, Side}}}
}

// Fill implements [data.Source].
func (s Set) Fill(_ *data.Pair, row data.Row, i int) error {
	Draw(data.Values[float32](row, 0), data.Values[int64](row, 1), s.Seed, s.First+i)
	return nil
}

// Draw draws sample i of the set that seed names, row by row from the top left: x gets Side² grey values, labels what each pixel is. The
// same seed and i give the same sample on every platform; any i is valid. It may be called concurrently.
func Draw(x []float32, labels []int64, seed uint64, i int) {
	r := rng.Stream{Key: rng.Fold(rng.Key(seed), uint64(i))}
	ground := newWave(&r, longWave)
	list := place(&r)
	for k := range Side * Side {
		p := point{float64(k%Side) + 0.5, float64(k/Side) + 0.5}
		label, texture := int64(0), ground
		for j := range list {
			if s := &list[j]; s.has(p) {
				label, texture = 1, s.texture
			}
		}
		grey := 0.5 + mul(height, texture.at(p)) + mul(noise, mul(2, r.Float64())-1)
		x[k], labels[k] = float32(grey), label
	}
}

// mul is a product that no platform fuses with a sum.
func mul(a, b float64) float64 { return float64(a * b) }

type point struct{ x, y float64 }

func (p point) dot(q point) float64 { return mul(p.x, q.x) + mul(p.y, q.y) }

// direction is a point of the unit circle.
func direction(r *rng.Stream) point {
	for {
		p := point{mul(2, r.Float64()) - 1, mul(2, r.Float64()) - 1}
		if n := p.dot(p); n > 0.01 && n < 1 {
			n = math.Sqrt(n)
			return point{p.x / n, p.y / n}
		}
	}
}

// wave goes up and down between -1 and 1 in straight lines, so that all values are as frequent.
type wave struct {
	along point // the direction, by periods
	phase float64
}

// newWave has a length from least to twice as much.
func newWave(r *rng.Stream, least float64) wave {
	d, length := direction(r), least+mul(least, r.Float64())
	return wave{point{d.x / length, d.y / length}, r.Float64()}
}

func (w wave) at(p point) float64 {
	t := p.dot(w.along) + w.phase
	return mul(4, math.Abs(t-math.Floor(t)-0.5)) - 1
}

// The kinds of shapes.
const (
	disc = iota
	square
	triangle
	kinds
)

// shape is one of a picture.
type shape struct {
	kind    int // disc, square or triangle
	centre  point
	radius  float64
	up      point // a direction
	texture wave
}

// place draws one to three shapes that do not touch.
func place(r *rng.Stream) (list []shape) {
	want := 1 + r.IntN(3)
	for range tries {
		s := shape{kind: r.IntN(kinds), radius: smallest + mul(largest-smallest, r.Float64()), up: direction(r), texture: newWave(r, shortWave)}
		room := Side - mul(2, s.radius)
		s.centre = point{s.radius + mul(room, r.Float64()), s.radius + mul(room, r.Float64())}
		if len(list) < want && !s.touches(list) {
			list = append(list, s)
		}
	}
	return list
}

func (s *shape) touches(list []shape) bool {
	for _, o := range list {
		d, far := point{s.centre.x - o.centre.x, s.centre.y - o.centre.y}, s.radius+o.radius
		if d.dot(d) < mul(far, far) {
			return true
		}
	}
	return false
}

// Sines of degrees.
const sin60, sin45 = 0.8660254037844386, 0.7071067811865476

// has tells whether a point is inside.
func (s *shape) has(p point) bool {
	p = point{p.x - s.centre.x, p.y - s.centre.y}
	// In the shape's own directions.
	x, y := point{s.up.y, -s.up.x}.dot(p), s.up.dot(p)
	switch s.kind {
	case disc: // nearly as large as its circle, so that areas are alike
		return p.dot(p) < mul(0.72, mul(s.radius, s.radius))
	case square:
		return max(math.Abs(x), math.Abs(y)) < mul(sin45, s.radius)
	}
	return y > mul(-0.5, s.radius) && mul(sin60, math.Abs(x))+mul(0.5, y) < mul(0.5, s.radius)
}
