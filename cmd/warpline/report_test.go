package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/onepage"
)

func TestReportIsWrittenEverywhere(t *testing.T) {
	newRoom(t)
	t.Setenv(beCommand, "1") // the children of doctor are this binary
	code, out, errs := command(t.Context(), "report", "--device", "cpu", "--html", "r.html", "--markdown", "r.md", "--json")
	var r onepage.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != map[bool]int{true: exitFound, false: exitDone}[r.Wrong()] || strings.Count(out, "\n") != 1 {
		t.Fatalf("%d, %v\n%s\n%s", code, err, out, errs)
	}
	for name, begins := range map[string]string{"r.html": "<!DOCTYPE html>", "r.md": "# "} {
		raw, err := os.ReadFile(name)
		if err != nil || !strings.HasPrefix(string(raw), begins) || !strings.Contains(string(raw), r.Environment[0].Text) {
			t.Errorf("%s: %v, %.80q", name, err, raw)
		}
	}
	if r.Device != "cpu" || r.Operation == nil || r.Training == nil || r.Training.Strip == nil || r.Verdict == nil {
		t.Errorf("%s", out)
	}
}

// With files nothing is measured, and nothing said of the machine, unless it is asked for.
func TestReportOfFiles(t *testing.T) {
	newRoom(t)
	if err := os.WriteFile("trace.json", []byte(`{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k<script>", "pid": 0, "tid": 7, "ts": 1, "dur": 2, "args": {"device": 0, "stream": 7}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := command(t.Context(), "report", "trace.json", "--html", "r.html", "--json")
	var r onepage.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitDone || r.Device != "" || r.Operation != nil || len(r.Files) != 1 || len(r.Pictures) != 1 {
		t.Fatalf("%d, %v\n%s\n%s", code, err, out, errs)
	}
	page, err := os.ReadFile("r.html")
	if err != nil || strings.Contains(string(page), "<script") || !strings.Contains(string(page), "<svg") {
		t.Errorf("%v: %s", err, page)
	}
	if err := os.WriteFile("kept.html", []byte("as it was"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := command(t.Context(), "report", "nowhere.json", "--html", "kept.html"); code != exitFailed {
		t.Errorf("%d, %s", code, errs)
	}
	if kept, err := os.ReadFile("kept.html"); err != nil || string(kept) != "as it was" {
		t.Errorf("%v, %s", err, kept)
	}
}

func TestReportRefuses(t *testing.T) {
	newRoom(t)
	t.Setenv(beCommand, "1")
	for _, c := range []struct{ args, says string }{
		{"report --device gpu", "gpu"}, {"report --device cuda:99", "cuda:99"}, {"report nowhere.log", "nowhere.log"}, {"report --device cpu --html nowhere/r.html", "nowhere"},
		{"report --html .", "folder"}, {"report --html r --markdown r", "--markdown"},
	} {
		if code, out, errs := command(t.Context(), strings.Fields(c.args)...); code != exitFailed || out != "" || !strings.Contains(errs, c.says) || !strings.Contains(errs, "hint: ") {
			t.Errorf("%s: %d, %q, %q", c.args, code, out, errs)
		}
	}
}
