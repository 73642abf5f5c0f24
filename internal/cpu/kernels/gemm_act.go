package kernels

import "math"

// An Activation is a function that is applied to a product before it is stored.
type Activation uint8

// The activations. Every one keeps NaN.
const (
	ActNone     Activation = iota
	ActReLU                // max(0, x)
	ActGELU                // x·Φ(x) = x/2·(1 + erf(x/√2))
	ActGELUTanh            // x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))), the approximation of Hendrycks and Gimpel, arXiv 1606.08415
)

// Activate applies the activation to every element of x.
func Activate[T Float](act Activation, x []T) {
	switch act {
	case ActReLU:
		for i, v := range x {
			if v < 0 {
				x[i] = 0
			}
		}
	case ActGELU:
		for i, v := range x {
			x[i] = T(0.5 * float64(v) * (1 + math.Erf(float64(v)*(1/math.Sqrt2))))
		}
	case ActGELUTanh:
		for i, v := range x {
			x[i] = T(geluTanh(float64(v)))
		}
	}
}

const sqrtPi = 1.77245385090551602729816748334114518279754945612238712821380779

// geluTanh uses (1 + tanh u)/2 = 1/(1 + exp(-2u)), which costs less and keeps
// the relative error small where the value is.
func geluTanh(x float64) float64 {
	const c = 2 * math.Sqrt2 / sqrtPi // 2·√(2/π)
	return x / (1 + math.Exp(-c*(x+0.044715*x*x*x)))
}
