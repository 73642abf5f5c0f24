package estimate

import "math"

// terms is how many of a series give a float64's precision.
const terms = 18

// log2 is the logarithm of x > 0 to the base 2, the same bits on every machine: of x = f·2ⁿ with f about 1, n + ln f / ln 2, and
// ln f = 2·(s + s³/3 + s⁵/5 + …), s = (f-1)/(f+1).
func log2(x float64) float64 {
	f, n := math.Frexp(x)
	if f < math.Sqrt2/2 {
		f, n = 2*f, n-1
	}
	s := (f - 1) / (f + 1)
	z, sum := float64(s*s), 0.0
	for k := terms; k >= 0; k-- {
		sum = float64(sum*z) + 1/float64(2*k+1)
	}
	return float64(n) + float64(2/math.Ln2*float64(s*sum))
}

// exp2 is 2 to the power of x, the same bits on every machine: of x = n + r with |r| ≤ 1/2, 2ⁿ times the series of e to the power of
// r·ln 2.
func exp2(x float64) float64 {
	n := math.Round(x)
	r, sum := float64((x-n)*math.Ln2), 1.0
	for k := terms; k > 0; k-- {
		sum = 1 + float64(r*sum)/float64(k)
	}
	return math.Ldexp(sum, int(n))
}
