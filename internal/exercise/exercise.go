// Package exercise has the exercises of the lessons: folders with a beginning, tests, hints in steps and a solution, and what judges
// them.
//
//	exercise.go   what an exercise is
//	folder.go     a folder to work in: files, and a go.mod that finds Warpline
//	check.go      the tests of a folder, run by the go command
//	puzzle.go     kernels, judged on the simulated GPU under all checks
//	numbers.go    what wrong numbers of a kernel look like, and the hint that follows
package exercise

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/warpline-ml/warpline/internal/advice"
)

// Exercise is something to do.
type Exercise struct {
	Name    string   `json:"name"`
	Title   string   `json:"title"`
	Minutes int      `json:"minutes"`
	About   string   `json:"about"`
	Hints   []string `json:"hints"`
	Puzzle  bool     `json:"puzzle"` // a kernel, which needs no Go
	puzzle  *puzzle
}

// inGo are the exercises in Go, in their order.
var inGo = []string{"device-agnostic", "activations", "transfer-benchmark", "mixed-precision", "memory-tracker", "broken-training"}

// All are the exercises in their order. A mistake in a file is one of the build, and panics.
var All = sync.OnceValue(func() (all []*Exercise) {
	for _, name := range inGo {
		e, err := read(name)
		if err != nil {
			panic(err)
		}
		all = append(all, e)
	}
	for i := range puzzles {
		p := &puzzles[i]
		all = append(all, &Exercise{Name: "kernel-" + p.name, Title: p.title, Minutes: 10, About: p.about, Hints: p.hints, Puzzle: true, puzzle: p})
	}
	return all
})

// Find is the exercise with a name; the error lists them.
func Find(name string) (*Exercise, error) {
	var names []string
	for _, e := range All() {
		if e.Name == name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	meant := advice.Meant(name, names)
	if slices.Contains(names, "kernel-"+name) {
		meant = "did you mean kernel-" + name + "? "
	}
	return nil, advice.Failf(meant+"they are "+strings.Join(names, ", "), "no exercise is called %q", name)
}

// Hint is the n-th hint, from 1; there are at least two.
func (e *Exercise) Hint(n int) (string, error) {
	if n < 1 || n > len(e.Hints) {
		return "", advice.Failf(fmt.Sprintf("give a number from 1 to %d, or see warpline learn solution %s", len(e.Hints), e.Name), "%s has no hint %d", e.Name, n)
	}
	return e.Hints[n-1], nil
}

// File is a file of an exercise.
type File struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Solution are the files that solve it.
func (e *Exercise) Solution() ([]File, error) {
	if e.Puzzle {
		return e.puzzle.files("solution")
	}
	return e.folder("solution")
}

// folder are the files of a folder of an exercise in Go.
func (e *Exercise) folder(name string) (list []File, err error) {
	dir := path.Join("_files", e.Name, name)
	entries, err := fs.ReadDir(files, dir)
	for _, f := range entries {
		if f.IsDir() || f.Name() == aboutFile {
			continue
		}
		text, err := fs.ReadFile(files, path.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		list = append(list, File{strings.TrimSuffix(f.Name(), ".txt"), string(text)})
	}
	return list, err
}

// aboutFile has lines "title:", "minutes:" and "hint:", an empty line, and what there is to do.
const aboutFile = "about.txt"

func read(name string) (*Exercise, error) {
	text, err := fs.ReadFile(files, path.Join("_files", name, aboutFile))
	if err != nil {
		return nil, err
	}
	head, about, _ := strings.Cut(string(text), "\n\n")
	e := &Exercise{Name: name, About: strings.TrimSpace(about)}
	for line := range strings.Lines(head) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "title":
			e.Title = value
		case "minutes":
			e.Minutes, err = strconv.Atoi(value)
		case "hint":
			e.Hints = append(e.Hints, value)
		default:
			err = fmt.Errorf("%s: %q", name, line)
		}
		if err != nil {
			return nil, err
		}
	}
	return e, nil
}
