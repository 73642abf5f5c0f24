package device

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// replay is the memory of a device as events alone tell it.
type replay struct {
	segments  map[uint64]int64
	blocks    map[uint64]*told
	allocated int64
	active    int64
	wrong     error
}

// told is a block that was handed out.
type told struct {
	mem       Mem
	asked     int64
	requested bool // to be free
}

func (r *replay) fail(format string, args ...any) {
	if r.wrong == nil {
		r.wrong = fmt.Errorf(format, args...)
	}
}

func (r *replay) observe(e *Event) {
	b := r.blocks[e.Mem.Addr]
	switch e.Kind {
	case KindSegmentAlloc:
		r.segments[e.Mem.Addr] = e.Bytes
	case KindSegmentFree:
		if r.segments[e.Mem.Addr] != e.Bytes {
			r.fail("a segment of %d bytes at %#x goes, it had %d", e.Bytes, e.Mem.Addr, r.segments[e.Mem.Addr])
		}
		for at := range r.blocks {
			if at-e.Mem.Addr < uint64(e.Bytes) {
				r.fail("a segment goes with a block at %#x", at)
			}
		}
		delete(r.segments, e.Mem.Addr)
	case KindAlloc:
		r.alloc(e)
	case KindFreeRequested:
		if b == nil || b.requested || b.asked != e.Bytes {
			r.fail("%d bytes at %#x are let go, which are %+v", e.Bytes, e.Mem.Addr, b)
			return
		}
		b.requested = true
		r.allocated -= b.mem.Size
	case KindFreeCompleted:
		if b == nil || !b.requested || b.mem != e.Mem || b.asked != e.Bytes {
			r.fail("%d bytes at %#x are free, which are %+v", e.Bytes, e.Mem.Addr, b)
			return
		}
		r.active -= b.mem.Size
		delete(r.blocks, e.Mem.Addr)
	default:
		r.fail("an event of %v", e.Kind)
	}
}

func (r *replay) alloc(e *Event) {
	end := e.Mem.Addr + uint64(e.Mem.Size)
	within := false
	for at, n := range r.segments {
		within = within || e.Mem.Addr >= at && end <= at+uint64(n)
	}
	if !within {
		r.fail("a block of %d bytes at %#x is in no segment", e.Mem.Size, e.Mem.Addr)
	}
	for at, b := range r.blocks {
		if at < end && e.Mem.Addr < at+uint64(b.mem.Size) {
			r.fail("a block at %#x over one at %#x", e.Mem.Addr, at)
		}
	}
	if e.Bytes <= 0 || e.Bytes > e.Mem.Size {
		r.fail("%d bytes in a block of %d", e.Bytes, e.Mem.Size)
	}
	r.blocks[e.Mem.Addr] = &told{mem: e.Mem, asked: e.Bytes}
	r.allocated += e.Mem.Size
	r.active += e.Mem.Size
}

// ending is a mark that is done once the host waits for it.
type ending struct{ flag }

func (m *ending) Wait() { m.done = true }

// TestReplay: what the events tell of memory is what the allocator's counters say, after every call of a random program on
// several queues.
func TestReplay(t *testing.T) {
	rnd := testutil.Rand(t)
	var s Stream
	r := &replay{segments: map[uint64]int64{}, blocks: map[uint64]*told{}}
	s.Observe(r.observe, KindAlloc, KindFreeRequested, KindFreeCompleted, KindSegmentAlloc, KindSegmentFree)
	var marks []*ending
	a := NewAllocator(newFake(400*mib), Config{Stream: &s, Marks: func(int) (Mark, error) {
		marks = append(marks, new(ending))
		return marks[len(marks)-1], nil
	}})
	var live []*Block
	completed := 0
	for step := range 5000 {
		switch n := rnd.IntN(100); {
		case n < 45:
			if b, err := a.Alloc(1+rnd.Int64N(1<<rnd.IntN(25)), rnd.IntN(3)); err == nil {
				live = append(live, b)
			}
		case n < 60 && len(live) > 0:
			a.RecordUse(live[rnd.IntN(len(live))], rnd.IntN(3))
		case n < 95 && len(live) > 0:
			i := rnd.IntN(len(live))
			a.Free(live[i])
			live = slices.Delete(live, i, i+1)
		case n < 98:
			for _, m := range marks[completed:] {
				m.done = true
			}
			completed = len(marks)
		default:
			if err := a.EmptyCache(); err != nil {
				t.Fatal(err)
			}
		}
		stats := a.Stats()
		reserved := int64(0)
		for n := range maps.Values(r.segments) {
			reserved += n
		}
		if stats.AllocatedBytes.All.Current != r.allocated || stats.ActiveBytes.All.Current != r.active || stats.ReservedBytes.All.Current != reserved {
			r.fail("allocated %d, active %d, reserved %d; the allocator has %d, %d, %d", r.allocated, r.active, reserved,
				stats.AllocatedBytes.All.Current, stats.ActiveBytes.All.Current, stats.ReservedBytes.All.Current)
		}
		if r.wrong != nil {
			t.Fatalf("step %d: %v", step, r.wrong)
		}
	}
	if len(r.blocks) == 0 || len(marks) == 0 || a.Stats().NumDeviceFree == 0 {
		t.Errorf("%d blocks, %d marks, %d segments given back: the program tried too little", len(r.blocks), len(marks), a.Stats().NumDeviceFree)
	}
}
