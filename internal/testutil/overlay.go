package testutil

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Overlay is a flag for the go command by which files of this module stand where none are, or in the place of those that are
// there: files by their places, both as paths, of any folder. What a test compiles so is a part of this module, and finds in the
// build's cache what the test itself was compiled of; a module of its own compiles all of that again.
func Overlay(t testing.TB, files map[string]string) string {
	t.Helper()
	replace := make(map[string]string, len(files))
	for place, file := range files {
		whole, err := filepath.Abs(place)
		if err != nil {
			t.Fatal(err)
		}
		replace[whole] = file
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return "-overlay=" + path
}
