package null

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/testutil"
)

func init() { Register(func(_ [2]int, op ir.Op) (*device.Kernel, error) { return unplanned(op) }) }

func TestOpen(t *testing.T) {
	for name, of := range map[string]string{"null:0": "a100-80", "null:1": "a100-80", "null:a100-80": "a100-80", "null:gtx-1650:3": "gtx-1650"} {
		card, _ := cards.Find(of)
		d, canonical, err := device.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if i := d.Info(); i.Name != name || canonical != name || i.Memory != card.Memory || !i.Null || i.Host {
			t.Errorf("%s is %+v", name, i)
		}
	}
	if _, _, err := device.Open("null:h900"); err == nil || !strings.Contains(err.Error(), "have v100-16, ") {
		t.Error(err)
	}
}

// TestSpace compares first fit with a search of a map of bytes.
func TestSpace(t *testing.T) {
	r := testutil.Rand(t)
	const size = 200
	s := newSpace(1000, size)
	used := make([]bool, size)
	type piece struct{ at, n int }
	var live []piece
	for range 5000 {
		if len(live) > 0 && r.IntN(2) == 0 {
			i := r.IntN(len(live))
			p := live[i]
			live = slices.Delete(live, i, i+1)
			if s.give(uint64(1000+p.at), int64(p.n+1)) || !s.give(uint64(1000+p.at), int64(p.n)) || s.give(uint64(1000+p.at), int64(p.n)) {
				t.Fatalf("%+v cannot be given back once", p)
			}
			for j := range p.n {
				used[p.at+j] = false
			}
			continue
		}
		n := 1 + r.IntN(40)
		want := firstFit(used, n)
		addr, ok := s.take(int64(n))
		if ok != (want >= 0) || ok && addr != uint64(1000+want) {
			t.Fatalf("%d bytes at %d, %v; want %d", n, int(addr)-1000, ok, want)
		}
		if ok {
			live = append(live, piece{want, n})
			for j := range n {
				used[want+j] = true
			}
		}
	}
	for _, p := range live {
		s.give(uint64(1000+p.at), int64(p.n))
	}
	if len(s.free) != 1 || s.free[0] != (span{1000, size}) || len(s.used) != 0 {
		t.Errorf("left: %+v", s)
	}
}

func firstFit(used []bool, n int) int {
	for at := 0; at+n <= len(used); at++ {
		if !slices.Contains(used[at:at+n], true) {
			return at
		}
	}
	return -1
}

func card(memory int64) cards.Card { return cards.Card{Name: "tiny", Model: "Tiny", Memory: memory} }

func TestAlloc(t *testing.T) {
	d := New("null:tiny", card(4096))
	x, err := d.Alloc(513)
	if err != nil || x.Addr%512 != 0 || x.Addr == 0 || x.Size != 513 || x.Host {
		t.Fatal(x, err)
	}
	y, err := d.Alloc(3072)
	if err != nil || y.Addr != x.Addr+1024 {
		t.Fatal(y, err)
	}
	if _, err := d.Alloc(1); !errors.Is(err, device.ErrOutOfMemory) || !strings.Contains(err.Error(), "null:tiny") {
		t.Error(err)
	}
	if _, err := d.Alloc(-1); err == nil || errors.Is(err, device.ErrOutOfMemory) {
		t.Error(err)
	}
	d.Free(x)
	if z, err := d.Alloc(1024); err != nil || z.Addr != x.Addr {
		t.Error(z, err)
	}
	d.Free(y)
	defer func() {
		if v, _ := recover().(string); !strings.Contains(v, "not allocated") {
			t.Errorf("a second free: %q", v)
		}
	}()
	d.Free(y)
}

