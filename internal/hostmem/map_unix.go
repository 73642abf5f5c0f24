//go:build linux || darwin

package hostmem

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

func mapPages(n int) (uintptr, error) {
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	return uintptr(p), err
}

func unmapAnonymous(addr uintptr, n int) error { return unix.MunmapPtr(Pointer(addr), uintptr(n)) }

func mapFile(f *os.File, n int) ([]byte, bool, error) {
	p, err := unix.MmapPtr(int(f.Fd()), 0, nil, uintptr(n), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, false, err
	}
	return unsafe.Slice((*byte)(p), n), true, nil
}

func unmapFile(data []byte) error {
	return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(data)), uintptr(len(data)))
}
