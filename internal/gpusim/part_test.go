package gpusim

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// bump runs a kernel that adds 1 to the word at an address.
func bump(t *testing.T, d *Device, addr uint64, o Options) (*Report, error) {
	t.Helper()
	m, err := ptx.Parse(wrap(".reg .u32 %v;\n", "ld.global.u32 %v, [%out]; add.u32 %v, %v, 1; st.global.u32 [%out], %v;"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Load(m)
	if err != nil {
		t.Fatal(err)
	}
	return d.Launch(p.Kernel("k"), d1(1), d1(1), 0, pack(p.Kernel("k"), addr, addr), o)
}

func TestAnnotate(t *testing.T) {
	d := NewDevice(A100(), true)
	p, err := d.Alloc(4096, "segment")
	if err != nil {
		t.Fatal(err)
	}
	annotate := func(from, n int, live bool, tag string) {
		t.Helper()
		if err := d.Annotate(p+uint64(from), n, live, tag); err != nil {
			t.Fatal(err)
		}
	}
	data := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	annotate(0, 4096, false, "nobody")
	annotate(512, 100, true, "a.go:1")
	annotate(1024, 512, true, "b.go:2")
	if err := d.Write(p+512, data); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, n int
		want    string
	}{
		{0, 8, "freed by nobody"}, {512, 100, ""}, {512, 101, "allocation of 100 bytes"}, {611, 1, ""}, {612, 1, "freed by nobody"},
		{1024, 512, ""}, {1000, 32, "freed by nobody"}, {1536, 1, "freed by nobody"},
	} {
		err := d.Read(make([]byte, c.n), p+uint64(c.from))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%d bytes at %d: %v, want %q", c.n, c.from, err, c.want)
		}
	}
	if err := d.Reserved(p, 4096); err != nil {
		t.Error(err)
	}
	if !d.Written(p+512, 8) || d.Written(p+512, 9) || d.Written(p+1024, 1) {
		t.Error("a part was written where nobody did, or the reverse")
	}
	// Handed out again, the part holds nothing that was written, and its neighbour what it held.
	annotate(512, 100, false, "c.go:3")
	annotate(512, 4, true, "d.go:4")
	if d.Written(p+512, 4) {
		t.Error("a fresh part counts as written")
	}
	rep, err := bump(t, d, p+512, Options{Checks: AllChecks})
	if err != nil || len(rep.Findings) != 1 || !strings.Contains(rep.Findings[0].Alloc, "d.go:4") {
		t.Error(rep, err)
	}
	_, err = bump(t, d, p+520, Options{})
	var f *Fault
	if !errors.As(err, &f) || f.Code != IllegalAddress || !strings.Contains(err.Error(), "freed by c.go:3") {
		t.Error(err)
	}
	if err := d.Reset(); err != nil || d.Used() != 0 {
		t.Error(err, d.Used())
	}
}

func TestAnnotateRefuses(t *testing.T) {
	d := NewDevice(A100(), false)
	p, _ := d.Alloc(100, "x")
	q, _ := d.Alloc(100, "y")
	for _, c := range []struct {
		at uint64
		n  int
	}{{p - 1, 2}, {p + 99, 2}, {p, 101}, {p, -1}, {0, 1}, {1 << 63, 1}, {q + 100, 1}} {
		if err := d.Annotate(c.at, c.n, true, ""); err == nil {
			t.Errorf("%d bytes at %#x are annotated", c.n, c.at)
		}
	}
	if err := d.Annotate(p, 50, false, "half"); err != nil {
		t.Fatal(err)
	}
	if err := d.Free(p+50, ""); err == nil {
		t.Error("a part was freed")
	}
	if err := d.Free(p, "z.go:1"); err != nil {
		t.Fatal(err)
	}
	if err := d.Annotate(p, 1, true, ""); err == nil || !strings.Contains(err.Error(), "z.go:1") {
		t.Error("a freed allocation is annotated", err)
	}
	if err := d.Free(p, ""); err == nil {
		t.Error("freed twice")
	}
	if err := d.Write(q, make([]byte, 100)); err != nil || d.Used() != 100 {
		t.Error(err, d.Used())
	}
}

