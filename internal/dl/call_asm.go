//go:build linux && (amd64 || arm64) && !purego && !nocuda

package dl

import (
	"fmt"
	"unsafe"
)

const assembly = true

// frame is what the trampoline reads. It may lie on the goroutine's stack: it is read before C runs, and the result
// comes back in a register.
type frame struct {
	fn   uintptr
	args [MaxArgs]uintptr
}

// trampoline is the address of warpline_dl_call.
var trampoline unsafe.Pointer

// cgocall runs fn(arg) on the system stack, and tells the scheduler that the thread is busy. The runtime keeps it open to
// linkname (go.dev/issue/67401).
//
//go:noescape
//go:linkname cgocall runtime.cgocall
func cgocall(fn, arg unsafe.Pointer) int32

// Call calls the function with at most MaxArgs arguments, integers or pointers, and returns its result. It does not
// allocate.
func (p Proc) Call(args ...uintptr) int32 {
	f := frame{fn: uintptr(p)}
	if copy(f.args[:], args) < len(args) {
		panic(fmt.Sprintf("dl: a call with %d arguments; the most is %d", len(args), MaxArgs))
	}
	return cgocall(trampoline, unsafe.Pointer(&f))
}