// TestUnderTheCache runs the allocator on the device until it is full, with segments of fixed size and expandable ones.
func TestUnderTheCache(t *testing.T) {
	for _, expandable := range []bool{false, true} {
		d := New("null:tiny", card(64<<20))
		a := device.NewAllocator(d, device.Config{Conf: device.Conf{Expandable: expandable}})
		r := rand.New(rand.NewPCG(1, 2))
		var live []*device.Block
		ooms := 0
		for range 2000 {
			b, err := a.Alloc(1+r.Int64N(6<<20), r.IntN(2))
			if errors.Is(err, device.ErrOutOfMemory) {
				ooms++
				for len(live) > 3 {
					i := r.IntN(len(live))
					a.Free(live[i])
					live = slices.Delete(live, i, i+1)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			live = append(live, b)
		}
		if err := a.Check(); err != nil || ooms == 0 {
			t.Fatal(err, ooms)
		}
		for _, b := range live {
			a.Free(b)
		}
		if err := a.EmptyCache(); err != nil || len(d.space.free) != 1 || len(d.beyond.used) != 0 || len(d.pages) != 0 || d.room != 64<<20 {
			t.Error(err, d.space, d.beyond, d.pages, d.room)
		}
	}
}

// TestMapping: memory behind addresses counts as what Alloc gives, and what makes no sense is refused, without a trace.
func TestMapping(t *testing.T) {
	const page = 2 << 20
	d := New("null:tiny", card(4*page))
	at, err := d.Reserve(8 * page)
	if err != nil || !d.Maps() || at%page != 0 {
		t.Fatal(at, err)
	}
	m, err := d.Alloc(page)
	if err == nil {
		err = d.Map(at+page, 2*page, page)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Map(at+4*page, 2*page, 2*page); !errors.Is(err, device.ErrOutOfMemory) {
		t.Error(err)
	}
	if _, err := d.Alloc(2 * page); !errors.Is(err, device.ErrOutOfMemory) {
		t.Error(err)
	}
	for what, f := range map[string]func() error{
		"already":           func() error { return d.Map(at+2*page, page, page) },
		"were not reserved": func() error { return d.Map(at+7*page, 2*page, page) },
		"whole pages":       func() error { return d.Map(at, page, page+1) },
		"no page":           func() error { return d.Unmap(at+2*page, 2*page) },
		"memory behind":     func() error { return d.Unreserve(at, 8*page) },
		"multiple":          func() error { _, err := d.Reserve(page - 1); return err },
		"no page to unmap":  func() error { return d.Unmap(at+page, page+1) },
	} {
		if err := f(); err == nil || errors.Is(err, device.ErrOutOfMemory) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := errors.Join(d.Unmap(at+page, 2*page), d.Unreserve(at, 8*page)); err != nil || d.Unreserve(at, 8*page) == nil {
		t.Error(err)
	}
	d.Free(m)
	if d.room != 4*page {
		t.Errorf("%d bytes are left", 4*page-d.room)
	}
}

func TestLaunch(t *testing.T) {
	d := New("null:tiny", card(1<<20))
	q, err := d.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	op := ir.New(ir.MatMul, ir.Attr{}, ir.Dense(dtype.F32, 2, 3), ir.Dense(dtype.F32, 3, 4))
	k, err := d.Prepare(op)
	if err != nil || len(k.Out) != 1 || k.FLOPs != 48 || k.Bytes != 4*(6+12+8) {
		t.Fatal(k, err)
	}
	var p device.Params
	if err := q.Launch(k, make([]device.Arg, 2), &p); err == nil || !strings.Contains(err.Error(), "2 arguments, want 3") {
		t.Error(err)
	}
	for range 3 {
		if err := q.Launch(k, make([]device.Arg, 3), &p); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Prepare(ir.New(ir.MatMul, ir.Attr{}, ir.Dense(dtype.F32, 2, 3))); err == nil {
		t.Error("an op with a missing operand is accepted")
	}
	e, err := q.Record()
	if err != nil {
		t.Fatal(err)
	}
	if done, err := e.Done(); !done || err != nil || q.Wait(e) != nil || q.Sync() != nil || q.Close() != nil || d.Close() != nil {
		t.Error("the queue is not done at once")
	}
}

func TestCopy(t *testing.T) {
	d := New("null:tiny", card(1<<20))
	q, _ := d.NewQueue()
	block, err := hostmem.Alloc(10)
	if err != nil {
		t.Fatal(err)
	}
	defer block.Free()
	host := block.Bytes()
	copy(host, slices.Repeat([]byte{7}, 10))
	dst := device.Arg{Mem: device.Mem{Addr: uint64(block.Addr), Size: 10, Host: true}, Offset: 2}
	src, err := d.Alloc(100)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Copy(dst, device.Arg{Mem: src, Offset: 95}, 5); err != nil {
		t.Fatal(err)
	}
	if want := []byte{7, 7, 0, 0, 0, 0, 0, 7, 7, 7}; !slices.Equal(host, want) {
		t.Errorf("the host has %v, want %v", host, want)
	}
	for _, c := range []struct{ off, n int64 }{{96, 5}, {-1, 1}, {0, -1}, {101, 0}} {
		if err := q.Copy(dst, device.Arg{Mem: src, Offset: c.off}, c.n); err == nil {
			t.Errorf("a copy of %d bytes from %d is accepted", c.n, c.off)
		}
	}
	if err := q.Copy(device.Arg{Mem: src}, dst, 3); err != nil || host[2] != 0 || host[7] != 7 {
		t.Error(err, host)
	}
}
