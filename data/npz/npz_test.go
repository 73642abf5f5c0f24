package npz

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/internal/npy"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/tensor"
)

func env(t *testing.T) *tensor.Env {
	e, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The files of testdata are NumPy's.
func TestFilesOfNumPy(t *testing.T) {
	for name, c := range map[string]struct {
		pixel  func(i int) float64
		labels []int64
	}{
		"uint8.npz":   {func(i int) float64 { return float64(i*23%256) / 255 }, []int64{3, -1}},
		"float32.npz": {func(i int) float64 { return float64(i)/8 - 0.5 }, []int64{250, 7}},
	} {
		src, err := Open(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for b, err := range data.Batches(env(t), src, data.Config{Size: 2}) {
			if err != nil {
				t.Fatal(err)
			}
			want := make([]float64, 12)
			for i := range want {
				want[i] = c.pixel(i)
			}
			testutil.Close(t, b.X.Floats(), want, 1e-7, 0)
			if got := tensor.Data[int64](b.Y); !slices.Equal(got, c.labels) || !slices.Equal(b.X.Shape(), []int{2, 1, 2, 3}) {
				t.Errorf("%s: labels %v, shape %v", name, got, b.X.Shape())
			}
			n++
		}
		if n != 1 {
			t.Errorf("%d batches", n)
		}
	}
}

func TestLabelsOfEveryType(t *testing.T) {
	for dt, size := range map[string]int{"|u1": 1, "|i1": 1, "<u2": 2, "<i2": 2, "<u4": 4, "<i4": 4, "<u8": 8, "<i8": 8} {
		raw := append(bytes.Repeat([]byte{0xff}, size), 5)
		raw = append(raw, make([]byte, size-1)...)
		got, err := integers(&npy.Array{DType: dt, Shape: []int{2}, Data: raw})
		want := []int64{-1, 5}
		if strings.Contains(dt, "u") && size < 8 {
			want[0] = 1<<(8*size) - 1
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", dt, got, err)
		}
	}
}

func TestBadArchives(t *testing.T) {
	image := func(dt string, size int, shape ...int) *npy.Array {
		n := size
		for _, d := range shape {
			n *= d
		}
		return &npy.Array{DType: dt, Shape: shape, Data: make([]byte, n)}
	}
	good, labels := image("|u1", 1, 2, 1, 2, 2), image("<i8", 8, 2)
	for name, c := range map[string]struct {
		members []npy.Member
		want    string
	}{
		"no labels":        {[]npy.Member{{Name: "images", Array: good}}, "images=x, labels=y"},
		"no images":        {[]npy.Member{{Name: "labels", Array: labels}}, "images=x, labels=y"},
		"three axes":       {[]npy.Member{{Name: "images", Array: image("|u1", 1, 2, 2, 2)}, {Name: "labels", Array: labels}}, "reshape them to"},
		"float64":          {[]npy.Member{{Name: "images", Array: image("<f8", 8, 2, 1, 2, 2)}, {Name: "labels", Array: labels}}, "save them as float32"},
		"float labels":     {[]npy.Member{{Name: "images", Array: good}, {Name: "labels", Array: image("<f4", 4, 2)}}, "save them as integers"},
		"too few labels":   {[]npy.Member{{Name: "images", Array: good}, {Name: "labels", Array: image("<i8", 8, 1)}}, "one label for each"},
		"matrix of labels": {[]npy.Member{{Name: "images", Array: good}, {Name: "labels", Array: image("<i8", 8, 2, 1)}}, "one label for each"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.npz")
			var b bytes.Buffer
			if err := npy.WriteZip(&b, c.members, false); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(path); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v", err)
			}
		})
	}
	whole, err := os.ReadFile("testdata/float32.npz")
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) {
		path := filepath.Join(t.TempDir(), "x.npz")
		if err := os.WriteFile(path, whole[:cut], 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil {
			t.Fatalf("cut to %d bytes of %d it still opens", cut, len(whole))
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none.npz")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
