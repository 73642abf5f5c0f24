package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/vet"
)

// leaking keeps its losses.
const leaking = `import torch
losses = []
for x, y in loader:
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss)
`

func TestVet(t *testing.T) {
	r := newRoom(t)
	r.file("train.py", []byte(leaking))
	r.file("lib/site-packages/other.py", []byte(leaking))
	r.file("good.py", []byte(strings.Replace(leaking, "append(loss)", "append(loss.item())", 1)))
	status, stdout, _ := command(t.Context(), "vet", "train.py")
	if status != 1 || !strings.Contains(stdout, "train.py:8: losses collects") || !strings.Contains(stdout, "losses.append(loss.detach())") {
		t.Errorf("%d: %s", status, stdout)
	}
	for _, args := range [][]string{{"good.py"}, {"train.py", "--skip", "R06"}, {".", "--skip", "kept-across-steps"}} {
		if status, stdout, stderr := command(t.Context(), append([]string{"vet"}, args...)...); status != 0 {
			t.Errorf("%q: %d: %s%s", args, status, stdout, stderr)
		}
	}
	if status, stdout, _ := command(t.Context(), "vet", "good.py", ".", "./train.py", "train.py", "."); status != 1 || !strings.Contains(stdout, "1 finding in 2 files") {
		t.Errorf("%d: %s", status, stdout)
	}
}

func TestVetForms(t *testing.T) {
	r := newRoom(t)
	r.file("train.py", []byte(leaking))
	_, stdout, _ := command(t.Context(), "vet", "--json", "train.py")
	var line struct {
		File     string
		Findings []struct {
			Rule, Fix, Line string
			Number          int `json:"line_number"`
		}
	}
	r.check(json.Unmarshal([]byte(stdout), &line))
	if line.File != "train.py" || len(line.Findings) != 1 || line.Findings[0].Rule != "R06" || line.Findings[0].Number != 8 || line.Findings[0].Line != "train.py:8" {
		t.Errorf("%s: %+v", stdout, line)
	}
	_, stdout, _ = command(t.Context(), "vet", "--sarif", "train.py")
	var log struct {
		Version string
		Runs    []struct {
			Tool    struct{ Driver struct{ Rules []any } }
			Results []struct{ RuleID, Level string }
		}
	}
	r.check(json.Unmarshal([]byte(stdout), &log))
	if log.Version != "2.1.0" || len(log.Runs[0].Tool.Driver.Rules) != len(vet.Rules()) || len(log.Runs[0].Results) != 1 || log.Runs[0].Results[0].RuleID != "R06" {
		t.Errorf("%s", stdout)
	}
	r.file("two words.py", []byte("ä = 1; "+leaking))
	r.file("notes.txt", nil)
	status, stdout, _ := command(t.Context(), "vet", "--sarif", "two words.py", "notes.txt", r.dir+"/train.py")
	for _, has := range []string{
		`"uri": "two%20words.py"`, `"uri": "file:///`, `"columnKind": "unicodeCodePoints"`, `"executionSuccessful": false`,
		`"text": "notes.txt: not Python, a notebook or Go"`, `"informationUri": "https://`,
	} {
		if status != 2 || !strings.Contains(stdout, has) {
			t.Errorf("%d: no %s in %s", status, has, stdout)
		}
	}
	cell, err := json.Marshal(map[string]any{"cell_type": "code", "metadata": map[string]any{}, "outputs": []any{}, "source": leaking})
	r.check(err)
	r.file("book.ipynb", fmt.Appendf(nil, `{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[%s]}`, cell))
	if _, stdout, _ := command(t.Context(), "vet", "--sarif", "book.ipynb"); !strings.Contains(stdout, "book.ipynb: cell 1, line ") || strings.Contains(stdout, "startLine") {
		t.Errorf("%s", stdout)
	}
	for _, rule := range vet.Rules() {
		if status, stdout, _ := command(t.Context(), "vet", "--explain", strings.ToLower(rule.ID)); status != 0 || !strings.Contains(stdout, rule.Why) || !strings.Contains(stdout, "mended:") || strings.Contains(stdout, "in Go:") != rule.In.Has(vet.Go) {
			t.Errorf("%s: %d: %s", rule.ID, status, stdout)
		}
		if _, stdout, _ := command(t.Context(), "vet", "--rules"); !strings.Contains(stdout, rule.ID+"  "+rule.Name) {
			t.Errorf("%s is not listed", rule.ID)
		}
	}
}

