//go:build linux || darwin

package hostmem

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMapFileDoesNotWaitForAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := MapFile(path); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("MapFile of a pipe: %v", err)
	}
}
