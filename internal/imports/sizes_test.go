package imports

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLargePackages: the packages of which docs/architecture.md says why they are large are those that are.
func TestLargePackages(t *testing.T) {
	const large = 6000 // lines by hand
	lines := map[string]int{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && !bytes.HasPrefix(text, []byte("// Code generated")) {
			dir, _ := filepath.Rel(root, filepath.Dir(path))
			lines[filepath.ToSlash(dir)] += bytes.Count(text, []byte("\n"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(lines, func(_ string, n int) bool { return n <= large })
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "a test keeps this list:")
	list, _, _ = strings.Cut(list, "\nInside `tensor`")
	var told []string
	for _, m := range regexp.MustCompile("(?m)^\\* `([^`]+)`").FindAllStringSubmatch(list, -1) {
		told = append(told, m[1])
	}
	if slices.Sort(told); !slices.Equal(told, slices.Sorted(maps.Keys(lines))) {
		t.Errorf("docs/architecture.md lists %v, more than %d lines have %v", told, large, lines)
	}
}
