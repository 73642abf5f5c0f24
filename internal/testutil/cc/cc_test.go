package cc

import (
	"strings"
	"testing"
)

func TestCompilerErrors(t *testing.T) {
	Library(t, "one.c", map[string][]byte{"one.c": []byte("int one(void) { return 1; }")}) // or skips
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CC", "no-such-compiler")
	_, err := compiler()
	for _, name := range []string{"no-such-compiler", "cc", "gcc", "clang"} {
		if err == nil || !strings.Contains(err.Error(), `"`+name+`"`) {
			t.Errorf("%s is not named in: %v", name, err)
		}
	}
}
