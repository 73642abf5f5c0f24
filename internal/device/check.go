package device

import (
	"fmt"
	"strings"

	"github.com/warpline-ml/warpline/internal/hostmem"
)

// poisoned is what freed bytes hold: as a floating-point number of any size it is NaN.
const poisoned = 0xFF

// Poison makes the allocator fill freed blocks and check them before they are handed out again, which panics if
// something has written to one: for tests. It needs a device whose memory the host reads.
func (a *Allocator) Poison(on bool) error {
	if on && !a.info.Host {
		return fmt.Errorf("device: the memory of %s cannot be poisoned: the host does not reach it", a.name)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.poison = on
	a.spares = nil
	for _, p := range a.pools() {
		for _, b := range p.sorted() {
			if on {
				fillPoison(b.mem)
			}
		}
	}
	return nil
}

func hostBytes(m Mem) []byte { return hostmem.Bytes(uintptr(m.Addr), int(m.Size)) }

func fillPoison(m Mem) {
	s := hostBytes(m)
	for i := range s {
		s[i] = poisoned
	}
}

func (a *Allocator) checkPoison(b *Block) {
	if err := wantPoison(b.mem); err != nil {
		panic(fmt.Sprintf("device: %s: %v", a.name, err))
	}
}

func wantPoison(m Mem) error {
	for i, v := range hostBytes(m) {
		if v != poisoned {
			return fmt.Errorf("byte %d of a free block of %d bytes at %#x was written: it is %#x", i, m.Size, m.Addr, v)
		}
	}
	return nil
}

// Check reports a broken invariant: blocks tile their segments, free neighbours are merged, a free block is in exactly
// its set, and the counters agree with the blocks.
func (a *Allocator) Check() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := checker{a: a, listed: map[*Block]bool{}}
	for _, p := range a.pools() {
		for _, b := range p.sorted() {
			if c.listed[b] {
				return fmt.Errorf("device: %s is in a set twice", b)
			}
			c.listed[b] = true
		}
	}
	for addr, b := range a.segments {
		if err := c.segment(addr, b); err != nil {
			return fmt.Errorf("device: %s: %w", a.name, err)
		}
	}
	for _, p := range a.pools() {
		for _, q := range p.holes {
			c.holes -= len(q)
		}
	}
	if len(c.listed) > 0 || c.holes != 0 {
		return fmt.Errorf("device: %d blocks in the free sets and %d among the holes are of no segment", len(c.listed), -c.holes)
	}
	return c.counters()
}

// String describes a block for error messages.
func (b *Block) String() string {
	states := [...]string{"spare", "free", "live", "waiting", "unmapped"}
	return fmt.Sprintf("%s block of %d bytes at %#x for queue %d", states[b.state], b.mem.Size, b.mem.Addr, b.queue)
}

type checker struct {
	a      *Allocator
	listed map[*Block]bool // in a free set, not met yet
	holes  int             // unmapped blocks
	want   Stats           // what the blocks add up to
}

func (c *checker) segment(addr uint64, first *Block) error {
	var prev *Block
	size, mapped := int64(0), int64(0)
	for b := first; b != nil; prev, b = b, b.next {
		if err := c.block(b, prev, addr+uint64(size)); err != nil {
			return err
		}
		size += b.mem.Size
		if b.state != unmapped {
			mapped += b.mem.Size
		}
	}
	kind := first.pool.kind
	switch seg := first.seg; {
	case seg != nil && (seg.addr != addr || seg.size != size || mapped == 0):
		return fmt.Errorf("the blocks of the expandable segment at %#x, of %d bytes, add up to %d, with memory behind %d", seg.addr, seg.size, size, mapped)
	case seg == nil && size != smallSegment && (kind == SmallPool || size%largeRound != 0):
		return fmt.Errorf("the blocks of the segment at %#x add up to %d bytes", addr, size)
	case seg == nil:
		c.want.Segment.add(kind, 1)
	}
	c.want.ReservedBytes.add(kind, mapped)
	return nil
}

func (c *checker) block(b, prev *Block, addr uint64) error {
	switch {
	case b.mem.Addr != addr || b.prev != prev:
		return fmt.Errorf("%s where one at %#x should follow %v", b, addr, prev)
	case b.mem.Size <= 0 || b.mem.Size%minBlock != 0:
		return fmt.Errorf("%s is no multiple of %d", b, minBlock)
	case prev != nil && (prev.pool != b.pool || prev.queue != b.queue || prev.seg != b.seg):
		return fmt.Errorf("%s beside %s", b, prev)
	case prev != nil && prev.state == b.state && (b.state == free || b.state == unmapped):
		return fmt.Errorf("%s is not merged with %s", b, prev)
	case c.listed[b] != (b.state == free):
		return fmt.Errorf("%s, in a free set: %v", b, c.listed[b])
	case (b.pending > 0) != (b.state == waiting):
		return fmt.Errorf("%s waits for %d marks", b, b.pending)
	}
	delete(c.listed, b)
	if b.state == unmapped {
		return c.checkHole(b)
	}
	return c.count(b)
}

// count adds a block to the counters that follow from it.
func (c *checker) count(b *Block) error {
	kind := b.pool.kind
	switch b.state {
	case free:
		if b.isSplit() && b.seg == nil {
			c.want.InactiveSplit.add(kind, 1)
			c.want.InactiveSplitBytes.add(kind, b.mem.Size)
		}
		if c.a.poison {
			return wantPoison(b.mem)
		}
		return nil
	case live:
		c.want.Allocation.add(kind, 1)
		c.want.AllocatedBytes.add(kind, b.mem.Size)
	case spare:
		return fmt.Errorf("%s in a segment", b)
	}
	c.want.Active.add(kind, 1)
	c.want.ActiveBytes.add(kind, b.mem.Size)
	c.want.RequestedBytes.add(kind, b.requested)
	return nil
}

func (c *checker) counters() error {
	want := map[string]int64{}
	c.want.each(func(name string, s *Stat) { want[name] = s.Current })
	var err error
	c.a.stats.each(func(name string, s *Stat) {
		oversize := strings.HasPrefix(name, "oversize")
		if !oversize && s.Current != want[name] || s.Peak < s.Current {
			err = fmt.Errorf("device: %s is %d with a peak of %d, the blocks say %d", name, s.Current, s.Peak, want[name])
		}
	})
	return err
}
