package device

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

const mib = 1 << 20

// TestRounding has the vectors of PyTorch's rule: request, block, segment, block with 4 and with 8 divisions.
func TestRounding(t *testing.T) {
	for _, v := range [][5]int64{
		{1, 512, 2 * mib, 512, 512},
		{512, 512, 2 * mib, 512, 512},
		{513, 1024, 2 * mib, 1024, 1024},
		{1200, 1536, 2 * mib, 1536, 1536},
		{5000, 5120, 2 * mib, 5120, 5120},
		{1048576, 1048576, 2 * mib, 1048576, 1048576},
		{1048577, 1049088, 20 * mib, 1310720, 1179648},
		{10485248, 10485248, 20 * mib, 10485760, 10485760},
		{10485249, 10485760, 10 * mib, 10485760, 10485760},
		{11534337, 11534848, 12 * mib, 12582912, 12582912},
		{314572801, 314573312, 316669952, 335544320, 335544320},
		{1073741825, 1073742336, 1075838976, 1342177280, 1207959552},
	} {
		for i, d := range []int64{0, 4, 8} {
			c := Conf{Divisions: UniformDivisions(d)}
			want := v[1]
			if i > 0 {
				want = v[i+2]
			}
			if got := c.round(v[0]); got != want {
				t.Errorf("%d bytes with %d divisions round to %d, want %d", v[0], d, got, want)
			}
		}
		c := Conf{}
		c = c.withDefaults()
		if got := c.segmentFor(v[1]); got != v[2] {
			t.Errorf("segment for %d bytes is %d, want %d", v[1], got, v[2])
		}
	}
}

