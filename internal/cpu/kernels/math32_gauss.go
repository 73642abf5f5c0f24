package kernels

import "math"

// The error function and the activations made of it, of the sigmoid and of tanh, with their derivatives.

// erfcLimit bounds |x|: above it e^(-x²) leaves the range of expCore.
const erfcLimit = 26

// erfc z = e^(-z²)·t·erfcRest(t) with t = 1/(1+0.4z), for z ≥ 0. The rest is a least-squares fit of relative error 2e-9
// on Chebyshev nodes of 0 ≤ z ≤ 10.3 (the method of Shepherd and Laframboise 1981); beyond, float32 has no such numbers.
func erfcRest(t float64) float64 {
	t2 := t * t
	t4 := t2 * t2
	return erfcLow(t, t2) + t4*(erfcMiddle(t, t2)+t4*((-0.0870287432465607858+t*0.0818538011454353091)-t2*0.0191037099565431837))
}

func erfcLow(t, t2 float64) float64 {
	return (0.225684971852932206 + t*0.225456150375421119) + t2*(0.209894835775281899+t*0.158282713100212519)
}

func erfcMiddle(t, t2 float64) float64 {
	return (0.168981259425922809 - t*0.0383287706043189335) + t2*(0.152997338009793318-t*0.0786898478152888835)
}

// Erf is the error function.
func Erf(dst, x []float32) {
	dst = dst[:len(x)]
	if mapErf.inAssembly(dst, x, x, 0, 0) {
		return
	}
	for i, v := range x {
		switch z := float64(v); {
		case ordinary(z, 0.5):
			dst[i] = float32(erfSeries(z))
		case ordinary(z, 4):
			a := math.Abs(z)
			t := 1 / (1 + 0.4*a)
			dst[i] = signed(1-expCore(-a*a)*t*erfcRest(t), z)
		default:
			rare(dst, x, i, math.Erf)
		}
	}
}

// erfSeries is erf z for |z| ≤ 0.5: z times a least-squares fit in z² on Chebyshev nodes, of relative error 2e-11.
func erfSeries(z float64) float64 {
	u := z * z
	return z * (1.12837916707842428 + u*(-0.376126384347209678+u*(0.112837707574962353+u*(-0.0268627411664715802+u*(0.00519841326790676039-u*0.000766001986121839816)))))
}

// GELU is x·Φ(x).
func GELU(dst, x []float32) {
	dst = dst[:len(x)]
	if mapGELU.inAssembly(dst, x, x, 0, 0) {
		return
	}
	for i, v := range x {
		if z := float64(v); ordinary(z, erfcLimit) {
			// x - x·Φ(-x) above 0 and x·Φ(x) below, without a branch on the sign.
			a := math.Abs(z)
			t := 1 / (1 + (0.4/math.Sqrt2)*a)
			dst[i] = signed(0.5*((a+z)-a*expCore(-0.5*a*a)*t*erfcRest(t)), z)
		} else {
			rare(dst, x, i, GELU64)
		}
	}
}

// GELUGrad is g·(Φ(x) + x·φ(x)).
func GELUGrad(dst, x, g []float32) {
	dst, g = dst[:len(x)], g[:len(x)]
	if mapGELUGrad.inAssembly(dst, x, g, 0, 0) {
		return
	}
	for i, v := range x {
		if z := float64(v); ordinary(z, erfcLimit) {
			e := expCore(-0.5 * z * z)
			t := 1 / (1 + (0.4/math.Sqrt2)*math.Abs(z))
			cdf := 0.5 + math.Copysign(0.5-0.5*e*t*erfcRest(t), z)
			dst[i] = float32(float64(g[i]) * (cdf + z*e*invSqrt2Pi))
		} else {
			rarePair(dst, x, g, i, GELUGrad64)
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
	if mapGELUTanh.inAssembly(dst, x, x, 0, 0) {
		return
	}
	for i, v := range x {
		if z := float64(v); ordinary(z, geluTanhLimit) {
			dst[i] = float32(z / (1 + expCore(-twoSqrt2OverPi*z*(1+cubic*z*z))))
		} else {
			rare(dst, x, i, GELUTanh64)
		}
	}
}

// GELUTanhGrad is g times the derivative of GELUTanh.
func GELUTanhGrad(dst, x, g []float32) {
	dst, g = dst[:len(x)], g[:len(x)]
	if mapGELUTanhGrad.inAssembly(dst, x, g, 0, 0) {
		return
	}
	for i, v := range x {
		if z := float64(v); ordinary(z, geluTanhLimit) {
			u := z * z
			s := 1 / (1 + expCore(-twoSqrt2OverPi*z*(1+cubic*u)))
			dst[i] = float32(float64(g[i]) * (s + z*s*(1-s)*(twoSqrt2OverPi*(1+3*cubic*u))))
		} else {
			rarePair(dst, x, g, i, GELUTanhGrad64)
		}
	}
}

// SiLU is x·sigmoid(x).
func SiLU(dst, x []float32) {
	dst = dst[:len(x)]
	if mapSiLU.inAssembly(dst, x, x, 0, 0) {
		return
	}
	for i, v := range x {
		if z := float64(v); ordinary(z, expLimit) {
			dst[i] = float32(z / (1 + expCore(-z)))
		} else {
			rare(dst, x, i, SiLU64)
		}
	}
}

// SiLUGrad is g times the derivative of SiLU, s·(1+x·(1-s)) with s = sigmoid(x).
func SiLUGrad(dst, x, g []float32) {
	dst, g = dst[:len(x)], g[:len(x)]
	if mapSiLUGrad.inAssembly(dst, x, g, 0, 0) {
		return
	}
	for i, v := range x {
		if z := float64(v); ordinary(z, expLimit) {
			s := 1 / (1 + expCore(-z))
			dst[i] = float32(float64(g[i]) * (s * (1 + z*(1-s))))
		} else {
			rarePair(dst, x, g, i, SiLUGrad64)
		}
	}
}

// rarePair is [rare] for two operands.
//
//go:noinline
func rarePair(dst, x, g []float32, i int, f func(x, g float64) float64) {
	dst[i] = float32(f(float64(x[i]), float64(g[i])))
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

// GELUTanhGrad64 is [GELUTanhGrad]. Far from 0 the derivative is 0 or 1, also where x³ overflows.
func GELUTanhGrad64(x, g float64) float64 {
	x = max(-30, min(x, 30))
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
