package idx

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

// file is an IDX file of bytes, by the format's description.
func file(typ byte, values []byte, shape ...uint32) []byte {
	b := []byte{0, 0, typ, byte(len(shape))}
	for _, d := range shape {
		b = binary.BigEndian.AppendUint32(b, d)
	}
	return append(b, values...)
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

func write(t *testing.T, dir, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

var (
	images = file(8, []byte{0, 51, 102, 153, 204, 255, 1, 2, 3, 4, 5, 6}, 2, 2, 3)
	labels = file(8, []byte{7, 0}, 2)
)

func TestSamples(t *testing.T) {
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	for name, pack := range map[string]func([]byte) []byte{"plain": func(b []byte) []byte { return b }, "gzip": zipped} {
		dir := t.TempDir()
		src, err := Open(write(t, dir, "x", pack(images)), write(t, dir, "y", pack(labels)))
		if err != nil {
			t.Fatal(err)
		}
		for b, err := range data.Batches(env, src, data.Config{Size: 2}) {
			if err != nil {
				t.Fatal(err)
			}
			testutil.Close(t, b.X.Floats()[:7], []float64{0, 0.2, 0.4, 0.6, 0.8, 1, 1.0 / 255}, 1e-7, 0)
			if !slices.Equal(b.X.Shape(), []int{2, 1, 2, 3}) || !slices.Equal(tensor.Data[int64](b.Y), []int64{7, 0}) {
				t.Errorf("%s: shape %v, labels %v", name, b.X.Shape(), b.Y)
			}
		}
	}
	dir := t.TempDir()
	src, err := Open(write(t, dir, "x", file(8, make([]byte, 24), 2, 3, 2, 2)), write(t, dir, "y", labels))
	if err != nil || !slices.Equal(src.Fields()[0].Shape, []int{3, 2, 2}) {
		t.Errorf("colours: %v", err)
	}
}

func TestOpenDir(t *testing.T) {
	for name, c := range map[string]struct {
		files       []string
		train, test int
		want        string
	}{
		"both, plain": {[]string{"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}, 2, 2, ""},
		"dots":        {[]string{"train-images.idx3-ubyte", "train-labels.idx1-ubyte"}, 2, -1, ""},
		"only test":   {[]string{"t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"}, 2, -1, ""},
		"mixed":       {[]string{"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte", "readme.txt"}, 2, -1, ""},
		"empty":       {nil, 0, 0, "has no train-images"},
		"half":        {[]string{"train-images-idx3-ubyte"}, 0, 0, "both are needed"},
		"other half":  {[]string{"t10k-labels-idx1-ubyte"}, 0, 0, "both are needed"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, f := range c.files {
				b := images
				if strings.Contains(f, "labels") {
					b = labels
				}
				if strings.HasSuffix(f, ".gz") {
					b = zipped(b)
				}
				write(t, dir, f, b)
			}
			train, test, err := OpenDir(dir)
			if c.want != "" {
				if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || train.Len() != c.train || (test == nil) != (c.test < 0) {
				t.Errorf("train %v, test %v, %v", train, test, err)
			}
		})
	}
}

// TestNoFolder: that there is no such folder is not that it lacks files.
func TestNoFolder(t *testing.T) {
	if _, _, err := OpenDir(filepath.Join(t.TempDir(), "mnits")); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "mnits") || strings.Contains(err.Error(), "train-images") {
		t.Errorf("got %v", err)
	}
}

func TestBadFiles(t *testing.T) {
	dir := t.TempDir()
	x, y := write(t, dir, "x", images), write(t, dir, "y", labels)
	for name, c := range map[string]struct{ x, y, want string }{
		"swapped":       {y, x, "no set of pictures"},
		"labels twice":  {x, x, "no list of labels"},
		"floats":        {write(t, dir, "f", file(13, make([]byte, 16), 1, 2, 2)), y, "float32 of shape [1 2 2] is no set"},
		"other count":   {x, write(t, dir, "3", file(8, []byte{1, 2, 3}, 3)), "2 pictures"},
		"cut":           {write(t, dir, "c", images[:len(images)-1]), y, filepath.Join(dir, "c")},
		"missing":       {filepath.Join(dir, "none"), y, "none"},
		"missing label": {x, filepath.Join(dir, "none"), "none"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Open(c.x, c.y); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
