//go:build !purego

package kernels

import "github.com/warpline-ml/warpline/internal/cpufeat"

func avx512() bool { return cpufeat.Active() >= cpufeat.AVX512 }

// loops are the functions of a mapping.
var loops = [mappings]struct {
	avx512, avx2 mappingLoop
}{
	mapExp:          {expAVX512, expAVX2},
	mapExpm1:        {expm1AVX512, expm1AVX2},
	mapLog:          {logAVX512, logAVX2},
	mapLog1p:        {log1pAVX512, log1pAVX2},
	mapTanh:         {tanhAVX512, tanhAVX2},
	mapSigmoid:      {sigmoidAVX512, sigmoidAVX2},
	mapErf:          {erfAVX512, erfAVX2},
	mapGELU:         {geluAVX512, geluAVX2},
	mapGELUTanh:     {geluTanhAVX512, geluTanhAVX2},
	mapSiLU:         {siluAVX512, siluAVX2},
	mapGELUGrad:     {geluGradAVX512, geluGradAVX2},
	mapGELUTanhGrad: {geluTanhGradAVX512, geluTanhGradAVX2},
	mapSiLUGrad:     {siluGradAVX512, siluGradAVX2},
	mapSqrt:         {sqrtAVX512, sqrtAVX2},
	mapRsqrt:        {rsqrtAVX512, rsqrtAVX2},
	mapReLU:         {reluAVX512, reluAVX2},
	mapReLUGrad:     {reluGradAVX512, reluGradAVX2},
	mapAdd:          {addAVX512, addAVX2},
	mapSub:          {subAVX512, subAVX2},
	mapMul:          {mulAVX512, mulAVX2},
	mapDiv:          {divAVX512, divAVX2},
	mapAffine:       {affineAVX512, affineAVX2},
	mapAxpy:         {axpyAVX512, axpyAVX2},
	mapLerp:         {lerpAVX512, lerpAVX2},
	mapClamp:        {clampAVX512, clampAVX2},
	mapMaximum:      {maximumAVX512, maximumAVX2},
	mapMinimum:      {minimumAVX512, minimumAVX2},
	mapDrop:         {dropAVX512, dropAVX2},
	mapTanhSum:      {tanhSumAVX512, tanhSumAVX2},
	mapSigmoidSum:   {sigmoidSumAVX512, sigmoidSumAVX2},
	mapWeigh:        {weighAVX512, weighAVX2},
}

// loop is the function of a mapping for the active level.
func (m mapping) loop() mappingLoop {
	if avx512() {
		return loops[m].avx512
	}
	return loops[m].avx2
}

// vectors are the loops of the active level.
func vectors() *vectorKernels {
	if avx512() {
		return &vectorsAVX512
	}
	return &vectorsAVX2
}

var vectorsAVX512 = vectorKernels{
	rowMax:        rowMaxAVX512,
	rowExtreme:    rowExtremeAVX512,
	rowExp:        rowExpAVX512,
	rowSum:        rowSumAVX512,
	rowTotal:      rowTotalAVX512,
	rowSquares:    rowSquaresAVX512,
	rowDot:        rowDotAVX512,
	rowAffine:     rowAffineAVX512,
	rowNormalize:  rowNormalizeAVX512,
	rowMix:        rowMixAVX512,
	rowGather:     rowGatherAVX512,
	rowMoments:    rowMomentsAVX512,
	sumEight:      sumEightAVX512,
	sumRows:       sumRowsAVX512,
	adam:          adamAVX512,
	sgd:           sgdAVX512,
	sgdMomentum:   sgdMomentumAVX512,
	sgdNesterov:   sgdNesterovAVX512,
	lstmCell:      lstmCellAVX512,
	lstmGradCell:  lstmGradCellAVX512,
	lstmGradGates: lstmGradGatesAVX512,
	fromF16:       fromF16AVX512,
	fromBF16:      fromBF16AVX512,
	toF16:         toF16AVX512,
	toBF16:        toBF16AVX512,
	sin:           sinAVX512,
	cos:           cosAVX512,
}

var vectorsAVX2 = vectorKernels{
	rowMax:        rowMaxAVX2,
	rowExtreme:    rowExtremeAVX2,
	rowExp:        rowExpAVX2,
	rowSum:        rowSumAVX2,
	rowTotal:      rowTotalAVX2,
	rowSquares:    rowSquaresAVX2,
	rowDot:        rowDotAVX2,
	rowAffine:     rowAffineAVX2,
	rowNormalize:  rowNormalizeAVX2,
	rowMix:        rowMixAVX2,
	rowGather:     rowGatherAVX2,
	rowMoments:    rowMomentsAVX2,
	sumEight:      sumEightAVX2,
	sumRows:       sumRowsAVX2,
	adam:          adamAVX2,
	sgd:           sgdAVX2,
	sgdMomentum:   sgdMomentumAVX2,
	sgdNesterov:   sgdNesterovAVX2,
	lstmCell:      lstmCellAVX2,
	lstmGradCell:  lstmGradCellAVX2,
	lstmGradGates: lstmGradGatesAVX2,
	fromF16:       fromF16AVX2,
	fromBF16:      fromBF16AVX2,
	toF16:         toF16AVX2,
	toBF16:        toBF16AVX2,
	sin:           sinAVX2,
	cos:           cosAVX2,
}
