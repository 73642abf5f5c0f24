// Package simt has what all parts of the simulator know of a warp: how many lanes it has, masks and vectors of lanes, the
// banks of its registers; and the error of what is not simulated.
package simt

import (
	"math/bits"
	"unsafe"
)

// Bit is 1 for true.
func Bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// LanesOf is the number of lanes in a mask.
func LanesOf(mask uint32) uint64 { return uint64(bits.OnesCount32(mask)) }

// Popcount is the number of bits that are set.
func Popcount(m uint32) int { return bits.OnesCount32(m) }

// Align is the first multiple of a from n on.
func Align(n, a int64) int64 { return (n + a - 1) / a * a }

// Aligned makes a slice that starts on a cache line.
func Aligned[T any](n int) []T {
	if n == 0 {
		return nil
	}
	const line = 64
	var x T
	b := make([]byte, n*int(unsafe.Sizeof(x))+line)
	skip := -uintptr(unsafe.Pointer(&b[0])) & (line - 1)
	return unsafe.Slice((*T)(unsafe.Pointer(&b[skip])), n)
}

// A warp.
const (
	WarpSize = 32         // lanes
	Full     = ^uint32(0) // the mask of all of them
)

// A value for each lane.
type (
	Vec32 = [WarpSize]uint32
	Vec64 = [WarpSize]uint64
)

// Lowest is the first lane of a mask that is not empty.
func Lowest(m uint32) int { return bits.TrailingZeros32(m) & 31 }

// AddTo makes d the sum of a and one number, of numbers below 2³¹: two at a time, without a carry between them.
func AddTo(d, a *Vec32, v uint32) {
	to, from, both := (*[WarpSize / 2]uint64)(unsafe.Pointer(d)), (*[WarpSize / 2]uint64)(unsafe.Pointer(a)), uint64(v)<<32|uint64(v)
	for i := range to {
		to[i] = from[i] + both
	}
}