func TestPeers(t *testing.T) {
	list, err := NewDevices(3, A100(), true)
	if err != nil {
		t.Fatal(err)
	}
	var at [3]uint64
	for i, d := range list {
		at[i], _ = d.Alloc(64, "word")
		if err := d.Fill(at[i], []byte{byte(i), 0, 0, 0}, 16); err != nil || !d.Owns(at[i]) || list[(i+1)%3].Owns(at[i]) {
			t.Error(err)
		}
	}
	if err := Copy(list[2], at[2]+4, list[0], at[0], 8); err != nil {
		t.Fatal(err)
	}
	if err := Copy(list[0], at[0]+32, list[2], at[2], 8); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 12)
	if err := list[2].Read(got, at[2]); err != nil || !slices.Equal(got, []byte{2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}) {
		t.Error(got, err)
	}
	list[0].SetPeers(list[1:2])
	if _, err := bump(t, list[0], at[1]+8, Options{}); err != nil {
		t.Error(err)
	}
	if err := list[1].Read(got[:4], at[1]+8); err != nil || got[0] != 2 {
		t.Error(got, err)
	}
	if _, err := bump(t, list[0], at[2], Options{}); err == nil {
		t.Error("a device reaches the memory of one that is no peer")
	}
	if err := Copy(list[1], at[1], list[0], at[0], 4); err == nil {
		t.Error("a device copies after a fault")
	}
	for _, n := range []int{0, memory.MaxDevices + 1} {
		if _, err := NewDevices(n, A100(), false); err == nil {
			t.Errorf("%d devices", n)
		}
	}
}

// TestCopyKeepsUnwritten copies bytes that nobody wrote: the copy is no more written than they.
func TestCopyKeepsUnwritten(t *testing.T) {
	d := NewDevice(A100(), true)
	a, _ := d.Alloc(64, "a")
	b, _ := d.Alloc(64, "b")
	if err := errors.Join(d.Write(a+16, make([]byte, 16)), d.Fill(b, []byte{1, 2, 3}, 21), Copy(d, b, d, a, 64)); err != nil {
		t.Fatal(err)
	}
	if d.Written(b, 1) || !d.Written(b+16, 16) || d.Written(b+32, 1) {
		t.Error("what is written does not follow the copy")
	}
	if err := d.Fill(b, []byte{1, 2, 3}, 21); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 63)
	if err := d.Read(got, b); err != nil || !bytes.Equal(got, bytes.Repeat([]byte{1, 2, 3}, 21)) {
		t.Error(got, err)
	}
	for _, err := range []error{Copy(d, b, d, a, 65), Copy(d, b+1, d, a, 64), d.Fill(b, []byte{0}, 65)} {
		if err == nil {
			t.Error("a copy or fill leaves its allocation")
		}
	}
}

// TestNoLongerWritten: memory that was written as a whole is followed again once a part of it holds what nobody wrote.
func TestNoLongerWritten(t *testing.T) {
	for name, lose := range map[string]func(d *Device, x, y uint64) error{
		"":         func(*Device, uint64, uint64) error { return nil },
		"copy":     func(d *Device, x, y uint64) error { return Copy(d, x, d, y, 128) },
		"part":     func(d *Device, x, y uint64) error { return Copy(d, x+64, d, y, 4) },
		"annotate": func(d *Device, x, y uint64) error { return d.Annotate(x, 128, true, "again") },
		"half":     func(d *Device, x, y uint64) error { return d.Annotate(x+64, 64, true, "half") },
	} {
		r := newRig(t, source(t), true)
		x, y, out := r.upload(randoms(32, 1), "x"), r.alloc(128, "y"), r.alloc(128, "out")
		if err := lose(r.dev, x, y); err != nil {
			t.Fatal(name, err)
		}
		for at, want := range map[uint64]bool{x: name == "copy" || name == "annotate", x + 64: name != ""} {
			rep, err := r.try("add", d1(1), d1(16), Options{Checks: Initcheck}, at, at, out, int32(16))
			if err != nil || len(rep.Findings) > 0 != want {
				t.Errorf("%q at %d: %v %v", name, at-x, rep, err)
			}
		}
	}
}

func TestUnload(t *testing.T) {
	d := NewDevice(A100(), false)
	m, err := ptx.Parse(".version 7.4\n.target sm_80\n.address_size 64\n.visible .global .align 8 .u64 table[3] = {5, 6, 7};\n")
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Load(m)
	if err != nil {
		t.Fatal(err)
	}
	addr, n, ok := p.Global("table")
	got := make([]byte, 24)
	if err := d.Read(got, addr); !ok || n != 24 || err != nil || got[16] != 7 {
		t.Error(addr, n, ok, err, got)
	}
	if _, _, ok := p.Global("chair"); ok {
		t.Error("a variable that does not exist")
	}
	if err := p.Unload("test"); err != nil || d.Used() != 0 || d.Read(got, addr) == nil {
		t.Error("an unloaded module keeps its variables", err)
	}
}

// TestOccupancyOlder is a case in which the coarser units of shared memory below compute capability 8.0 count: 4992 bytes
// become 5120, of which 64 KiB holds 12. (cuda_occupancy.h, cudaOccSMemAllocationGranularity.)
func TestOccupancyOlder(t *testing.T) {
	t4 := NewCard("t4", 16<<30, 40, [2]int{7, 5})
	if o := t4.Occupancy(16, 64, 4992); o.Blocks != 12 || o.Limiter != "shared memory" {
		t.Errorf("%+v", o)
	}
	if o := t4.Occupancy(16, 64, 4864); o.Blocks != 13 {
		t.Errorf("%+v", o)
	}
}
