package shimtest

import (
	_ "embed"
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

//go:embed testdata/shim.c
var source []byte

//go:embed testdata/numbers.h
var numbers []byte

// libraries are those compiled by this process, by what they are without.
var libraries struct {
	sync.Mutex
	built map[string][]byte
}

// compiled is the library's file. The test is skipped where there cannot be one.
func compiled(t testing.TB, without []string) []byte {
	t.Helper()
	libraries.Lock()
	defer libraries.Unlock()
	key := strings.Join(without, " ")
	if lib := libraries.built[key]; lib != nil {
		return lib
	}
	cc, err := compiler()
	if err != nil {
		t.Skip(err)
	}
	lib, err := compile(cc, t.TempDir(), without)
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
		return "", fmt.Errorf("the driver shim is made on Linux only, this is %s", runtime.GOOS)
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
	return "", fmt.Errorf("no C compiler to make the driver shim with: %w", errors.Join(tried...))
}

func compile(cc, dir string, without []string) ([]byte, error) {
	src, lib := filepath.Join(dir, "shim.c"), filepath.Join(dir, "shim.so")
	for path, text := range map[string][]byte{src: source, filepath.Join(dir, "numbers.h"): numbers} {
		if err := os.WriteFile(path, text, 0o666); err != nil {
			return nil, err
		}
	}
	args := []string{"-std=c11", "-O2", "-Wall", "-Wextra", "-fPIC", "-shared", "-o", lib, src}
	for _, name := range without {
		args = append(args, "-D"+name+"=hidden_"+name)
	}
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cc, err, out)
	}
	return os.ReadFile(lib)
}
