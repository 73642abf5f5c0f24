package vetpy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/vet/vettest"
)

// row is a finding that is expected of a script: its line and rule, and the mistake in words; of a notebook, its cell before.
var row = regexp.MustCompile(`^  ((?:cell\d+:)?\d+ [A-Z]\d\d)  (also|\d+): .+$`)

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
	files := scripts("testdata/forum/")
	if len(files) != len(wanted) {
		t.Errorf("%d scripts, %d in the list", len(files), len(wanted))
	}
	for _, file := range files {
		want := slices.Compact(slices.Sorted(slices.Values(wanted[filepath.Base(file)])))
		if d := vettest.Unlike(want, found(t, file)); d != "" {
			t.Errorf("%s: wanted, got:\n%s", file, d)
		}
	}
}

// found are "line rule" of what is found in a script, or "cell:line rule" in a notebook.
func found(t *testing.T, file string) (all []string) {
	if filepath.Ext(file) == ".py" {
		return got(t, file, string(must(os.ReadFile(file))))
	}
	for _, f := range must(CheckFile(file)) {
		all = append(all, fmt.Sprintf("cell%d:%d %s", f.Cell, f.Line, f.Rule))
	}
	return all
}

// TestForumNear: in scripts of the same authors that nearly have such mistakes, nothing is found.
func TestForumNear(t *testing.T) {
	files := scripts("testdata/forum/near/")
	if len(files) < 110 {
		t.Fatalf("%d scripts", len(files))
	}
	for _, file := range files {
		if found := found(t, file); len(found) > 0 {
			t.Errorf("%s: %v", file, found)
		}
	}
}

// scripts are the programs and notebooks of a folder.
func scripts(dir string) []string {
	return append(must(filepath.Glob(dir+"*.py")), must(filepath.Glob(dir+"*.ipynb"))...)
}
