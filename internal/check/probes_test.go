package check

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/internal/cpu"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/engines"
	"github.com/warpline-ml/warpline/internal/ledger"
)

// TestProbesHold: the simulator behaves as the ledger says when it is asked through the driver's table, and all probes
// run on the later card.
func TestProbesHold(t *testing.T) {
	all := len(ledger.Probes())
	for name, others := range map[string]string{"sim:0": NotRun, "sim:h100-80": Holds} {
		answers, err := RunProbes(t.Context(), name, nil)
		if err != nil || len(answers) != all || all < 100 {
			t.Fatalf("%s: %d answers to %d probes, %v", name, len(answers), all, err)
		}
		for _, a := range answers {
			if a.Status != Holds && (a.Status != others || !strings.Contains(a.Why, "sm_90")) || a.Status == Holds && a.Words == "" {
				t.Errorf("%s: %+v", name, a)
			}
		}
		if text := ProbesText(answers, 100); !strings.Contains(text, "of ") || strings.Contains(text, "DIFFERS") || HasFailed(answers) {
			t.Error(text)
		}
	}
}

// odd is a card that answers every probe with ones, and breaks at the tenth.
type odd struct {
	device.Device
	asked int
}

func (o *odd) DriverVersion() (int, error) { return 12060, nil }

func (o *odd) Info() device.Info {
	i := o.Device.Info()
	i.Compute = [2]int{8, 6}
	return i
}

func (o *odd) Probe(_ []byte, _ string, _, _ int, _, out []byte) error {
	switch o.asked++; o.asked {
	case 3:
		return &driver.Error{Call: "cuModuleLoadDataEx", Result: driver.UnsupportedPTXVersion}
	case 4:
		return &driver.Error{Call: "cuModuleLoadDataEx", Result: driver.InvalidPTX}
	case 10:
		return &driver.Error{Call: "cuStreamSynchronize", Result: driver.IllegalAddress}
	}
	for i := range out {
		out[i] = 1
	}
	return nil
}

func init() {
	device.Register("odd", device.Engine{Open: func(device.Name) (device.Device, error) { return &odd{Device: cpu.New()}, nil }})
}

func TestProbesDiffer(t *testing.T) {
	_, dev, err := open("odd:1")
	if err != nil {
		t.Fatal(err)
	}
	dev.(*odd).asked = 0 // by an earlier run of the test
	var last int
	answers, err := RunProbes(t.Context(), "odd:1", func(done, all int, name string) { last = done + 1 })
	if err != nil || last != len(ledger.Probes()) || len(answers) != last {
		t.Fatal(err, last, len(answers))
	}
	for i, a := range answers {
		want := Differs
		switch {
		case i == 2 || i >= 10:
			want = NotRun
		case i == 3 || i == 9:
			want = Failed
		}
		if a.Status != want || a.Why == "" || (a.Words != "") != (want == Differs) {
			t.Errorf("%d: %+v", i, a)
		}
	}
	text := ProbesText(answers, 100)
	if !HasFailed(answers) || strings.Count(text, "NOT RUN: ") != 2 || !strings.Contains(text, "DIFFERS "+answers[0].Probe+" (") || !strings.HasPrefix(text, fmt.Sprintf("\n%d probes of what the simulator assumes: 0 hold, 7 differ, 2 failed, %d were not run\n", last, last-9)) {
		t.Error(text)
	}
}

// TestOneProbe is in the singular.
func TestOneProbe(t *testing.T) {
	text := ProbesText([]Answer{{Status: Holds}, {Probe: "p", Status: NotRun, Why: "the card is no sm_90a"}}, 100)
	if want := "\n2 probes of what the simulator assumes: 1 holds, 1 was not run\nNOT RUN: the card is no sm_90a: p\n"; text != want {
		t.Errorf("%q, want %q", text, want)
	}
}

// TestRecordableUnchecked: probes that do what checks forbid are refused ahead of them.
func TestRecordableUnchecked(t *testing.T) {
	t.Setenv(engines.SimEnv, "")
	if err := Recordable("sim:0"); err != nil { // makes the machine that other tests share: without checks
		t.Fatal(err)
	}
	for value, ok := range map[string]bool{"": true, "check=none": true, "check=memcheck,seed=3": true, "check=all": false, "late,check=initcheck": false} {
		t.Setenv(engines.SimEnv, value)
		if err := Recordable("sim:0"); (err == nil) != ok {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestRunsOn(t *testing.T) {
	for _, c := range []struct {
		target string
		major  int
		minor  int
		ok     bool
	}{{"sm_80", 8, 0, true}, {"sm_80", 9, 0, true}, {"sm_90", 8, 9, false}, {"sm_90a", 9, 0, true}, {"sm_90a", 10, 0, false}, {"sm_100", 9, 0, false}, {"sm_x", 9, 0, false}} {
		if got, ok := runsOn(".version 8.0\n.target "+c.target+"\n.address_size 64\n", [2]int{c.major, c.minor}); ok != c.ok || got != c.target {
			t.Errorf("%+v: %s, %v", c, got, ok)
		}
	}
	if _, ok := runsOn("", [2]int{9, 0}); ok {
		t.Error("no target")
	}
}

// TestRecord writes a record and reads what tools would.
func TestRecord(t *testing.T) {
	rep, err := Run(t.Context(), Config{Device: "odd:2", Seed: 3, Short: true, Ops: []string{"abs"}})
	if err != nil {
		t.Fatal(err)
	}
	answers, err := RunProbes(t.Context(), "odd:2", nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRecord(rep, &Torch{Version: "2", Device: "cpu", Rows: []Comparison{{Job: "gemm", Allowed: 1}}}, answers)
	if err != nil {
		t.Fatal(err)
	}
	r.Warpline, r.Command = "v1", "warpline check"
	path := filepath.Join(t.TempDir(), "r.json")
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Warpline, Command, System, CUDA, Device, Model, Compute string
		Date                                                    time.Time
		Seed                                                    uint64
		Cases                                                   int
		Rows                                                    []Row
		Torch                                                   Torch
		Probes                                                  []Answer
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if got.Warpline != "v1" || got.Command != "warpline check" || got.CUDA != "12.6" || got.Device != "odd:2" || got.Compute != "8.6" || got.Model == "" ||
		time.Since(got.Date) > time.Hour || got.Seed != 3 || got.Cases != rep.Cases || len(got.Rows) != 2 || got.Rows[0] != rep.Rows[0] ||
		len(got.Torch.Rows) != 1 || len(got.Probes) != len(answers) || got.Probes[0] != answers[0] {
		t.Errorf("%+v", got)
	}
	if name := FileName("sim:a100-80x4:2", time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)); name != "warpline-check-sim-a100-80x4-2-20260506-070809.json" {
		t.Error(name)
	}
	if Writable(path) != nil || Writable(path+"/x.json") == nil || Recordable("cpu") == nil || Recordable("nowhere") == nil || Comparable("null:0") == nil || Comparable("cpu") != nil {
		t.Error("what can be done is not told from what cannot")
	}
}
