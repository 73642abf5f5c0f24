//go:build !purego

package kernels

var (
	normsAVX512 = normKernels{normSumAVX512, normDeviationsAVX512, normApplyAVX512, normApplyAddAVX512, normGradSumsAVX512,
		normGradSumsMaskedAVX512, normGradSumsKeptAVX512, normGradApplyAVX512, normGradApplyMaskedAVX512}
	normsAVX2 = normKernels{normSumAVX2, normDeviationsAVX2, normApplyAVX2, normApplyAddAVX2, normGradSumsAVX2,
		normGradSumsMaskedAVX2, normGradSumsKeptAVX2, normGradApplyAVX2, normGradApplyMaskedAVX2}
)

// norms are the loops of the active level.
func norms() *normKernels {
	if avx512() {
		return &normsAVX512
	}
	return &normsAVX2
}
