package vetpy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/vet"
)

// want marks a line with the rules that find something there.
var want = regexp.MustCompile(`# want: ([A-Z0-9 ]+)`)

// wanted are "line rule" of a program's marks.
func wanted(source string) (all []string) {
	for i, line := range strings.Split(source, "\n") {
		if m := want.FindStringSubmatch(line); m != nil {
			for _, r := range strings.Fields(m[1]) {
				all = append(all, fmt.Sprintf("%d %s", i+1, r))
			}
		}
	}
	slices.Sort(all)
	return all
}

// got are "line rule" of what is found.
func got(t *testing.T, name, source string) (all []string) {
	t.Helper()
	found, err := Check(name, []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Title == "" || f.Fix == "" || f.Gain.Text == "" || f.DisprovedBy == "" || f.Confidence == "" {
			t.Errorf("%s:%d: %s is not whole: %+v", name, f.Line, f.Rule, f.Finding)
		}
		all = append(all, fmt.Sprintf("%d %s", f.Line, f.Rule))
	}
	slices.Sort(all)
	return all
}

// TestExamples: each rule finds its broken program and nothing else in it, and nothing in the mended one.
func TestExamples(t *testing.T) {
	for _, r := range vet.Rules() {
		examples := r.Examples()
		if len(examples) == 0 {
			t.Errorf("%s has no programs", r.ID)
		}
		for _, e := range examples {
			if e.Language != "python" {
				continue
			}
			if len(wanted(e.Broken)) == 0 || len(wanted(e.Mended)) > 0 {
				t.Errorf("%s: marks of the programs", r.ID)
			}
			for name, source := range map[string]string{"broken": e.Broken, "mended": e.Mended} {
				if d := unlike(wanted(source), got(t, r.ID+"_"+name+".py", source)); d != "" {
					t.Errorf("%s, %s: wanted, got:\n%s", r.ID, name, d)
				}
			}
		}
	}
}

// TestPrograms: what is planted is found, and what is near to it is not.
func TestPrograms(t *testing.T) {
	planted, near := map[string]int{}, map[string]int{}
	for _, file := range must(filepath.Glob("testdata/*.py")) {
		source := string(must(os.ReadFile(file)))
		if d := unlike(wanted(source), got(t, file, source)); d != "" {
			t.Errorf("%s: wanted, got:\n%s", file, d)
		}
		for _, m := range want.FindAllStringSubmatch(source, -1) {
			for _, r := range strings.Fields(m[1]) {
				planted[r]++
			}
		}
		for _, m := range regexp.MustCompile(`# near: ([A-Z0-9 ]+)`).FindAllStringSubmatch(source, -1) {
			for _, r := range strings.Fields(m[1]) {
				near[r]++
			}
		}
	}
	for _, r := range vet.Rules() {
		if planted[r.ID] < 2 || near[r.ID] < 2 { // and the two of the examples
			t.Errorf("%s: %d planted and %d near misses beside those of --explain; 2 of each are wanted", r.ID, planted[r.ID], near[r.ID])
		}
	}
}

// unlike shows what is wanted and what is there, if they differ.
func unlike(want, got []string) string {
	if slices.Equal(want, got) {
		return ""
	}
	return fmt.Sprintf("  %q\n  %q", want, got)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