// TestDivisionsBySize is the case of PyTorch's own test of the option.
func TestDivisionsBySize(t *testing.T) {
	c := Conf{Divisions: [16]int64{8, 8, 8, 8, 8, 8, 8, 2, 4, 2, 4, 1, 1, 1, 1, 1}}
	for mb, want := range map[int64]int64{0: 8, 32: 8, 64: 8, 127: 8, 128: 2, 256: 4, 512: 2, 1024: 4, 2048: 1, 1 << 20: 1} {
		if got := c.divisions(mb*mib + 5); got != want {
			t.Errorf("%d MiB: %d divisions, want %d", mb, got, want)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []Config{{Gap: -1}, {Conf: Conf{Divisions: UniformDivisions(3)}}, {Conf: Conf{MaxSplit: 20*mib - 1}}, {Conf: Conf{MaxNonSplitRounding: 1}},
		{Conf: Conf{GCThreshold: 1}}, {Conf: Conf{GCThreshold: -0.1}}, {Conf: Conf{LargeSegment: 11 * mib}}, {Conf: Conf{LargeSegment: 8 * mib}},
		{Conf: Conf{LargeSegment: 40 * mib, MaxSplit: 30 * mib}}, {Conf: Conf{Fraction: 1.1}}, {Conf: Conf{Reserve: -1}}, {Conf: Conf{ReservePart: 2}}} {
		if c.Check() == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

// TestCounters follows PyTorch's source through a small program, by hand.
func TestCounters(t *testing.T) {
	a := NewAllocator(newFake(1<<30), Config{})
	x := alloc(t, a, 1, 0)
	wantStats(t, a, map[string]int64{
		"allocation.all.current": 1, "allocation.small_pool.current": 1, "allocation.large_pool.current": 0,
		"segment.all.current": 1, "segment.small_pool.allocated": 1,
		"allocated_bytes.all.current": 512, "requested_bytes.all.current": 1, "active_bytes.small_pool.current": 512,
		"reserved_bytes.all.current": 2 * mib, "inactive_split.all.current": 1, "inactive_split_bytes.all.current": 2*mib - 512,
		"num_device_alloc": 1, "max_split_size": -1, "oversize_allocations.current": 0,
	})
	y := alloc(t, a, 1000, 0)
	wantStats(t, a, map[string]int64{
		"allocated_bytes.all.current": 1536, "requested_bytes.all.current": 1001, "inactive_split.all.current": 1,
		"inactive_split_bytes.all.current": 2*mib - 1536, "inactive_split_bytes.all.freed": 1024, "num_device_alloc": 1,
	})
	a.Free(x)
	wantStats(t, a, map[string]int64{
		"allocated_bytes.all.current": 1024, "allocated_bytes.all.peak": 1536, "allocated_bytes.all.freed": 512, "allocation.all.freed": 1,
		"inactive_split.all.current": 2, "inactive_split_bytes.all.current": 2*mib - 1024, "requested_bytes.all.current": 1000,
	})
	a.Free(y)
	wantStats(t, a, map[string]int64{
		"allocated_bytes.all.current": 0, "active.all.current": 0, "inactive_split.all.current": 0, "inactive_split_bytes.all.current": 0,
		"inactive_split.all.peak": 2, "reserved_bytes.all.current": 2 * mib, "segment.all.current": 1, "num_device_free": 0,
	})
	big := alloc(t, a, 3*mib, 0)
	wantStats(t, a, map[string]int64{"segment.large_pool.current": 1, "reserved_bytes.large_pool.current": 20 * mib, "inactive_split_bytes.large_pool.current": 17 * mib})
	a.Free(big)
	a.ResetPeak()
	a.ResetAccumulated()
	wantStats(t, a, map[string]int64{"reserved_bytes.all.peak": 22 * mib, "allocated_bytes.all.peak": 0, "allocated_bytes.all.allocated": 0, "num_device_alloc": 0})
	if err := a.EmptyCache(); err != nil {
		t.Fatal(err)
	}
	wantStats(t, a, map[string]int64{"reserved_bytes.all.current": 0, "reserved_bytes.all.freed": 22 * mib, "num_device_free": 2, "num_sync_all_streams": 1, "segment.all.current": 0})
	check(t, a)
	if n := len(a.StatsMap()); n != 9*3*4+2*4+6 {
		t.Errorf("%d keys", n)
	}
}

func TestSplitThresholds(t *testing.T) {
	a := NewAllocator(newFake(1<<30), Config{})
	for _, c := range []struct{ ask, want int64 }{
		{20*mib - mib, 20 * mib}, // a rest of exactly 1 MiB stays with the block
		{19*mib - 512, 19*mib - 512},
		{10*mib - 512, 10*mib - 512}, // 10 MiB and 512 bytes are cut off 20 MiB
	} {
		if err := a.EmptyCache(); err != nil {
			t.Fatal(err)
		}
		b := alloc(t, a, c.ask, 0)
		if b.Size() != c.want {
			t.Errorf("%d bytes got a block of %d, want %d", c.ask, b.Size(), c.want)
		}
		a.Free(b)
	}
}

func TestBestFit(t *testing.T) {
	a := NewAllocator(newFake(1<<30), Config{})
	var odd, even []*Block
	for i := range 12 {
		b := alloc(t, a, 512*int64(1+i/2%3), 0)
		if i%2 == 1 {
			odd = append(odd, b)
		} else {
			even = append(even, b)
		}
	}
	for _, i := range []int{5, 1, 3, 0, 4, 2} { // freed in disorder: 512, 1024, 1536 twice each
		a.Free(even[i])
	}
	for i, want := range []struct {
		ask  int64
		addr uint64
	}{{600, even[1].mem.Addr}, {1024, even[4].mem.Addr}, {700, even[2].mem.Addr}, {512, even[0].mem.Addr}} {
		if b := alloc(t, a, want.ask, 0); b.mem.Addr != want.addr {
			t.Errorf("request %d got %#x, want %#x", i, b.mem.Addr, want.addr)
		}
	}
	if b := alloc(t, a, 512, 1); a.StatsMap()["segment.all.current"] != 2 || b.queue != 1 {
		t.Error("another queue got a block of the first one's segment")
	}
	check(t, a)
	_ = odd
}

// bestFit finds, by walking every segment, the address a request must get from the cache; 0 if it must get none.
func bestFit(a *Allocator, n int64, queue int) uint64 {
	size := a.cfg.round(n)
	var best *Block
	for _, first := range a.segments {
		for b := first; b != nil; b = b.next {
			if b.state != free || b.queue != queue || b.mem.Size < size || (b.pool.kind == SmallPool) != (size <= smallLimit) {
				continue
			}
			if best == nil || compareBlocks(b, best) < 0 {
				best = b
			}
		}
	}
	if best == nil {
		return 0
	}
	return best.mem.Addr
}

// TestRandomPrograms compares every choice with a search of all blocks, and checks the invariants throughout.
func TestRandomPrograms(t *testing.T) {
	r := testutil.Rand(t)
	for range 20 {
		dev := newFake(1 << 30)
		var marks []*flag
		a := NewAllocator(dev, Config{Marks: func(int) (Mark, error) {
			marks = append(marks, new(flag))
			return marks[len(marks)-1], nil
		}})
		var live []*Block
		for i := range 600 {
			switch n := r.IntN(10); {
			case n < 6:
				ask := 1 + r.Int64N(1<<(1+r.IntN(24)))
				queue := r.IntN(3)
				for _, e := range marks {
					e.done = e.done || r.IntN(3) == 0
				}
				a.mu.Lock()
				if err := a.processMarks(false); err != nil {
					t.Fatal(err)
				}
				want := bestFit(a, ask, queue)
				a.mu.Unlock()
				b := alloc(t, a, ask, queue)
				if want != 0 && b.mem.Addr != want {
					t.Fatalf("%d bytes for queue %d at %#x, want %#x", ask, queue, b.mem.Addr, want)
				}
				live = append(live, b)
			case len(live) > 0:
				j := r.IntN(len(live))
				if r.IntN(4) == 0 {
					a.RecordUse(live[j], r.IntN(3))
				}
				a.Free(live[j])
				live[j] = live[len(live)-1]
				live = live[:len(live)-1]
			}
			if i%37 == 0 {
				check(t, a)
			}
		}
		for _, b := range live {
			a.Free(b)
		}
		for _, e := range marks {
			e.done = true
		}
		if err := a.EmptyCache(); err != nil {
			t.Fatal(err)
		}
		check(t, a)
		if len(dev.live) != 0 || a.waiting != 0 {
			t.Fatalf("%d segments, %d marks are left", len(dev.live), a.waiting)
		}
	}
}

func TestLadder(t *testing.T) {
	dev := newFake(40 * mib)
	a := NewAllocator(dev, Config{})
	z, y := alloc(t, a, 20*mib, 0), alloc(t, a, 16*mib, 0)
	wantStats(t, a, map[string]int64{"num_alloc_retries": 0, "num_ooms": 0, "num_device_free": 0})
	a.Free(y)
	b := alloc(t, a, 18*mib, 1) // queue 1 cannot have queue 0's cached 16 MiB: they go back to the device
	wantStats(t, a, map[string]int64{"num_alloc_retries": 1, "num_ooms": 0, "num_device_free": 1, "num_device_alloc": 3})
	_, err := a.Alloc(30*mib, 0)
	var oom *OOMError
	if !errors.As(err, &oom) || !errors.Is(err, ErrOutOfMemory) {
		t.Fatal(err)
	}
	want := OOMError{Device: "fake", Asked: 30 * mib, Segment: 30 * mib, Total: 40 * mib, Allocated: 38 * mib, Active: 38 * mib, Reserved: 38 * mib, Free: 2 * mib}
	if *oom != want {
		t.Errorf("got %+v\nwant %+v", *oom, want)
	}
	wantStats(t, a, map[string]int64{"num_alloc_retries": 2, "num_ooms": 1})
	a.Free(b)
	a.Free(z)
	check(t, a)
}

func TestLimits(t *testing.T) {
	dev := newFake(100 * mib)
	a := NewAllocator(dev, Config{})
	if err := a.SetFraction(0.25); err != nil {
		t.Fatal(err)
	}
	b := alloc(t, a, 20*mib, 0)
	_, err := a.Alloc(10*mib, 0)
	var oom *OOMError
	if !errors.As(err, &oom) || oom.Limit != 25*mib || oom.Free != 5*mib {
		t.Fatalf("%+v", err)
	}
	for _, s := range []string{"10.00 MiB", "limited to 25.00 MiB", "5.00 MiB are free", "20.00 MiB are allocated", "fake"} {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q lacks %q", err, s)
		}
	}
	a.SetLimit(0)
	a.Free(alloc(t, a, 10*mib, 0))
	a.Free(b)
	for _, f := range []float64{-0.1, 1.1} {
		if a.SetFraction(f) == nil {
			t.Errorf("a fraction of %v is accepted", f)
		}
	}
	if NewAllocator(newFake(0), Config{}).SetFraction(1) == nil {
		t.Error("a fraction of an unknown size is accepted")
	}
	if _, err := a.Alloc(1<<60, 0); err == nil || !strings.Contains(err.Error(), "more than 1 EiB") {
		t.Error(err)
	}
	for _, c := range [][2]int64{{-1, 0}, {1, -1}, {1, maxQueues}} {
		if _, err := a.Alloc(c[0], int(c[1])); err == nil || errors.Is(err, ErrOutOfMemory) {
			t.Errorf("%v: %v", c, err)
		}
	}
}

func TestOtherDeviceErrorsAreReturned(t *testing.T) {
	dev := newFake(100 * mib)
	a := NewAllocator(dev, Config{})
	dev.fails = errors.New("the bus fell off")
	if _, err := a.Alloc(1, 0); !errors.Is(err, dev.fails) || errors.Is(err, ErrOutOfMemory) {
		t.Error(err)
	}
	wantStats(t, a, map[string]int64{"num_ooms": 0, "num_alloc_retries": 0})
}

func TestUsesByOtherQueues(t *testing.T) {
	var marks []*flag
	var broken error
	a := NewAllocator(newFake(100*mib), Config{Marks: func(int) (Mark, error) {
		if broken != nil {
			return nil, broken
		}
		marks = append(marks, new(flag))
		return marks[len(marks)-1], nil
	}})
	x := alloc(t, a, 100, 0)
	a.RecordUse(x, 0)
	a.RecordUse(x, 1)
	a.RecordUse(x, 1)
	a.RecordUse(x, 2)
	a.Free(x)
	if len(marks) != 2 {
		t.Fatalf("%d marks", len(marks))
	}
	wantStats(t, a, map[string]int64{"allocated_bytes.all.current": 0, "active_bytes.all.current": 512, "requested_bytes.all.current": 100, "allocation.all.current": 0, "active.all.current": 1})
	marks[0].done = true
	if y := alloc(t, a, 100, 0); y.mem.Addr == x.mem.Addr {
		t.Error("memory that queue 2 uses was handed out")
	}
	marks[1].done = true
	if y := alloc(t, a, 100, 0); y.mem.Addr != x.mem.Addr {
		t.Error("memory that nobody uses was not handed out")
	}
	check(t, a)

	broken = errors.New("no marks")
	z := alloc(t, a, 100, 0)
	a.RecordUse(z, 1)
	a.Free(z)
	if _, err := a.Alloc(1, 0); !errors.Is(err, broken) {
		t.Error(err)
	}
	broken = nil
	alloc(t, a, 1, 0)
	marks[2].err = errors.New("launch failed")
	if err := a.EmptyCache(); !errors.Is(err, marks[2].err) {
		t.Error(err)
	}
	check(t, a)
}

func TestOversizeBlocks(t *testing.T) {
	dev := newFake(200 * mib)
	a := NewAllocator(dev, Config{Conf: Conf{MaxSplit: 32 * mib}})
	a.Free(alloc(t, a, 64*mib, 0))
	small := alloc(t, a, 12*mib, 0)
	if small.Size() != 12*mib {
		t.Errorf("a request of 12 MiB took an oversize block: %v", small)
	}
	over := alloc(t, a, 40*mib, 0) // 64 exceeds it by more than 20 MiB
	if over.Size() != 40*mib {
		t.Errorf("got %v", over)
	}
	near := alloc(t, a, 50*mib, 0)
	if near.Size() != 64*mib {
		t.Errorf("got %v", near)
	}
	wantStats(t, a, map[string]int64{"oversize_allocations.current": 2, "oversize_segments.current": 2, "max_split_size": 32 * mib})
	a.Free(near)
	a.Free(over)
	dev.gone = nil
	alloc(t, a, 100*mib, 0) // 84 MiB are left: the two oversize blocks make room
	if len(dev.gone) != 2 || dev.gone[0] != 64*mib || dev.gone[1] != 40*mib {
		t.Errorf("went back: %v", dev.gone)
	}
	wantStats(t, a, map[string]int64{"num_alloc_retries": 0, "oversize_segments.current": 1})
	check(t, a)
}

func TestCollectionByAge(t *testing.T) {
	dev := newFake(1000 * mib)
	a := NewAllocator(dev, Config{Conf: Conf{GCThreshold: 0.5}})
	a.SetLimit(200 * mib)
	old, young := alloc(t, a, 60*mib, 0), alloc(t, a, 50*mib, 0)
	a.Free(old)
	for range 20 {
		a.Free(alloc(t, a, 11*mib, 1))
	}
	a.Free(young)
	alloc(t, a, 70*mib, 0) // 122 MiB are reserved, 22 too many
	if len(dev.gone) != 1 || dev.gone[0] != 60*mib {
		t.Errorf("went back: %v", dev.gone)
	}
	check(t, a)
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if v, ok := recover().(string); !ok || !strings.Contains(v, what) {
			t.Errorf("panic %v, want one with %q", v, what)
		}
	}()
	f()
}

func TestPoison(t *testing.T) {
	dev := newFake(100 * mib)
	dev.info.Host = true
	a := NewAllocator(dev, Config{})
	before := alloc(t, a, 1000, 0)
	a.Free(before)
	if err := a.Poison(true); err != nil {
		t.Fatal(err)
	}
	x, y := alloc(t, a, 1000, 0), alloc(t, a, 1000, 0)
	mem := hostBytes(x.Mem())
	for i := range mem {
		mem[i] = 1
	}
	a.Free(x)
	check(t, a)
	mem[77] = 5
	if err := a.Check(); err == nil || !strings.Contains(err.Error(), "byte 77") {
		t.Error(err)
	}
	mustPanic(t, "not in use", func() { a.Free(x) })
	mustPanic(t, "byte 77", func() { a.Alloc(1000, 0) })
	a.Free(y)
	if err := a.Poison(false); err != nil {
		t.Fatal(err)
	}
	if NewAllocator(newFake(1), Config{}).Poison(true) == nil {
		t.Error("memory of a device can be poisoned")
	}
}

func TestMisuse(t *testing.T) {
	a, other := NewAllocator(newFake(100*mib), Config{}), NewAllocator(newFake(100*mib), Config{})
	b := alloc(t, a, 1, 0)
	mustPanic(t, "not in use", func() { other.Free(b) })
	a.Free(b)
	mustPanic(t, "freed", func() { a.Free(b) })
	mustPanic(t, "used", func() { a.RecordUse(b, 1) })
	e := alloc(t, a, 0, 0)
	if e.Size() != 0 || e.Mem().Size != 0 {
		t.Error(e)
	}
	a.RecordUse(e, 1)
	a.Free(e)
	a.Free(e)
	wantStats(t, a, map[string]int64{"allocation.all.allocated": 1})
}

func TestConcurrentUse(t *testing.T) {
	a := NewAllocator(newFake(1<<30), Config{})
	var wg sync.WaitGroup
	for q := range 4 {
		wg.Go(func() {
			var held []*Block
			for i := range 2000 {
				b, err := a.Alloc(int64(1+i*7919%300000), q)
				if err != nil {
					t.Error(err)
					return
				}
				if held = append(held, b); len(held) > 20 {
					a.Free(held[i%20])
					held[i%20] = held[20]
					held = held[:20]
				}
				if i%500 == 0 {
					a.Summary()
				}
			}
			for _, b := range held {
				a.Free(b)
			}
		})
	}
	wg.Wait()
	check(t, a)
	wantStats(t, a, map[string]int64{"allocation.all.current": 0, "allocation.all.allocated": 8000})
}

func TestNoGarbage(t *testing.T) {
	a := NewAllocator(newFake(1<<30), Config{})
	for _, n := range []int64{4, 3000, 2 * mib} {
		if got := testing.AllocsPerRun(100, func() { a.Free(alloc(t, a, n, 0)) }); got != 0 {
			t.Errorf("%v Go allocations for %d bytes", got, n)
		}
	}
}

func BenchmarkAllocFree(b *testing.B) {
	for _, c := range []struct {
		name string
		n    int64
		held int
	}{{"small", 64, 0}, {"small-of-2000", 64, 2000}, {"large", 3 * mib, 0}, {"large-of-200", 3 * mib, 200}} {
		b.Run(c.name, func(b *testing.B) {
			a := NewAllocator(newFake(1<<40), Config{})
			var held []*Block
			for i := range c.held {
				held = append(held, alloc(b, a, c.n+int64(i%9*600), 0))
			}
			for i := 0; i < len(held); i += 2 {
				a.Free(held[i])
			}
			b.ReportAllocs()
			for b.Loop() {
				x, _ := a.Alloc(c.n, 0)
				a.Free(x)
			}
		})
	}
}

// metered is a device that says what it has left.
type metered struct {
	*fake
	unused int64
	knows  bool
}

func (m *metered) Unused() (int64, bool) { return m.unused, m.knows }

// TestUnusedIsAsked: what an out-of-memory tells as free is what the device says, which knows of other processes.
func TestUnusedIsAsked(t *testing.T) {
	for _, c := range []struct {
		knows       bool
		limit, want int64
	}{{true, 0, 3 * mib}, {false, 0, 40 * mib}, {true, 2 * mib, 2 * mib}, {true, 20 * mib, 3 * mib}} {
		a := NewAllocator(&metered{newFake(40 * mib), 3 * mib, c.knows}, Config{})
		a.SetLimit(c.limit)
		_, err := a.Alloc(50*mib, 0)
		var oom *OOMError
		if !errors.As(err, &oom) || oom.Free != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
