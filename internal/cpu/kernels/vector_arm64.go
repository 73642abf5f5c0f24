//go:build !purego

package kernels

import "unsafe"

// addRows8 adds eight scaled rows of b to n elements of y, and addRows1 one.
func (*kernelSet) addRows8(y, b, x unsafe.Pointer, n, row int) { addRows8NEON(y, b, x, n, row) }

func (*kernelSet) addRows1(y, b, x unsafe.Pointer, n, row int) { addRows1NEON(y, b, x, n, row) }

// dotRows adds the dot products of one row or dotsAtOnce rows at b with k
// elements at x.
func (*kernelSet) dotRows(y []float32, b, x unsafe.Pointer, k, row int) {
	to := unsafe.Pointer(unsafe.SliceData(y))
	if len(y) == 1 {
		dotRows1NEON(to, b, x, k, row)
	} else {
		dotRows4NEON(to, b, x, k, row)
	}
}
