package exercise

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/sources"
)

// Report is how a folder fares.
type Report struct {
	Name  string `json:"name"`
	Pass  bool   `json:"pass"`
	Tests []Test `json:"tests"`
	Hint  string `json:"hint,omitempty"` // of what failed first
}

// Test is one of them.
type Test struct {
	Name   string `json:"name"`
	Pass   bool   `json:"pass"`
	Output string `json:"output,omitempty"` // of one that failed
}

// Check judges a folder: an exercise in Go by its tests, which needs the go command, a puzzle by running its kernel.
func Check(ctx context.Context, dir string) (*Report, error) {
	e, err := Of(dir)
	if err != nil {
		return nil, err
	}
	if e.Puzzle {
		return e.puzzle.check(ctx, e, dir)
	}
	out, err := goTest(ctx, dir)
	if err != nil {
		return nil, err
	}
	r := &Report{Name: e.Name}
	r.read(out)
	return r, nil
}

// goTest is what the go command says of a folder, as lines of JSON.
func goTest(ctx context.Context, dir string) ([]byte, error) {
	if err := copied(dir); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-json", "-count=1", "-vet=off", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "CGO_ENABLED=0", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return nil, advice.Failf("install Go from go.dev/dl, or take a kernel puzzle, which needs none", "the tests of this exercise are run by the go command, which is not there")
	case err != nil && !errors.As(err, &exit):
		return nil, err
	case err != nil && len(out) == 0:
		return nil, advice.Failf("see what go test says in "+dir, "go test: %s", strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// copied writes the copy of the sources if a folder's go.mod names it and it is gone, as what lies in a cache may be. What else go.mod
// names must be there: a copy of another version is not this program's to write.
func copied(dir string) error {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil // go test says what is wrong
	}
	named := replaced(string(mod))
	if place, err := sources.Place(); err == nil && named == place {
		_, err = sources.Folder()
		return err
	}
	if _, err := os.Stat(named); filepath.IsAbs(named) && errors.Is(err, fs.ErrNotExist) {
		return advice.Failf("take go.mod and go.sum of a new folder, which warpline learn start makes, in place of those of "+dir,
			"go.mod of %s takes Warpline's sources from %s, which is gone", dir, named)
	}
	return nil
}

// replaced is the folder that a go.mod takes Warpline from, or "".
func replaced(mod string) string {
	_, after, _ := strings.Cut(mod, "\nreplace "+module+" => ")
	line, _, _ := strings.Cut(after, "\n")
	if named, err := strconv.Unquote(strings.TrimSpace(line)); err == nil {
		return named
	}
	return strings.TrimSpace(line)
}

// read takes the results of tests from go test -json. What does not compile is a test called build.
func (r *Report) read(out []byte) {
	outputs := map[string]string{}
	failed := false
	for line := range bytes.Lines(out) {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal(line, &e) != nil {
			continue // not of go test
		}
		switch {
		case e.Action == "output" || e.Action == "build-output":
			outputs[e.Test] += e.Output
		case e.Test == "":
			failed = failed || e.Action == "fail"
		case e.Action == "pass":
			r.Tests = append(r.Tests, Test{Name: e.Test, Pass: true})
		case e.Action == "fail":
			r.Tests = append(r.Tests, Test{Name: e.Test, Output: strings.TrimSpace(outputs[e.Test])})
		}
	}
	if len(r.Tests) == 0 {
		r.Tests = []Test{{Name: "build", Output: strings.TrimSpace(outputs[""])}}
	}
	r.judge()
	r.Pass = r.Pass && !failed
}

// judge says of its tests whether they all pass, and the hint of the first that does not.
func (r *Report) judge() {
	r.Pass = true
	for _, t := range r.Tests {
		r.Pass = r.Pass && t.Pass
		if !t.Pass && r.Hint == "" {
			r.Hint = hintIn(t.Output)
		}
	}
}

// hintIn is the hint that a test has written with what is wrong; of a panic or of what does not compile, where to look.
func hintIn(output string) string {
	if _, hint, ok := strings.Cut(output, "hint: "); ok {
		hint, _, _ = strings.Cut(hint, "\n")
		return hint
	}
	if strings.Contains(output, "panic: ") {
		return "the program panics: the first line of exercise.go below goroutine is where"
	}
	return "what the compiler or the test says is above; the first line is what counts"
}
