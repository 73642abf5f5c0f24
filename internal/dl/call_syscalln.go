//go:build linux && (amd64 || arm64) && purego && !nocuda

package dl

import "github.com/ebitengine/purego"

const assembly = false

// Call calls the function with at most MaxArgs arguments, integers or pointers, and returns its result.
func (p Proc) Call(args ...uintptr) int32 {
	r, _, _ := purego.SyscallN(uintptr(p), args...)
	return int32(r)
}
