//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package train

import (
	"errors"
	"os"
	"syscall"
)

// openLock locks the folder itself, so that nothing is left when a process dies.
func openLock(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		f.Close()
		return nil, errLocked
	}
	return f, nil // some file systems have no locks
}
