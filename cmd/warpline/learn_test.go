package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/examples/lessons"
	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/lesson"
	"github.com/warpline-ml/warpline/train"
)

// TestLearn takes a course in the terminal: the list, a lesson, a listing, a run, a check; and the list knows of it.
func TestLearn(t *testing.T) {
	dir := t.TempDir()
	learn := func(want int, args ...string) string {
		t.Helper()
		status, stdout, stderr := command(t.Context(), append([]string{"learn"}, args...)...)
		if status != want {
			t.Fatalf("learn %q: %d: %s%s", args, status, stdout, stderr)
		}
		return stdout + stderr
	}
	if list := learn(0, "--dir", dir); !strings.Contains(list, "What a GPU is made of") || strings.Contains(list, "read 2") {
		t.Errorf("%s", list)
	}
	if text := learn(0, "read", "memory", "--dir", dir); !strings.Contains(text, "14.90 GiB") {
		t.Errorf("%s", text)
	}
	if text := learn(0, "listing", "l8"); !strings.Contains(text, "// Backward fills") || !strings.Contains(text, "loss.backward()") {
		t.Errorf("%s", text)
	}
	if text := learn(0, "run", "L31", "--wrong", "--set", "steps=2"); text != "gradient 2\ngradient 2\n" {
		t.Errorf("%q", text)
	}
	if text := learn(1, "quiz", "a", "--dir", dir, "--answers", "1,1,1,1,1,1,1,1,1"); !strings.Contains(text, "not complete") || !strings.Contains(text, "warpline learn read placement") {
		t.Errorf("%s", text)
	}
	if list := learn(0, "--dir", dir); !strings.Contains(list, "read 2") || !strings.Contains(list, "best score 11 %") {
		t.Errorf("%s", list)
	}
	for _, args := range [][]string{{"read", "nothing"}, {"listing", "L99"}, {"start", "map"}, {"run", "L21"}, {"run", "L08", "--set", "steps"}, {"run", "L08", "--set", "steps=-1"}, {"quiz", "c"}, {"quiz", "a", "--answers", "1"}} {
		if text := learn(2, append(args, "--dir", dir)...); !strings.Contains(text, "hint: ") {
			t.Errorf("%q: %s", args, text)
		}
	}
}

// TestQuizAsked: what is no choice is said to be none and asked for again, answers that end tell what was given, and an interrupt needs
// no line.
func TestQuizAsked(t *testing.T) {
	ask := func(ctx context.Context, in io.Reader) (string, error) {
		var out strings.Builder
		root := newRoot()
		root.SetIn(in)
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs([]string{"learn", "quiz", "a", "--dir", t.TempDir()})
		_, err := root.ExecuteContextC(ctx)
		return out.String(), err
	}
	out, err := ask(t.Context(), strings.NewReader("x\n\n9\n-1\n2\n3\n"))
	if strings.Count(out, "is none of the choices") != 4 || !strings.Contains(out, `"9" is none`) || !strings.Contains(out, "3 of 9") {
		t.Errorf("%s", out)
	}
	if err == nil || !strings.Contains(err.Error(), "ended at question 3 of 9") || !strings.Contains(advice.HintOf(err), "--answers 2,3,…") {
		t.Errorf("%v", err)
	}
	if out, err = ask(t.Context(), strings.NewReader(strings.Repeat("1\n", 9))); !errors.Is(err, errFindings) || !strings.Contains(out, "of 9, ") {
		t.Errorf("%v: %s", err, out)
	}
	silent, _ := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ask(ctx, silent); !errors.Is(err, train.ErrInterrupted) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestRunInterrupted: a program that runs is left at the first interrupt, whatever it does.
func TestRunInterrupted(t *testing.T) {
	out, in := io.Pipe()
	defer out.Close() // the program waits until then
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		out.Read(make([]byte, 1))
		cancel()
	}()
	root := newRoot()
	root.SetOut(in)
	root.SetErr(io.Discard)
	root.SetArgs([]string{"learn", "run", "L03"})
	if _, err := root.ExecuteContextC(ctx); !errors.Is(err, train.ErrInterrupted) {
		t.Errorf("%v", err)
	}
}

