package memory

import "testing"

// TestPartsOfFreed keeps parts of living allocations while the names of old freed ones are forgotten.
func TestPartsOfFreed(t *testing.T) {
	d := New(1<<30, 0, false)
	p, _ := d.Alloc(1024, "kept")
	if err := d.Annotate(p, 512, false, "part"); err != nil {
		t.Fatal(err)
	}
	for range 3 * maxFreed {
		q, err := d.Alloc(1, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Free(q, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Write(p+512, make([]byte, 512)); err != nil || len(d.allocs) > 2*maxFreed+4 {
		t.Error(err, len(d.allocs))
	}
	if err := d.Free(p, ""); err != nil || d.Used() != 0 {
		t.Error(err, d.Used())
	}
}

// TestGaps: what is out by less than an allocation's own length, in either direction, is in no other.
func TestGaps(t *testing.T) {
	m := New(1<<40, 0, false)
	var last uint64
	for i, size := range []int{1, 255, 256, 4000, 65536, 1 << 20, 3<<20 + 1, 5, 1 << 20} {
		lo, err := m.Alloc(size, "")
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 && lo-last < minGap {
			t.Errorf("%d bytes between allocations", lo-last)
		}
		last = lo + uint64(size)
		for _, over := range []uint64{0, 1, 256, uint64(size) / 2, uint64(size) - 1} {
			if a := m.Find(last + over); a != nil {
				t.Errorf("%d bytes past the end of %d: %v", over, size, a)
			}
		}
	}
	if used := m.Used(); used != 1+255+256+4000+65536+1<<20+3<<20+1+5+1<<20 {
		t.Errorf("%d bytes in use: gaps are counted", used)
	}
}
