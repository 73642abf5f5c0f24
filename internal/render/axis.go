package render

import (
	"math"
	"strconv"
)

// axis maps values to [0, 1].
type axis struct {
	low, high float64 // the ends; their decimal logarithms if log
	log       bool
	ticks     []tick
}

type tick struct {
	at    float64 // in [0, 1]
	label string
}

// huge bounds what is drawn, so that differences stay finite; a range below tiny
// counts as a point.
const (
	huge = 1e300
	tiny = 1e-290
)

// drawable reports whether v has a place on an axis.
func drawable(v float64, log bool) bool {
	return math.Abs(v) <= huge && (!log || v > 0)
}

// at returns v's place, NaN for a value that has none.
func (a axis) at(v float64) float64 {
	if !drawable(v, a.log) {
		return math.NaN()
	}
	if a.log {
		v = math.Log10(v)
	}
	return (v - a.low) / (a.high - a.low)
}

// newAxis covers the values between low and high, which are drawable, widened by a
// fraction margin at both ends, with about n ticks.
func newAxis(low, high float64, log bool, margin float64, n int) axis {
	a := axis{low: low, high: high, log: log}
	if log {
		a.low, a.high = math.Log10(low), math.Log10(high)
	}
	widen := margin * (a.high - a.low)
	if largest := max(math.Abs(a.low), math.Abs(a.high)); a.high-a.low <= max(1e-12*largest, tiny) {
		widen = 0.5
		if !log && largest > tiny {
			widen = largest / 10
		}
	}
	a.low -= widen
	a.high += widen
	if log {
		a.ticks = a.logTicks(n)
	}
	if len(a.ticks) < 2 {
		a.ticks = a.linearTicks(n)
	}
	return a
}

// linearTicks are multiples of 1, 2 or 5 times a power of ten.
func (a axis) linearTicks(n int) []tick {
	low, high := a.low, a.high
	if a.log {
		low, high = math.Pow(10, low), math.Pow(10, high)
	}
	return a.multiples(niceStep((high-low)/float64(max(n, 2))), n)
}

// wholeTicks are linearTicks at whole numbers.
func (a axis) wholeTicks(n int) []tick {
	if a.log || a.high-a.low >= float64(max(n, 2)) {
		return a.ticks
	}
	return a.multiples(1, n)
}

// multiples are ticks at the multiples of step.
func (a axis) multiples(step float64, n int) []tick {
	low, high := a.low, a.high
	if a.log {
		low, high = math.Pow(10, low), math.Pow(10, high)
	}
	var ticks []tick
	first := math.Ceil(low/step - 1e-9)
	for i := 0; i <= 2*n+2; i++ {
		v := (first + float64(i)) * step
		if v > high+1e-9*step {
			break
		}
		if at := a.at(v); at >= -1e-9 && at <= 1+1e-9 {
			ticks = append(ticks, tick{min(max(at, 0), 1), tickLabel(v, step, max(math.Abs(low), math.Abs(high)))})
		}
	}
	return ticks
}

// niceStep rounds up to 1, 2 or 5 times a power of ten.
func niceStep(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= x*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// logTicks are powers of ten, with 2 and 5 times them where there is room.
func (a axis) logTicks(n int) []tick {
	first, last := int(math.Ceil(a.low-1e-9)), int(math.Floor(a.high+1e-9))
	every := max((last-first)/max(n, 1), 1)
	steps := []float64{1}
	if (last-first+1)*3 <= n+2 {
		steps = []float64{1, 2, 5}
	}
	var ticks []tick
	for e := first - 1; e <= last; e++ {
		if (e-first)%every != 0 {
			continue
		}
		for _, m := range steps {
			v := m * math.Pow(10, float64(e))
			if at := a.at(v); at >= -1e-9 && at <= 1+1e-9 {
				ticks = append(ticks, tick{min(max(at, 0), 1), logLabel(v, math.Pow(10, float64(e)))})
			}
		}
	}
	return ticks
}

// logLabel formats v, a few times the power of ten given. Ticks of such an axis lie orders of magnitude apart, so that each has the
// suffix of its own: 1k, 1M, 1G.
func logLabel(v, power float64) string {
	if power < 1e3 || power >= 1e15 {
		return tickLabel(v, power, v)
	}
	number, unit := v, ""
	for _, u := range []string{"k", "M", "G", "T"} {
		if power < 999.5 {
			break
		}
		number, power, unit = number/1e3, power/1e3, u
	}
	return strconv.FormatFloat(number, 'f', 0, 64) + unit
}

// tickLabel formats v on an axis with the given step and largest value.
func tickLabel(v, step, largest float64) string {
	if math.Abs(v) < step/2 {
		return "0"
	}
	suffix := ""
	switch {
	case largest >= 1e15 || step < 1e-4:
		return strconv.FormatFloat(v, 'g', 4, 64)
	case largest >= 1e10 || largest >= 1e9 && step >= 1e8:
		v, step, suffix = v/1e9, step/1e9, "G"
	case largest >= 1e7 || largest >= 1e6 && step >= 1e5:
		v, step, suffix = v/1e6, step/1e6, "M"
	case largest >= 1e4:
		v, step, suffix = v/1e3, step/1e3, "k"
	}
	decimals := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	return strconv.FormatFloat(v, 'f', decimals, 64) + suffix
}
