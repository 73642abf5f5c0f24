package shimtest

import (
	_ "embed"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil/cc"
)

//go:embed testdata/shim.c
var source []byte

//go:embed testdata/numbers.h
var numbers []byte

// compiled is the library's file. The test is skipped where there cannot be one.
func compiled(t testing.TB, without []string) []byte {
	t.Helper()
	return cc.Library(t, "shim.c", map[string][]byte{"shim.c": source, "numbers.h": numbers}, without...)
}
