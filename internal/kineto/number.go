package kineto

import (
	"math"
	"strconv"
)

// week is the longest duration that is believed, in nanoseconds: longer ones are garbage of the recorder's, as
// HolisticTraceAnalysis has it.
const week = 7 * 24 * 3600 * 1e9

// timeLimit is the last timestamp that is believed, in nanoseconds: sums with durations stay within an int64.
const timeLimit = math.MaxInt64 / 2

// microseconds reads a number of microseconds as nanoseconds, exactly: microseconds since 1970 with three decimals have more
// digits than a float64. More decimals are rounded. It tells whether b is such a number.
func microseconds(b []byte) (ns int64, ok bool) {
	i, negative := 0, false
	if len(b) > 0 && b[0] == '-' {
		i, negative = 1, true
	}
	start := i
	for ; i < len(b) && b[i]-'0' < 10; i++ {
		if ns > timeLimit/10000 {
			return 0, false
		}
		ns = ns*10 + int64(b[i]-'0')
	}
	if i == start || i-start > 18 {
		return slowMicroseconds(b)
	}
	ns *= 1000
	if i < len(b) && b[i] == '.' {
		i++
		for unit := int64(100); i < len(b) && b[i]-'0' < 10; i++ {
			ns += int64(b[i]-'0') * unit
			if unit == 0 && b[i] >= '5' && b[i-4] == '.' {
				ns++
			}
			unit /= 10
		}
	}
	if i < len(b) {
		return slowMicroseconds(b)
	}
	if negative {
		ns = -ns
	}
	return ns, true
}

// slowMicroseconds reads numbers with an exponent.
func slowMicroseconds(b []byte) (ns int64, ok bool) {
	f, err := strconv.ParseFloat(string(b), 64)
	f *= 1000
	if err != nil || math.IsNaN(f) || math.Abs(f) > timeLimit {
		return 0, false
	}
	return int64(math.Round(f)), true
}

// integer reads a whole number, whatever stands behind its digits; ok is false where there are none.
func integer(b []byte) (n int64, ok bool) {
	i, negative := 0, false
	if len(b) > 0 && b[0] == '-' {
		i, negative = 1, true
	}
	start := i
	for ; i < len(b) && b[i]-'0' < 10; i++ {
		if n > math.MaxInt64/10-1 {
			return 0, false
		}
		n = n*10 + int64(b[i]-'0')
	}
	if negative {
		n = -n
	}
	return n, i > start
}
