package vetgo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/vet"
)

// TestComplaints: what go vet says of packages is told with their names, and what belongs to no package once.
func TestComplaints(t *testing.T) {
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	asked := &list{sound: []*listed{{ImportPath: "x/a"}, {ImportPath: "x/b", Deps: []string{"fmt", "y/c"}}, {ImportPath: byFiles}}}
	for stderr, want := range map[string][]string{
		"# x/a\n# [x/a]\nvet: ./a.go:3:12: undefined: x\n":                            {"x/a: sub/a.go:3:12: undefined: x"},
		"# x/a [x/a.test]\nvet: ./a_test.go:3:12: undefined: x\n":                     {"x/a: sub/a_test.go:3:12: undefined: x"},
		"# x/a_test [x/a.test]\nvet: a_test.go:3: undefined: x\n":                     {"x/a: sub/a_test.go:3: undefined: x"},
		"# x/a\na.go:3:1: one\na.go:4:1: two\n\tmore of it\n":                         {"x/a: sub/a.go:3:1: one"},
		"go: downloading y v1.0.0\n# y/c\n" + wd + "/c.go:1:2: no\n":                  {"x/b: it imports y/c, which does not compile: c.go:1:2: no"},
		"# command-line-arguments\n# [command-line-arguments]\n../m.go:1:2: no: b\n":  {"m.go:1:2: no: b"},
		"go: updates to go.mod needed; to update it:\n\tgo mod tidy\nexit status 1\n": {"go: updates to go.mod needed; to update it: go mod tidy"},
	} {
		h := &heard{request: Request{Dir: "sub", Files: []string{"m.go"}}, asked: asked, wrong: map[string]string{}, read: map[string]bool{}}
		h.complaints([]byte(stderr))
		if h.wrong[""] == "" {
			h.read = map[string]bool{"x/a": true, "x/b": h.wrong["y/c"] == "", byFiles: true}
		}
		a := &Answer{}
		h.answer(a)
		var got []string
		for _, u := range a.Unread {
			got = append(got, u.Err.Error())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q:\n%q, want\n%q", stderr, got, want)
		}
	}
}

// TestListErrors: of a package with its tests the errors are told once, and as its tests' where it has none itself.
func TestListErrors(t *testing.T) {
	all, err := decoded([]byte(`
{"ImportPath":"x/a","Dir":"/x/a"}
{"ImportPath":"x/a.test","DepsErrors":[{"Pos":"a_test.go:5:2","Err":"no such\n\tpackage"}]}
{"ImportPath":"x/a [x/a.test]","DepsErrors":[{"Pos":"a_test.go:5:2","Err":"no such\n\tpackage"}]}
{"ImportPath":"x/b.test","Dir":"/x/b"}
{"ImportPath":"x/c","Error":{"Err":"no"},"DepsErrors":[{"Err":"other"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	wrong := errorsOf(all)
	if wrong["x/a"] == nil || wrong["x/a"].Pos != "a_test.go:5:2" || wrong["x/b.test"] != nil || wrong["x/c"].Err != "no" {
		t.Errorf("%v", wrong)
	}
	if _, err := decoded([]byte("{")); err == nil {
		t.Error("half of a list passed")
	}
}

// TestRoots: of a folder, its own module is read, and those within it that have to do with Warpline.
func TestRoots(t *testing.T) {
	dir := t.TempDir()
	const ours = "package x\n\nimport _ \"github.com/warpline-ml/warpline/tensor\"\n"
	for name, source := range map[string]string{
		"one/go.mod": "", "one/main.go": "package main\n", "one/deep/deep.go": ours,
		"one/two/go.mod": "", "one/two/a.go": "package two\n", "one/two/sub/b.go": ours,
		"one/other/go.mod": "", "one/other/main.go": "package other\n",
		"one/_asm/go.mod": "", "one/_asm/main.go": ours,
		"one/venv/x.go": ours,
		"none/x.go":     ours,
		"python/x.py":   "",
	} {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(source), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for from, want := range map[string]string{
		".": "[one one/two] true", "one": "[one one/two] false", "one/": "[one one/two] false", "one/two/..": "[one one/two] false",
		"one/deep": "[one/deep] false", "one/other": "[one/other] false", "none": "[] true", "python": "[] false",
	} {
		t.Chdir(dir)
		var programs []string
		vet.Walk(from, func(name string) {
			if strings.HasSuffix(name, ".go") {
				programs = append(programs, name)
			}
		}, func(err error) { t.Error(err) })
		roots, loose := Roots(from, programs)
		slices.Sort(roots)
		if got := filepath.ToSlash(fmt.Sprint(roots, loose)); got != want {
			t.Errorf("%s: %q, want %q", from, got, want)
		}
	}
}
