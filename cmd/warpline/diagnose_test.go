package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/kineto/tracetest"
)

// TestDiagnose walks the command: its exit status, what people see, and its JSON.
func TestDiagnose(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	oom := write("oom.txt", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 222.41 GiB. GPU 0 has a total capacity of 23.56 GiB of which 22.66 GiB is free.\n")
	healthy := write("healthy.log", "step 1 loss 2\nstep 2 loss 1\n")
	prose := write("prose.txt", "It was a dark and stormy night.\n")
	for _, c := range []struct {
		name   string
		args   []string
		status int
		out    string
		err    string
	}{
		{"found", []string{oom}, exitFound, "1. one request of 222 GiB is more than the whole card has", ""},
		{"healthy", []string{healthy}, exitDone, "nothing found that is wrong", ""},
		{"unknown", []string{prose}, exitFailed, "", "hint: give it whole, "},
		{"nothing to judge", []string{write("odd.json", `[{"ph": "X", "name": "fusion", "ts": 1, "dur": 2}]`)}, exitFailed, "it has nothing that could be judged", "nothing could be judged"},
		{"broken off", []string{write("cut.json", `{"traceEvents":[}`)}, exitFailed, "", "not JSON from byte 16"},
		{"missing", []string{filepath.Join(dir, "missing")}, exitFailed, "", "hint: "},
		{"one of two cannot be read", []string{oom, prose}, exitFailed, "222 GiB", "nothing in it is known"},
		{"no argument", nil, exitFailed, "", "as in: warpline diagnose train.log"},
		{"bad size", []string{oom, "--batch", "-1"}, exitFailed, "", "whole numbers from 1 up"},
	} {
		var stdout, stderr bytes.Buffer
		status := execute(t.Context(), append([]string{"diagnose"}, c.args...), &stdout, &stderr)
		if status != c.status || !strings.Contains(strings.Join(strings.Fields(stdout.String()), " "), c.out) || !strings.Contains(stderr.String(), c.err) {
			t.Errorf("%s: status %d\n%s\n%s", c.name, status, &stdout, &stderr)
		}
	}

	var stdout, stderr bytes.Buffer
	if status := execute(t.Context(), []string{"diagnose", "--json", oom, healthy}, &stdout, &stderr); status != exitFound {
		t.Fatal(status, stderr.String())
	}
	var kinds []string
	for dec := json.NewDecoder(&stdout); dec.More(); {
		var line struct{ Kind string }
		if err := dec.Decode(&line); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, line.Kind)
	}
	if got := strings.Join(kinds, " "); got != "error job-log group" {
		t.Error(got)
	}
}

// TestVerdictStandsFirst: of a folder people read first what its files say together, then what each says; readers of JSON
// get each file's line first.
func TestVerdictStandsFirst(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"rank0.log": "[rank0]:[E1123 02:42:10.408271257 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, NumelIn=46, NumelOut=46, Timeout(ms)=600000) ran for 600060 milliseconds before timing out.\n",
		"rank1.log": "[2026-11-23 02:30:11,100] INFO step 1\nTraceback (most recent call last):\n  File \"train.py\", line 88, in main\n    y = model(x)\nRuntimeError: CUDA error: uncorrectable ECC error encountered\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var stdout, stderr bytes.Buffer
	if status := execute(t.Context(), []string{"diagnose", dir}, &stdout, &stderr); status != exitFound {
		t.Fatal(status, stderr.String())
	}
	together, file := strings.Index(stdout.String(), "1. drain this node: rank 1"), strings.Index(stdout.String(), "rank0.log: ")
	if together < 0 || file < together {
		t.Errorf("the verdict is at %d, the first file at %d:\n%s", together, file, &stdout)
	}
	stdout.Reset()
	execute(t.Context(), []string{"diagnose", "--json", dir}, &stdout, &stderr)
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[2], `"kind":"group"`) {
		t.Errorf("%q", lines)
	}
}

// TestWorstStandsWhole: of traces that show nothing together, the one with most to gain is told with what to do, the others in a
// line.
func TestWorstStandsWhole(t *testing.T) {
	dir := t.TempDir()
	for name, o := range map[string]tracetest.Options{"rank0.json": {Steps: 4, Loader: 300_000_000}, "rank1.json": {Steps: 4, Loader: 600_000_000}} {
		if err := os.WriteFile(filepath.Join(dir, name), tracetest.ResNet(o), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var stdout, stderr bytes.Buffer
	if status := execute(t.Context(), []string{"diagnose", dir}, &stdout, &stderr); status != exitFound {
		t.Fatal(status, stderr.String())
	}
	text := stdout.String()
	brief, whole := strings.Index(text, "rank0.json: R17 "), strings.Index(text, "rank1.json: trace")
	if brief < 0 || whole < brief || strings.Count(text, "do:") != 1 {
		t.Errorf("rank 0 in a line at %d, rank 1 at %d:\n%s", brief, whole, text)
	}
}
