// Package hostmem provides host memory outside of the Go heap: anonymous
// blocks and read-only mapped files, seen as slices through their addresses.
//
// The garbage collector neither scans, moves nor frees this memory, so a
// device allocator can own it and pass it around as plain integers. Nothing
// keeps it alive either: a slice made from an address is invalid once its
// block is freed.
package hostmem

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"
)

// Alignment is the least alignment of a block in bytes: a cache line and a
// vector of AVX-512. Blocks are in fact aligned to pages where the system maps
// memory.
const Alignment = 64

// LargePage is the bytes of a large page on amd64 and, with pages of 4 KiB, on arm64. On Linux a block of that many or more asks for such.
const LargePage = 2 << 20

// A Block is a piece of anonymous memory. The zero Block has no bytes.
type Block struct {
	Addr uintptr // multiple of Alignment; 0 if Size is 0
	Size int     // bytes asked for
}

// Usage counts the bytes that are mapped now, in whole pages.
type Usage struct {
	Anonymous int64 // blocks
	Files     int64 // mapped files
}

var anonymous, files atomic.Int64

// Mapped returns the bytes that the process has mapped through this package.
func Mapped() Usage { return Usage{anonymous.Load(), files.Load()} }

// Alloc returns a block of n zero bytes. Alloc(0) is the zero Block. It fails
// when n is negative or the system refuses the memory.
func Alloc(n int) (Block, error) {
	if n == 0 {
		return Block{}, nil
	}
	if n < 0 || n > maxSize {
		return Block{}, fmt.Errorf("cannot allocate %d bytes: size out of range", n)
	}
	addr, err := mapAnonymous(pages(n))
	if err != nil {
		return Block{}, fmt.Errorf("cannot allocate %d bytes: %w; use a smaller batch or model", n, err)
	}
	anonymous.Add(int64(pages(n)))
	return Block{addr, n}, nil
}

// Free returns the memory of b to the system. Every slice of it is invalid
// afterwards, and a block must not be freed twice.
func (b Block) Free() error {
	if b.Size == 0 {
		return nil
	}
	if err := unmapAnonymous(b.Addr, pages(b.Size)); err != nil {
		return fmt.Errorf("cannot free %d bytes at %#x: %w", b.Size, b.Addr, err)
	}
	anonymous.Add(-int64(pages(b.Size)))
	return nil
}

// Bytes views the block as a slice.
func (b Block) Bytes() []byte { return Bytes(b.Addr, b.Size) }

// maxSize leaves room for rounding up to pages.
const maxSize = int(^uint(0)>>1) - 1<<20

var pageSize = os.Getpagesize()

// pages rounds n up to whole pages.
func pages(n int) int { return (n + pageSize - 1) / pageSize * pageSize }

// Pointer is addr as a pointer. The address must be of memory outside of the
// Go heap, or of Go memory that something else keeps alive.
func Pointer(addr uintptr) unsafe.Pointer {
	// A plain conversion is what vet must reject in general; memory that the
	// collector does not manage cannot be moved or freed between the two.
	return *(*unsafe.Pointer)(unsafe.Pointer(&addr))
}

// Bytes views n bytes at addr.
func Bytes(addr uintptr, n int) []byte { return Slice[byte](addr, n) }

// Slice views n values of T at addr, which must be aligned for T. T must not
// contain pointers into the Go heap: the collector does not see them here.
func Slice[T any](addr uintptr, n int) []T {
	return unsafe.Slice((*T)(Pointer(addr)), n)
}
