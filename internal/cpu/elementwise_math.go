package cpu

import (
	"math"

	"github.com/warpline-ml/warpline/internal/cpu/kernels"
	"github.com/warpline-ml/warpline/internal/ir"
)

func init() {
	floats(ir.Floor, grainCheap, eachFloat[float32](math.Floor), eachFloat[float64](math.Floor))
	floats(ir.Ceil, grainCheap, eachFloat[float32](math.Ceil), eachFloat[float64](math.Ceil))
	floats(ir.Round, grainCheap, eachFloat[float32](math.RoundToEven), eachFloat[float64](math.RoundToEven))
	floats(ir.Trunc, grainCheap, eachFloat[float32](math.Trunc), eachFloat[float64](math.Trunc))
	floats(ir.Sqrt, grainCheap, unary(kernels.Sqrt), squareRoot)
	floats(ir.Rsqrt, grainCheap, unary(kernels.Rsqrt), inverseRoot)
	floats(ir.Exp, grainMath, unary(kernels.Exp), eachFloat[float64](math.Exp))
	floats(ir.Expm1, grainMath, unary(kernels.Expm1), eachFloat[float64](math.Expm1))
	floats(ir.Log, grainMath, unary(kernels.Log), eachFloat[float64](logarithm))
	floats(ir.Log1p, grainMath, unary(kernels.Log1p), eachFloat[float64](math.Log1p))
	floats(ir.Sin, grainMath, unary(kernels.Sin), eachFloat[float64](math.Sin))
	floats(ir.Cos, grainMath, unary(kernels.Cos), eachFloat[float64](math.Cos))
	floats(ir.Tanh, grainMath, unary(kernels.Tanh), eachFloat[float64](math.Tanh))
	floats(ir.Sigmoid, grainMath, unary(kernels.Sigmoid), eachFloat[float64](kernels.Sigmoid64))
	floats(ir.Erf, grainMath, unary(kernels.Erf), eachFloat[float64](math.Erf))
	floats(ir.GELU, grainMath, unary(kernels.GELU), eachFloat[float64](kernels.GELU64))
	floats(ir.GELUTanh, grainMath, unary(kernels.GELUTanh), eachFloat[float64](kernels.GELUTanh64))
	floats(ir.SiLU, grainMath, unary(kernels.SiLU), eachFloat[float64](kernels.SiLU64))

	floats(ir.ReLUGrad, grainCheap, reluGrad, reluGrad64)
	floats(ir.GELUGrad, grainMath, binary(kernels.GELUGrad), eachPair[float64](kernels.GELUGrad64))
	floats(ir.GELUTanhGrad, grainMath, binary(kernels.GELUTanhGrad), eachPair[float64](kernels.GELUTanhGrad64))
	floats(ir.SiLUGrad, grainMath, binary(kernels.SiLUGrad), eachPair[float64](kernels.SiLUGrad64))

	floats(ir.PowScalar, grainMath, powScalar32, powScalar)
	floats(ir.Pow, grainMath, eachPair[float32](math.Pow), eachPair[float64](pow))
	floats(ir.Lerp, grainCheap, lerp32, lerp)
}

func floats(code ir.Code, grain int, f32 pass[float32, float32], f64 pass[float64, float64]) {
	offer(floatPasses{grain, f32, f64}.prepare, code)
	words[code] = word{f32, f64}
}

func unary[T float](f func(dst, x []T)) pass[T, T] {
	return func(dst, x, _ []T, _, _ float64) { f(dst, x) }
}

func binary[T float](f func(dst, x, y []T)) pass[T, T] {
	return func(dst, x, y []T, _, _ float64) { f(dst, x, y) }
}

func eachFloat[T float](f func(float64) float64) pass[T, T] {
	return func(dst, x, _ []T, _, _ float64) {
		for i, v := range x {
			dst[i] = T(f(float64(v)))
		}
	}
}

func eachPair[T float](f func(x, y float64) float64) pass[T, T] {
	return func(dst, x, y []T, _, _ float64) {
		for i, v := range x {
			dst[i] = T(f(float64(v), float64(y[i])))
		}
	}
}

// squareRoot and inverseRoot are one instruction or two when the compiler sees the call.

func squareRoot(dst, x, _ []float64, _, _ float64) {
	for i, v := range x {
		dst[i] = math.Sqrt(v)
	}
}

func inverseRoot(dst, x, _ []float64, _, _ float64) {
	for i, v := range x {
		dst[i] = 1 / math.Sqrt(v)
	}
}

func reluGrad(dst, y, g []float32, _, _ float64) { kernels.ReLUGrad(dst, y, g) }

func reluGrad64(dst, y, g []float64, _, _ float64) {
	dst, g = dst[:len(y)], g[:len(y)]
	for i, v := range y {
		d := g[i]
		if v <= 0 { // NaN is not
			d = 0
		}
		dst[i] = d
	}
}

func lerp32(dst, x, y []float32, p, _ float64) { kernels.Lerp(dst, x, y, float32(p)) }

func lerp[T float](dst, x, y []T, p, _ float64) {
	w := T(p)
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] + w*(y[i]-x[i])
	}
}

func powScalar32(dst, x, _ []float32, p, _ float64) {
	if p == 2 {
		kernels.Mul(dst, x, x)
		return
	}
	powScalar(dst, x, nil, p, 0)
}

// powScalar has short ways for the exponents of norms, losses and optimizers.
func powScalar[T float](dst, x, _ []T, p, _ float64) {
	switch p {
	case 2:
		for i, v := range x {
			dst[i] = v * v
		}
	case 3:
		for i, v := range x {
			dst[i] = v * v * v
		}
	case -1:
		for i, v := range x {
			dst[i] = 1 / v
		}
	default:
		for i, v := range x {
			dst[i] = T(pow(float64(v), p))
		}
	}
}

// logarithm repairs math.Log, whose assembly for amd64 takes subnormal numbers for larger ones (Go 1.26).
func logarithm(x float64) float64 {
	if x > 0 && x < 0x1p-1000 {
		return math.Log(x*0x1p100) - 100*math.Ln2
	}
	return math.Log(x)
}

// pow is math.Pow without its error for subnormal numbers, whose logarithm is wrong by up to 36 on amd64.
func pow(x, y float64) float64 {
	if x > 0 && x < 0x1p-1000 && math.Abs(y) < 1 {
		return math.Pow(x*0x1p100, y) * math.Exp2(-100*y)
	}
	return math.Pow(x, y)
}
