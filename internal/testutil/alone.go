package testutil

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Alone reports whether a test has its process, with Go's heap and the libraries that are open, for itself. If not, it runs
// the test in a process of its own and takes over how that ended; the caller returns.
func Alone(t *testing.T) bool {
	t.Helper()
	const name = "WARPLINE_TEST_ALONE"
	if os.Getenv(name) == t.Name() {
		return true
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), name+"="+t.Name())
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("in a process of its own: %v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP: "+t.Name()):
		t.Skipf("%s", out)
	case !strings.Contains(string(out), "--- PASS: "+t.Name()):
		t.Errorf("in a process of its own it did not run\n%s", out)
	}
	return false
}
