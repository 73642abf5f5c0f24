//go:build !purego

package kernels

import "unsafe"

// laneNumbers is the lanes of a vector, for gatherLanesAVX512.
//
//lint:ignore U1000 assembly reads it
var laneNumbers = [16]int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// pack lays out lanes by steps at dst, with room for width lanes in each
// step. Lanes of the room that are not in use hold anything.
func (o *operand) pack(dst unsafe.Pointer, set *kernelSet, width int, lanes, steps span) {
	src := o.at(lanes.from, steps.from)
	switch {
	case o.high != 0:
		o.packHalves(dst, width, lanes, steps)
	case o.lane == set.size && set.masks:
		copyLanesAVX512(dst, src, steps.n, o.step, width*set.words(), uint32(1<<(lanes.n*set.words())-1))
	case o.step == set.size && set.masks:
		o.transpose(dst, set, width, lanes, steps)
	case set.masks && set.size == 4 && 16*o.lane < 1<<31:
		for at := 0; at < lanes.n; at += 16 {
			gatherLanesAVX512(unsafe.Add(dst, 4*at), unsafe.Add(src, at*o.lane), steps.n, o.lane, o.step, 4*width, uint32(1<<min(16, lanes.n-at)-1))
		}
	default:
		o.packPlain(dst, set, width, lanes, steps)
	}
}

// transpose packs lanes along which elements are adjacent, a vector's number at
// a time.
func (o *operand) transpose(dst unsafe.Pointer, set *kernelSet, width int, lanes, steps span) {
	src := o.at(lanes.from, steps.from)
	for at := 0; at < lanes.n; at += set.vector {
		to, from, n := unsafe.Add(dst, set.size*at), unsafe.Add(src, at*o.lane), min(set.vector, lanes.n-at)
		switch {
		case set.elements == doubles && set.masks:
			transposeF64AVX512(to, from, n, steps.n, o.lane, 8*width)
		case set.elements == doubles:
			transposeF64AVX2(to, from, n, steps.n, o.lane, 8*width)
		case set.masks:
			transposeAVX512(to, from, n, steps.n, o.lane, 4*width)
		default:
			transposeAVX2(to, from, n, steps.n, o.lane, 4*width)
		}
	}
}

// noHalves is the second half of the last step, if the steps of bfloat16 are odd.
var noHalves [32]uint16

// packHalves joins the halves of pairs.
func (o *operand) packHalves(dst unsafe.Pointer, width int, lanes, steps span) {
	mask := uint32(1<<lanes.n - 1)
	whole := min(steps.n, o.whole-steps.from)
	zipLanesAVX512(dst, o.at(lanes.from, steps.from), whole, o.step, o.high, width, mask)
	if whole < steps.n {
		src := o.at(lanes.from, steps.from+whole)
		none := int(uintptr(unsafe.Pointer(&noHalves)) - uintptr(src))
		zipLanesAVX512(unsafe.Add(dst, 4*width*whole), src, 1, o.step, none, width, mask)
	}
}
