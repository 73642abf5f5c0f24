package testutil

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
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
	run, asked := "^"+t.Name()+"$", flag.Lookup("test.run").Value.String()
	if _, below, ok := strings.Cut(asked, "/"); ok && !strings.Contains(asked, "|") && !strings.Contains(t.Name(), "/") {
		run += "/" + below
	}
	args := []string{"-test.run=" + run, "-test.v", fmt.Sprintf("-test.short=%t", testing.Short())}
	if end, ok := t.Deadline(); ok { // else a test that hangs outlives this process
		args = append(args, "-test.timeout="+max(time.Second, time.Until(end)).String())
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), name+"="+t.Name())
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil:
		t.Errorf("in a process of its own: %v\n%s", err, out)
	case strings.Contains("\n"+string(out), "\n--- SKIP: "+t.Name()+" "):
		t.Skipf("%s", out)
	case !strings.Contains("\n"+string(out), "\n--- PASS: "+t.Name()+" "):
		t.Errorf("in a process of its own it did not run\n%s", out)
	case testing.Verbose():
		t.Logf("%s", out)
	}
	return false
}
