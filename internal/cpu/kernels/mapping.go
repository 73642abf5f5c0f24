package kernels

//go:generate go run -C ../../_asm . vector ../cpu/kernels

// A mapping is an elementwise function that has loops in assembly: dst[i] of x[i], perhaps y[i], and two numbers.
type mapping uint8

const (
	mapExp mapping = iota
	mapExpm1
	mapLog
	mapLog1p
	mapTanh
	mapSigmoid
	mapErf
	mapGELU
	mapGELUTanh
	mapSiLU
	mapGELUGrad
	mapGELUTanhGrad
	mapSiLUGrad
	mapSqrt
	mapRsqrt
	mapReLU
	mapReLUGrad
	mapAdd
	mapSub
	mapMul
	mapDiv
	mapAffine
	mapAxpy
	mapLerp
	mapClamp
	mapMaximum
	mapMinimum
	mapDrop
	mapTanhSum
	mapSigmoidSum
	mapWeigh
	mappings
)

// The loops below are those of elementwise operations that round as Go does: assembly and Go give the same bits.

// Add is dst[i] = x[i] + y[i].
func Add(dst, x, y []float32) {
	if mapAdd.inAssembly(dst, x, y, 0, 0) {
		return
	}
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] + y[i]
	}
}

// Sub is dst[i] = x[i] - y[i].
func Sub(dst, x, y []float32) {
	if mapSub.inAssembly(dst, x, y, 0, 0) {
		return
	}
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] - y[i]
	}
}

// Mul is dst[i] = x[i]·y[i].
func Mul(dst, x, y []float32) {
	if mapMul.inAssembly(dst, x, y, 0, 0) {
		return
	}
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] * y[i]
	}
}

// Div is dst[i] = x[i] / y[i].
func Div(dst, x, y []float32) {
	if mapDiv.inAssembly(dst, x, y, 0, 0) {
		return
	}
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] / y[i]
	}
}

// Affine is dst[i] = p·x[i] + q.
func Affine(dst, x []float32, p, q float32) {
	if mapAffine.inAssembly(dst, x, x, p, q) {
		return
	}
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = float32(p*v) + q
	}
}

// Axpy is dst[i] = x[i] + p·y[i].
func Axpy(dst, x, y []float32, p float32) {
	if mapAxpy.inAssembly(dst, x, y, p, 0) {
		return
	}
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] + float32(p*y[i])
	}
}

// Lerp is dst[i] = x[i] + p·(y[i]-x[i]).
func Lerp(dst, x, y []float32, p float32) {
	if mapLerp.inAssembly(dst, x, y, p, 0) {
		return
	}
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = x[i] + float32(p*(y[i]-x[i]))
	}
}

// Clamp is dst[i] = x[i], but at least p and at most q, neither of which is NaN. NaN and -0 stay.
func Clamp(dst, x []float32, p, q float32) {
	if mapClamp.inAssembly(dst, x, x, p, q) {
		return
	}
	dst = dst[:len(x)]
	for i, v := range x {
		if v < p {
			v = p
		}
		if v > q {
			v = q
		}
		dst[i] = v
	}
}

// Maximum is dst[i] = max(x[i], y[i]).
func Maximum(dst, x, y []float32) {
	if mapMaximum.inAssembly(dst, x, y, 0, 0) {
		return
	}
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = max(x[i], y[i])
	}
}

// Minimum is dst[i] = min(x[i], y[i]).
func Minimum(dst, x, y []float32) {
	if mapMinimum.inAssembly(dst, x, y, 0, 0) {
		return
	}
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = min(x[i], y[i])
	}
}

// Drop is dst[i] = q·x[i], or 0 where u[i] < p.
func Drop(dst, x, u []float32, p, q float32) {
	if mapDrop.inAssembly(dst, x, u, p, q) {
		return
	}
	x, u = x[:len(dst)], u[:len(dst)]
	for i := range dst {
		var v float32
		if !(u[i] < p) {
			v = x[i] * q
		}
		dst[i] = v
	}
}

// Sqrt is dst[i] = √x[i].
func Sqrt(dst, x []float32) {
	if mapSqrt.inAssembly(dst, x, x, 0, 0) {
		return
	}
	roots(dst, x)
}

// Rsqrt is dst[i] = 1/√x[i], in error by an ulp at most.
func Rsqrt(dst, x []float32) {
	if mapRsqrt.inAssembly(dst, x, x, 0, 0) {
		return
	}
	inverseRoots(dst, x)
}