// TestLearnForms: each form has its line of JSON.
func TestLearnForms(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args  []string
		lines int
		keys  []string
	}{
		{nil, 13, []string{"lesson", "minutes", "objectives", "read"}},
		{[]string{"read", "copies"}, 1, []string{"id", "sections", "sources"}},
		{[]string{"listing", "L20"}, 1, []string{"id", "lines", "python"}},
		{[]string{"run", "L03"}, 1, []string{"listing", "output"}},
		{[]string{"quiz", "b", "--answers", "2,2,3,3,3,1,3,2,3,2"}, 1, []string{"quiz", "result"}},
	} {
		status, stdout, stderr := command(t.Context(), append(append([]string{"learn"}, c.args...), "--json", "--dir", dir)...)
		lines := strings.Split(strings.TrimSpace(stdout), "\n")
		var first map[string]any
		if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || status > 1 || len(lines) != c.lines {
			t.Errorf("%q: %d, %d lines: %v: %s", c.args, status, len(lines), err, stderr)
		}
		for _, k := range c.keys {
			if _, ok := first[k]; !ok {
				t.Errorf("%q has no %s: %.200s", c.args, k, lines[0])
			}
		}
	}
}

// TestCommandsOfLessons: the command lines that lessons and listings name are there, with their flags, and plans and dry runs run.
func TestCommandsOfLessons(t *testing.T) {
	var texts bytes.Buffer
	for _, l := range lesson.All() {
		if err := json.NewEncoder(&texts).Encode(l); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range lessons.Listings {
		if l.Command != "" {
			texts.WriteString("`" + l.Command + "`")
		}
	}
	found := regexp.MustCompile("`warpline ([^`]*)`").FindAllStringSubmatch(texts.String(), -1)
	if len(found) < 20 {
		t.Fatalf("found %d command lines", len(found))
	}
	ran := map[string]bool{}
	for _, m := range found {
		if ran[m[1]] {
			continue
		}
		ran[m[1]] = true
		cmd, rest, err := newRoot().Find(strings.Fields(m[1]))
		if err != nil || !cmd.HasParent() {
			t.Errorf("warpline %s: %v", m[1], err)
			continue
		}
		if err := cmd.ParseFlags(rest); err != nil {
			t.Errorf("warpline %s: %v", m[1], err)
		}
		if words := strings.Fields(m[1]); words[0] == "plan" && len(words) > 1 || slices.Contains(words, "--dry-run") { // quick ones are run
			if status, _, stderr := command(t.Context(), words...); status != 0 {
				t.Errorf("warpline %s: %d: %s", m[1], status, stderr)
			}
		}
	}
}

// TestLearnExercises goes through an exercise: list, start, hints, a check that fails, the solution, a check that passes.
func TestLearnExercises(t *testing.T) {
	r := newRoom(t)
	dir := t.TempDir()
	learn := func(want int, args ...string) string {
		t.Helper()
		status, stdout, stderr := command(t.Context(), append(append([]string{"learn"}, args...), "--dir", dir)...)
		if status != want {
			t.Fatalf("learn %q: %d: %s%s", args, status, stdout, stderr)
		}
		return stdout + stderr
	}
	if list := learn(0, "list"); !strings.Contains(list, "kernel-scan") || strings.Contains(list, "passed 2") {
		t.Errorf("%s", list)
	}
	learn(0, "start", "kernel-scan", "work")
	if text := learn(0, "hint", "kernel-scan", "2"); !strings.Contains(text, "2 of 2") {
		t.Errorf("%s", text)
	}
	var report struct {
		Name  string
		Pass  bool
		Tests []struct{ Name string }
		Hint  string
	}
	r.check(json.Unmarshal([]byte(strings.Split(learn(1, "check", "work", "--json"), "\n")[0]), &report))
	if report.Pass || report.Name != "kernel-scan" || !strings.Contains(report.Hint, "__syncthreads") || len(report.Tests) != 3 {
		t.Errorf("%+v", report)
	}
	var solution struct{ Files []struct{ Name, Text string } }
	r.check(json.Unmarshal([]byte(strings.Split(learn(0, "solution", "kernel-scan", "--json"), "\n")[0]), &solution))
	for _, f := range solution.Files {
		if f.Name == "kernel.ptx" {
			r.file("work/kernel.ptx", []byte(f.Text))
		}
	}
	learn(0, "check", "work")
	if list := learn(0, "list"); !strings.Contains(list, "passed 2") {
		t.Errorf("%s", list)
	}
	learn(2, "start", "kernel-scan", "work")
	learn(2, "start", "activations")
	learn(2, "hint", "kernel-scan", "9")
	learn(2, "check", ".")
}
