// Package nvtxtest is a tool that takes NVTX's ranges, in C as tools are, which writes down what it is told.
package nvtxtest

import (
	_ "embed"
	"os"
	"path/filepath"
	"testing"

	"github.com/warpline-ml/warpline/internal/dl"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/nvtx"
	"github.com/warpline-ml/warpline/internal/testutil/cc"
)

//go:embed testdata/tool.c
var source []byte

// Tool is the tool's library, which the environment of a test names.
type Tool struct{ lib *dl.Library }

// New makes the library, with the functions that without does not name, and puts its path into the environment of the test. The
// test is skipped where there is no C compiler.
func New(t testing.TB, without ...string) Tool {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tool.so")
	if err := os.WriteFile(path, cc.Library(t, "tool.c", map[string][]byte{"tool.c": source}, without...), 0o777); err != nil {
		t.Fatal(err)
	}
	lib, err := dl.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(nvtx.PathEnv, path)
	return Tool{lib}
}

// Refuse makes the tool not attach.
func (x Tool) Refuse(t testing.TB) { x.call(t, "tool_set_refuses", 1) }

// Told is what it was told, a line for each call.
func (x Tool) Told(t testing.TB) string {
	return string(hostmem.Bytes(x.call(t, "tool_text"), int(x.call(t, "tool_used"))))
}

func (x Tool) call(t testing.TB, name string, args ...uintptr) uintptr {
	t.Helper()
	f, err := x.lib.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return f.Word(args...)
}
