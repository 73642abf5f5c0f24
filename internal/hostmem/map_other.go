//go:build !linux && !darwin && !windows

package hostmem

import (
	"errors"
	"io"
	"os"
	"sync"
	"unsafe"
)

// held keeps the blocks alive: here they live on the Go heap, which does not
// move large objects.
var held struct {
	sync.Mutex
	blocks map[uintptr][]byte
}

func mapAnonymous(n int) (uintptr, error) {
	b := make([]byte, n+Alignment)
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	addr := (start + Alignment - 1) / Alignment * Alignment
	held.Lock()
	defer held.Unlock()
	if held.blocks == nil {
		held.blocks = make(map[uintptr][]byte)
	}
	held.blocks[addr] = b
	return addr, nil
}

func unmapAnonymous(addr uintptr, _ int) error {
	held.Lock()
	defer held.Unlock()
	delete(held.blocks, addr)
	return nil
}

// Here there are no addresses without memory.
func reserve(int) (uintptr, error) { return 0, errors.ErrUnsupported }
func commit(uintptr, int) error    { return errors.ErrUnsupported }
func decommit(uintptr, int) error  { return errors.ErrUnsupported }

func mapFile(f *os.File, n int) ([]byte, bool, error) {
	data := make([]byte, n)
	_, err := io.ReadFull(f, data)
	return data, false, err
}

func unmapFile([]byte) error { return nil }
