// Package dl opens shared libraries and calls the C functions in them, without cgo. It is the only importer of purego,
// and where it is (Linux) the program is linked dynamically against the C library; the build tag nocuda leaves it out.
//
// # Calls
//
// [Proc.Call] goes through an assembly routine of a dozen instructions that runtime.cgocall runs on the system stack.
// Of purego's ways to call, SyscallN takes about twice as long and allocates once a call, and registered functions take
// eight times as long. With the build tag purego (no assembly) Call uses SyscallN, and on Windows that of the standard
// library.
//
// A call holds its thread, other goroutines go on. C may call back on the thread that called it, and on its own.
//
// # Memory
//
// Arguments are words; nothing is kept alive by being one. A pointer among them must be to memory outside of the Go heap,
// or to a heap object that the caller keeps alive until the call returns; never to a goroutine's stack, which a
// callback may move.
package dl

import "fmt"

// MaxArgs is the largest number of arguments of a call.
const MaxArgs = 12

// A Library is an open shared library.
type Library struct {
	handle uintptr
	name   string
}

// A Proc is the address of a symbol in a library.
type Proc uintptr

// Available returns nil where libraries can be opened, and otherwise an error that says why this build cannot.
func Available() error {
	if unavailable == "" {
		return nil
	}
	return fmt.Errorf("%s", unavailable)
}

// Open loads a library: a path, or a bare name that the system's loader looks for. All its symbols are resolved now and
// stay out of the way of other libraries'. Opening a library again gives the same one.
func Open(name string) (*Library, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	handle, err := open(name)
	if err != nil {
		return nil, err
	}
	return &Library{handle, name}, nil
}

// Lookup returns the address of a symbol, which may be a function or data.
func (l *Library) Lookup(symbol string) (Proc, error) {
	addr, err := lookup(l.handle, symbol)
	if err != nil {
		return 0, fmt.Errorf("%s has no symbol %s: %w", l.name, symbol, err)
	}
	return Proc(addr), nil
}

// Close gives the library back; its symbols must not be used any more. Libraries that start threads, as drivers do, are
// never closed.
func (l *Library) Close() error { return closeLibrary(l.handle) }
