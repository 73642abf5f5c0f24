//go:build !purego

package kernels

import "github.com/warpline-ml/warpline/internal/cpufeat"

var (
	setAVX512 = kernelSet{14, 16, 16, 1024, true, false}
	setPairs  = kernelSet{14, 16, 16, 1024, true, true}
	setAVX2   = kernelSet{6, 8, 8, 384, false, false}
)

// The most rows and columns of a tile without masks.
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

// pairSet is that of pairs of bfloat16, nil if the active level has none.
func pairSet() *kernelSet {
	if cpufeat.Active() == cpufeat.AVX512BF16 {
		return &setPairs
	}
	return nil
}

// pairRows joins what fills vectors by assembly.
func pairRows(dst []float32, low, high []uint16) {
	n := 0
	if pairSet() != nil {
		if n = len(low) / 16 * 16; n > 0 {
			pairRowsAVX512(&dst[0], &low[0], &high[0], n)
		}
	}
	pairRowsGo(dst[n:], low[n:], high[n:])
}

// compute runs the micro-kernel. Direct calls keep the tile on the stack of
// the caller.
func (s *kernelSet) compute(t *tile) {
	switch {
	case s.pairs:
		tilePairs(t)
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
