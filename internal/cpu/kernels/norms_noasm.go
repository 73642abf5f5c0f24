//go:build purego || !(amd64 || arm64)

package kernels

// assembly runs a loop, if there is a kernel for it: there is none.
func (a *Norm[T]) assembly(normLoop) bool { return false }
