//go:build !purego

package kernels

import "unsafe"

// An operand is A or B as packing sees it: lanes (the rows of A, the columns
// of B) by steps of k. Distances are in bytes.
type operand struct {
	p          unsafe.Pointer
	lane, step int
}

// operandOf describes data with the given distances in elements.
func operandOf(data []float32, lane, step int) operand {
	return operand{unsafe.Pointer(unsafe.SliceData(data)), 4 * lane, 4 * step}
}

// at is the address of an element.
func (o *operand) at(lane, step int) unsafe.Pointer {
	return unsafe.Add(o.p, lane*o.lane+step*o.step)
}

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

// packGo is pack for any distances.
func (o *operand) packGo(dst unsafe.Pointer, width int, lanes, steps span) {
	for s := range steps.n {
		to := unsafe.Slice((*float32)(unsafe.Add(dst, 4*width*s)), lanes.n)
		from := o.at(lanes.from, steps.from+s)
		if o.lane == 4 {
			copy(to, unsafe.Slice((*float32)(from), lanes.n))
			continue
		}
		for i := range to {
			to[i] = *(*float32)(unsafe.Add(from, i*o.lane))
		}
	}
}
