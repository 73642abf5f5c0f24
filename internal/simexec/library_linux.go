package simexec

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/warpline-ml/warpline/internal/advice"
)

// made is the library that was made beforehand (sh libcuda/build.sh), for the processor madeFor; for others it is made where it is needed.
const made = "libcuda/libcuda_linux_amd64.so"

var madeFor = "amd64"

// sources are what the library is made of.
var sources = []string{"libcuda/libcuda.c", "libcuda/functions.h", "libcuda/build.sh"}

// install puts the library at a path: the one that was made beforehand, or else one made of the sources by the machine's compiler.
func install(ctx context.Context, path string) error {
	if runtime.GOARCH == madeFor {
		ready, err := fs.ReadFile(library, made)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, ready, 0o755); err != nil {
			return advice.Failf("make room in the folder for temporary files, or name another in TMPDIR", "cannot write the library: %v", err)
		}
		return nil
	}
	return compile(ctx, path)
}

// compile makes the library.
func compile(ctx context.Context, path string) error {
	cc, err := compiler()
	if err != nil {
		return advice.Failf("install gcc or clang, or name one in CC", "on %s/%s the library for the program is compiled, and there is no compiler: %v", runtime.GOOS, runtime.GOARCH, err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), "source-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, name := range sources {
		text, err := fs.ReadFile(library, name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(name)), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	if out, err := exec.CommandContext(ctx, "sh", filepath.Join(dir, "build.sh"), path, cc).CombinedOutput(); err != nil {
		return advice.Failf("name another compiler in CC", "%s does not make the library for the program: %v\n%s", cc, err, out)
	}
	return nil
}

// compiler is the path of $CC or of a compiler under the usual names.
func compiler() (string, error) {
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
	return "", errors.Join(tried...)
}
