package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOutOfMemory: a training that does not fit ends with one screen, two lines and status 2; machines get the figures. What is
// named first makes it run.
func TestOutOfMemory(t *testing.T) {
	t.Setenv("WARPLINE_ALLOC_CONF", "per_process_memory_fraction:0.0055") // of 4 GiB
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("a text that is learnt in parts, where memory is short. ", 40)), 0o666); err != nil {
		t.Fatal(err)
	}
	args := []string{"train", "gpt", "--data", text, "--device", "null:gtx-1650x2:1", "--batch", "64", "--layers", "1", "--width", "64", "--heads", "2", "--steps", "3"}
	status, stdout, stderr := command(t.Context(), args...)
	if status != exitFailed || strings.Count(stderr, "\n") != 2 || !strings.Contains(stdout, "who holds") || !strings.Contains(stdout, "what to do") {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	_, hint, _ := strings.Cut(stderr, "hint: give ")
	flag, _, _ := strings.Cut(strings.TrimSpace(hint), ";")
	if status, _, stderr := command(t.Context(), append(args, strings.Fields(flag)...)...); status != exitDone {
		t.Errorf("with %q: status %d, %s", flag, status, stderr)
	}
	status, stdout, _ = command(t.Context(), append(args, "--json")...)
	if last := stdout[strings.LastIndex(strings.TrimSpace(stdout), "\n")+1:]; status != exitFailed || !strings.HasPrefix(last, `{"device":"null:gtx-1650x2:1","op":`) || !strings.Contains(last, `"largest_batch":`) {
		t.Errorf("status %d, %s", status, stdout)
	}
}
