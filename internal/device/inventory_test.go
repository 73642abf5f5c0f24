package device

import (
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestInventory: what random programs leave adds up to the counters, and is what a replay of the events ends with, though it
// begins in the middle, with what was there.
func TestInventory(t *testing.T) {
	r := testutil.Rand(t)
	stream := &Stream{}
	a := NewAllocator(newFake(1<<40), Config{Stream: stream})
	var live []*Block
	step := func() {
		if n := len(live); n > 20 || n > 0 && r.IntN(3) == 0 {
			i := r.IntN(n)
			a.Free(live[i])
			live[i] = live[n-1]
			live = live[:n-1]
			return
		}
		b, err := a.Alloc(1+r.Int64N(30<<20)>>r.IntN(16), 0)
		if err != nil {
			t.Fatal(err)
		}
		live = append(live, b)
	}
	for range 200 {
		step()
	}
	p := &replay{segments: map[uint64]int64{}, blocks: map[uint64]*told{}}
	a.Inventory(func(l Layout) {
		p.begin(l.Segments)
		stream.Observe(p.observe, KindAlloc, KindFreeRequested, KindFreeCompleted, KindSegmentAlloc, KindSegmentFree)
	})
	for range 500 {
		step()
	}
	if p.wrong != nil {
		t.Fatal(p.wrong)
	}
	a.Inventory(func(l Layout) {
		s, all := l.Stats, l.Segments
		var reserved, used, asked, blocks int64
		end := uint64(0)
		for _, seg := range all {
			if seg.Mem.Addr < end || p.segments[seg.Mem.Addr] != seg.Mem.Size {
				t.Errorf("a segment of %d bytes at %#x, behind one that ends at %#x; by events it has %d", seg.Mem.Size, seg.Mem.Addr, end, p.segments[seg.Mem.Addr])
			}
			reserved += seg.Mem.Size
			at := seg.Mem.Addr
			for _, b := range seg.Blocks {
				if b.Mem.Addr != at || (b.State == InUse) != (b.Requested > 0) {
					t.Errorf("a block at %#x where %#x is next: %+v", b.Mem.Addr, at, b)
				}
				at += uint64(b.Mem.Size)
				if b.State == InUse {
					used, asked, blocks = used+b.Mem.Size, asked+b.Requested, blocks+1
					if told := p.blocks[b.Mem.Addr]; told == nil || told.asked != b.Requested {
						t.Errorf("%+v by events is %+v", b, told)
					}
				}
			}
			if end = seg.Mem.Addr + uint64(seg.Mem.Size); at != end {
				t.Errorf("blocks end at %#x, the segment at %#x", at, end)
			}
		}
		if s.ReservedBytes.All.Current != reserved || s.AllocatedBytes.All.Current != used || s.RequestedBytes.All.Current != asked ||
			s.Allocation.All.Current != blocks || s.Segment.All.Current != int64(len(all)) || len(p.blocks) != int(blocks) || len(p.segments) != len(all) {
			t.Errorf("%d reserved, %d used, %d asked for in %d blocks of %d segments; counted %+v", reserved, used, asked, blocks, len(all), s)
		}
	})
}

// begin takes over what is there.
func (r *replay) begin(all []Segment) {
	for _, s := range all {
		r.segments[s.Mem.Addr] = s.Mem.Size
		for _, b := range s.Blocks {
			if b.State != Unused {
				r.blocks[b.Mem.Addr] = &told{mem: b.Mem, asked: b.Requested, requested: b.State == Pending}
			}
		}
	}
}
