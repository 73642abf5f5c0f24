package device

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestExpandable follows PyTorch's source through a small program, by hand.
func TestExpandable(t *testing.T) {
	dev := newFake(800 * mib)
	a := NewAllocator(dev, Config{Conf: Conf{Expandable: true}})
	x := alloc(t, a, 1, 0)
	wantStats(t, a, map[string]int64{"reserved_bytes.small_pool.current": 2 * mib, "segment.all.current": 0, "num_device_alloc": 1,
		"inactive_split.all.current": 0, "allocated_bytes.all.current": 512})
	if len(dev.ranges) != 1 || dev.ranges[x.mem.Addr] != 900*mib {
		t.Errorf("reserved %v, want 9/8 of the memory", dev.ranges)
	}
	y := alloc(t, a, 30*mib, 0) // two pages of 20 MiB; the rest is free
	z := alloc(t, a, 25*mib, 0) // 10 MiB are there: one page more, in the same segment
	if z.mem.Addr != y.mem.Addr+30*mib {
		t.Errorf("%v does not follow %v", z, y)
	}
	wantStats(t, a, map[string]int64{"reserved_bytes.large_pool.current": 60 * mib, "num_device_alloc": 3, "allocated_bytes.large_pool.current": 55 * mib})
	a.Free(y)
	mustDo(t, a.EmptyCache()) // the first page goes; of the second, 10 MiB are z's; the third has a free tail
	wantStats(t, a, map[string]int64{"reserved_bytes.large_pool.current": 40 * mib, "num_device_free": 1})
	check(t, a)
	var runs []int64
	a.Inventory(func(l Layout) {
		for _, s := range l.Segments {
			if !s.Expandable {
				t.Errorf("%+v is not expandable", s)
			}
			runs = append(runs, s.Mem.Size)
		}
	})
	if !slices.Equal(runs, []int64{2 * mib, 40 * mib}) {
		t.Errorf("runs of memory: %v", runs)
	}
	w := alloc(t, a, 28*mib, 0) // the hole of 20 MiB and the 10 behind it, at the first address
	if w.mem.Addr != y.mem.Addr {
		t.Errorf("%v is not in the hole at %#x", w, y.mem.Addr)
	}
	wantStats(t, a, map[string]int64{"reserved_bytes.large_pool.current": 60 * mib, "num_device_alloc": 4})
	check(t, a)
	a.Free(x, z, w)
	mustDo(t, a.EmptyCache())
	check(t, a)
	if len(dev.ranges)+len(dev.pages) != 0 {
		t.Errorf("%v and %v are left", dev.ranges, dev.pages)
	}
}

// TestFragmentation is a program that fits in expandable segments only: what is free is in pieces, beside what is in use.
func TestFragmentation(t *testing.T) {
	for _, expandable := range []bool{false, true} {
		dev := newFake(200 * mib)
		a := NewAllocator(dev, Config{Conf: Conf{Expandable: expandable}})
		var odd, even []*Block
		for i := range 20 {
			b := alloc(t, a, 9*mib, 0)
			if i%2 == 0 {
				odd = append(odd, b)
			} else {
				even = append(even, b)
			}
		}
		a.Free(odd...)
		a.Free(even[5:]...)
		_, err := a.Alloc(110*mib, 0)
		var oom *OOMError
		if expandable != (err == nil) || err != nil && !errors.As(err, &oom) {
			t.Errorf("expandable %v: %v", expandable, err)
		}
		check(t, a)
	}
}

// TestBestFitGrowsLast: of free blocks that are large enough, the one with addresses to grow into is taken last.
func TestBestFitGrowsLast(t *testing.T) {
	a := NewAllocator(newFake(800*mib), Config{Conf: Conf{Expandable: true}})
	x, keep := alloc(t, a, 16*mib, 0), alloc(t, a, 10*mib, 0) // a tail of 14 MiB, before the hole
	a.Free(x)
	if y := alloc(t, a, 12*mib, 0); y.mem.Addr != x.mem.Addr {
		t.Errorf("%v was cut off what can grow; %v was free", y, x.mem)
	}
	a.Free(keep)
	check(t, a)
}

func TestExpandableWithoutPower(t *testing.T) {
	plain := struct{ Device }{newFake(1 << 30)} // no method beyond Device's, and no Unwrap
	c := Conf{Expandable: true}
	if err := c.CheckFor(plain); err == nil || !strings.Contains(err.Error(), "virtual memory management") {
		t.Error(err)
	}
	mustPanic(t, "virtual memory management", func() { NewAllocator(plain, Config{Conf: c}) })
	dev := newFake(1 << 30)
	a := NewAllocator(dev, Config{Conf: c})
	dev.fails = errors.New("the bus fell off")
	if _, err := a.Alloc(1, 0); !errors.Is(err, dev.fails) || errors.Is(err, ErrOutOfMemory) {
		t.Error(err)
	}
}

