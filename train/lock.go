package train

import (
	"errors"
	"os"
)

// errLocked says that another process, or another run of this one, has the lock of a folder.
var errLocked = errors.New("locked")

// lock keeps other runs out of a run folder until the file that it returns is closed, or the process ends. Where the
// system has no locks the file is nil, which may be closed too. named is how settings are called.
func lock(dir string, named func(string) string) (*os.File, error) {
	f, err := openLock(dir)
	if errors.Is(err, errLocked) {
		return nil, fail("wait until it ends, or give another "+named("out"), "another run is writing %s", dir)
	}
	return f, err
}
