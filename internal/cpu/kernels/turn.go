package kernels

// Turn transposes elements of 32 bits: dst[r·ds + c] = src[c·ss + r] for r below rows and c below columns.
func Turn(dst, src []uint32, rows, columns, ds, ss int) {
	r, c := turnAssembly(dst, src, rows, columns, ds, ss)
	turnGo(dst, src, 0, c, r, columns, ds, ss)
	turnGo(dst, src, r, 0, rows, columns, ds, ss)
}

// turnGo does rows and columns from one place to another.
func turnGo(dst, src []uint32, r, c, rows, columns, ds, ss int) {
	if c == columns {
		return
	}
	for ; r < rows; r++ {
		row := dst[r*ds+c:][:columns-c]
		for i := range row {
			row[i] = src[(c+i)*ss+r]
		}
	}
}
