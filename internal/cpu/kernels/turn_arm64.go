//go:build !purego

package kernels

import "unsafe"

// transposing is how matrices are transposed: so many lines at a time, of whose elements it takes a multiple.
func transposing() (lanes, multiple int, f func(dst, src unsafe.Pointer, lanes, k, lane, width int)) {
	return 4, 4, transposeNEON
}
