package kernels

// An Activation is a function that is applied to a product before it is stored.
type Activation uint8

// The activations. Every one keeps NaN.
const (
	ActNone     Activation = iota
	ActReLU                // max(0, x)
	ActGELU                // x·Φ(x) = x/2·(1 + erf(x/√2))
	ActGELUTanh            // x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))), the approximation of Hendrycks and Gimpel, arXiv 1606.08415
	ActSiLU                // x·sigmoid(x)
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
		activate(x, GELU, GELU64)
	case ActGELUTanh:
		activate(x, GELUTanh, GELUTanh64)
	case ActSiLU:
		activate(x, SiLU, SiLU64)
	}
}

func activate[T Float](x []T, narrow func(dst, x []float32), wide func(float64) float64) {
	if f, ok := any(x).([]float32); ok {
		narrow(f, f)
		return
	}
	for i, v := range x {
		x[i] = T(wide(float64(v)))
	}
}
