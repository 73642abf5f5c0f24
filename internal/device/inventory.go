package device

import (
	"cmp"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// Layout is what an allocator has at one moment.
type Layout struct {
	Stats    Stats
	Config   Config    // that it was made with, defaults filled in
	Segments []Segment // by address
}

// Segment is memory that an allocator got from its device; of an expandable segment, a run of addresses with memory.
type Segment struct {
	Mem        Mem
	Queue      int
	Pool       Pool
	Owner      PoolID // the private pool that has it; zero: none
	Expandable bool
	Blocks     []Extent // by address; they fill the segment
}

// Extent is a block at one moment.
type Extent struct {
	Mem       Mem
	Requested int64 // bytes asked for; 0 when free
	State     BlockState
}

// BlockState is whose a block is.
type BlockState uint8

// The states of blocks.
const (
	Unused  BlockState = iota // the allocator's, to be handed out
	InUse                     // handed out
	Pending                   // let go, while other queues' work may still use it
)

// Inventory calls f with what there is, while nothing changes hands. f must be quick and not call the allocator; it may begin to
// observe its stream.
func (a *Allocator) Inventory(f func(Layout)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]Segment, 0, len(a.segments))
	for _, b := range a.segments {
		for b != nil {
			var s Segment
			if s, b = run(b); len(s.Blocks) > 0 {
				all = append(all, s)
			}
		}
	}
	sorting.By(all, func(x, y Segment) int { return cmp.Compare(x.Mem.Addr, y.Mem.Addr) })
	f(Layout{a.stats, a.cfg, all})
}

// run is the blocks from b on that have memory, and what follows the addresses without behind them.
func run(b *Block) (s Segment, rest *Block) {
	s = Segment{Mem: Mem{Addr: b.mem.Addr, Host: b.mem.Host}, Queue: b.queue, Pool: b.pool.kind, Expandable: b.seg != nil}
	if p := b.pool.owner; p != nil {
		s.Owner = p.id
	}
	for ; b != nil && b.state != unmapped; b = b.next {
		s.Mem.Size += b.mem.Size
		s.Blocks = append(s.Blocks, Extent{b.mem, b.requested, b.extent()})
	}
	if b != nil {
		b = b.next
	}
	return s, b
}

func (b *Block) extent() BlockState {
	switch b.state {
	case live:
		return InUse
	case waiting:
		return Pending
	}
	return Unused
}

// Name is "large" or "small".
func (p Pool) Name() string {
	if p == SmallPool {
		return "small"
	}
	return "large"
}
