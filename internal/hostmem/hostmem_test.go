package hostmem

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestAllocSizes(t *testing.T) {
	before := Mapped().Anonymous
	for _, n := range []int{1, 3, 63, 64, 65, 4095, 4096, 4097, 1<<20 + 1, 2<<20 - 1, 2 << 20, 5<<20 + 3} {
		b, err := Alloc(n)
		if err != nil {
			t.Fatal(err)
		}
		if b.Addr == 0 || b.Addr%Alignment != 0 || b.Size != n {
			t.Errorf("Alloc(%d) = %+v", n, b)
		}
		data := b.Bytes()
		if len(data) != n || !bytes.Equal(data, make([]byte, n)) {
			t.Errorf("Alloc(%d): %d bytes, not all zero", n, len(data))
		}
		data[0], data[n-1] = 1, 2
		if got, want := Mapped().Anonymous-before, int64(pages(n)); got != want {
			t.Errorf("Alloc(%d): %d bytes mapped, want %d", n, got, want)
		}
		if err := b.Free(); err != nil {
			t.Error(err)
		}
	}
	if got := Mapped().Anonymous; got != before {
		t.Errorf("%d bytes mapped after the last Free, %d before", got, before)
	}
}

func TestAllocOfNothing(t *testing.T) {
	b, err := Alloc(0)
	if b != (Block{}) || err != nil {
		t.Errorf("Alloc(0) = %+v, %v", b, err)
	}
	if b.Bytes() != nil || b.Free() != nil {
		t.Error("the zero block has bytes, or cannot be freed")
	}
}

func TestAllocFails(t *testing.T) {
	before := Mapped()
	for _, n := range []int{-1, math.MinInt, math.MaxInt, math.MaxInt - 1<<20} {
		if b, err := Alloc(n); err == nil || b != (Block{}) {
			t.Errorf("Alloc(%d) = %+v, %v", n, b, err)
		}
	}
	if Mapped() != before {
		t.Error("a failed allocation was counted")
	}
}

func TestViewsShareMemory(t *testing.T) {
	b, err := Alloc(4096)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Free()
	f := Slice[float32](b.Addr+64, 4)
	f[1] = 1
	if got := Slice[uint32](b.Addr+68, 1)[0]; got != math.Float32bits(1) {
		t.Errorf("bits %#x of 1", got)
	}
	if got := Bytes(b.Addr, 4096)[64+7]; got != 0x3f {
		t.Errorf("highest byte %#x of 1", got)
	}
	if Slice[int64](0, 0) != nil {
		t.Error("nothing at address 0 is not nil")
	}
}

func TestAllocConcurrently(t *testing.T) {
	before := Mapped()
	var w sync.WaitGroup
	for g := range 4 {
		w.Go(func() {
			for i := range 50 {
				b, err := Alloc(1 + 1000*i)
				if err != nil {
					t.Error(err)
					return
				}
				s := b.Bytes()
				s[len(s)-1] = byte(g)
				if err := b.Free(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	w.Wait()
	if Mapped() != before {
		t.Errorf("mapped %+v, before %+v", Mapped(), before)
	}
}

func TestMapFile(t *testing.T) {
	before := Mapped()
	for _, n := range []int{0, 1, 4096, 10001} {
		want := bytes.Repeat([]byte("warpline"), n/8+1)[:n]
		path := filepath.Join(t.TempDir(), "data")
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := MapFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(f.Bytes(), want) {
			t.Errorf("%d bytes: other contents", n)
		}
		for range 2 {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
		if f.Bytes() != nil {
			t.Error("a closed file has bytes")
		}
	}
	if Mapped() != before {
		t.Errorf("mapped %+v, before %+v", Mapped(), before)
	}
}

func TestMapFileErrors(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		dir:                           "directory",
		filepath.Join(dir, "missing"): "missing",
	} {
		f, err := MapFile(path)
		if f != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("MapFile(%s) = %v, %v", path, f, err)
		}
	}
}
