package kernels

import "math"

// The elementary functions of float32, over slices: dst[i] = f(x[i]), in place where dst is x. Assembly computes in
// float32, with errors below the bounds that TestUnary32 has: 2 ulp, and 4 where the result is a product of such.
//
// The loops in Go compute in float64, where one rounding at the end is nearly all of the error (below 0.52 ulp, erf and its
// relatives below 0.6) and no care for cancellation is needed; scalar float64 costs no more than float32. But for
// erf and log1p near 0 there is no branch on ordinary values. Rare arguments (huge, NaN, infinite) go to package math.

// The core of the exponential: x = (32·k + j)·ln2/32 + r with |r| ≤ ln2/64 (Tang 1989; the layout of the table is that
// of ARM's optimized routines: entry j is the bits of 2^(j/32) less j·2^47, so that adding (32·k+j)·2^47 gives those of
// 2^(k+j/32)).
const (
	expBits    = 5
	expSize    = 1 << expBits
	magic      = 3 << 51 // adding it rounds to an integer, which the low bits then hold
	expPerUnit = expSize / math.Ln2
	expStep    = math.Ln2 / expSize
)

var expTable = func() (t [expSize]uint64) {
	for j := range t {
		t[j] = math.Float64bits(math.Exp2(float64(j)/expSize)) - uint64(j)<<(52-expBits)
	}
	return t
}()

// expLimit bounds the magnitude of the cores' arguments. Beyond it float32 has only the limits 0 and infinity.
const expLimit = 700

// expCore is eˣ for |x| ≤ expLimit, with a relative error below 6e-10.
func expCore(x float64) float64 {
	t := x*expPerUnit + magic
	k := math.Float64bits(t)
	r := x - (t-magic)*expStep
	s := math.Float64frombits(expTable[k%expSize] + k<<(52-expBits))
	return s + s*(r+r*r*(0.5+r*(1./6)))
}

// expm1Core is eˣ-1 for |x| ≤ expLimit, with a relative error below 2e-10, near 0 too: there s is exactly 1.
func expm1Core(x float64) float64 {
	t := x*expPerUnit + magic
	k := math.Float64bits(t)
	r := x - (t-magic)*expStep
	s := math.Float64frombits(expTable[k%expSize] + k<<(52-expBits))
	return (s - 1) + s*(r+r*r*(0.5+r*(1./6+r*(1./24))))
}

// The loops below take care that the compiler converts an element in place, CVTSS2SD X0, X0 after a load: with another
// destination the instruction waits for that register's old value (half of it stays), and each element for the one
// before, which is three times slower. Hence the float32 is not used after its conversion, and rare arguments are
// reloaded by a function of their own, whose call does not bind registers.

// rare computes element i by package math.
//
//go:noinline
func rare(dst, x []float32, i int, f func(float64) float64) { dst[i] = float32(f(float64(x[i]))) }

// ordinary reports whether |z| < limit, false for NaN.
func ordinary(z, limit float64) bool { return z < limit && z > -limit }

// signed gives y, which is not negative or has z's sign, the sign of z: ±0 keep theirs.
func signed(y, z float64) float32 {
	return float32(math.Float64frombits(math.Float64bits(y) | math.Float64bits(z)&(1<<63)))
}

// Exp is eˣ.
func Exp(dst, x []float32) {
	dst = dst[:len(x)]
	if mapExp.inAssembly(dst, x, x, 0, 0) {
		return
	}
	for i, v := range x {
		if z := float64(v); ordinary(z, expLimit) {
			dst[i] = float32(expCore(z))
		} else {
			rare(dst, x, i, math.Exp)
		}
	}
}

// Expm1 is eˣ-1, accurate near 0.
func Expm1(dst, x []float32) {
	dst = dst[:len(x)]
	if mapExpm1.inAssembly(dst, x, x, 0, 0) {
		return
	}
	for i, v := range x {
		if z := float64(v); ordinary(z, expLimit) {
			dst[i] = signed(expm1Core(z), z)
		} else {
			rare(dst, x, i, math.Expm1)
		}
	}
}

// Tanh is (e²ˣ-1)/(e²ˣ+1).
func Tanh(dst, x []float32) {
	dst = dst[:len(x)]
	if mapTanh.inAssembly(dst, x, x, 0, 0) {
		return
	}
	for i, v := range x {
		if z := float64(v); ordinary(z, expLimit/2) {
			q := expm1Core(2 * z)
			dst[i] = signed(q/(q+2), z)
		} else {
			rare(dst, x, i, math.Tanh)
		}
	}
}

// Sigmoid is 1/(1+e⁻ˣ).
func Sigmoid(dst, x []float32) {
	dst = dst[:len(x)]
	if mapSigmoid.inAssembly(dst, x, x, 0, 0) {
		return
	}
	for i, v := range x {
		if z := float64(v); ordinary(z, expLimit) {
			dst[i] = float32(1 / (1 + expCore(-z)))
		} else {
			rare(dst, x, i, Sigmoid64)
		}
	}
}

