package hostmem

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

func mapAnonymous(n int) (uintptr, error) {
	return windows.VirtualAlloc(0, uintptr(n), windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_READWRITE)
}

func unmapAnonymous(addr uintptr, _ int) error {
	return windows.VirtualFree(addr, 0, windows.MEM_RELEASE)
}

func reserve(n int) (uintptr, error) {
	return windows.VirtualAlloc(0, uintptr(n), windows.MEM_RESERVE, windows.PAGE_NOACCESS)
}

func commit(addr uintptr, n int) error {
	_, err := windows.VirtualAlloc(addr, uintptr(n), windows.MEM_COMMIT, windows.PAGE_READWRITE)
	return err
}

func decommit(addr uintptr, n int) error {
	return windows.VirtualFree(addr, uintptr(n), windows.MEM_DECOMMIT)
}

func mapFile(f *os.File, n int) ([]byte, bool, error) {
	h, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READONLY, 0, 0, nil)
	if err != nil {
		return nil, false, err
	}
	defer windows.CloseHandle(h) // the view keeps the mapping open
	addr, err := windows.MapViewOfFile(h, windows.FILE_MAP_READ, 0, 0, uintptr(n))
	if err != nil {
		return nil, false, err
	}
	return Bytes(addr, n), true, nil
}

func unmapFile(data []byte) error {
	return windows.UnmapViewOfFile(uintptr(unsafe.Pointer(unsafe.SliceData(data))))
}
