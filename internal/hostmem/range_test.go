package hostmem

import (
	"errors"
	"testing"
)

// TestRange: memory comes and goes behind addresses that cost nothing, and comes back as zeros.
func TestRange(t *testing.T) {
	before := Mapped().Anonymous
	r, err := Reserve(1<<40 + 1)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("this system has no addresses without memory")
	}
	if err != nil || r.Size%pageSize != 0 || Mapped().Anonymous != before {
		t.Fatal(r, err)
	}
	n := 8 * pageSize
	for range 2 {
		for _, at := range []int{0, 4 * n} {
			if err := r.Commit(at, n); err != nil {
				t.Fatal(err)
			}
			b := Bytes(r.Addr+uintptr(at), n)
			for i, v := range b {
				if v != 0 {
					t.Fatalf("byte %d is %d", i, v)
				}
				b[i] = 7
			}
		}
		if got := Mapped().Anonymous - before; got != int64(2*n) {
			t.Errorf("%d bytes are mapped, want %d", got, 2*n)
		}
		if err := errors.Join(r.Decommit(4*n, n), r.Decommit(0, n)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range [][2]int{{1, pageSize}, {0, 1}, {0, -pageSize}, {-pageSize, pageSize}, {r.Size, pageSize}, {0, r.Size + pageSize}} {
		if r.Commit(c[0], c[1]) == nil || r.Decommit(c[0], c[1]) == nil {
			t.Errorf("%v is accepted", c)
		}
	}
	if err := r.Free(); err != nil || Mapped().Anonymous != before {
		t.Error(err)
	}
	if _, err := Reserve(0); err == nil || (Range{}).Free() != nil {
		t.Error("no addresses")
	}
}
