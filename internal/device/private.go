package device

import (
	"errors"
	"fmt"
	"slices"
)

// PrivatePool is memory apart: blocks that are allocated from it are cut off its own segments, and serve nobody else when they
// are freed. A recorded step, which finds its values at the same addresses every time that it runs again, needs one: between
// two runs nothing may move in there. It is PyTorch's pool of a graph.
//
// An allocation is of the pool where it asks the pool for it ([PrivatePool.AllocFor]), or where the pool serves its queue
// ([PrivatePool.Begin]). Blocks are freed by [Allocator.Free], like all. The pool's segments stay until it is closed; then
// those that nothing uses go back to the device with the cache: when it is emptied, or when memory runs short. All methods
// may be called by several goroutines at once.
type PrivatePool struct {
	pools
	a        *Allocator
	id       PoolID
	begun    int // queues that it serves
	closed   bool
	reserved Stat
}

// PoolID names a private pool, as PyTorch does: zero is the pool that all share, {0, n} the n-th private one.
type PoolID [2]uint64

// NewPool returns a private pool, without memory so far.
func (a *Allocator) NewPool() *PrivatePool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.numbered++
	p := &PrivatePool{a: a, id: PoolID{0, a.numbered}}
	p.pools = newPools(p, a.mapper != nil)
	a.private = append(a.private, p)
	return p
}

// ID is the pool's name in snapshots and counters.
func (p *PrivatePool) ID() PoolID { return p.id }

var errPoolClosed = errors.New("device: an allocation from a private pool that is closed")

// AllocFor is [Allocator.AllocFor] from the pool, whatever serves the queue.
func (p *PrivatePool) AllocFor(n int64, queue int, what string, o *Origin) (*Block, error) {
	return p.a.allocate(n, queue, p, what, o)
}

// source is what an allocation comes from; a.mu is held.
func (a *Allocator) source(of *PrivatePool, queue int) (*pools, error) {
	if of == nil && queue < len(a.serving) {
		of = a.serving[queue]
	}
	switch {
	case of == nil:
		return &a.common, nil
	case of.closed:
		return nil, errPoolClosed
	}
	return &of.pools, nil
}

// Begin makes the pool serve a queue: the queue's allocations come from it until End. A queue that records its work must not
// be waited for, so in the meantime the allocator neither records marks nor asks for them, on any queue, and gives nothing back
// to the device: blocks that other queues use stay active after Free until the last pool has ended to serve, and an allocation
// for which the device has no segment fails. Uses recorded in the meantime end then, without marks: what was recorded orders
// the work.
func (p *PrivatePool) Begin(queue int) error {
	a := p.a
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case p.closed:
		return errPoolClosed
	case queue < 0 || queue >= maxQueues:
		return fmt.Errorf("device: a private pool cannot serve queue %d: want 0 to %d", queue, maxQueues-1)
	}
	for len(a.serving) <= queue {
		a.serving = append(a.serving, nil)
	}
	if a.serving[queue] != nil {
		return fmt.Errorf("device: a private pool serves queue %d of %s already: end that first", queue, a.name)
	}
	a.serving[queue] = p
	p.begun++
	a.begun++
	return nil
}

// End takes a Begin back. It does nothing if the pool does not serve the queue.
func (p *PrivatePool) End(queue int) {
	a := p.a
	a.mu.Lock()
	defer a.mu.Unlock()
	if queue < 0 || queue >= len(a.serving) || a.serving[queue] != p {
		return
	}
	a.serving[queue] = nil
	p.begun--
	if a.begun--; a.begun == 0 {
		a.settleDeferred()
	}
}

// Close lets the pool's segments go: those without a block in use return to the device when the cache is emptied or memory
// runs short, the others once their blocks are freed, too. Blocks in use stay valid. It is an error while the pool serves a
// queue; a second Close does nothing.
func (p *PrivatePool) Close() error {
	a := p.a
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.begun > 0 {
		return fmt.Errorf("device: a private pool of %s is closed while it serves %d of its queues: end that first", a.name, p.begun)
	}
	p.closed = true
	a.forget()
	return nil
}

// Reserved counts the bytes of the pool's segments.
func (p *PrivatePool) Reserved() Stat {
	p.a.mu.Lock()
	defer p.a.mu.Unlock()
	return p.reserved
}

// forget drops closed pools without memory.
func (a *Allocator) forget() {
	a.private = slices.DeleteFunc(a.private, func(p *PrivatePool) bool { return p.closed && p.reserved.Current == 0 })
}

// pools lists all pools.
func (a *Allocator) pools() []*pool {
	all := []*pool{&a.common.small, &a.common.large}
	for _, p := range a.private {
		all = append(all, &p.small, &p.large)
	}
	return all
}

// reservedApart is the number of bytes in segments of private pools.
func (a *Allocator) reservedApart() (n int64) {
	for _, p := range a.private {
		n += p.reserved.Current
	}
	return n
}

// noteInside remembers a use that begins while a private pool serves a queue.
func (a *Allocator) noteInside(b *Block, queue int) {
	if a.begun == 0 {
		return
	}
	if a.inside == nil {
		a.inside = map[*Block][]int{}
	}
	a.inside[b] = append(a.inside[b], queue)
}

// settleDeferred frees what was freed while private pools served queues and other queues used: at once where these uses began
// meanwhile, else behind marks.
func (a *Allocator) settleDeferred() {
	for _, b := range a.deferred {
		b.pending--
		*b.uses = slices.DeleteFunc(*b.uses, func(q int) bool { return slices.Contains(a.inside[b], q) })
		if len(*b.uses) == 0 {
			a.release(b)
		} else {
			a.deferFree(b)
		}
	}
	a.deferred, a.inside = nil, nil
}
