//go:build (amd64 || arm64) && !purego

package callsite

// Capture records the chain of calls that leads to its caller, in which the first
// skip frames are left out: with 0 the first entry is the call of Capture itself.
// Frames are those of compiled functions, so a function that must be skipped must
// not be inlined.
//
// It does not allocate, and is safe on every goroutine.
//
// The function is a frame of its own in every build: calls of assembly have a
// wrapper's frame or none, depending on the caller's package.
//
//go:noinline
func Capture(skip int, s *Site) {
	n := walk(skip, &s[0], depth)
	clear(s[n:])
}

// Stack fills pcs with the chain of calls that leads to its caller, as Capture does with a Site, and returns what it
// filled: of deep chains more than a Site holds.
//
//go:noinline
func Stack(skip int, pcs []uintptr) []uintptr {
	if len(pcs) == 0 {
		return pcs
	}
	return pcs[:walk(skip, &pcs[0], len(pcs))]
}

// walk fills up to n words at pcs, more than none, with the return addresses of its caller and of the callers above, after
// the first skip ones; it returns how many there are. It is assembly because the stack may move at any
// instruction of Go code, but not there; and it stays within the goroutine's stack whatever the chain holds.
//
//go:noescape
func walk(skip int, pcs *uintptr, n int) int

const hasWords = true

// word is the word at a place of the runtime's record of the goroutine that calls it, a multiple of 8 bytes from the start.
func word(at int) uint64
