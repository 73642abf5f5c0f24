package main

import (
	"encoding/json"
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
		if status, stdout, _ := command(t.Context(), "vet", "--explain", strings.ToLower(rule.ID)); status != 0 || !strings.Contains(stdout, rule.Why) || !strings.Contains(stdout, "mended:") {
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
		{[]string{"./..."}, "programs in Go are not read"},
		{[]string{"train.py", "main.go"}, "main.go: programs in Go are not read"},
		{[]string{"empty"}, "empty has no programs in Python"},
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