func TestVetBadInput(t *testing.T) {
	r := newRoom(t)
	r.file("two.py", []byte("print 'a'\n"))
	r.file("notes.ipynb", []byte("{}"))
	r.file("train.py", []byte(leaking))
	r.file("empty/readme.txt", nil)
	r.file("foreign/r.ipynb", []byte(`{"cells":[],"metadata":{"kernelspec":{"language":"R"}}}`))
	r.file("huge.py", nil)
	r.check(os.Truncate("huge.py", 17<<20))
	r.check(os.Symlink("nowhere", "broken.py"))
	r.file("loose/main.go", []byte("package main\n"))
	for _, name := range []string{"a.txt", "a.md", "a.csv", "a.json", "README", "a/go.mod", "a.cu", "script"} {
		r.file(name, []byte("#!/bin/sh\n\x00\x01"))
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"two.py", "train.py"}, "two.py:1:1: print is a statement of Python 2"},
		{[]string{"notes.ipynb"}, "not a notebook of version 4"},
		{[]string{"huge.py"}, "huge.py: 17825792 bytes or more are no program that somebody wrote"},
		{[]string{"broken.py"}, "broken.py: no such file or folder"},
		{[]string{"none.py"}, "none.py: no such file or folder"},
		{[]string{"nodir"}, "nodir: no such file or folder"},
		{[]string{"nodir/"}, "nodir/: no such file or folder"},
		{[]string{"tran.py"}, "hint: did you mean train.py? "},
		{[]string{"train.pyy"}, "hint: did you mean train.py? "},
		{[]string{"empty/../tran.py"}, "hint: did you mean train.py? "},
		{[]string{"./none"}, "./none: no such file or folder"},
		{[]string{"none*.py"}, "none*.py: no such file or folder"},
		{[]string{"foreign"}, "foreign/r.ipynb has no programs in Python or Go"},
		{[]string{"a.txt"}, "error: a.txt: not Python, a notebook or Go\n"},
		{[]string{"a.md"}, "error: a.md: not Python, a notebook or Go\n"},
		{[]string{"a.csv"}, "error: a.csv: not Python, a notebook or Go\n"},
		{[]string{"a.json"}, "error: a.json: not Python, a notebook or Go\n"},
		{[]string{"README"}, "error: README: not Python, a notebook or Go\n"},
		{[]string{"a/go.mod"}, "error: a/go.mod: not Python, a notebook or Go\n"},
		{[]string{"a.cu"}, "error: a.cu: not Python, a notebook or Go\n"},
		{[]string{"script"}, "error: script: not Python, a notebook or Go\n"},
		{[]string{"a.txt", "train.py"}, "note: not read: a.txt: not Python, a notebook or Go\nerror: 1 of 2 could not be read"},
		{[]string{"loose"}, "hint: make a module there: go mod init "},
		{[]string{"./none/..."}, "./none/..."},
		{[]string{"train.py", "main.go"}, "main.go"},
		{[]string{"empty"}, "empty has no programs in Python or Go"},
		{[]string{"train.py", "--skip", "R99"}, `no rule is called "R99"`},
		{[]string{"--explain", "leak"}, `no rule is called "leak"`},
		{[]string{"--sarif", "--json", "train.py"}, "--sarif and --json"},
		{nil, "is missing"},
	} {
		status, _, stderr := command(t.Context(), append([]string{"vet"}, c.args...)...)
		if status != 2 || !strings.Contains(stderr, c.says) || strings.Count(stderr, "hint: ") != 1 {
			t.Errorf("%q: %d: %s", c.args, status, stderr)
		}
	}
}

// leakingGo keeps its losses, and does not look at errors.
const leakingGo = `package train

import (
	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/tensor"
)

func Run() {
	var losses []*tensor.Tensor
	for b := range data.Batches(tensor.Best(), data.Config{Size: 2}) {
		loss := b.X.Mean()
		losses = append(losses, loss)
		loss.Backward()
	}
	println(len(losses))
}
`

