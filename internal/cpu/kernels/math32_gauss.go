package kernels

import "math"

// The error function and the activations made of it, of the sigmoid and of tanh, with their derivatives.

// erfcLimit bounds |x| in erfcTail: above it the exponential leaves the range of its core.
const erfcLimit = 26

// erfcTail is erfc z for 0 ≤ z ≤ erfcLimit, given e^(-z²): the smooth rest erfc(z)·e^(z²) is t·P(t) with t = 1/(1+0.4z).
// P is a least-squares fit of relative error 2e-9 on Chebyshev nodes of 0 ≤ z ≤ 10.3 (the method of Shepherd and
// Laframboise 1981); beyond, float32 has no such numbers.
func erfcTail(z, exp float64) float64 {
	t := 1 / (1 + 0.4*z)
	t2 := t * t
	t4 := t2 * t2
	low := (0.225684971852932206 + t*0.225456150375421119) + t2*(0.209894835775281899+t*0.158282713100212519)
	mid := (0.168981259425922809 - t*0.0383287706043189335) + t2*(0.152997338009793318-t*0.0786898478152888835)
	high := (-0.0870287432465607858 + t*0.0818538011454353091) - t2*0.0191037099565431837
	return exp * t * (low + t4*(mid+t4*high))
}

// Erf is the error function.
func Erf(dst, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = erf(v)
	}
}

func erf(v float32) float32 {
	z := math.Abs(float64(v))
	u := z * z
	switch {
	case z < 0.5:
		// Least squares on Chebyshev nodes of erf(z)/z in z², relative error 2e-11.
		p := 1.12837916707842428 + u*(-0.376126384347209678+u*(0.112837707574962353+u*(-0.0268627411664715802+u*(0.00519841326790676039-u*0.000766001986121839816))))
		return signed(z*p, v)
	case z < 4:
		return signed(1-erfcTail(z, expCore(-u)), v)
	}
	return float32(math.Erf(float64(v)))
}

// normal returns Φ(-|x|), the lower tail of the normal distribution, and e^(-x²/2), for |x| ≤ erfcLimit.
func normal(x float64) (tail, exp float64) {
	exp = expCore(-0.5 * x * x)
	return 0.5 * erfcTail(math.Abs(x)*(1/math.Sqrt2), exp), exp
}

// GELU is x·Φ(x).
func GELU(dst, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		z := float64(v)
		if ordinary(v, erfcLimit) {
			// x - x·tail above 0 and x·tail below, without a branch on the sign.
			a := math.Abs(z)
			tail, _ := normal(z)
			dst[i] = signed(0.5*(a+z)-a*tail, v)
		} else {
			dst[i] = float32(GELU64(z))
		}
	}
}

// GELUGrad is g·(Φ(x) + x·φ(x)).
func GELUGrad(dst, x, g []float32) {
	dst, g = dst[:len(x)], g[:len(x)]
	for i, v := range x {
		z := float64(v)
		if ordinary(v, erfcLimit) {
			tail, exp := normal(z)
			cdf := 0.5 + math.Copysign(0.5-tail, z)
			dst[i] = float32(float64(g[i]) * (cdf + z*exp*invSqrt2Pi))
		} else {
			dst[i] = float32(GELUGrad64(z, float64(g[i])))
		}
	}
}

const (
	invSqrt2Pi = 1 / (math.Sqrt2 * math.SqrtPi)
	// 2·√(2/π), the factor of GELU's tanh form as a sigmoid: (1+tanh u)/2 is sigmoid(2u).
	twoSqrt2OverPi = 4 * invSqrt2Pi
	cubic          = 0.044715
	geluTanhLimit  = 20
)

// GELUTanh is x·(1+tanh(√(2/π)·(x+0.044715x³)))/2.
func GELUTanh(dst, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		z := float64(v)
		if ordinary(v, geluTanhLimit) {
			dst[i] = float32(z / (1 + expCore(-twoSqrt2OverPi*z*(1+cubic*z*z))))
		} else {
			dst[i] = float32(GELUTanh64(z))
		}
	}
}

// GELUTanhGrad is g times the derivative of GELUTanh.
func GELUTanhGrad(dst, x, g []float32) {
	dst, g = dst[:len(x)], g[:len(x)]
	for i, v := range x {
		z := float64(v)
		if ordinary(v, geluTanhLimit) {
			u := z * z
			s := 1 / (1 + expCore(-twoSqrt2OverPi*z*(1+cubic*u)))
			dst[i] = float32(float64(g[i]) * (s + z*s*(1-s)*(twoSqrt2OverPi*(1+3*cubic*u))))
		} else {
			dst[i] = float32(GELUTanhGrad64(z, float64(g[i])))
		}
	}
}

// SiLU is x·sigmoid(x).
func SiLU(dst, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = float32(float64(v) * sigmoid(v))
	}
}

// SiLUGrad is g times the derivative of SiLU, s·(1+x·(1-s)) with s = sigmoid(x).
func SiLUGrad(dst, x, g []float32) {
	dst, g = dst[:len(x)], g[:len(x)]
	for i, v := range x {
		s := sigmoid(v)
		dst[i] = float32(float64(g[i]) * (s * (1 + float64(v)*(1-s))))
	}
}

// The same functions of one float64, from package math.

// Sigmoid64 is 1/(1+e⁻ˣ).
func Sigmoid64(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// GELU64 is x·Φ(x).
func GELU64(x float64) float64 { return x * (0.5 * math.Erfc(-x/math.Sqrt2)) }

// GELUGrad64 is g·(Φ(x) + x·φ(x)).
func GELUGrad64(x, g float64) float64 {
	return g * (0.5*math.Erfc(-x/math.Sqrt2) + x*math.Exp(-0.5*x*x)*invSqrt2Pi)
}

// GELUTanh64 is [GELUTanh].
func GELUTanh64(x float64) float64 {
	return x * Sigmoid64(twoSqrt2OverPi*x*(1+cubic*x*x))
}

// GELUTanhGrad64 is [GELUTanhGrad].
func GELUTanhGrad64(x, g float64) float64 {
	s := Sigmoid64(twoSqrt2OverPi * x * (1 + cubic*x*x))
	return g * (s + x*(s*(1-s))*(twoSqrt2OverPi*(1+3*cubic*x*x)))
}

// SiLU64 is x·sigmoid(x).
func SiLU64(x float64) float64 { return x * Sigmoid64(x) }

// SiLUGrad64 is [SiLUGrad].
func SiLUGrad64(x, g float64) float64 {
	s := Sigmoid64(x)
	return g * (s * (1 + x*(1-s)))
}
