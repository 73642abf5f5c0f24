package hostmem

import (
	"os"

	"golang.org/x/sys/unix"
)

// Share returns a block of n zero bytes that another process can map too, by the file, which has no name. Closing the file leaves
// the block.
func Share(n int) (Block, *os.File, error) {
	fd, err := unix.MemfdCreate("warpline", unix.MFD_CLOEXEC)
	if err != nil {
		return Block{}, nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "shared memory")
	if err := f.Truncate(int64(n)); err != nil {
		f.Close()
		return Block{}, nil, err
	}
	p, err := unix.MmapPtr(fd, 0, nil, uintptr(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		f.Close()
		return Block{}, nil, os.NewSyscallError("mmap", err)
	}
	anonymous.Add(int64(pages(n)))
	return Block{uintptr(p), n}, f, nil
}
