package optim

import (
	"math"

	"github.com/warpline-ml/warpline/tensor"
)

// point is a loss on a line: how far along, its slope there, and the gradient.
type point struct {
	at, loss, slope float64
	grad            *tensor.Tensor
}

// search looks along a line for a point that meets the strong conditions of Wolfe: the loss falls by a ten-thousandth of what the slope
// at 0 promises, and the slope there is below nine tenths of that (Nocedal and Wright, algorithms 3.5 and 3.6, in the form of
// PyTorch's lbfgs).
type search struct {
	from     point // at 0
	width    float64
	least    float64 // an interval below it, times width, is too short to go on
	most     int     // turns
	evaluate func(t float64) point
}

// run is the point that was found, or the lowest seen last.
func (s *search) run(t float64) point {
	a, b, turn, done := s.bracket(t)
	if done {
		return b
	}
	return s.zoom([2]point{a, b}, turn)
}

func (s *search) high(p point) bool { return p.loss > s.from.loss+1e-4*p.at*s.from.slope }
func (s *search) flat(p point) bool { return math.Abs(p.slope) <= -0.9*s.from.slope }

// bracket goes on until what is looked for lies between two points, or is the second of them.
func (s *search) bracket(t float64) (a, b point, turn int, done bool) {
	a, b = s.from, s.evaluate(t)
	for ; turn < s.most; turn++ {
		switch {
		case s.high(b) || turn > 1 && b.loss >= a.loss:
			return a, b, turn, false
		case s.flat(b):
			return a, b, turn, true
		case b.slope >= 0:
			return a, b, turn, false
		}
		a, b = b, s.evaluate(cubic(a, b, b.at+0.01*(b.at-a.at), b.at*10))
	}
	return s.from, b, turn, false
}

// zoom makes the interval between two points smaller.
func (s *search) zoom(ends [2]point, turn int) point {
	low := lower(ends)
	for stuck := false; turn < s.most && math.Abs(ends[1].at-ends[0].at)*s.width >= s.least; turn++ {
		var t float64
		t, stuck = s.between(ends, stuck)
		p, high := s.evaluate(t), 1-low
		if s.high(p) || p.loss >= ends[low].loss {
			ends[high] = p
			low = lower(ends)
			continue
		}
		if s.flat(p) {
			return p
		}
		if p.slope*(ends[high].at-ends[low].at) >= 0 {
			ends[high] = ends[low]
		}
		ends[low] = p
	}
	return ends[low]
}

func lower(ends [2]point) int {
	if ends[0].loss <= ends[1].loss {
		return 0
	}
	return 1
}

// between is where to look next: away from the ends if the last look was as near to one.
func (s *search) between(ends [2]point, stuck bool) (t float64, again bool) {
	lo, hi := min(ends[0].at, ends[1].at), max(ends[0].at, ends[1].at)
	t = cubic(ends[0], ends[1], lo, hi)
	margin := 0.1 * (hi - lo)
	switch {
	case min(hi-t, t-lo) >= margin:
		return t, false
	case !stuck && lo < t && t < hi:
		return t, true
	case math.Abs(t-hi) < math.Abs(t-lo):
		return hi - margin, false
	}
	return lo + margin, false
}

// cubic is where the cubic through two points with their slopes is least, between lo and hi.
func cubic(a, b point, lo, hi float64) float64 {
	d1 := a.slope + b.slope - 3*(a.loss-b.loss)/(a.at-b.at)
	square := d1*d1 - a.slope*b.slope
	if !(square >= 0) {
		return (lo + hi) / 2
	}
	if a.at > b.at {
		a, b = b, a
	}
	d2 := math.Sqrt(square)
	return min(max(b.at-(b.at-a.at)*((b.slope+d2-d1)/(b.slope-a.slope+2*d2)), lo), hi)
}
