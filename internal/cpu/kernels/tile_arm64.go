//go:build !purego

package kernels

import "github.com/warpline-ml/warpline/internal/cpufeat"

// With so many columns a slice's panels of B fill a second cache of 512 KiB.
var (
	setNEON    = kernelSet{singles, 4, 12, 4, 12, 512, 256, false, true, false}
	setF64NEON = kernelSet{doubles, 8, 12, 2, 12, 512, 128, false, true, false}
)

// The most rows of a tile without masks, and the most float32 in one.
const (
	maxRows = 12
	maxCols = 8
)

// activeSet returns the kernels of the active level, nil if it has none.
func activeSet() *kernelSet {
	if assembly() {
		return &setNEON
	}
	return nil
}

// setOf returns those for some elements.
func setOf(e elements) *kernelSet {
	switch {
	case e == halves || !assembly():
		return nil
	case e == doubles:
		return &setF64NEON
	}
	return &setNEON
}

// compute runs the micro-kernel. Direct calls keep the tile on the stack of
// the caller.
func (s *kernelSet) compute(t *tile) {
	if s.elements == doubles {
		tileF64NEON(t)
	} else {
		tileNEON(t)
	}
}

// ceiling runs n turns of a loop of multiply-adds on registers alone, whose
// rate no kernel of the level can pass, and returns their number.
func ceiling(l cpufeat.Level, n int) (work float64) {
	if l != cpufeat.NEON {
		return 0
	}
	ceilingNEON(n)
	return float64(n * 24 * 4)
}
