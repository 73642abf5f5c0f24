package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/train"
)

// TestProfile: a profiled run shows its screen, and profile shows it again, by all rows and in order of all columns, for people
// and as JSON.
func TestProfile(t *testing.T) {
	newRoom(t)
	status, stdout, stderr := command(t.Context(), strings.Fields("train mlp --steps 5 --batch 16 --profile --profile-after 2 --profile-steps 3 --out run --device cpu")...)
	if status != exitDone || !strings.Contains(stdout, "profile from step 3 on: 3 steps") || !strings.Contains(stdout, "run/profile has the trace") {
		t.Fatalf("status %d\n%s\n%s", status, stdout, stderr)
	}
	for _, from := range []string{"run", "run/profile", "run/profile/profile.json"} {
		status, again, stderr := command(t.Context(), "profile", from)
		if _, screen, _ := strings.Cut(stdout, "on: "); status != exitDone || !strings.HasPrefix(screen, again) {
			t.Errorf("%s: status %d\n%s\n%s\nwant the screen of the run:\n%s", from, status, again, stderr, screen)
		}
	}
	status, stdout, _ = command(t.Context(), "profile", "run", "--json")
	if lines := decode(t, stdout); status != exitDone || len(lines) != 1 {
		t.Fatalf("status %d\n%s", status, stdout)
	} else if has(t, lines[0], "profile", "findings"); lines[0]["findings"] == nil {
		t.Errorf("no list of findings in\n%s", stdout)
	}
	for _, by := range []prof.By{prof.Op, prof.Module, prof.Line, prof.Shape, prof.Kernel} {
		for _, column := range prof.Columns() {
			status, stdout, stderr := command(t.Context(), "profile", "run", "--by", by.String(), "--sort", column, "--top", "3", "--explain")
			if status != exitDone || !strings.Contains(stdout, column) || strings.Contains(stderr, "error") {
				t.Errorf("by %s, sort %s: status %d\n%s\n%s", by, column, status, stdout, stderr)
			}
		}
	}
	status, stdout, _ = command(t.Context(), strings.Fields("profile run --by module --top 2 --json")...)
	if lines := decode(t, stdout); status != exitDone || len(lines) != 2 {
		t.Errorf("status %d\n%s", status, stdout)
	} else {
		has(t, lines[0], "name", "calls", "self_ns", "total_ns", "host_ns", "bytes", "flops", "line", "op")
	}
	status, stdout, _ = command(t.Context(), "profile", "run", "--against", "run/profile")
	if status != exitDone || !strings.Contains(stdout, "same") {
		t.Errorf("against itself: status %d\n%s", status, stdout)
	}
}

// TestProfileMistakes: wrong use is an error with what to do, and nothing on the standard output.
func TestProfileMistakes(t *testing.T) {
	newRoom(t)
	if status, _, stderr := command(t.Context(), strings.Fields("train mlp --steps 3 --batch 16 --profile --profile-after 1 --profile-steps 1 --out run --device cpu")...); status != exitDone {
		t.Fatal(stderr)
	}
	if err := os.Mkdir("empty", 0o777); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"profile run --by modul":                                "did you mean module",
		"profile run --sort cals":                               "sort by one of",
		"profile run --top -1":                                  "--top is -1",
		"profile run --against none":                            "none",
		"profile run --against run --sort self":                 "own order",
		"profile empty":                                         "has no profile",
		"profile run/config.json":                               "its format",
		"profile run/loss.svg":                                  "no profile",
		"profile none":                                          "none",
		"profile":                                               "RUN is missing",
		"train mlp --steps 3 --profile --out a":                 "3 steps are left",
		"train mlp --steps 9 --profile=run --out a":             "not empty",
		"train mlp --profile --profile-steps 0 --out a":         "profile-steps",
		"train mlp --profile --device null:h200 --out a":        "computes nothing",
		"train mlp --profile --profile-after -1 --out a":        "profile-after",
		"train mlp --steps 9 --profile=run/log.jsonl/x --out a": "give another --profile",
	} {
		status, stdout, stderr := command(t.Context(), strings.Fields(line)...)
		if status != exitFailed || stdout != "" || !strings.Contains(stderr, want) || !strings.Contains(stderr, "hint: ") {
			t.Errorf("%s: status %d, want %q\n%s\n%s", line, status, want, stdout, stderr)
		}
		if _, err := os.Stat("a"); err == nil {
			t.Fatalf("%s: left a run folder", line)
		}
	}
}

// TestProfileUnwritten: a run whose profile the disk has no room for is whole; the command says so and fails, and the run's other files
// are there.
func TestProfileUnwritten(t *testing.T) {
	newRoom(t)
	durable.Through = func(path string, disk io.Writer) io.Writer {
		if filepath.Base(path) != train.TraceFile {
			return disk
		}
		return &testutil.FailingWriter{W: disk, N: 10}
	}
	defer func() { durable.Through = nil }()
	status, stdout, stderr := command(t.Context(), strings.Fields("train mlp --steps 3 --batch 16 --profile --profile-after 1 --profile-steps 1 --out run --device cpu")...)
	if status != exitFailed || !strings.Contains(stderr, "the run is whole, its profile is not written") || !strings.Contains(stderr, train.TraceFile) || !strings.Contains(stderr, "hint: ") {
		t.Errorf("status %d\n%s\n%s", status, stdout, stderr)
	}
	durable.Through = nil
	for _, line := range []string{"eval run", "profile run"} {
		if status, _, stderr := command(t.Context(), strings.Fields(line)...); status != exitDone {
			t.Errorf("%s: status %d\n%s", line, status, stderr)
		}
	}
}
