//go:build !purego

package kernels

import "unsafe"

// squareArgs is the argument of Winograd's maps. Distances are in bytes.
type squareArgs struct {
	src, dst         unsafe.Pointer
	srcRow, srcCol   int
	dstRow, dstCol   int
	srcStep, dstStep int
	n                int
	bias             unsafe.Pointer
}

var noBias [WinogradLanes]float32

// HasWinograd reports whether the active level has the maps in assembly.
func HasWinograd() bool { return avx512() }

// assembly maps a line of n squares if the level can, and reports whether it did.
func (w Winograd) assembly(dst []float32, to Squares, src []float32, from Squares, n int, bias []float32) bool {
	if !avx512() {
		return false
	}
	if bias == nil {
		bias = noBias[:]
	}
	a := squareArgs{unsafe.Pointer(&src[from.At]), unsafe.Pointer(&dst[to.At]), 4 * from.Row, 4 * from.Col, 4 * to.Row, 4 * to.Col,
		4 * from.Step, 4 * to.Step, n, unsafe.Pointer(&bias[0])}
	switch w { // direct calls keep a on the stack
	case WinogradInput:
		winogradInputAVX512(&a)
	case WinogradOutput:
		winogradOutputAVX512(&a)
	case WinogradWeight:
		winogradWeightAVX512(&a)
	case WinogradGrad:
		winogradGradAVX512(&a)
	case WinogradWeightGrad:
		winogradWeightGradAVX512(&a)
	}
	return true
}
