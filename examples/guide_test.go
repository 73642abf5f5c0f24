package examples

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGuide finds every program of docs/guide.md and docs/kernels.md in the file that the line before it names.
func TestGuide(t *testing.T) {
	for _, page := range []string{"guide.md", "kernels.md"} {
		guide, err := os.ReadFile("../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		shown := regexp.MustCompile("(?s)\\(\\.\\./([a-z/_]+\\.(?:go|cu))\\)\\)?:\n\n```(?:go|cuda)\n(.*?)```\n").FindAllStringSubmatch(string(guide), -1)
		if blocks := strings.Count(string(guide), "```go\n") + strings.Count(string(guide), "```cuda\n"); len(shown) != blocks || blocks == 0 {
			t.Fatalf("%s: %d of %d programs name their file", page, len(shown), blocks)
		}
		for _, m := range shown {
			source, err := os.ReadFile(filepath.Join("..", m[1]))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(unindented(string(source)), unindented(m[2])) {
				t.Errorf("docs/%s does not show %s as it is:\n%s", page, m[1], m[2])
			}
		}
	}
}

// unindented is a text without the tabs that lines begin with.
func unindented(s string) string {
	lines := strings.SplitAfter(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimLeft(lines[i], "\t")
	}
	return strings.Join(lines, "")
}
