//go:build !purego

package kernels

import (
	"unsafe"

	"github.com/warpline-ml/warpline/internal/cpufeat"
)

// mostInAssembly is the number of elements in a call, which cannot be preempted: a few microseconds.
const mostInAssembly = 8 << 10

// assembly reports whether the level has vectors.
func assembly() bool { return cpufeat.Active() != cpufeat.Generic }

func avx512() bool { return cpufeat.Active() >= cpufeat.AVX512 }

// loops are the functions of a mapping.
var loops = [mappings]struct {
	avx512, avx2 func(dst, x, y *float32, n int, p, q float32)
}{
	mapExp:          {expAVX512, expAVX2},
	mapExpm1:        {expm1AVX512, expm1AVX2},
	mapLog:          {logAVX512, logAVX2},
	mapLog1p:        {log1pAVX512, log1pAVX2},
	mapTanh:         {tanhAVX512, tanhAVX2},
	mapSigmoid:      {sigmoidAVX512, sigmoidAVX2},
	mapErf:          {erfAVX512, erfAVX2},
	mapGELU:         {geluAVX512, geluAVX2},
	mapGELUTanh:     {geluTanhAVX512, geluTanhAVX2},
	mapSiLU:         {siluAVX512, siluAVX2},
	mapGELUGrad:     {geluGradAVX512, geluGradAVX2},
	mapGELUTanhGrad: {geluTanhGradAVX512, geluTanhGradAVX2},
	mapSiLUGrad:     {siluGradAVX512, siluGradAVX2},
	mapSqrt:         {sqrtAVX512, sqrtAVX2},
	mapRsqrt:        {rsqrtAVX512, rsqrtAVX2},
	mapReLU:         {reluAVX512, reluAVX2},
	mapReLUGrad:     {reluGradAVX512, reluGradAVX2},
	mapAdd:          {addAVX512, addAVX2},
	mapSub:          {subAVX512, subAVX2},
	mapMul:          {mulAVX512, mulAVX2},
	mapDiv:          {divAVX512, divAVX2},
	mapAffine:       {affineAVX512, affineAVX2},
	mapAxpy:         {axpyAVX512, axpyAVX2},
	mapLerp:         {lerpAVX512, lerpAVX2},
	mapWeigh:        {weighAVX512, weighAVX2},
}

// inAssembly maps x and y, of dst's length or longer, if the level has vectors. A function of one operand does not read y.
func (m mapping) inAssembly(dst, x, y []float32, p, q float32) bool {
	if !assembly() {
		return false
	}
	f := loops[m].avx2
	if avx512() {
		f = loops[m].avx512
	}
	x, y = x[:len(dst)], y[:len(dst)]
	for i := 0; i < len(dst); i += mostInAssembly {
		f(at(dst, i), at(x, i), at(y, i), min(len(dst)-i, mostInAssembly), p, q)
	}
	return true
}

// turnInAssembly computes sines, or cosines with ahead 1, and leaves large arguments to slow.
func turnInAssembly(dst, x []float32, ahead uint64, slow func(dst, x []float32)) bool {
	if !assembly() {
		return false
	}
	f := [2][2]func(dst, x *float32, n int) int{{sinAVX2, cosAVX2}, {sinAVX512, cosAVX512}}[bool01(avx512())][ahead]
	for len(x) > 0 {
		n := f(at(dst, 0), at(x, 0), min(len(x), mostInAssembly))
		if n == 0 {
			n = min(len(x), 16) // one of these is large
			slow(dst[:n], x[:n])
		}
		dst, x = dst[n:], x[n:]
	}
	return true
}

// at is the address of an element, for a call through a variable. The compiler must take such a call for one that keeps
// its arguments, and would move what they point to, whole products among them, to the heap; assembly keeps nothing.
func at[T Float](x []T, i int) *T {
	p := uintptr(unsafe.Pointer(&x[i]))
	return *(**T)(unsafe.Pointer(&p))
}

func bool01(b bool) int {
	if b {
		return 1
	}
	return 0
}