// goModule puts a program in Go into a module of its own, with a library beside it that has the names of ours and no more: go vet
// compiles and reads all that a program imports, which here is nothing of the standard library.
func goModule(r *room, dir, source string) {
	r.file("lib/go.mod", []byte("module github.com/warpline-ml/warpline\n\ngo 1.26\n"))
	r.file("lib/tensor/tensor.go", []byte(`package tensor

type Env struct{}

func Best() *Env { return &Env{} }

type Tensor struct{}

func (t *Tensor) Mean() *Tensor { return t }
func (t *Tensor) Keep() *Tensor { return t }
func (t *Tensor) Backward()     {}
`))
	r.file("lib/data/data.go", []byte(`package data

import "github.com/warpline-ml/warpline/tensor"

type Config struct{ Size int }

type Turn struct{ Env *tensor.Env }

type Pair struct {
	Turn
	X *tensor.Tensor
}

func Batches(env *tensor.Env, c Config) func(yield func(*Pair, error) bool) { return nil }
`))
	r.file(dir+"/go.mod", []byte(`module example.org/user

go 1.26

require github.com/warpline-ml/warpline v0.0.0

replace github.com/warpline-ml/warpline => `+strings.Repeat("../", 1+strings.Count(dir, "/"))+"lib\n"))
	r.file(dir+"/main.go", []byte(source))
}

// TestVetGo goes the whole way: this program runs go vet, which runs this program.
func TestVetGo(t *testing.T) {
	t.Setenv(beCommand, "1") // go vet starts this test as its tool
	r := newRoom(t)
	goModule(r, "mod", leakingGo)
	r.file("mod/train.py", []byte(leaking))
	for _, c := range []struct {
		args  []string
		finds string
	}{
		{[]string{"mod"}, "3 findings in 1 file and 1 package of Go"},
		{[]string{"./mod/..."}, "2 findings in 1 package of Go"},
		{[]string{"./mod/...", "--skip", "V29"}, "1 finding in 1 package of Go"},
		{[]string{"./mod/...", "--skip", "R13"}, "mod/main.go:12: losses collects values that end with their batch [R06 kept-across-steps, sure]"},
	} {
		status, stdout, stderr := command(t.Context(), append([]string{"vet"}, c.args...)...)
		if status != 1 || !strings.Contains(stdout, c.finds) {
			t.Errorf("%q: %d: %s%s", c.args, status, stdout, stderr)
		}
	}
	_, stdout, _ := command(t.Context(), "vet", "--json", "./mod/...")
	if lines := decode(t, stdout); len(lines) != 1 || lines[0]["file"] != "mod/main.go" || len(lines[0]["findings"].([]any)) != 2 {
		t.Errorf("%s", stdout)
	}
	if _, stdout, _ := command(t.Context(), "vet", "--sarif", "./mod/..."); !strings.Contains(stdout, `"uri": "mod/main.go"`) {
		t.Errorf("%s", stdout)
	}
	status, stdout, stderr := command(t.Context(), "vet", "--fix", "./mod/...")
	if status != 0 || !strings.Contains(stdout, "2 findings mended") || !strings.Contains(stdout, "0 findings in 1 package of Go") {
		t.Errorf("%d: %s%s", status, stdout, stderr)
	}
	data, err := os.ReadFile("mod/main.go")
	r.check(err)
	if text := string(data); !strings.Contains(text, "append(losses, loss.Keep())") || !strings.Contains(text, "for b, err := range") {
		t.Errorf("%s", text)
	}
}

// TestVetPaths: programs in Python are found wherever people have them, and those of others are passed over.
func TestVetPaths(t *testing.T) {
	r := newRoom(t)
	for _, name := range []string{"all/train.py", "all/deep/er/train.PYW"} {
		r.file(name, []byte(leaking))
	}
	for _, name := range []string{"lib/site-packages", "venv", ".venv", ".git", "node_modules", "testdata", "vendor", "__pycache__", "my-env/lib"} {
		r.file("all/"+name+"/other.py", []byte(leaking))
	}
	r.file("all/my-env/pyvenv.cfg", nil)
	r.file("all/julia.ipynb", []byte(`{"cells":[],"metadata":{"kernelspec":{"language":"julia"}}}`))
	r.file("script", []byte("#!/usr/bin/env python3\n"+leaking))
	r.file("crlf.py", []byte("\xef\xbb\xbf"+strings.ReplaceAll(leaking, "\n", "\r\n")))
	r.file("latin.py", []byte("# -*- coding: latin-1 -*-\n# \xe9\n"+leaking))
	r.file("empty.py", nil)
	r.check(os.Symlink("all", "link"))
	r.check(os.Symlink("script", "linked"))
	for _, c := range []struct {
		args  string
		finds string
	}{
		{"all", "2 findings in 2 files"},
		{"all/", "link/deep/er/train.PYW"},
		{"link", "2 findings in 2 files"},
		{"all/venv", "1 finding in 1 file"},
		{"all/*/*/*.PYW", "1 finding in 1 file"},
		{"all/*.py script linked crlf.py latin.py empty.py", "5 findings in 6 files"},
		{"-", "standard input:8: losses collects"},
		{"- all", "3 findings in 3 files"},
		{"crlf.py", "crlf.py:8: losses collects"},
		{"latin.py", "latin.py:10: losses collects"},
	} {
		root, out := newRoot(), &bytes.Buffer{}
		root.SetArgs(append([]string{"vet"}, strings.Fields(c.args)...))
		root.SetIn(strings.NewReader(leaking))
		root.SetOut(out)
		root.SetErr(out)
		err := root.ExecuteContext(t.Context())
		if !errors.Is(err, errFindings) || !strings.Contains(out.String(), strings.Replace(c.finds, "link/", "all/", 1)) {
			t.Errorf("%s: %v: %s", c.args, err, out)
		}
	}
	if status, stdout, stderr := command(t.Context(), "vet", "all", "--fix"); status != 1 || strings.Contains(stdout, "mended") || !strings.Contains(stderr, "--fix writes into programs in Go alone") {
		t.Errorf("%d: %s%s", status, stdout, stderr)
	}
	if status, stdout, stderr := command(t.Context(), "vet", "empty.py"); status != 0 || stdout != "0 findings in 1 file\n" {
		t.Errorf("%d: %s%s", status, stdout, stderr)
	}
	if status, _, stderr := command(t.Context(), "vet", "all/julia.ipynb"); status != 2 || !strings.Contains(stderr, "its language is julia") {
		t.Errorf("%d: %s", status, stderr)
	}
}

