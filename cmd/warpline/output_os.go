//go:build unix || windows

package main

import (
	"errors"
	"os/signal"
	"syscall"
)

// outliveReader makes a standard output that nobody reads any more, as behind head, an error of writing and no end.
func outliveReader() { signal.Ignore(syscall.SIGPIPE) }

// noRoom tells the error of a full disk.
func noRoom(err error) bool { return errors.Is(err, syscall.ENOSPC) }
