package check

import "github.com/warpline-ml/warpline/internal/ptx"

// Access is how an instruction touches memory.
type Access struct {
	Site   *Site
	Space  ptx.Space
	Size   int // bytes of one lane
	Write  bool
	Atomic bool
	Strong bool // volatile, relaxed, acquire, release
	// Of strong ones: what they order on their own, and whether the value of a load is waited for, see polled.
	Acquire, Release, Polled bool
	Scope                    Scope  // of strong ones: how far they reach
	Elem                     int    // bytes of one element of a vector
	Exchange                 bool   // an atomic that may leave what it finds: a compare and swap
	Plain                    bool   // a store, whose bytes are in the warp's Data
	Nc                       bool   // a load by way of the cache that is not coherent
	Id                       int    // in the kernel's list, for global memory
	Used                     uint32 // by the pragma used_bytes_mask: bytes that matter; 0 for all
	Region                   int    // of the assembly; 0 without
	Bulk                     bool   // by a bulk copy, for one thread
}

// rank is 0 for a plain access, and higher the further a strong one reaches.
func (a *Access) rank() int {
	if !a.Strong {
		return 0
	}
	return 1 + int(a.Scope)
}

// alike is whether two accesses to the same bytes are of the same elements; those of a tensor its map tells, not the instruction.
func (a *Access) alike(b *Access) bool { return a.Elem == b.Elem || a.Bulk || b.Bulk }

// Verb says what kind of access it is.
func (a *Access) Verb() string {
	switch {
	case a.Atomic:
		return "atomic"
	case a.Write:
		return "write"
	}
	return "read"
}
