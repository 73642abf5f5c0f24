//go:build !purego

package kernels

import "github.com/warpline-ml/warpline/internal/cpufeat"

// A slice of k is as long as pays: every one reads and writes all of C, which
// costs most where memory is shared with others. With so many columns its
// panels of B fill a second cache of 1 MiB, and of 512 KiB with AVX2.
var (
	setAVX512    = kernelSet{singles, 4, maxHeight, 16, 16, 1024, maxColumns, true, true, true}
	setPairs     = kernelSet{halves, 4, maxHeight, 16, 16, 1024, maxColumns, true, true, false}
	setF64AVX512 = kernelSet{doubles, 8, maxHeight, 8, 16, 512, 128, true, false, false}
	setAVX2      = kernelSet{singles, 4, 6, 8, 8, 384, 256, false, true, true}
	setF64AVX2   = kernelSet{doubles, 8, 6, 4, 8, 384, 128, false, false, false}
)

// The most rows of a tile without masks, and the most float32 in one.
const (
	maxRows = 6
	maxCols = 16
)

// activeSet returns the kernels of the active level, nil if it has none.
func activeSet() *kernelSet {
	switch cpufeat.Active() {
	case cpufeat.AVX512, cpufeat.AVX512BF16:
		return &setAVX512
	case cpufeat.AVX2:
		return &setAVX2
	}
	return nil
}

// setOf returns those for some elements.
func setOf(e elements) *kernelSet {
	set := activeSet()
	switch {
	case e == halves && cpufeat.Active() == cpufeat.AVX512BF16:
		return &setPairs
	case e == halves || set == nil:
		return nil
	case e == singles:
		return set
	case set.masks:
		return &setF64AVX512
	}
	return &setF64AVX2
}

// compute runs the micro-kernel. Direct calls keep the tile on the stack of
// the caller.
func (s *kernelSet) compute(t *tile) {
	switch {
	case s.elements == halves:
		tilePairs(t)
	case s.elements == doubles && s.masks:
		tileF64AVX512(t)
	case s.elements == doubles:
		tileF64AVX2(t)
	case s.masks:
		tileAVX512(t)
	default:
		tileAVX2(t)
	}
}

// ceiling runs n turns of a loop of multiply-adds on registers alone, whose
// rate no kernel of the level can pass, and returns their number.
func ceiling(l cpufeat.Level, n int) (work float64) {
	switch l {
	case cpufeat.AVX512, cpufeat.AVX512BF16:
		ceilingAVX512(n)
		return float64(n * 24 * 16)
	case cpufeat.AVX2:
		ceilingAVX2(n)
		return float64(n * 12 * 8)
	}
	return 0
}
