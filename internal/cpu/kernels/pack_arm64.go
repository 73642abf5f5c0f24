//go:build !purego

package kernels

import "unsafe"

// pack lays out lanes by steps at dst, with room for width lanes in each
// step. Lanes of the room that are not in use hold anything.
func (o *operand) pack(dst unsafe.Pointer, set *kernelSet, width int, lanes, steps span) {
	o.packPlain(dst, set, width, lanes, steps)
}

// transpose packs lanes along which elements are adjacent, a vector's number at
// a time.
func (o *operand) transpose(dst unsafe.Pointer, set *kernelSet, width int, lanes, steps span) {
	src := o.at(lanes.from, steps.from)
	for at := 0; at < lanes.n; at += set.vector {
		to, from, n := unsafe.Add(dst, set.size*at), unsafe.Add(src, at*o.lane), min(set.vector, lanes.n-at)
		if set.elements == doubles {
			transposeF64NEON(to, from, n, steps.n, o.lane, 8*width)
		} else {
			transposeNEON(to, from, n, steps.n, o.lane, 4*width)
		}
	}
}

// prefetch does nothing: what asking ahead gains was measured on amd64 alone.
func prefetch(unsafe.Pointer, int) {}
