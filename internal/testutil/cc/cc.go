// Package cc compiles small C libraries for tests, with the system's compiler. It is imported from _test files, and by what
// only they import.
package cc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/warpline-ml/warpline/internal/dl"
)

// libraries are those compiled by this process, by their sources and what they are without.
var libraries struct {
	sync.Mutex
	built map[string][]byte
}

// Library is the file of a shared library made of the C file main, which may include the others of files. The functions
// named in without are left out of it, as an older driver lacks them. The test is skipped where there can be no such
// library, naming what was looked for.
func Library(t testing.TB, main string, files map[string][]byte, without ...string) []byte {
	t.Helper()
	libraries.Lock()
	defer libraries.Unlock()
	key := string(files[main]) + strings.Join(without, " ")
	if lib := libraries.built[key]; lib != nil {
		return lib
	}
	cc, err := compiler()
	if err != nil {
		t.Skip(err)
	}
	lib, err := compile(cc, t.TempDir(), main, files, without)
	if err != nil {
		t.Fatal(err)
	}
	if libraries.built == nil {
		libraries.built = map[string][]byte{}
	}
	libraries.built[key] = lib
	return lib
}

// compiler is the path of $CC or of a compiler under the usual names. Its error tells why there is none.
func compiler() (string, error) {
	if err := dl.Available(); err != nil {
		return "", err
	}
	if runtime.GOOS != "linux" {
		return "", fmt.Errorf("shared libraries for tests are made on Linux only, this is %s", runtime.GOOS)
	}
	var tried []error
	for _, name := range []string{os.Getenv("CC"), "cc", "gcc", "clang"} {
		if name == "" {
			continue
		}
		path, err := exec.LookPath(name)
		if err == nil {
			return path, nil
		}
		tried = append(tried, err)
	}
	return "", fmt.Errorf("no C compiler to make a shared library with: %w", errors.Join(tried...))
}

func compile(cc, dir, main string, files map[string][]byte, without []string) ([]byte, error) {
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			return nil, err
		}
	}
	lib := filepath.Join(dir, "library.so")
	args := []string{"-std=c11", "-O2", "-Wall", "-Wextra", "-fPIC", "-shared", "-o", lib, filepath.Join(dir, main)}
	for _, name := range without {
		args = append(args, "-D"+name+"=hidden_"+name)
	}
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cc, err, out)
	}
	return os.ReadFile(lib)
}

// Program is the path of a program made of the C file main with a compiler's other arguments: libraries to link. The test is
// skipped where there can be none, naming what was looked for.
func Program(t testing.TB, main string, args ...string) string {
	t.Helper()
	cc, err := compiler()
	if err != nil {
		t.Skip(err)
	}
	path := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(main), ".c"))
	if out, err := exec.Command(cc, append([]string{"-O1", "-Wall", "-Wextra", "-o", path, main}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cc, err, out)
	}
	return path
}