// pageModel is what a device's pages must be, by the allocator's events of mapping alone.
type pageModel struct {
	t      *testing.T
	pages  map[uint64]int64
	mapped int64
}

func (m *pageModel) observe(e *Event) {
	switch {
	case e.Kind == KindMap:
		m.pages[e.Mem.Addr] = e.Mem.Size
		m.mapped += e.Bytes
	case e.Kind == KindUnmap:
		m.mapped -= e.Bytes
	case m.t != nil:
		m.t.Errorf("an event of %v", e.Kind)
	}
}

// TestRandomExpandable runs random programs, private pools and failing devices among them. Throughout, the invariants hold; no
// two blocks overlap; every byte handed out has memory behind it; what is reserved is what the device has mapped, as its own
// account and the events tell; and what can be served is: a request fails only if the device has too little even with every
// free page given back.
func TestRandomExpandable(t *testing.T) {
	r := testutil.Rand(t)
	for range 12 {
		dev := newFake(300 * mib)
		var s Stream
		m := &pageModel{t: t, pages: map[uint64]int64{}}
		s.Observe(m.observe, KindMap, KindUnmap, KindSegmentAlloc, KindSegmentFree)
		a := NewAllocator(dev, Config{Stream: &s, Conf: Conf{Expandable: true,
			LargeSegment: []int64{0, 10 * mib}[r.IntN(2)], Reserve: []int64{0, 100 * mib}[r.IntN(2)]}})
		pools := []*PrivatePool{nil, a.NewPool()}
		var live []*Block
		for range 400 {
			switch n := r.IntN(20); {
			case n < 11:
				ask := 1 + r.Int64N(1<<(1+r.IntN(26)))
				b, err := a.allocate(ask, r.IntN(2), pools[r.IntN(2)], "", nil)
				if err == nil {
					live = append(live, b)
				} else if least := roundToPage(ask, mib*20); !errors.Is(err, ErrOutOfMemory) || pinned(a)+least+least <= 300*mib {
					t.Fatalf("%d bytes, where pages with %d in all are in use: %v", ask, pinned(a), err)
				}
			case n < 19 && len(live) > 0:
				j := r.IntN(len(live))
				a.Free(live[j])
				live = slices.Delete(live, j, j+1)
			default:
				mustDo(t, a.EmptyCache())
			}
			wantPages(t, a, dev, m, live)
		}
		a.Free(live...)
		mustDo(t, pools[1].Close())
		mustDo(t, a.EmptyCache())
		check(t, a)
		if len(dev.ranges)+len(dev.pages) != 0 || dev.room != 300*mib || a.Stats().NumDeviceFree == 0 {
			t.Fatalf("%v and %v are left, of %d bytes", dev.ranges, dev.pages, dev.room)
		}
	}
}

// pinned is the bytes of pages that blocks in use or a private pool keep mapped.
func pinned(a *Allocator) (n int64) {
	for _, first := range a.segments {
		last := int64(-1)
		for b := first; b != nil; b = b.next {
			if b.state != live && b.pool.owner == nil || b.state == unmapped {
				continue
			}
			at := int64(b.mem.Addr - b.seg.addr)
			from, to := max(at/b.seg.page, last+1), (at+b.mem.Size-1)/b.seg.page
			n += (to - from + 1) * b.seg.page
			last = to
		}
	}
	return n
}

func wantPages(t *testing.T, a *Allocator, dev *fake, m *pageModel, live []*Block) {
	t.Helper()
	check(t, a)
	mapped := int64(0)
	for n := range maps.Values(dev.pages) {
		mapped += n
	}
	if got := a.Stats().ReservedBytes.All.Current; got != mapped || m.mapped != mapped || dev.room != 300*mib-mapped {
		t.Fatalf("%d bytes are reserved; the device has mapped %d, events tell of %d, %d are left", got, mapped, m.mapped, dev.room)
	}
	end := uint64(0)
	for _, b := range slices.SortedFunc(slices.Values(live), func(x, y *Block) int { return int(int64(x.mem.Addr) - int64(y.mem.Addr)) }) {
		if b.mem.Addr < end {
			t.Fatalf("%v overlaps the block before it", b)
		}
		end = b.mem.Addr + uint64(b.mem.Size)
		for at := b.mem.Addr - uint64(int64(b.mem.Addr-b.seg.addr)%b.seg.page); at < end; at += uint64(b.seg.page) {
			if dev.pages[at] == 0 {
				t.Fatalf("%v has no memory behind %#x", b, at)
			}
		}
	}
}
