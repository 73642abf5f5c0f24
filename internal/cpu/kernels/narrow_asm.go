//go:build !purego && (amd64 || arm64)

package kernels

import "unsafe"

func widenAssembly(format int, dst []float32, x []uint16) int {
	if !assembly() {
		return 0
	}
	f := vectors().fromF16
	if format == 1 {
		f = vectors().fromBF16
	}
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
	f := vectors().toF16
	if format == 1 {
		f = vectors().toBF16
	}
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
