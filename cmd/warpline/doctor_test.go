package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/doctor"
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
	for _, args := range [][]string{{"--from", "empty.json"}, {"--from", "list.json"}, {"--from", "later.json"}, {"--from", "missing.json"}, {"--pid", "-3"}} {
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
