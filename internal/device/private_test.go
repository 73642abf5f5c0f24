package device

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestPrivatePool follows PyTorch's rules of a graph's pool through a small program.
func TestPrivatePool(t *testing.T) {
	dev := newFake(40 * mib)
	a := NewAllocator(dev, Config{})
	a.Free(alloc(t, a, 1000, 0))
	p := a.NewPool()
	if err := p.Begin(0); err != nil {
		t.Fatal(err)
	}
	x := alloc(t, a, 1000, 0)
	other := alloc(t, a, 1000, 1) // a queue that the pool does not serve
	p.End(0)
	if x.pool.owner != p || other.pool.owner != nil {
		t.Error("a block of the wrong pool")
	}
	a.Free(x)
	if y := alloc(t, a, 1000, 0); y.mem.Addr == x.mem.Addr {
		t.Error("a block of the pool was handed to somebody else")
	}
	y, err := p.AllocFor(1000, 0, "", nil)
	if err != nil || y.mem.Addr != x.mem.Addr {
		t.Errorf("the pool's own block: %v, %v", y, err)
	}
	wantStats(t, a, map[string]int64{"reserved_bytes.all.current": 6 * mib, "segment.small_pool.current": 3,
		"reserved_bytes_by_private_pools.0_1.current": 2 * mib, "reserved_bytes_by_private_pools.0_1.allocated": 2 * mib})
	a.Inventory(func(l Layout) {
		all := l.Segments
		owners := map[PoolID]int{}
		for _, s := range all {
			owners[s.Owner]++
		}
		if len(all) != 3 || owners[PoolID{}] != 2 || owners[p.ID()] != 1 {
			t.Errorf("segments by owner: %v", owners)
		}
	})
	var oom *OOMError
	if _, err := a.Alloc(39*mib, 0); !errors.As(err, &oom) || oom.Private != 2*mib {
		t.Errorf("%+v", err)
	}
	a.Free(y)
	check(t, a)
	closePool(t, a, p, dev)
}

// closePool: the pool's segment outlives an emptied cache, and goes with the first one after Close.
func closePool(t *testing.T, a *Allocator, p *PrivatePool, dev *fake) {
	t.Helper()
	for _, want := range []int64{2 * mib, 0} {
		if err := a.EmptyCache(); err != nil {
			t.Fatal(err)
		}
		check(t, a)
		if got := p.Reserved().Current; got != want {
			t.Errorf("%d bytes are reserved, want %d", got, want)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.AllocFor(1, 0, "", nil); err == nil || p.Begin(0) == nil {
		t.Error("a closed pool gives memory")
	}
	if len(a.private) != 0 || len(a.StatsMap()) != 9*3*4+2*4+6 || len(dev.gone) == 0 {
		t.Error("a closed pool without memory is still there")
	}
}

// TestPrivatePoolIsShortOfMemory: while a pool serves, nothing is given up; a closed pool's memory is.
func TestPrivatePoolIsShortOfMemory(t *testing.T) {
	a := NewAllocator(newFake(40*mib), Config{})
	a.Free(alloc(t, a, 30*mib, 0))
	p := a.NewPool()
	mustDo(t, p.Begin(1))
	for what, f := range map[string]func() error{"closed": p.Close, "emptied": a.EmptyCache, "serves": func() error { return a.NewPool().Begin(1) }} {
		if err := f(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := a.Alloc(20*mib, 1); !errors.Is(err, ErrOutOfMemory) {
		t.Error(err)
	}
	p.End(0)
	p.End(1)
	b, err := p.AllocFor(20*mib, 1, "", nil) // the cache goes
	if err != nil {
		t.Fatal(err)
	}
	a.Free(b)
	if _, err := a.Alloc(30*mib, 0); !errors.Is(err, ErrOutOfMemory) {
		t.Error(err)
	}
	mustDo(t, p.Close())
	alloc(t, a, 30*mib, 0)
	check(t, a)
	wantStats(t, a, map[string]int64{"reserved_bytes.all.current": 30 * mib})
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestUsesWhilePoolServes: no mark is recorded or asked in the meantime, blocks stay active, and then go: those used before
// behind marks, those used inside at once.
func TestUsesWhilePoolServes(t *testing.T) {
	var marks []*flag
	a := NewAllocator(newFake(100*mib), Config{Marks: func(int) (Mark, error) {
		marks = append(marks, new(flag))
		return marks[len(marks)-1], nil
	}})
	before, inside, asked := alloc(t, a, 100, 0), alloc(t, a, 100, 0), alloc(t, a, 100, 0)
	a.RecordUse(before, 1)
	a.RecordUse(asked, 1)
	a.Free(asked)
	p := a.NewPool()
	mustDo(t, p.Begin(0))
	marks[0].err = errors.New("asked while work is recorded")
	a.RecordUse(inside, 2)
	a.Free(before, inside)
	alloc(t, a, 100, 0)
	wantStats(t, a, map[string]int64{"active.all.current": 4, "allocation.all.current": 1})
	check(t, a)
	p.End(0)
	if len(marks) != 2 {
		t.Errorf("%d marks", len(marks))
	}
	wantStats(t, a, map[string]int64{"active.all.current": 3})
	marks[0].err, marks[0].done, marks[1].done = nil, true, true
	alloc(t, a, 100, 0)
	wantStats(t, a, map[string]int64{"active.all.current": 2})
	check(t, a)
}

// TestRandomPools runs random programs over pools that come and go: no block is ever of another pool's segment, and the
// invariants hold.
func TestRandomPools(t *testing.T) {
	r := testutil.Rand(t)
	for range 10 {
		dev := newFake(1 << 30)
		a := NewAllocator(dev, Config{})
		pools := []*PrivatePool{nil}
		owner := map[uint64]*PrivatePool{} // of segments
		var live []*Block
		for i := range 500 {
			switch n := r.IntN(20); {
			case n < 10:
				p := pools[r.IntN(len(pools))]
				b, err := a.allocate(1+r.Int64N(1<<(1+r.IntN(24))), r.IntN(3), p, "", nil)
				if err != nil {
					t.Fatal(err)
				}
				first := b
				for first.prev != nil {
					first = first.prev
				}
				if was, ok := owner[first.mem.Addr]; ok && was != p {
					t.Fatalf("%v is of another pool's segment", b)
				}
				owner[first.mem.Addr] = p
				live = append(live, b)
			case n < 17 && len(live) > 0:
				j := r.IntN(len(live))
				a.Free(live[j])
				live = slices.Delete(live, j, j+1)
			case n == 17 && len(pools) < 5:
				pools = append(pools, a.NewPool())
			case n == 18 && len(pools) > 1:
				mustDo(t, pools[1].Close())
				pools = slices.Delete(pools, 1, 2)
			case n == 19:
				mustDo(t, a.EmptyCache())
				for at := range owner {
					if _, ok := a.segments[at]; !ok {
						delete(owner, at)
					}
				}
			}
			if i%23 == 0 {
				check(t, a)
			}
		}
		a.Free(live...)
		for _, p := range pools[1:] {
			mustDo(t, p.Close())
		}
		mustDo(t, a.EmptyCache())
		check(t, a)
		if len(dev.live) != 0 || len(a.private) != 0 {
			t.Fatalf("%d segments, %d pools are left", len(dev.live), len(a.private))
		}
	}
}
