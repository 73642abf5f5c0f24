package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/internal/check"
	"github.com/warpline-ml/warpline/internal/cpu"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/device/devicetest"
	"github.com/warpline-ml/warpline/internal/testutil"
)

func init() {
	device.Register("subtracts", device.Engine{Open: func(device.Name) (device.Device, error) { return devicetest.Subtracting(cpu.New()), nil }})
}

func TestCheck(t *testing.T) {
	status, stdout, stderr := command(t.Context(), "check", "--device", "cpu", "--ops", "add,exp", "--short", "--seed", "7", "--json")
	lines := decode(t, stdout)
	if status != exitDone || len(lines) != 5 || !strings.Contains(stderr, "cases passed in ") || !strings.Contains(stderr, "(seed 7)") {
		t.Fatalf("status %d\n%s\n%s", status, stdout, stderr)
	}
	for i, l := range lines[:4] {
		has(t, l, "part", "name", "cases", "failed", "lowered", "worst", "seconds")
		if l["part"] != []string{"op", "op", "gradient", "gradient"}[i] || l["name"] != []string{"add", "exp", "add", "exp"}[i] || l["failed"] != 0.0 {
			t.Error(l)
		}
	}
	has(t, lines[4], "final", "device", "model", "memory", "seed", "cases", "failed", "seconds")
	_, stdout, _ = command(t.Context(), "check", "--device", "cpu", "--ops", "add", "--short", "--part", "2/3", "--json")
	if lines := decode(t, stdout); len(lines) != 3 || lines[2]["share"] != "2/3" || lines[0]["part"] != "op" {
		t.Error(stdout)
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
	if !testutil.Alone(t) { // what is compiled for a simulated card would slow other tests' collections
		return
	}
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
	if r.Command != "warpline check --device=sim:0 --ops=abs --short --seed=7 --record --json" || r.Warpline == "" || r.CUDA == "" || len(r.Rows) != 2 || len(r.Times) == 0 || len(r.Probes) != len(lines)-3-len(r.Times) {
		t.Errorf("%q: %d rows, %d probes, %d times, %d lines", r.Command, len(r.Rows), len(r.Probes), len(r.Times), len(lines))
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
	status, stdout, stderr := command(ctx, "check", "--device", "sim:0", "--record=kept.json", "--seed", "7", "--json")
	if status != exitInterrupted || !strings.Contains(stderr, "interrupted: the ") || !strings.Contains(stderr, "kept.json has the record of what was done") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	lines := decode(t, stdout)
	if last := lines[len(lines)-1]; last["record"] != "kept.json" || last["interrupted"] != true {
		t.Error(last)
	}
	var r check.Record
	raw, err := os.ReadFile("kept.json")
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil || !r.Cut || len(r.Rows) != len(lines)-1 {
		t.Errorf("%v, %s", err, raw)
	}
}

// TestCheckInterruptedUnwritable: a record that cannot be written is not said to be there.
func TestCheckInterruptedUnwritable(t *testing.T) {
	newRoom(t)
	if err := os.Mkdir("taken", 0o777); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	status, stdout, stderr := command(ctx, "check", "--device", "sim:0", "--record=taken", "--json")
	if status != exitInterrupted || strings.Contains(stdout, `"record"`) || !strings.Contains(stderr, "no record was written: ") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
}

func TestPiece(t *testing.T) {
	for args, want := range map[string]string{"": " after this step", "--json check --ops add": " after this part", "check": " after this part",
		"train --out check": " after this step", "sim run check": ""} {
		if got := piece(strings.Fields(args)); got != want {
			t.Errorf("%s: stopping%s, want stopping%s", args, got, want)
		}
	}
}

// TestCheckRefuses what would say nothing about a device, with a hint about the very mistake.
func TestCheckRefuses(t *testing.T) {
	newRoom(t)
	t.Setenv("WARPLINE_SIM", "check=all")
	for args, want := range map[string]string{
		"--device null:h100-80 --ops add":                           "null:h100-80 computes nothing",
		"--device cpu --ops=":                                       "--ops names no operation",
		"--device cpu --ops add --skip add":                         "--skip leaves none",
		"--device cpu --ops add --part 4/3":                         "hint: give --part I/N with I from 1 to N",
		"--device cpu --ops add --part=":                            `--part "" is no share`,
		"--device cpu --ops reshape --short --seed 1 --part 99/100": "part 99/100 has no case",
		"--device cpu --ops matmull":                                "hint: did you mean matmul? ",
		"--device cpu --record foo.json":                            "--record=foo.json\n",
		"--device cpu foo.json":                                     `"foo.json" is one argument too many`,
		"cpu":                                                       "did you mean --device cpu? ",
		"short":                                                     "did you mean --short? ",
		"--device sim:8 --ops add":                                  "sim:a100-80x16:8",
		// A machine of its own: what is opened with checks keeps them in the tests that follow.
		"--device sim:a100-80x2:0 --ops add --record": "unset WARPLINE_SIM",
	} {
		status, stdout, stderr := command(t.Context(), append([]string{"check"}, strings.Fields(args)...)...)
		if status != exitFailed || stdout != "" || strings.Count(stderr, "\n") != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, no %q in\n%s%s", args, status, want, stdout, stderr)
		}
	}
	if left, _ := filepath.Glob("*"); len(left) != 0 {
		t.Error(left)
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
	if !testutil.Alone(t) { // what is compiled for a simulated card would slow other tests' collections
		return
	}
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
	k.progress("check")(1, 4, "add, case 2") // too soon to be seen
	if text := b.String(); !strings.HasPrefix(text, "\r\x1b[Kcheck") || !strings.Contains(text, "25 %") || !strings.HasSuffix(text, "add") || strings.Contains(text, "\n") {
		t.Errorf("%q", text)
	}
	b.Reset()
	k.s.shown = time.Time{}
	k.progress("check")(1, 4, "add, case 3")
	k.progress("check")(2, 4, "sub")
	if text := b.String(); strings.Count(text, "\r") != 2 || !strings.Contains(text, "add, case 3") || !strings.HasSuffix(text, "sub") {
		t.Errorf("%q", text)
	}
}
