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
	case o.lane == 4 && set.masks:
		copyLanesAVX512(dst, src, steps.n, o.step, width, uint32(1<<lanes.n-1))
	case o.step == 4 && set.masks:
		for at := 0; at < lanes.n; at += 16 {
			transposeAVX512(unsafe.Add(dst, 4*at), unsafe.Add(src, at*o.lane), min(16, lanes.n-at), steps.n, o.lane, 4*width)
		}
	case o.step == 4:
		whole := steps.n / 8 * 8
		for at := 0; at < lanes.n; at += 8 {
			transposeAVX2(unsafe.Add(dst, 4*at), unsafe.Add(src, at*o.lane), min(8, lanes.n-at), whole, o.lane, 4*width)
		}
		o.packGo(unsafe.Add(dst, 4*width*whole), width, lanes, span{steps.from + whole, steps.n - whole})
	case set.masks && 16*o.lane < 1<<31:
		for at := 0; at < lanes.n; at += 16 {
			gatherLanesAVX512(unsafe.Add(dst, 4*at), unsafe.Add(src, at*o.lane), steps.n, o.lane, o.step, 4*width, uint32(1<<min(16, lanes.n-at)-1))
		}
	default:
		o.packGo(dst, width, lanes, steps)
	}
}
