package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// example1 is a file of examples with one row.
const example1 = `package pytorch

// "Tensors"
func TestOne(t *testing.T) {
	x := env.Randn(2)

	// §
	use(x.Abs())
}
`

// TestMistakes writes rows and lines that cannot be read.
func TestMistakes(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"one_test.go", strings.Replace(example1, "\"Tensors\"", "of tensors", 1), "section in quotes"},
		{"one_test.go", strings.Replace(example1, "Tensors", "Pictures", 1), `no section "Pictures"`},
		{"one_test.go", strings.Replace(example1, "\tuse(x", "\n\tuse(x", 1), "0 statements follow"},
		{"one_test.go", strings.Replace(example1, "§", "`x.absolutely()`", 1), "PyTorch has no torch.Tensor.absolutely"},
		{"one_test.go", strings.Replace(example1, "x.Abs()", "func() {\n\t_ = 1\n\t}", 1), "one line"},
		{"reasons.txt", "x.sin", "neither NAMES: REASON nor NAMES = NAME"},
		{"reasons.txt", "x.abs: no", "x.abs has a row"},
		{"reasons.txt", "x.sine: no", "nothing for x.sine"},
		{"reasons.txt", "x.sin = x.sine", "which is no name"},
		{"reasons.txt", "x.sin = x.cos\nx.cos = x.sin", "as itself"},
		{"reasons.txt", "x.sin: no", "1 names of PyTorch have no row"},
		{"differences.txt", "x.abs | at 0 | 0", "is not NAMES"},
		{"differences.txt", "x.sine | at 0 | 0 | 1", "x.sine is no name"},
		{"differences.txt", "| at 0 | 0 | 1", "is of no call"},
		{"differences.txt", "x.abs | at 0 | 0 | 1\nx.abs | at 0 | 0 | 1", "there twice"},
		{"names.txt", "torch.Tensor.abs", "begins with"},
	} {
		dir := t.TempDir()
		files := map[string]string{
			"one_test.go": example1, "page.md": "<!-- rows: Tensors -->", "reasons.txt": "x.sin: no\nx.cos = x.abs", "differences.txt": "x.abs | at 0 | 0 | 1",
			"names.txt": "# Names of PyTorch 2.15.0 by hand\ntorch.Tensor.abs\ntorch.Tensor.sin\ntorch.Tensor.cos\n",
		}
		files[c.file] = c.text
		for name, text := range files {
			folder := filepath.Join(dir, "examples", "pytorch")
			if !strings.HasSuffix(name, ".go") {
				folder = dir
			}
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, name), []byte(strings.Replace(text, "§", "`x.abs()` | a note", 1)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		table, err := read(dir, dir)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v, want %q; %+v", c.file, c.text, err, c.want, table)
		}
	}
}
