package sources

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/warpline-ml/warpline/internal/advice"
	_ "github.com/warpline-ml/warpline/internal/counts" // and what it imports: their texts are of the copy
	_ "github.com/warpline-ml/warpline/internal/cuda/kernels"
	_ "github.com/warpline-ml/warpline/internal/ptx"
)

// TestFolder: the copy is written whole, once, and again when something of it is gone or cut; a program without one says so.
func TestFolder(t *testing.T) {
	if !Have() {
		if _, err := Folder(); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("without a copy: %v", err)
		}
		return
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir()) // where other systems have their caches
	dir, err := Folder()
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil || !strings.HasPrefix(string(mod), "module github.com/warpline-ml/warpline\n") {
		t.Fatalf("go.mod is %q, %v", mod, err)
	}
	list, err := files()
	if err != nil || len(list) < 500 {
		t.Fatal(len(list), err)
	}
	for name, text := range list {
		if text == "" {
			t.Errorf("%s is empty", name)
		}
		if strings.Contains(text, "//go:build packed") {
			t.Errorf("%s is of a build with a tag", name)
		}
	}
	before, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []func(path string) error{nil, os.Remove, func(path string) error { return os.WriteFile(path, nil, 0o600) }} {
		path := filepath.Join(dir, "tensor", "tensor.go")
		if damage != nil {
			err = errors.Join(os.Chmod(path, 0o600), damage(path))
		}
		again, also := Folder()
		text, unread := os.ReadFile(path)
		now, gone := os.Stat(dir)
		if err := errors.Join(err, also, unread, gone); err != nil || again != dir || string(text) != list["tensor/tensor.go"] {
			t.Fatalf("%s with %d bytes, %v", again, len(text), err)
		}
		if same := os.SameFile(before, now); same != (damage == nil) {
			t.Errorf("the folder is the same: %v", same)
		}
		before = now
	}
}

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

// TestNowhere: where the copy cannot be, the error says what to do.
func TestNowhere(t *testing.T) {
	if !Have() {
		t.Skip("this build has no copy: go test -tags packed has one")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cache := range []string{file, ""} {
		for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} {
			t.Setenv(name, cache)
		}
		_, err := Folder()
		var told *advice.Error
		if !errors.As(err, &told) || !strings.Contains(told.Hint, "--source DIR") {
			t.Errorf("in %q: %v", cache, err)
		}
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
