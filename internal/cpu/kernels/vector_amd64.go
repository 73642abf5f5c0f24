//go:build !purego

package kernels

import "unsafe"

// addRows8 adds eight scaled rows of b to n elements of y, and addRows1 one.
func (s *kernelSet) addRows8(y, b, x unsafe.Pointer, n, row int) {
	if s.masks {
		addRows8AVX512(y, b, x, n, row)
	} else {
		addRows8AVX2(y, b, x, n, row)
	}
}

func (s *kernelSet) addRows1(y, b, x unsafe.Pointer, n, row int) {
	if s.masks {
		addRows1AVX512(y, b, x, n, row)
	} else {
		addRows1AVX2(y, b, x, n, row)
	}
}

// dotRows adds the dot products of one row or dotsAtOnce rows at b with k
// elements at x.
func (s *kernelSet) dotRows(y []float32, b, x unsafe.Pointer, k, row int) {
	to := unsafe.Pointer(unsafe.SliceData(y))
	switch {
	case s.masks && len(y) == 1:
		dotRows1AVX512(to, b, x, k, row)
	case s.masks:
		dotRows4AVX512(to, b, x, k, row)
	case len(y) == 1:
		dotRows1AVX2(to, b, x, k, row)
	default:
		dotRows4AVX2(to, b, x, k, row)
	}
}
