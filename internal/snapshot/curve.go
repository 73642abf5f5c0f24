package snapshot

import "math"

// troughs are where a curve of memory has come down from the peaks of a program's steps, which no file marks: the lows that
// follow falls of at least half of the largest fall. They are the same phase of each step, whatever is kept across them.
func troughs(curve []int64) (at []int) {
	fall := largestFall(curve)
	if fall == 0 {
		return nil
	}
	high, low, down := 0, 0, false
	for i, v := range curve {
		switch {
		case !down && v > curve[high]:
			high = i
		case !down && curve[high]-v >= (fall+1)/2:
			low, down = i, true
		case down && v <= curve[low]:
			low = i
		case down && v-curve[low] >= (fall+1)/2:
			at = append(at, low)
			high, down = i, false
		}
	}
	if down {
		at = append(at, low)
	}
	return at
}

// largestFall is from a peak to the lowest point behind it.
func largestFall(curve []int64) (most int64) {
	high := int64(math.MinInt64 / 2)
	for _, v := range curve {
		high = max(high, v)
		most = max(most, high-v)
	}
	return most
}

// Thresholds of growth (R06).
const (
	growingSteps = 5     // steps one after another
	growingShare = 0.001 // of the device's memory a step, or
	growingFit   = 0.98  // of a straight line, with
	growingLeast = 1e-5  // of the memory a step at least: some hundred kilobytes a thousand steps are a log of losses
)

// growth is how memory rises from step to step.
type growth struct {
	from, steps int     // of the phases: the first of those that rise up to the last, and how many rises
	slope       float64 // bytes a step
	fit         float64 // r²
}

// grows is the rise of memory over the phases of steps up to the last of them. ok is whether it is more than memory that
// settles.
func grows(values []int64, memory int64) (g growth, ok bool) {
	g.from = len(values) - 1
	for g.from > 0 && values[g.from-1] < values[g.from] {
		g.from--
		g.steps++
	}
	if g.steps < growingSteps {
		return g, false
	}
	g.slope, g.fit = line(values[g.from:])
	return g, g.slope > growingShare*float64(memory) || g.fit > growingFit && g.slope > growingLeast*float64(memory)
}

// line is the slope of the straight line through equally spaced values, by least squares, and its r².
func line(y []int64) (slope, fit float64) {
	n := float64(len(y))
	var sx, sy, sxx, sxy, syy float64
	for i, v := range y {
		x, v := float64(i), float64(v-y[0])
		sx, sy, sxx, sxy, syy = sx+x, sy+v, sxx+x*x, sxy+x*v, syy+v*v
	}
	cov, vx, vy := n*sxy-sx*sy, n*sxx-sx*sx, n*syy-sy*sy
	if vx == 0 || vy == 0 {
		return 0, 0
	}
	return cov / vx, cov * cov / (vx * vy)
}