// The core of the logarithm: z = 2ᵏ·c·(1+r) for the middle c of one of 32 intervals of [0.699, 1.398), except that c is
// 1 in the one that holds it, so that ln z is a polynomial of z-1 there.
const (
	logBits = 5
	logSize = 1 << logBits
	logLow  = 0x3fe6600000000000
)

var logTable = func() (t [logSize]struct{ inverse, log float64 }) {
	for i := range t {
		lo := math.Float64frombits(logLow + uint64(i)<<(52-logBits))
		hi := math.Float64frombits(logLow + uint64(i+1)<<(52-logBits))
		c := (lo + hi) / 2
		if lo <= 1 && 1 < hi {
			c = 1
		}
		t[i].inverse = 1 / c
		t[i].log = -math.Log(t[i].inverse)
	}
	return t
}()

// The core is in two functions that are small enough to be inlined: ln z = base + logSeries(r) for a positive normal z,
// with a relative error below 2e-9.

func logParts(z float64) (r, base float64) {
	b := math.Float64bits(z)
	t := b - logLow
	e := &logTable[t>>(52-logBits)%logSize]
	r = math.Float64frombits(b-t&(0xfff<<52))*e.inverse - 1
	return r, float64(int64(t)>>52)*math.Ln2 + e.log
}

func logSeries(r float64) float64 {
	r2 := r * r
	return r + r2*(-0.5+r*(1./3)+r2*(-0.25+r*0.2))
}

// Log is ln x: NaN below 0, -Inf at 0.
func Log(dst, x []float32) {
	dst = dst[:len(x)]
	if mapLog.inAssembly(dst, x, x, 0, 0) {
		return
	}
	for i, v := range x {
		if z := float64(v); z > 0 && z <= math.MaxFloat64 {
			r, base := logParts(z)
			dst[i] = float32(base + logSeries(r))
		} else {
			rare(dst, x, i, math.Log)
		}
	}
}

// Log1p is ln(1+x), accurate near 0.
func Log1p(dst, x []float32) {
	dst = dst[:len(x)]
	if mapLog1p.inAssembly(dst, x, x, 0, 0) {
		return
	}
	const small = 1. / (1 << 13)
	for i, v := range x {
		switch z := float64(v); {
		case ordinary(z, small):
			dst[i] = signed(z*(1-z*(0.5-z*(1./3))), z)
		case z > -1 && z <= math.MaxFloat64:
			r, base := logParts(1 + z)
			dst[i] = float32(base + logSeries(r))
		default:
			rare(dst, x, i, math.Log1p)
		}
	}
}

// trigLimit bounds the arguments whose quarter turns the two parts of π/2 below take off exactly: the first has 33 bits.
const trigLimit = 1 << 20

// quarters returns x less the nearest multiple q of π/2.
func quarters(x float64) (r float64, q uint64) {
	const (
		high = 1.57079632673412561417e+00
		low  = 6.07710050650619224932e-11
	)
	t := x*(2/math.Pi) + magic
	n := t - magic
	return (x - n*high) - n*low, math.Float64bits(t)
}

// sinCore and cosCore are FreeBSD's k_sinf.c and k_cosf.c, for |x| ≤ π/4.
func sinCore(x float64) float64 {
	z := x * x
	return x * (1 + z*((-0.166666666416265235595+z*0.0083333293858894631756)+z*z*(-0.000198393348360966317347+z*0.0000027183114939898219064)))
}

func cosCore(x float64) float64 {
	z := x * x
	w := z * z
	return ((1 - z*0.499999997251031003120) + w*0.0416666233237390631894) + (w*z)*(-0.00138867637746099294692+z*0.0000243904487962774090654)
}

// Sin is the sine of x in radians.
func Sin(dst, x []float32) {
	if !turnInAssembly(dst, x, 0, sines) {
		sines(dst, x)
	}
}

// Cos is the cosine of x in radians.
func Cos(dst, x []float32) {
	if !turnInAssembly(dst, x, 1, cosines) {
		cosines(dst, x)
	}
}

func sines(dst, x []float32)   { turned(dst, x, 0, math.Sin) }
func cosines(dst, x []float32) { turned(dst, x, 1, math.Cos) }

// turned is sin(x + ahead·π/2). The bits of sine or cosine are chosen by masks: the quarter is as good as random to a
// branch predictor.
func turned(dst, x []float32, ahead uint64, slow func(float64) float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		if z := float64(v); ordinary(z, trigLimit) {
			r, q := quarters(z)
			q += ahead
			s, c := math.Float64bits(sinCore(r)), math.Float64bits(cosCore(r))
			dst[i] = float32(math.Float64frombits(s ^ (s^c)&-(q&1) ^ q>>1<<63))
		} else {
			rare(dst, x, i, slow)
		}
	}
}

func roots(dst, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = float32(math.Sqrt(float64(v)))
	}
}

func inverseRoots(dst, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = float32(1 / math.Sqrt(float64(v)))
	}
}
