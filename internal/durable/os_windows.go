package durable

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// syncFlag opens a file for FlushFileBuffers, which asks for the right to write.
const syncFlag = os.O_RDWR

const errSharingViolation syscall.Errno = 32

// rename tries for a second: on Windows a virus scanner or an indexer that has
// just opened either file makes a rename fail for a moment.
func rename(from, to string) error {
	var err error
	for wait := time.Millisecond; wait < time.Second; wait *= 2 {
		if err = os.Rename(from, to); err == nil {
			return nil
		}
		if !errors.Is(err, syscall.ERROR_ACCESS_DENIED) && !errors.Is(err, errSharingViolation) {
			break
		}
		time.Sleep(wait)
	}
	return pathCause(err)
}

// syncDir does nothing: Windows offers no flush of a folder.
func syncDir(string) error { return nil }
