package tables_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/tables"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestPacked: every table comes back as it was, is there in both forms, and is smaller by the effort.
func TestPacked(t *testing.T) {
	for _, name := range tables.Packed() {
		path := filepath.Join("..", "..", filepath.FromSlash(name))
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		packed := tables.Pack(text)
		if tables.Unpack(string(packed)) != string(text) || 2*len(packed) > len(text) {
			t.Errorf("%s: %d bytes of %d", name, len(packed), len(text))
		}
		base := filepath.Base(path)
		for file, embeds := range map[string]string{"table_text.go": "//go:embed " + base + "\n", "table_packed.go": "//go:embed " + base + ".gz\n"} {
			source, err := os.ReadFile(filepath.Join(filepath.Dir(path), file))
			if err != nil || !bytes.Contains(source, []byte(embeds)) || !strings.HasPrefix(string(source), "//go:build ") {
				t.Errorf("%s does not embed %s: %v", file, base, err)
			}
		}
	}
}

// TestRepeats packs texts of few different lines, with and without an end of the last, among them such as stand for repeats.
func TestRepeats(t *testing.T) {
	rnd := testutil.Rand(t)
	lines := []string{"\n", "a\n", "some line that is longer\n", "another line, longer than that\n", "\x01\n", "\x011 1\n", "\x01\x012 2\n", "\x00\xff\r\n"}
	for range 2000 {
		var b strings.Builder
		for range rnd.IntN(60) {
			b.WriteString(lines[rnd.IntN(len(lines))])
		}
		if rnd.IntN(2) == 0 {
			fmt.Fprintf(&b, "end %d", rnd.IntN(3))
		}
		if got := tables.Unpack(string(tables.Pack([]byte(b.String())))); got != b.String() {
			t.Fatalf("%q came back as %q", b.String(), got)
		}
	}
}
