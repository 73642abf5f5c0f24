package device

import (
	"errors"
	"fmt"
)

// miss finds memory for a request that no cached block fits. It tries, in order: another segment, giving up cached
// oversize blocks, giving up the whole cache. While a private pool serves a queue nothing is given up: devices that record work
// can neither be waited for nor give memory back then.
func (a *Allocator) miss(r *request, o *Origin) (*Block, error) {
	if a.begun > 0 {
		if b, err := a.grow(r, o); b != nil || err != nil {
			return b, err
		}
		return nil, a.outOfMemory(r.asked, r.queue)
	}
	if a.cfg.GCThreshold > 0 && a.limit < unlimited {
		a.collect()
	}
	if b, err := a.grow(r, o); b != nil || err != nil {
		return b, err
	}
	if a.releaseOversize(r) {
		if b, err := a.grow(r, o); b != nil || err != nil {
			return b, err
		}
	}
	if err := a.releaseAll(); err != nil {
		return nil, err
	}
	a.stats.NumAllocRetries++
	if b, err := a.grow(r, o); b != nil || err != nil {
		return b, err
	}
	return nil, a.outOfMemory(r.asked, r.queue)
}

// grow asks the device for a segment. It returns nil, and no error, when there is no memory for it.
func (a *Allocator) grow(r *request, o *Origin) (*Block, error) {
	size := a.cfg.segmentFor(r.size)
	if size > a.left() {
		return nil, nil
	}
	if a.mapper != nil {
		return a.expand(r, o)
	}
	start := a.cfg.Stream.Now()
	mem, err := a.dev.Alloc(size)
	if errors.Is(err, ErrOutOfMemory) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("device: %s, asked for %d bytes: %w", a.name, size, err)
	}
	b := a.newBlock()
	b.mem, b.pool, b.queue = Mem{Addr: mem.Addr, Size: size, Host: mem.Host}, r.pool, r.queue
	a.segments[mem.Addr] = b
	if a.cfg.Stream.Wants(KindSegmentAlloc) {
		a.tell(&Event{Kind: KindSegmentAlloc, Queue: b.queue, Mem: b.mem, Bytes: size, Start: start, Took: a.cfg.Stream.Now() - start}, o)
	}
	if a.poison {
		fillPoison(b.mem)
	}
	a.stats.NumDeviceAlloc++
	a.stats.Segment.add(r.pool.kind, 1)
	a.reserved(r.pool, size)
	if size >= a.cfg.MaxSplit {
		a.stats.OversizeSegments.add(1)
	}
	return b, nil
}

// left is how many bytes the limit leaves.
func (a *Allocator) left() int64 { return a.limit - a.stats.ReservedBytes.All.Current }

// reserved counts bytes that the device gave, or, below 0, got back.
func (a *Allocator) reserved(p *pool, bytes int64) {
	a.stats.ReservedBytes.move(p.kind, bytes)
	switch {
	case p.owner == nil:
	case bytes > 0:
		p.owner.reserved.add(bytes)
	default:
		p.owner.reserved.sub(-bytes)
	}
}

// shrink returns a free block that is a whole segment to the device.
func (a *Allocator) shrink(b *Block) {
	b.pool.remove(b)
	delete(a.segments, b.mem.Addr)
	start := a.cfg.Stream.Now()
	a.dev.Free(b.mem)
	if a.cfg.Stream.Wants(KindSegmentFree) {
		a.tell(&Event{Kind: KindSegmentFree, Queue: b.queue, Mem: b.mem, Bytes: b.mem.Size, Start: start, Took: a.cfg.Stream.Now() - start}, nil)
	}
	a.stats.NumDeviceFree++
	a.stats.Segment.sub(b.pool.kind, 1)
	a.reserved(b.pool, -b.mem.Size)
	if b.mem.Size >= a.cfg.MaxSplit {
		a.stats.OversizeSegments.sub(1)
	}
	a.recycle(b)
}

// releaseAll returns every unused segment to the device, and of expandable ones every unused page.
func (a *Allocator) releaseAll() error {
	a.stats.NumSyncAllStreams++
	a.cfg.Stream.Emit(Event{Kind: KindWait, What: WaitMemory})
	if err := a.processMarks(true); err != nil {
		return err
	}
	a.releaseUnused(&a.common)
	for _, p := range a.private {
		if p.closed {
			a.releaseUnused(&p.pools)
		}
	}
	a.forget()
	return nil
}

func (a *Allocator) releaseUnused(of *pools) {
	for _, p := range []*pool{&of.large, &of.small} {
		for _, b := range p.sorted() {
			switch {
			case b.seg != nil:
				a.unmapFree(b)
			case !b.isSplit():
				a.shrink(b)
			}
		}
	}
}

// releaseOversize returns cached blocks of MaxSplit or more: the smallest one of the request's queue that covers it, or
// else the largest ones until they add up to it. It reports whether they did.
func (a *Allocator) releaseOversize(r *request) bool {
	most := a.cfg.MaxSplit
	if most == unlimited || r.pool.kind == SmallPool || a.mapper != nil {
		return false
	}
	if b := r.pool.fit(r.queue, max(r.size, most)); b != nil && !b.isSplit() {
		a.shrink(b)
		return true
	}
	freed := int64(0)
	all := r.pool.of(r.queue).sorted()
	for i := len(all) - 1; i >= 0 && freed < r.size && all[i].mem.Size >= most; i-- {
		if !all[i].isSplit() {
			freed += all[i].mem.Size
			a.shrink(all[i])
		}
	}
	return freed >= r.size
}

// collect returns unused large segments, those first that have been free for the most lookups, until what is reserved
// falls to the threshold.
func (a *Allocator) collect() {
	target := a.stats.ReservedBytes.All.Current - int64(a.cfg.GCThreshold*float64(a.limit))
	if target <= 0 {
		return
	}
	var unused []*Block
	total := uint64(0)
	for _, b := range a.common.large.sorted() {
		if !b.isSplit() && b.seg == nil {
			unused = append(unused, b)
			total += a.common.large.lookups - b.born
		}
	}
	for target > 0 && len(unused) > 0 {
		mean := total / uint64(len(unused))
		var younger []*Block
		for _, b := range unused {
			age := a.common.large.lookups - b.born
			if age < mean {
				younger = append(younger, b)
				continue
			}
			total -= age
			target -= b.mem.Size
			a.shrink(b)
		}
		unused = younger
	}
}
