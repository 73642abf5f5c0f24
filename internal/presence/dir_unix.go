//go:build unix

package presence

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Dir is the folder of this user's sockets.
func Dir() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "warpline")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("warpline-%d", os.Getuid()))
}

// others are patterns of other users' folders, which an administrator may read, and of this user's where another session
// has another environment.
func others() []string {
	return []string{"/run/user/*/warpline", filepath.Join(os.TempDir(), "warpline-*")}
}

// closed reports whether only this user may enter a folder.
func closed(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid() && info.Mode().Perm()&0o077 == 0
}

// refused reports whether nobody listens on a socket.
func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
