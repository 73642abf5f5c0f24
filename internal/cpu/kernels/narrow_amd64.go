//go:build !purego

package kernels

import "unsafe"

func widenAssembly(format int, dst []float32, x []uint16) int {
	if !assembly() {
		return 0
	}
	f := [2][2]func(dst *float32, x *uint16, n int){{fromF16AVX2, fromBF16AVX2}, {fromF16AVX512, fromBF16AVX512}}[bool01(avx512())][format]
	n := len(dst) &^ 15
	for i := 0; i < n; i += mostInAssembly {
		f(at(dst, i), bitsAt(x, i), min(n-i, mostInAssembly))
	}
	return n
}

func narrowAssembly(format int, dst []uint16, x []float32) int {
	if !assembly() {
		return 0
	}
	f := [2][2]func(dst *uint16, x *float32, n int){{toF16AVX2, toBF16AVX2}, {toF16AVX512, toBF16AVX512}}[bool01(avx512())][format]
	n := len(dst) &^ 15
	for i := 0; i < n; i += mostInAssembly {
		f(bitsAt(dst, i), at(x, i), min(n-i, mostInAssembly))
	}
	return n
}

// bitsAt is [at] for elements of 16 bits.
func bitsAt(x []uint16, i int) *uint16 {
	p := uintptr(unsafe.Pointer(&x[i]))
	return *(**uint16)(unsafe.Pointer(&p))
}
