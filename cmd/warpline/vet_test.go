package main

import (
	"encoding/json"
	"os"
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
	if status, stdout, _ := command(t.Context(), "vet", "."); status != 1 || !strings.Contains(stdout, "1 finding in 2 files") {
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
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"two.py", "train.py"}, "two.py:1:1: print is a statement of Python 2"},
		{[]string{"notes.ipynb"}, "not a notebook of version 4"},
		{[]string{"none.py"}, "none.py"},
		{[]string{"./none/..."}, "./none/..."},
		{[]string{"train.py", "main.go"}, "main.go"},
		{[]string{"empty"}, "empty has no programs in Python, and no module of Go"},
		{[]string{"train.py", "--skip", "R99"}, `no rule is called "R99"`},
		{[]string{"--explain", "leak"}, `no rule is called "leak"`},
		{[]string{"--sarif", "--json", "train.py"}, "--sarif and --json"},
		{nil, "is missing"},
	} {
		status, _, stderr := command(t.Context(), append([]string{"vet"}, c.args...)...)
		if status != 2 || !strings.Contains(stderr, c.says) {
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

replace github.com/warpline-ml/warpline => ../lib
`))
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

// TestVetGoBroken: what does not compile is refused by name, and the rest is read.
func TestVetGoBroken(t *testing.T) {
	t.Setenv(beCommand, "1")
	r := newRoom(t)
	goModule(r, "mod", leakingGo)
	r.file("mod/broken/broken.go", []byte("package broken\n\nfunc f() int { return x }\n"))
	r.file("mod/halved/halved.go", []byte("package halved\n\nfunc f( {\n"))
	status, stdout, stderr := command(t.Context(), "vet", "mod")
	if status != 2 || !strings.Contains(stderr, "broken/broken.go:3") || !strings.Contains(stderr, "halved.go:3") {
		t.Errorf("%d: %s%s", status, stdout, stderr)
	}
	if status, stdout, stderr := command(t.Context(), "vet", "mod", "./mod/broken"); status != 2 || !strings.Contains(stderr, "undefined: x") {
		t.Errorf("%d: %s%s", status, stdout, stderr)
	}
	t.Setenv("PATH", "")
	if status, _, stderr := command(t.Context(), "vet", "./mod/..."); status != 2 || !strings.Contains(stderr, "go command is not there") {
		t.Errorf("%d: %s", status, stderr)
	}
}
