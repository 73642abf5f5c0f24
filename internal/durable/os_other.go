//go:build !windows

package durable

import (
	"errors"
	"os"
	"syscall"
)

// syncFlag opens a file for fsync, which asks for no right to write.
const syncFlag = os.O_RDONLY

func rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return pathCause(err)
	}
	return nil
}

// syncDir makes the names in a folder durable. File systems that cannot do it
// (some of FUSE and of networks) say EINVAL or ENOTSUP; there is no more to do there.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	return err
}
