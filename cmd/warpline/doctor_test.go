package main

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/doctor"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestDoctorReplays: a machine's facts come back from a file to the same diagnosis, in text and as one object of JSON.
func TestDoctorReplays(t *testing.T) {
	newRoom(t)
	facts := &doctor.Facts{Version: doctor.Version, OS: "linux", Arch: "amd64", PCI: []doctor.PCI{}}
	if err := facts.Write("facts.json"); err != nil {
		t.Fatal(err)
	}
	status, text, _ := command(t.Context(), "doctor", "--from", "facts.json")
	if status != exitFound || !strings.Contains(text, "D01  no NVIDIA card is here") || !strings.Contains(text, "untested because of it") {
		t.Errorf("status %d:\n%s", status, text)
	}
	status, out, _ := command(t.Context(), "doctor", "--from", "facts.json", "--json")
	var d doctor.Diagnosis
	if err := json.Unmarshal([]byte(out), &d); err != nil || status != exitFound || strings.Count(out, "\n") != 1 {
		t.Fatalf("status %d, %v: %s", status, err, out)
	}
	if d.Kind != "doctor" || len(d.Findings) == 0 || d.Findings[0].Rule != "D01" || d.Verdict.Broken != "P1" || d.Verdict.Command == "" {
		t.Errorf("%+v", d)
	}
}

// TestDoctorRefuses: what is no facts is an error with a hint, and no diagnosis.
func TestDoctorRefuses(t *testing.T) {
	r := newRoom(t)
	r.file("empty.json", nil)
	r.file("list.json", []byte("[1]"))
	r.file("later.json", []byte(`{"version":99}`))
	t.Setenv(beCommand, "1")
	for _, args := range [][]string{{"--from", "empty.json"}, {"--from", "list.json"}, {"--from", "later.json"}, {"--from", "missing.json"}, {"--pid", "-3"}, {"--pid", "999999999"}, {"--from", "empty.json", "--deep"}, {"--device", "sim:0"}, {"--from", "facts.json", "--pid", "1"}} {
		status, out, stderr := command(t.Context(), append([]string{"doctor"}, args...)...)
		if status != exitFailed || out != "" || !strings.Contains(stderr, "hint: ") {
			t.Errorf("%v: status %d, %q, %q", args, status, out, stderr)
		}
	}
}

// TestDoctorSaves: the facts of this machine, of its files alone, are kept and replayed.
func TestDoctorSaves(t *testing.T) {
	newRoom(t)
	t.Setenv(beCommand, "1") // the children are this binary
	if status, _, stderr := command(t.Context(), "doctor", "--save", "facts.json"); status == exitFailed {
		t.Fatal(stderr)
	}
	raw, err := os.ReadFile("facts.json")
	if err != nil || !strings.Contains(string(raw), `"version": 1`) {
		t.Fatal(err, string(raw))
	}
	if status, _, stderr := command(t.Context(), "doctor", "--from", "facts.json"); status == exitFailed {
		t.Error(stderr)
	}
}

// TestDoctorBundles: a bundle replays, and has no path of this machine.
func TestDoctorBundles(t *testing.T) {
	r := newRoom(t)
	t.Setenv(beCommand, "1")
	t.Setenv("CUDA_CACHE_PATH", r.dir)
	status, _, stderr := command(t.Context(), "doctor", "--bundle", "ticket.json", "--pid", strconv.Itoa(os.Getpid()))
	if status == exitFailed || !strings.Contains(stderr, "look at it before it goes out") {
		t.Fatalf("status %d: %s", status, stderr)
	}
	raw, err := os.ReadFile("ticket.json")
	if err != nil || strings.Contains(string(raw), r.dir) || strings.Contains(string(raw), t.Name()) {
		t.Errorf("%v: %s", err, raw)
	}
	if status, _, stderr := command(t.Context(), "doctor", "--from", "ticket.json"); status == exitFailed {
		t.Error(stderr)
	}
}

// TestDoctorDeep: --deep says what it will do before it does, and what it ran is in the diagnosis.
func TestDoctorDeep(t *testing.T) {
	if testing.Short() {
		t.Skip("the simulated GPU takes seconds")
	}
	if !testutil.Alone(t) { // what is compiled for a simulated card would slow other tests' collections
		return
	}
	newRoom(t)
	t.Setenv(beCommand, "1")
	status, out, stderr := command(t.Context(), "doctor", "--deep", "--device", "sim:0", "--json", "--save", "facts.json")
	if status == exitFailed || !strings.Contains(stderr, "--deep will make a context on sim:0") {
		t.Fatalf("status %d: %s", status, stderr)
	}
	var d doctor.Diagnosis
	if err := json.Unmarshal([]byte(out), &d); err != nil || !strings.Contains(strings.Join(d.Checked, ";"), "kernels compute and copies arrive") {
		t.Errorf("%v: %v", err, d.Checked)
	}
	f, err := os.Open("facts.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	facts, err := doctor.Read("facts.json", f)
	if err != nil || !slices.ContainsFunc(facts.Deep, func(d doctor.Deep) bool { return d.Name == "matmul" && d.Cases > 0 && d.Failed == 0 }) {
		t.Errorf("%v: %+v", err, facts)
	}
}
