//go:build !purego

package kernels

import "unsafe"

// apartAssembly is Apart of pairs, as many as there are even ones. It reports whether there is assembly for it.
func apartAssembly[T Float](even, odd, row []T) bool {
	return pairsBy(apartPairsAVX2, even, odd, row)
}

// weaveAssembly is the reverse.
func weaveAssembly[T Float](row, even, odd []T) bool {
	return pairsBy(weavePairsAVX2, even, odd, row)
}

func pairsBy[T Float](f func(even, odd, row unsafe.Pointer, n int), even, odd, row []T) bool {
	if unsafe.Sizeof(T(0)) != 4 || !assembly() {
		return false
	}
	f(unsafe.Pointer(unsafe.SliceData(even)), unsafe.Pointer(unsafe.SliceData(odd)), unsafe.Pointer(unsafe.SliceData(row)), len(even))
	return true
}
