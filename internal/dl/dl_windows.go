//go:build !nocuda

package dl

import (
	"fmt"
	"syscall"
)

const unavailable = ""

func open(name string) (uintptr, error) {
	handle, err := syscall.LoadLibrary(name)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return uintptr(handle), nil
}

func lookup(handle uintptr, symbol string) (uintptr, error) {
	return syscall.GetProcAddress(syscall.Handle(handle), symbol)
}

func closeLibrary(handle uintptr) error { return syscall.FreeLibrary(syscall.Handle(handle)) }

// Call calls the function with at most MaxArgs arguments, integers or pointers, and returns its result. It does not
// allocate.
func (p Proc) Call(args ...uintptr) int32 {
	r, _, _ := syscall.SyscallN(uintptr(p), args...)
	return int32(r)
}

// Word is Call with all of a result that is a word.
func (p Proc) Word(args ...uintptr) uintptr {
	r, _, _ := syscall.SyscallN(uintptr(p), args...)
	return r
}

// Callback returns the address of a C function that calls fn, whose parameters have the size of a word at most and whose
// single result has that size. It lives as long as the process.
func Callback(fn any) Proc { return Proc(syscall.NewCallback(fn)) }

// File returns the path of the file that p was loaded from, or "" where that is unknown.
func (p Proc) File() string { return "" }
