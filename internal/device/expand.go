package device

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// expandable is a run of reserved addresses, of which a pool puts memory behind as many for a queue as it needs. It has one
// block for each part with one fate, as other segments do; those without memory are unmapped.
type expandable struct {
	addr uint64
	size int64
	page int64 // what is mapped at once
}

// pageOf is the page of a pool's expandable segments.
func (c *Conf) pageOf(k Pool) int64 {
	if k == SmallPool {
		return smallSegment
	}
	return c.LargeSegment
}

// expand is grow where segments are expandable: it maps the pages that a request lacks, in the first place where addresses
// without memory, with free memory beside them, have room for it.
func (a *Allocator) expand(r *request, o *Origin) (*Block, error) {
	b, err := a.room(r)
	if b == nil || err != nil {
		return nil, err
	}
	if hole := b; b.state == unmapped {
		if b, err = a.mapPages(b, min(b.mem.Size, r.size), o); b == nil || err != nil {
			a.dropEmpty(hole)
			return nil, err
		}
	}
	for b.mem.Size < r.size { // what follows is a hole
		if b, err = a.mapPages(b.next, min(b.next.mem.Size, r.size-b.mem.Size), o); b == nil || err != nil {
			return nil, err
		}
	}
	r.pool.remove(b)
	return b, nil
}

// room is the first of the blocks, free and unmapped ones in turn, that a request can be made of; in a new segment if need be.
// It is nil, without an error, when there are no addresses for one.
func (a *Allocator) room(r *request) (*Block, error) {
	if r.queue < len(r.pool.holes) {
		for _, b := range r.pool.holes[r.queue] {
			if b.prev != nil && b.prev.state == free {
				b = b.prev
			}
			if roomFrom(b) >= r.size {
				return b, nil
			}
		}
	}
	if r.size > a.info.Memory {
		return nil, nil
	}
	page := a.cfg.pageOf(r.pool.kind)
	n := roundToPage(max(cmp.Or(a.cfg.Reserve, int64(a.cfg.ReservePart*float64(a.info.Memory)), a.info.Memory/8*9), r.size), page)
	addr, err := a.mapper.Reserve(n)
	if errors.Is(err, ErrOutOfMemory) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("device: %s, asked for %d addresses: %w", a.name, n, err)
	}
	b := a.newBlock()
	b.mem, b.pool, b.queue = Mem{Addr: addr, Size: n}, r.pool, r.queue
	b.seg = &expandable{addr, n, page}
	a.segments[addr] = b
	r.pool.insertHole(b)
	return b, nil
}

// roomFrom is how many bytes from b on are free or without memory.
func roomFrom(b *Block) (n int64) {
	for ; b != nil && (b.state == free || b.state == unmapped); b = b.next {
		n += b.mem.Size
	}
	return n
}

// roundToPage rounds n up to a multiple of page.
func roundToPage(n, page int64) int64 { return (n + page - 1) / page * page }

// mapPages puts memory behind the first n bytes of an unmapped block, or a page's more, and returns the free block that they
// become a part of; nil, without an error, when there is no memory for them.
func (a *Allocator) mapPages(b *Block, n int64, o *Origin) (*Block, error) {
	n = roundToPage(n, b.seg.page)
	if n > a.left() {
		return nil, nil
	}
	start := a.cfg.Stream.Now()
	err := a.mapper.Map(b.mem.Addr, n, b.seg.page)
	if errors.Is(err, ErrOutOfMemory) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("device: %s, asked for %d bytes behind %#x: %w", a.name, n, b.mem.Addr, err)
	}
	b.pool.remove(b)
	if n < b.mem.Size {
		b.pool.insertHole(a.split(b, n))
	}
	if a.cfg.Stream.Wants(KindMap) {
		a.tell(&Event{Kind: KindMap, Queue: b.queue, Mem: b.mem, Bytes: n, Start: start, Took: a.cfg.Stream.Now() - start}, o)
	}
	a.reserved(b.pool, n)
	a.stats.NumDeviceAlloc++
	b, _, _ = a.merge(b, free)
	b.pool.insert(b)
	return b, nil
}

// unmapFree gives the device back the pages that lie wholly in a free block, and the addresses of a segment without memory.
// What the device refuses stays as it is.
func (a *Allocator) unmapFree(b *Block) {
	seg, pool := b.seg, b.pool
	front := roundToPage(int64(b.mem.Addr-seg.addr), seg.page) - int64(b.mem.Addr-seg.addr)
	n := (b.mem.Size - front) / seg.page * seg.page
	if n <= 0 {
		return
	}
	start := a.cfg.Stream.Now()
	if a.mapper.Unmap(b.mem.Addr+uint64(front), n) != nil {
		return // after an error of the device, which its next call reports
	}
	pool.remove(b)
	if front > 0 {
		rest := a.split(b, front)
		pool.insert(b)
		b = rest
	}
	if n < b.mem.Size {
		pool.insert(a.split(b, n))
	}
	if a.cfg.Stream.Wants(KindUnmap) {
		a.tell(&Event{Kind: KindUnmap, Queue: b.queue, Mem: b.mem, Bytes: n, Start: start, Took: a.cfg.Stream.Now() - start}, nil)
	}
	a.reserved(pool, -n)
	a.stats.NumDeviceFree++
	b, _, _ = a.merge(b, unmapped)
	pool.insertHole(b)
	a.dropEmpty(b)
}

// dropEmpty gives the addresses of a segment back that has no memory at all, as its only block, a hole, tells.
func (a *Allocator) dropEmpty(b *Block) {
	if b.isSplit() || a.mapper.Unreserve(b.seg.addr, b.seg.size) != nil {
		return
	}
	b.pool.remove(b)
	delete(a.segments, b.seg.addr)
	a.recycle(b)
}

// checkHole reports an unmapped block that is not among the holes of its pool, or not of whole pages.
func (c *checker) checkHole(b *Block) error {
	at := int64(b.mem.Addr - b.seg.addr)
	q := b.pool.holes
	switch {
	case b.queue >= len(q) || !slices.Contains(q[b.queue], b):
		return fmt.Errorf("%s is not among the holes", b)
	case at%b.seg.page != 0 || b.mem.Size%b.seg.page != 0:
		return fmt.Errorf("%s is not of whole pages of %d bytes", b, b.seg.page)
	}
	c.holes++
	return nil
}
