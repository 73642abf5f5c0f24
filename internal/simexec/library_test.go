//go:build linux

package simexec

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/cabi"
)

// TestLibraryIsFresh compares the sources of the library that is committed with those that it was made of, and makes it again where
// the compiler is the same.
func TestLibraryIsFresh(t *testing.T) {
	sums, err := os.ReadFile("libcuda/build.sha256")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(sums)) {
		f := strings.Fields(line)
		text, err := os.ReadFile(filepath.Join("libcuda", f[1]))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != f[0] {
			t.Errorf("%s has changed since the library was made: sh internal/simexec/libcuda/sum.sh", f[1])
		}
	}
	if runtime.GOARCH != madeFor {
		return
	}
	ready, err := fs.ReadFile(library, made)
	if n := len(ready); err != nil || n == 0 || n > 100_000 {
		t.Errorf("the library has %d bytes: %v", n, err)
	}
	if out, err := exec.Command("gcc", "--version").Output(); err != nil || !strings.Contains(string(out), " 12.2.0") {
		t.Skipf("the library is made again with gcc 12.2.0 only, and gcc --version tells: %s %v", out, err)
	}
	path := filepath.Join(t.TempDir(), "libcuda.so.1")
	if out, err := exec.Command("sh", "libcuda/build.sh", path, "gcc").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, ready) {
		t.Errorf("the library that gcc 12.2.0 makes differs from the one that is committed: %v", err)
	}
}

// TestCompile makes the library as other processors do, and runs a program with it.
func TestCompile(t *testing.T) {
	path := program(t)
	was := madeFor
	madeFor = ""
	defer func() { madeFor = was }()
	if r := runProgram(t, Config{}, path, "broken"); r.Found != 1 {
		t.Errorf("%s", r.Text(100))
	}
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CC", "no-such-compiler")
	if err := install(t.Context(), filepath.Join(t.TempDir(), "libcuda.so.1")); err == nil || !strings.Contains(err.Error(), "no-such-compiler") {
		t.Errorf("%v", err)
	}
}

// TestFunctions finds every function that is simulated among those of the library: others could not be called.
func TestFunctions(t *testing.T) {
	exported := map[string]bool{}
	for _, name := range []string{"libcuda/functions.h", "libcuda/libcuda.c"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^(?:FUNCTION|HERE)\((\w+), `).FindAllSubmatch(text, -1) {
			exported[string(m[1])] = true
		}
	}
	if len(exported) < 500 {
		t.Fatalf("%d functions", len(exported))
	}
	for _, name := range cabi.Names() {
		if !exported[name] {
			t.Errorf("%s is simulated, and the library does not have it", name)
		}
	}
}
