//go:build !purego && (amd64 || arm64)

package kernels

import "unsafe"

// turnAssembly is Turn for whole vectors of columns, and, where there are no masks, of rows. It returns how many it did.
func turnAssembly(dst, src []uint32, rows, columns, ds, ss int) (r, c int) {
	if !assembly() || rows == 0 {
		return 0, 0
	}
	lanes, multiple, f := transposing()
	rows -= rows % multiple
	columns -= columns % lanes
	if rows*columns == 0 {
		return 0, 0
	}
	_, _ = dst[(rows-1)*ds+columns-1], src[(columns-1)*ss+rows-1]
	for c := 0; c < columns; c += lanes {
		f(unsafe.Pointer(&dst[c]), unsafe.Pointer(&src[c*ss]), lanes, rows, 4*ss, 4*ds)
	}
	return rows, columns
}
