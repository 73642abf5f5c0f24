//go:build packed

package sources

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/advice"
	_ "github.com/warpline-ml/warpline/internal/counts" // and what it imports: their texts are of the copy
	_ "github.com/warpline-ml/warpline/internal/cuda/kernels"
	_ "github.com/warpline-ml/warpline/internal/ptx"
)

// TestFolder: the copy is written whole, once, and again when something of it is gone or cut.
func TestFolder(t *testing.T) {
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

// TestNowhere: where the copy cannot be, the error says what to do.
func TestNowhere(t *testing.T) {
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
