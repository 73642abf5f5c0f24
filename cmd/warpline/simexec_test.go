package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil/cc"
)

// TestSimExecDocs compiles the program of docs/simulator.md and runs it as the page does: in blocks whose first line calls cc. Where
// there is no compiler it is skipped, naming those looked for.
func TestSimExecDocs(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skipf("programs are run on Linux, this is %s", runtime.GOOS)
	}
	page, err := filepath.Abs("../../docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.ReadFile(cc.Program(t, simExamples+"/host_sum.c", "-ldl"))
	if err != nil {
		t.Fatal(err)
	}
	r := simRoom(t)
	r.file("host_sum", host)
	r.check(os.Chmod("host_sum", 0o755))
	const begin = "```console\n$ cc -o host_sum host_sum.c -ldl\n$ warpline "
	parts := strings.Split(string(text), begin)
	if len(parts) != 3 {
		t.Fatalf("%d programs", len(parts)-1)
	}
	got := parts[0]
	for _, part := range parts[1:] {
		block, rest, _ := strings.Cut(part, "```")
		line, _, _ := strings.Cut(block, "\n")
		status, stdout, stderr := command(t.Context(), strings.Fields(line)...)
		if status == exitFailed {
			t.Errorf("%s: %s", line, stderr)
		}
		got += begin + line + "\n" + stdout + stderr + "```" + rest
	}
	if *update {
		r.check(os.WriteFile(page, []byte(got), 0o666))
	} else if got != string(text) {
		t.Errorf("docs/simulator.md should be\n%s", got)
	}
}

// TestSimExec gives the exit status of the program, of findings, and of what cannot be run; and JSON lines.
func TestSimExec(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skipf("programs are run on Linux, this is %s", runtime.GOOS)
	}
	for _, c := range []struct {
		args   string
		status int
		stderr string
	}{
		{"sim exec -- true", exitDone, "did not call the driver"},
		{"sim exec -- false", 1, "did not call the driver"},
		{"sim exec --json -- true", exitDone, "did not call the driver"},
		{"sim exec", exitFailed, "PROGRAM"},
		{"sim exec -- no-such-program", exitFailed, "cannot run no-such-program"},
		{"sim exec --devices 17 -- true", exitFailed, "--devices is 17"},
		{"sim exec --card none -- true", exitFailed, "no card"},
	} {
		status, stdout, stderr := command(t.Context(), strings.Fields(c.args)...)
		if status != c.status || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%s: status %d\n%s%s", c.args, status, stdout, stderr)
		}
		if strings.Contains(c.args, "--json") {
			lines := decode(t, stdout)
			has(t, lines[len(lines)-1], "final", "command", "card", "checks", "status", "signal", "processes", "calls", "findings", "kernels", "advice", "failed_calls", "leaks", "notes")
		}
	}
	if _, err := exec.LookPath("sh"); err == nil {
		if status, _, _ := command(t.Context(), "sim", "exec", "--", "sh", "-c", "exit 7"); status != 7 {
			t.Errorf("status %d", status)
		}
	}
}
