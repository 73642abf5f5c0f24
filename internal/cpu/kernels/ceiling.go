package kernels

import (
	"time"

	"github.com/warpline-ml/warpline/internal/cpufeat"
)

// Ceiling measures the rate of one thread, in multiply-adds of float32 a
// second, that no kernel of the level can pass: on registers alone. It takes
// some milliseconds.
func Ceiling(l cpufeat.Level) float64 {
	start := time.Now()
	work, sum := ceiling(l, ceilingTurns), float32(1)
	if work == 0 {
		work, sum = ceilingGo(ceilingTurns)
	}
	return work * float64(sum/sum) / time.Since(start).Seconds()
}

const ceilingTurns = 50000

// ceilingGo is ceiling for levels without assembly: sums of eight chains, which
// are more than 0 and which the compiler must form, since they are returned.
func ceilingGo(n int) (work float64, sum float32) {
	var a, b, c, d, e, f, g, h float32
	x, y := float32(n), 1/float32(n)
	for range n {
		a, b, c, d = x*y+a, x*y+b, x*y+c, x*y+d
		e, f, g, h = x*y+e, x*y+f, x*y+g, x*y+h
	}
	return float64(8 * n), a + b + c + d + e + f + g + h
}

// Triad stores p·b + q·c in a: what memory is measured by. All have the length
// of c.
func Triad(a, b, c []float32, p, q float32) { RowMix(a, b, c, p, -q, 0, 0) }
