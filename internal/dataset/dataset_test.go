package dataset_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/tokens"
	"github.com/warpline-ml/warpline/internal/dataset"
	"github.com/warpline-ml/warpline/tensor"
)

// TestReaders: every row says what it takes, reads one thing, and refuses what it takes and cannot be read with the path,
// without a panic. The help names them all.
func TestReaders(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bad := []string{dir, write("bad.npz", []byte("PK\x03\x04 no more")), filepath.Join(dir, "none.npz"), write("a", []byte{0, 0, 8, 3}) + "," + filepath.Join(dir, "b")}
	for _, path := range bad {
		for _, r := range dataset.Readers {
			if r.Pictures == nil || !r.Takes(path) {
				continue
			}
			if _, _, err := r.Pictures(path); err == nil || !strings.Contains(err.Error(), dir) {
				t.Errorf("%s of %s: %v", r.Name, path, err)
			}
		}
	}
	names := map[string]bool{}
	for _, r := range dataset.Readers {
		if (r.Pictures == nil) == (r.Text == nil) || r.Name == "" || names[r.Name] || !strings.Contains(dataset.Help(), r.Name) {
			t.Errorf("reader %q, help %q", r.Name, dataset.Help())
		}
		names[r.Name] = true
	}
	for _, path := range bad {
		if _, _, err := dataset.Pictures(path); err == nil {
			t.Errorf("%s can be read", path)
		}
	}
	if _, _, err := dataset.Pictures(write("x.jpg", nil)); err == nil || !strings.Contains(err.Error(), "x.jpg") {
		t.Errorf("a picture: %v", err)
	}
	if _, err := dataset.Text(filepath.Join(dir, "nothing.txt")); err == nil {
		t.Error("a text that is not there can be read")
	}
}

// TestBlocks: all tokens but the first are foretold once, whatever the length.
func TestBlocks(t *testing.T) {
	env, err := tensor.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 3, 7, 8, 9, 17} {
		ids := make([]uint16, n)
		for i := range ids {
			ids[i] = uint16(i)
		}
		s, err := dataset.NewBlocks(tokens.New("ids", ids, n), 4)
		if err != nil {
			t.Fatal(err)
		}
		var got []float64
		for b, err := range s.Turns(env, data.Config{Size: 2}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, b.Y.Floats()...)
		}
		want := make([]float64, n-1)
		for i := range want {
			want[i] = float64(i + 1)
		}
		if !slices.Equal(got, want) || s.Size() != n-1 || s.Len() != (n+2)/4 {
			t.Errorf("%d tokens: %v, size %d, %d rows", n, got, s.Size(), s.Len())
		}
		if some := s.Some(1); n > 9 && some.Len() != 1 {
			t.Errorf("one row of %d tokens is %d", n, some.Len())
		}
	}
	if _, err := dataset.NewBlocks(tokens.New("one", []uint16{0}, 1), 4); err == nil {
		t.Error("one token foretells something")
	}
}

// FuzzAbsolute: a path that is absolute stays, and what was two paths is two.
func FuzzAbsolute(f *testing.F) {
	for _, s := range []string{"", "a", "a,b", "a,b,c", ",", "/x,y", "../z", "a\x00b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		abs := dataset.Absolute(path)
		if again := dataset.Absolute(abs); again != abs {
			t.Errorf("%q becomes %q and then %q", path, abs, again)
		}
	})
}
