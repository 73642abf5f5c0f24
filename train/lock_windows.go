package train

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// What syscall does not name.
const (
	deleteOnClose    = 0x04000000
	sharingViolation = syscall.Errno(32)
)

// openLock opens a hidden file that nobody else can open and that goes with its handle, also when a process dies.
func openLock(dir string) (*os.File, error) {
	path := filepath.Join(dir, ".lock")
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	const access = syscall.GENERIC_READ | syscall.GENERIC_WRITE
	h, err := syscall.CreateFile(name, access, 0, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_HIDDEN|deleteOnClose, 0)
	switch {
	case errors.Is(err, sharingViolation):
		return nil, errLocked
	case err != nil:
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}
