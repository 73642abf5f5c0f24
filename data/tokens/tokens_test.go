package tokens

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/tensor"
)

func write(t *testing.T, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.bin")
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// count is a file of the numbers 0 to n-1.
func count(n int) []byte {
	var b []byte
	for i := range n {
		b = binary.LittleEndian.AppendUint16(b, uint16(i))
	}
	return b
}

func env(t *testing.T) *tensor.Env {
	t.Helper()
	e, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func rows(t *testing.T, src data.Source[Batch], c data.Config) (in, out [][]int64) {
	t.Helper()
	for b, err := range data.Batches(env(t), src, c) {
		if err != nil {
			t.Fatal(err)
		}
		in, out = append(in, tensor.Data[int64](b.Tokens)), append(out, tensor.Data[int64](b.Targets))
	}
	return in, out
}

// Step s gets tokens [s·B·T, (s+1)·B·T] of the file modulo its length, targets shifted by one.
func TestConsecutiveIsTheMeaningOfSequentialOrder(t *testing.T) {
	for _, c := range []struct{ n, b, t, steps int }{{30, 2, 5, 3}, {31, 2, 5, 20}, {7, 3, 4, 15}, {6, 4, 5, 9}, {9, 1, 3, 7}, {8, 5, 6, 11}} {
		set, err := Open(write(t, count(c.n)), c.n)
		if err != nil {
			t.Fatal(err)
		}
		src, err := set.Consecutive(c.t)
		if err != nil {
			t.Fatal(err)
		}
		in, out := rows(t, src, data.Config{Size: c.b, Wrap: true, Steps: c.steps})
		for s := range c.steps {
			var x, y []int64
			for i := s * c.b * c.t; i < (s+1)*c.b*c.t; i++ {
				x, y = append(x, int64(i%c.n)), append(y, int64((i+1)%c.n))
			}
			if !slices.Equal(in[s], x) || !slices.Equal(out[s], y) {
				t.Fatalf("%+v, step %d: tokens %v, targets %v; want %v, %v", c, s, in[s], out[s], x, y)
			}
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestWindowsReachEveryStartAndNoFurther(t *testing.T) {
	src, err := New("ids", []uint16{0, 1, 2, 3, 4, 5, 6}, 7).Windows(3)
	if err != nil {
		t.Fatal(err)
	}
	starts := map[int64]bool{}
	in, out := rows(t, src, data.Config{Size: 5, Draw: true, Steps: 40})
	for i := range in {
		for r := 0; r < len(in[i]); r += 3 {
			x, y := in[i][r:r+3], out[i][r:r+3]
			if x[1] != x[0]+1 || x[2] != x[0]+2 || y[0] != x[1] || y[1] != x[2] || y[2] != x[2]+1 {
				t.Fatalf("window %v with targets %v", x, y)
			}
			starts[x[0]] = true
		}
	}
	if len(starts) != 4 {
		t.Errorf("starts %v, want 0 to 3", starts)
	}
}

func TestBlocksAndParts(t *testing.T) {
	set := New("ids", []uint16{9, 0, 1, 2, 3, 4, 5, 6, 9}, 10)
	for _, c := range []struct {
		hi   int
		want [][]int64
	}{{8, [][]int64{{0, 1, 2, 3, 4, 5}}}, {7, [][]int64{{0, 1, 2}}}, {5, [][]int64{{0, 1, 2}}}} {
		src, err := set.Part(1, c.hi).Blocks(3)
		if err != nil {
			t.Fatal(err)
		}
		if in, _ := rows(t, src, data.Config{Size: 2}); !reflect.DeepEqual(in, c.want) {
			t.Errorf("up to %d: %v", c.hi, in)
		}
	}
	if got := set.Part(-3, 99).Len(); got != 9 {
		t.Errorf("%d tokens", got)
	}
}

func TestIDBeyondTheVocabulary(t *testing.T) {
	set, err := Open(write(t, []byte{1, 0, 2, 0, 0, 1, 3, 0, 4, 0, 5, 0}), 100)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	for name, part := range map[string]*Set{"whole": set, "part": set.Part(1, 6)} {
		src, err := part.Blocks(1)
		if err != nil {
			t.Fatal(err)
		}
		var at *data.SampleError
		for _, err = range data.Batches(env(t), src, data.Config{Size: 5}) {
		}
		if !errors.As(err, &at) || !strings.Contains(err.Error(), "token 256 at position 2 is beyond the vocabulary of 100") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	free, err := set.Part(3, 6).Blocks(2)
	if err != nil {
		t.Fatal(err)
	}
	if in, _ := rows(t, free, data.Config{Size: 1}); !slices.Equal(in[0], []int64{3, 4}) {
		t.Errorf("got %v", in)
	}
	if id, err := New("x", []uint16{65535}, 0).ID(0); id != 65535 || err != nil {
		t.Errorf("without a vocabulary: %d, %v", id, err)
	}
	for _, i := range []int{-1, 6} {
		if _, err := set.ID(i); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("no token %d of ", i)) {
			t.Errorf("position %d: %v", i, err)
		}
	}
}

func TestBadSets(t *testing.T) {
	for name, b := range map[string][]byte{"empty": {}, "odd": {1, 2, 3}} {
		if _, err := Open(write(t, b), 0); err == nil || !strings.Contains(err.Error(), "are no tokens") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), 0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := Open(t.TempDir(), 0); err == nil {
		t.Error("a folder opens")
	}
	set := New("ids", []uint16{1, 2, 3}, 0)
	for _, make := range []func(int) (data.Source[Batch], error){set.Consecutive, set.Windows, set.Blocks} {
		if _, err := make(3); err == nil || !strings.Contains(err.Error(), "too few for a context of 3") {
			t.Errorf("got %v", err)
		}
		if _, err := make(0); err == nil || !strings.Contains(err.Error(), "context of 0") {
			t.Errorf("got %v", err)
		}
	}
}

func FuzzSet(f *testing.F) {
	f.Add([]byte{1, 0, 2, 0, 3, 0}, 2, 5)
	f.Add([]byte{1}, 1, 0)
	f.Fuzz(func(t *testing.T, b []byte, context, vocab int) {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		set, err := Open(path, vocab)
		if err != nil {
			return
		}
		defer set.Close()
		src, err := set.Consecutive(context)
		if err != nil {
			return
		}
		for b, err := range data.Batches(env(t), src, data.Config{Size: 2, Wrap: true, Steps: 2}) {
			if err == nil && b.Tokens.Dim(1) != context {
				t.Errorf("shape %v", b.Tokens.Shape())
			}
		}
	})
}
