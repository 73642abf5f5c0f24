//go:build (!amd64 && !arm64) || purego

package callsite

import "runtime"

// Capture records the chain of calls that leads to its caller, in which the first
// skip frames are left out: with 0 the first entry is the call of Capture itself.
func Capture(skip int, s *Site) {
	n := runtime.Callers(skip+2, s[:])
	clear(s[n:])
}

// Stack fills pcs with the chain of calls that leads to its caller, as Capture does with a Site, and returns what it
// filled: of deep chains more than a Site holds.
func Stack(skip int, pcs []uintptr) []uintptr { return pcs[:runtime.Callers(skip+2, pcs)] }

const hasWords = false

func word(int) uint64 { return 0 }
