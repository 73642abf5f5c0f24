package vetpy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/vet/vettest"
)

// row is a finding that is expected of a script: its line and rule, and the mistake in words.
var row = regexp.MustCompile(`^  (\d+ [A-Z]\d\d)  (also|\d+): .+$`)

// TestForum: in scripts that were written after threads of forums, before anybody looked at the rules, the mistake of the
// thread is found, but for those that the list has as missed, and nothing else but what is wrong there too.
func TestForum(t *testing.T) {
	wanted := map[string][]string{}
	name, missed, mistakes := "", 0, 0
	for line := range strings.Lines(string(must(os.ReadFile("testdata/forum/expected.txt")))) {
		line = strings.TrimRight(line, "\n")
		switch m := row.FindStringSubmatch(line); {
		case m != nil:
			wanted[name] = append(wanted[name], m[1])
			if m[2] != "also" {
				mistakes++
			}
		case strings.HasPrefix(line, "  missed  "):
			missed++
		case strings.HasPrefix(line, "#"):
		default:
			name, _, _ = strings.Cut(line, ": ")
			wanted[name] = nil
		}
	}
	t.Logf("%d of %d mistakes are found", mistakes, mistakes+missed)
	if mistakes*100 < (mistakes+missed)*95 {
		t.Errorf("%d are missed", missed)
	}
	files := must(filepath.Glob("testdata/forum/*.py"))
	if len(files) != len(wanted) {
		t.Errorf("%d scripts, %d in the list", len(files), len(wanted))
	}
	for _, file := range files {
		want := slices.Compact(slices.Sorted(slices.Values(wanted[filepath.Base(file)])))
		if d := vettest.Unlike(want, got(t, file, string(must(os.ReadFile(file))))); d != "" {
			t.Errorf("%s: wanted, got:\n%s", file, d)
		}
	}
}

// TestForumNear: in scripts of the same authors that nearly have such mistakes, nothing is found.
func TestForumNear(t *testing.T) {
	files := must(filepath.Glob("testdata/forum/near/*.py"))
	if len(files) < 40 {
		t.Fatalf("%d scripts", len(files))
	}
	for _, file := range files {
		if found := got(t, file, string(must(os.ReadFile(file)))); len(found) > 0 {
			t.Errorf("%s: %v", file, found)
		}
	}
}
