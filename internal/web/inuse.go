//go:build unix || windows

package web

import (
	"errors"
	"syscall"
)

// inUse reports whether another process has the port.
func inUse(err error) bool {
	var number syscall.Errno
	return errors.Is(err, syscall.EADDRINUSE) || errors.As(err, &number) && number == 10048 // WSAEADDRINUSE
}
