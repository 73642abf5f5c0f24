//go:build !purego && (amd64 || arm64)

package kernels

import (
	"unsafe"

	"github.com/warpline-ml/warpline/internal/cpufeat"
)

// mostInAssembly is the number of elements in a call, which cannot be preempted: a few microseconds.
const mostInAssembly = 8 << 10

// assembly reports whether the level has vectors.
func assembly() bool { return cpufeat.Active() != cpufeat.Generic }

// inAssembly maps x and y, of dst's length or longer, if the level has vectors. A function of one operand does not read y.
func (m mapping) inAssembly(dst, x, y []float32, p, q float32) bool {
	if !assembly() {
		return false
	}
	f := m.loop()
	x, y = x[:len(dst)], y[:len(dst)]
	for i := 0; i < len(dst); i += mostInAssembly {
		f(at(dst, i), at(x, i), at(y, i), min(len(dst)-i, mostInAssembly), p, q)
	}
	return true
}

// turnInAssembly computes sines, or cosines with ahead 1, and leaves large arguments to slow.
func turnInAssembly(dst, x []float32, ahead uint64, slow func(dst, x []float32)) bool {
	if !assembly() {
		return false
	}
	f := vectors().sin
	if ahead == 1 {
		f = vectors().cos
	}
	for len(x) > 0 {
		n := f(at(dst, 0), at(x, 0), min(len(x), mostInAssembly))
		if n == 0 {
			n = min(len(x), 16) // one of these is large
			slow(dst[:n], x[:n])
		}
		dst, x = dst[n:], x[n:]
	}
	return true
}

// at is the address of an element, for a call through a variable. The compiler must take such a call for one that keeps
// its arguments, and would move what they point to, whole products among them, to the heap; assembly keeps nothing.
func at[T Float](x []T, i int) *T {
	p := uintptr(unsafe.Pointer(&x[i]))
	return *(**T)(unsafe.Pointer(&p))
}