// TestVetMany: many programs are read at once, and told of in their order.
func TestVetMany(t *testing.T) {
	r := newRoom(t)
	var want []any
	for i := range 50 {
		name := fmt.Sprintf("p%02d.py", i)
		r.file(name, []byte(strings.Repeat("x = 1\n", 50*(50-i))+leaking))
		want = append(want, name)
	}
	r.file("p25.py", []byte("x = ("))
	status, stdout, _ := command(t.Context(), "vet", "--json", ".")
	var got []any
	for _, l := range decode(t, stdout) {
		got = append(got, l["file"])
		if len(l["findings"].([]any)) == 0 && l["error"] != "p25.py:1:5: '(' is not closed" {
			t.Error(l)
		}
	}
	if status != 2 || !slices.Equal(got, want) {
		t.Errorf("%d: %v", status, got)
	}
}

// TestVetGoBroken: what cannot be read is refused by its name, and the rest is read.
func TestVetGoBroken(t *testing.T) {
	t.Setenv(beCommand, "1")
	r := newRoom(t)
	goModule(r, "mod", leakingGo)
	goModule(r, "mod/inner", leakingGo)
	for name, source := range map[string]string{
		"mod/broken/broken.go":  "package broken\n\nvar X int = x\n",
		"mod/halved/halved.go":  "package halved\n\nfunc f( {\n",
		"mod/on/on.go":          "package on\n\nimport \"example.org/user/broken\"\n\nvar _ = broken.X\n",
		"mod/alien/alien.go":    "package alien\n\nimport \"example.net/alien\"\n\nvar _ = alien.X\n",
		"mod/tested/tested.go":  leakingGo,
		"mod/tested/t_test.go":  "package train\n\nimport _ \"example.net/alien\"\n",
		"mod/mains/train.go":    strings.Replace(leakingGo, "package train", "package main", 1) + "\nfunc main() { Run() }\n",
		"mod/mains/eval.go":     "package main\n\nfunc main() {}\n",
		"mod/parts/train.go":    leakingGo + "\nvar _ = other\n",
		"mod/parts/other.go":    "package train\n\nvar other = 1\n",
		"mod/tagged/train.go":   "//go:build ignore\n\n" + leakingGo,
		"mod/_passed/passed.go": "no Go",
	} {
		r.file(name, []byte(source))
	}
	const leak = "losses collects values that end with their batch"
	for _, c := range []struct {
		args   string
		status int
		says   []string
	}{
		{"mod", 2, []string{
			"mod/main.go:12: " + leak, "mod/inner/main.go:12: " + leak, "mod/tested/tested.go:12: " + leak, "mod/parts/train.go:12: " + leak,
			"8 findings in 4 packages of Go", "error: 6 of 10 could not be read",
			"note: not read: example.org/user/broken: mod/broken/broken.go:3:13: undefined: x\n",
			"note: not read: example.org/user/halved: mod/halved/halved.go:3:9: ",
			"note: not read: example.org/user/on: it imports example.org/user/broken, which does not compile: mod/broken/broken.go:3:13: undefined: x\n",
			"note: not read: example.org/user/alien: mod/alien/alien.go:3:8: no required module provides package example.net/alien; to add it: go get example.net/alien\n",
			"note: not read: example.org/user/tested: its tests: mod/alien/alien.go:3:8: no required module",
			"note: not read: example.org/user/mains: mod/mains/train.go:",
		}},
		{"mod/main.go mod/inner/main.go", 1, []string{"mod/main.go:12: " + leak, "mod/inner/main.go:12: " + leak, "4 findings in 2 files"}},
		{"mod/parts/train.go", 1, []string{"mod/parts/train.go:12: " + leak, "2 findings in 1 file\n"}},
		{"mod/mains/train.go", 1, []string{"mod/mains/train.go:12: " + leak}},
		{"mod/tagged/train.go", 1, []string{"mod/tagged/train.go:14: " + leak}},
		{"mod/broken/broken.go", 2, []string{"error: example.org/user/broken: mod/broken/broken.go:3:13: undefined: x\nhint: "}},
		{"example.net/alien/...", 2, []string{"error: example.net/alien/...: no packages of Go"}},
		{"--fix mod/main.go mod/tested", 2, []string{"4 findings mended\n0 findings in 1 file and 1 package of Go\n"}},
	} {
		status, stdout, stderr := command(t.Context(), append([]string{"vet"}, strings.Fields(c.args)...)...)
		for _, says := range c.says {
			if status != c.status || !strings.Contains(stdout+stderr, says) {
				t.Errorf("%q: %d, no %q in: %s%s", c.args, status, says, stdout, stderr)
			}
		}
	}
	t.Setenv("PATH", "")
	for arg, says := range map[string]string{"./mod/...": "go command is not there", "mod/main.go": "go command is not there", "trainer": "trainer: no such file or folder"} {
		if status, _, stderr := command(t.Context(), "vet", arg); status != 2 || !strings.Contains(stderr, says) {
			t.Errorf("%s: %d: %s", arg, status, stderr)
		}
	}
}

