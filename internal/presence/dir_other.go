//go:build !unix

package presence

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Dir is the folder of this user's sockets; temporary folders are a user's own here.
func Dir() string { return filepath.Join(os.TempDir(), "warpline") }

// others are none.
func others() []string { return nil }

// closed is what the system sees to.
func closed(fs.FileInfo) bool { return true }

// refused: who does not answer has ended.
func refused(error) bool { return true }
