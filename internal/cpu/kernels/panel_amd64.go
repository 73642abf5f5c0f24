//go:build !purego

package kernels

import (
	"slices"
	"unsafe"
)

// packing is the argument of packPatchesAVX512. Distances are in bytes.
type packing struct {
	dst, src       unsafe.Pointer
	rows, taps     int
	dstTap, dstRow int
	srcRow         int
	table          unsafe.Pointer
	runs           int // of a vector
}

// assembly packs by vectors under masks if the level has them, and reports whether it did.
func (p *Packing[T]) assembly(v *View) bool {
	if set := activeSet(); set == nil || !set.masks {
		return false
	}
	n := v.tabulate()
	packPatchesAVX512(&packing{unsafe.Pointer(unsafe.SliceData(p.Dst)), unsafe.Pointer(unsafe.SliceData(p.Src)), p.Rows, len(v.ends),
		4 * p.DstTap, 4 * p.DstRow, 4 * p.SrcRow, unsafe.Pointer(unsafe.SliceData(v.table)), n})
	return true
}

// tabulate makes the table, and returns the number of runs of a vector: 1 to 4, or more for all.
func (v *View) tabulate() int {
	n := 1
	for t := range v.ends {
		var count [2]int
		for _, r := range v.tap(t) {
			if r.Lane < 16 {
				count[0]++
			}
			if r.Lane+r.N > 16 {
				count[1]++
			}
		}
		n = max(n, count[0], count[1])
	}
	v.table = slices.Grow(v.table[:0], 2*n*len(v.ends))[:2*n*len(v.ends)]
	clear(v.table)
	for t := range v.ends {
		low, high := v.table[2*n*t:][:0], v.table[2*n*t+n:][:0]
		for _, r := range v.tap(t) {
			mask := (uint64(1)<<r.N - 1) << r.Lane
			if r.Lane < 16 {
				low = append(low, masked{4 * (r.At - r.Lane), mask & 0xffff})
			}
			if r.Lane+r.N > 16 {
				high = append(high, masked{4 * (r.At - r.Lane + 16), mask >> 16})
			}
		}
	}
	return n
}

// packTaps transposes groups of steps in registers if the level can, and reports whether it did.
func packTaps(dst []float32, width int, src []float32, lane, group, lanes, steps, groups int) bool {
	if set := activeSet(); set == nil || !set.masks || width != 16 || steps > 16 {
		return false
	}
	packTapsAVX512(unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src)), lanes, steps, 4*lane, 4*group, groups)
	return true
}
