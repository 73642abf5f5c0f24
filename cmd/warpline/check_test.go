package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/check"
	"github.com/warpline-ml/warpline/internal/cpu"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// subtracts is a CPU that subtracts where it should add.
type subtracts struct{ device.Device }

func (s subtracts) Prepare(op ir.Op) (*device.Kernel, error) {
	asked := op
	if op.Code == ir.Add {
		op.Code = ir.Sub
	}
	k, err := s.Device.Prepare(op)
	if err == nil {
		k.Op = asked
	}
	return k, err
}

func init() {
	device.Register("subtracts", device.Engine{Open: func(device.Name) (device.Device, error) { return subtracts{cpu.New()}, nil }})
}

func TestCheck(t *testing.T) {
	status, stdout, stderr := command(t.Context(), "check", "--device", "cpu", "--ops", "add,exp", "--short", "--seed", "7", "--json")
	lines := decode(t, stdout)
	if status != exitDone || len(lines) != 5 || !strings.Contains(stderr, "cases passed in ") || !strings.Contains(stderr, "(seed 7)") {
		t.Fatalf("status %d\n%s\n%s", status, stdout, stderr)
	}
	for i, l := range lines[:4] {
		has(t, l, "part", "name", "cases", "failed", "worst", "seconds")
		if l["part"] != []string{"op", "op", "gradient", "gradient"}[i] || l["name"] != []string{"add", "exp", "add", "exp"}[i] || l["failed"] != 0.0 {
			t.Error(l)
		}
	}
	has(t, lines[4], "final", "device", "model", "memory", "seed", "cases", "failed", "seconds")
	if status, _, stderr := command(t.Context(), "check", "--device", "cpu", "--ops", "add", "--skip", "add"); status != exitDone || stderr != "" {
		t.Errorf("nothing to do: status %d\n%s", status, stderr)
	}
	if _, stdout, _ := command(t.Context(), "check", "--list"); !strings.HasPrefix(stdout, check.Ops()[0]+"\n") || strings.Count(stdout, "\n") != len(check.Ops()) {
		t.Error(stdout)
	}
	if _, stdout, _ := command(t.Context(), "check", "--help"); !strings.Contains(stdout, "Examples:\n  warpline check ") {
		t.Error(stdout)
	}
	if status := execute(t.Context(), []string{"check", "--device", "cpu", "--ops", "add", "--short"}, &full{0}, &bytes.Buffer{}); status != exitFailed {
		t.Errorf("a full disk: status %d", status)
	}
}

// TestCheckFails: a device that computes wrongly gives the status 1 and the case.
func TestCheckFails(t *testing.T) {
	status, stdout, stderr := command(t.Context(), "check", "--device", "subtracts", "--ops", "mul,add", "--short", "--seed", "7")
	if status != exitFound || stderr != "" || !strings.Contains(stdout, "FAILED op add: ") || !strings.Contains(stdout, "add/f32/0 ") || !strings.Contains(stdout, "--seed 7") || strings.Contains(stdout, "FAILED op mul") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
}

// TestCheckRecord keeps a record under the name it is given by itself.
func TestCheckRecord(t *testing.T) {
	newRoom(t)
	status, stdout, stderr := command(t.Context(), "check", "--device", "sim:0", "--ops", "abs", "--short", "--seed", "7", "--record", "--json")
	if status != exitDone {
		t.Fatalf("status %d\n%s\n%s", status, stdout, stderr)
	}
	found, err := filepath.Glob("warpline-check-sim-0-*.json")
	if err != nil || len(found) != 1 || !strings.Contains(stderr, found[0]+" has the record") {
		t.Fatalf("%v, %v\n%s", found, err, stderr)
	}
	lines := decode(t, stdout)
	last := lines[len(lines)-1]
	if last["record"] != found[0] || last["compute"] != "8.0" || last["final"] != true {
		t.Error(last)
	}
	raw, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	var r check.Record
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	if r.Command != "warpline check --device=sim:0 --ops=abs --short --seed=7 --record --json" || r.Warpline == "" || r.CUDA == "" || len(r.Rows) != 2 || len(r.Probes) != len(lines)-3 {
		t.Errorf("%+v", r)
	}
	for i, p := range r.Probes {
		if p.Status != check.Holds && p.Status != check.NotRun || lines[2+i]["probe"] != p.Probe {
			t.Errorf("%+v\n%v", p, lines[2+i])
		}
	}
}

func TestCheckInterrupted(t *testing.T) {
	newRoom(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	status, stdout, stderr := command(ctx, "check", "--device", "sim:0", "--record", "--seed", "7")
	if left, _ := filepath.Glob("*"); status != exitInterrupted || stderr != "" || !strings.Contains(stdout, "interrupted: the ") || len(left) != 0 {
		t.Errorf("status %d, files %v\n%s%s", status, left, stdout, stderr)
	}
}

// TestCheckPython: that there is no PyTorch is said before the long part.
func TestCheckPython(t *testing.T) {
	t.Setenv(check.PythonEnv, "no-such-python")
	status, stdout, stderr := command(t.Context(), "check", "--device", "cpu", "--torch")
	if status != exitFailed || stdout != "" || strings.Count(stderr, "\n") != 2 || !strings.Contains(stderr, "no-such-python") || !strings.Contains(stderr, "hint: pip install torch") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
}

// TestCheckPythonEnds: what was found is kept when PyTorch ends in the middle; "true" answers the import, and no more.
func TestCheckPythonEnds(t *testing.T) {
	newRoom(t)
	t.Setenv(check.PythonEnv, "true")
	status, stdout, stderr := command(t.Context(), "check", "--device", "sim:0", "--ops", "add", "--short", "--record=kept.json", "--torch")
	if status != exitFailed || !strings.Contains(stdout, "kept.json has the record") || !strings.Contains(stderr, "true has ended without a word") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	if text, err := os.ReadFile("kept.json"); err != nil || !bytes.Contains(text, []byte(`"probe"`)) {
		t.Errorf("%s: %v", text, err)
	}
}

// TestCheckProgress draws one line on a terminal, and nothing elsewhere.
func TestCheckProgress(t *testing.T) {
	var b bytes.Buffer
	k := &checking{s: &screen{text: &b, width: 80}}
	k.progress("check")(1, 4, "add")
	if b.Len() != 0 {
		t.Errorf("%q", b.String())
	}
	k.s.terminal = true
	k.progress("check")(1, 4, "add")
	if text := b.String(); !strings.HasPrefix(text, "\r\x1b[Kcheck") || !strings.Contains(text, "25 %") || !strings.HasSuffix(text, "add") || strings.Contains(text, "\n") {
		t.Errorf("%q", text)
	}
}
