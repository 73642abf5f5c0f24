//go:build packed

package exercise

import (
	"os"
	"path/filepath"
	"testing"

	_ "github.com/warpline-ml/warpline/internal/counts" // and what it imports: their texts are of the copy
	_ "github.com/warpline-ml/warpline/internal/cuda/kernels"
	_ "github.com/warpline-ml/warpline/internal/ptx"
)

// TestCopied: a copy of the sources that is gone is written anew where a folder's go.mod names it.
func TestCopied(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir()) // where other systems have their caches
	place, err := Source("")
	if err != nil {
		t.Fatal(err)
	}
	list, err := Modules("exercise", place, "")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range list {
		if err := os.WriteFile(filepath.Join(dir, f.Name), []byte(f.Text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(place); err != nil {
		t.Fatal(err)
	}
	if err := copied(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(place, "tensor", "tensor.go")); err != nil {
		t.Error(err)
	}
}