// TestVetImports: what a module does wrong that programs import is told once, where it is, in a folder and of a program alone.
func TestVetImports(t *testing.T) {
	r := newRoom(t)
	r.file("meter.py", []byte("import torch\nclass Mean:\n    def __init__(self):\n        self.sum = 0\n    def add(self, v):\n        self.sum += v\n"))
	for _, name := range []string{"a.py", "z.py"} {
		r.file(name, []byte(strings.Replace(strings.Replace(leaking, "losses = []", "import meter; losses = meter.Mean()", 1), "append(", "add(", 1)))
	}
	for _, args := range [][]string{{"."}, {"a.py"}, {"z.py", "meter.py", "a.py"}} {
		status, stdout, stderr := command(t.Context(), append([]string{"vet"}, args...)...)
		if status != 1 || strings.Count(stdout, "meter.py:6: self.sum adds up") != 1 || !strings.Contains(stdout, "\n1 finding in ") {
			t.Errorf("%q: %d: %s%s", args, status, stdout, stderr)
		}
	}
	_, stdout, _ := command(t.Context(), "vet", "--sarif", "a.py")
	if !strings.Contains(stdout, `"uri": "meter.py"`) {
		t.Error(stdout)
	}
}

// TestVetCutShort: that a walk was given up is said beside what was found until then, in each form.
func TestVetCutShort(t *testing.T) {
	r := newRoom(t)
	var b strings.Builder
	b.WriteString(leaking + "def f0():\n    g()\n")
	for i := range 7 {
		fmt.Fprintf(&b, "def f%d():\n%s", i+1, strings.Repeat(fmt.Sprintf("    f%d()\n", i), 8))
	}
	r.file("long.py", []byte(b.String()+"f7()\n"))
	const says = "long.py: not followed to its end"
	status, stdout, stderr := command(t.Context(), "vet", "long.py")
	if status != 1 || !strings.Contains(stderr, says) || !strings.Contains(stdout, "1 finding in 1 file") {
		t.Errorf("%d: %s%s", status, stdout, stderr)
	}
	for form, has := range map[string]string{"--json": `"note":"` + says, "--sarif": `"text": "` + says} {
		if status, stdout, _ := command(t.Context(), "vet", form, "long.py"); status != 1 || !strings.Contains(stdout, has) || !strings.Contains(stdout, "R06") {
			t.Errorf("%s: %d: %s", form, status, stdout)
		}
	}
}
