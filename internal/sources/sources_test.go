package sources

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestTogether: of processes that write the copy at a time the first one's stays, and all have it.
func TestTogether(t *testing.T) {
	list := map[string]string{}
	for i := range 40 {
		list[fmt.Sprintf("d%d/f.go", i)] = "package d"
	}
	dir := filepath.Join(t.TempDir(), "warpline", "sources-1")
	var first os.FileInfo
	var lock sync.Mutex
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			err := write(dir, list)
			lock.Lock()
			defer lock.Unlock()
			now, gone := os.Stat(dir)
			if first == nil {
				first = now
			}
			if !whole(dir, list) || gone != nil || !os.SameFile(first, now) {
				t.Errorf("the copy is not the first one's: %v, %v", err, gone)
			}
		})
	}
	all.Wait()
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), ".warpline-*")); err != nil || len(left) != 0 {
		t.Errorf("%q is left, %v", left, err)
	}
}

// TestMode: files can be forced to the disk, which on Windows asks for the right to write.
func TestMode(t *testing.T) {
	for system, want := range map[string]os.FileMode{"linux": 0o444, "darwin": 0o444, "windows": 0o666} {
		if got := mode(system); got != want {
			t.Errorf("%s: %v, want %v", system, got, want)
		}
	}
}
