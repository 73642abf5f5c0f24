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

// noReserve keeps what has no memory from counting as promised.
const noReserve = unix.MAP_ANON | unix.MAP_PRIVATE | unix.MAP_NORESERVE

func reserve(n int) (uintptr, error) {
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(n), unix.PROT_NONE, noReserve)
	return uintptr(p), err
}

func commit(addr uintptr, n int) error {
	return unix.Mprotect(Bytes(addr, n), unix.PROT_READ|unix.PROT_WRITE)
}

// decommit maps anew, which drops the pages; the protection alone would keep them.
func decommit(addr uintptr, n int) error {
	_, err := unix.MmapPtr(-1, 0, Pointer(addr), uintptr(n), unix.PROT_NONE, noReserve|unix.MAP_FIXED)
	return err
}

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
