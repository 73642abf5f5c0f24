package tables_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/tables"
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
		for file, embeds := range map[string]string{"table_text.go": "//go:embed " + base + "\n", "table_packed.go": "//go:embed " + base + ".lzma\n"} {
			source, err := os.ReadFile(filepath.Join(filepath.Dir(path), file))
			if err != nil || !bytes.Contains(source, []byte(embeds)) || !strings.HasPrefix(string(source), "//go:build ") {
				t.Errorf("%s does not embed %s: %v", file, base, err)
			}
		}
	}
}
