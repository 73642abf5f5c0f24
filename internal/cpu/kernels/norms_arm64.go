//go:build !purego

package kernels

var normsNEON = normKernels{normSumNEON, normDeviationsNEON, normApplyNEON, normApplyAddNEON, normGradSumsNEON,
	normGradSumsMaskedNEON, normGradSumsKeptNEON, normGradApplyNEON, normGradApplyMaskedNEON}

// norms are the loops of the active level.
func norms() *normKernels { return &normsNEON }
