package device

import (
	"errors"
	"fmt"
	"sync"
)

// Allocator hands out a device's memory through a cache, in PyTorch's way: requests are rounded, small and large ones
// have pools of their own, a pool gets segments from the device, blocks are split off them and merged again, and
// segments go back only on demand. It keeps PyTorch's counters, exactly. All methods may be called by several
// goroutines at once.
type Allocator struct {
	dev    Device
	mapper Mapper // of dev, where segments are expandable
	name   string
	info   Info

	mu       sync.Mutex
	cfg      Config // with defaults
	limit    int64  // bytes that may be reserved
	common   pools
	private  []*PrivatePool // that have memory, or may get some
	numbered uint64         // private pools there have been
	serving  []*PrivatePool // by queue, what its allocations come from; nil: common
	begun    int            // queues that a private pool serves
	deferred []*Block       // freed meanwhile, although other queues used them
	inside   map[*Block][]int
	segments map[uint64]*Block // first block, by address
	spares   *Block
	empty    Block  // what requests of 0 bytes get
	pending  []fifo // by queue
	waiting  int    // marks in them
	poison   bool
	stats    Stats
}

// NewAllocator returns an allocator over the raw memory of a device, without a limit but that of cfg. It panics if cfg does
// not pass its check for the device.
func NewAllocator(dev Device, cfg Config) *Allocator {
	info := dev.Info()
	a := &Allocator{dev: dev, name: info.Name, info: info, limit: unlimited, segments: map[uint64]*Block{}}
	a.empty = Block{owner: a, mem: Mem{Host: info.Host}}
	if err := a.configure(cfg); err != nil {
		panic(err.Error())
	}
	return a
}

// Settings are what the allocator works by, defaults filled in.
func (a *Allocator) Settings() Config {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cfg
}

// Configure changes what users may set. It is an error while memory is reserved, which was cut by other rules. A limit that was
// set before stays if c has no fraction.
func (a *Allocator) Configure(c Conf) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := a.stats.ReservedBytes.All.Current; n > 0 || len(a.private) > 0 {
		return fmt.Errorf("device: %s has %s reserved and %d private pools: configure its allocator before the first value, or let all values go and empty the cache",
			a.name, formatBytes(n), len(a.private))
	}
	cfg := a.cfg
	cfg.Conf = c
	return a.configure(cfg)
}

// configure takes a configuration over while nothing is reserved.
func (a *Allocator) configure(cfg Config) error {
	if err := errors.Join(cfg.Check(), cfg.CheckFor(a.dev)); err != nil {
		return err
	}
	a.cfg = cfg
	a.cfg.Conf = cfg.withDefaults()
	a.mapper = nil
	if cfg.Expandable {
		a.mapper, _ = As[Mapper](a.dev)
	}
	a.common = newPools(nil, cfg.Expandable)
	a.stats.MaxSplitSize = -1
	if a.cfg.MaxSplit < unlimited {
		a.stats.MaxSplitSize = a.cfg.MaxSplit
	}
	if cfg.Fraction > 0 {
		a.limit = int64(cfg.Fraction * float64(a.info.Memory))
	}
	return nil
}

// request is an allocation on its way.
type request struct {
	asked int64
	size  int64 // of the block
	queue int
	pool  *pool
	what  string
}

func (a *Allocator) request(n int64, queue int, from *pools, what string) request {
	r := request{asked: n, size: a.cfg.round(n + a.cfg.Gap), queue: queue, pool: &from.large, what: what}
	if r.size <= smallLimit {
		r.pool = &from.small
	}
	return r
}

// Alloc returns a block of at least n bytes for work of a queue, a small number that the caller gives each of its
// queues. A request of 0 bytes gets a block without memory, which is not counted. The error is an [*OOMError] when neither
// the cache, the device nor the device after giving up the whole cache had the memory.
func (a *Allocator) Alloc(n int64, queue int) (*Block, error) { return a.AllocFor(n, queue, "", nil) }

// AllocFor is Alloc for an operation, whose name and origin the stream's observers are told; nil is the place of the call.
func (a *Allocator) AllocFor(n int64, queue int, what string, o *Origin) (*Block, error) {
	return a.allocate(n, queue, nil, what, o)
}

// allocate takes memory of a private pool, or, where that is nil, of what serves the queue.
func (a *Allocator) allocate(n int64, queue int, of *PrivatePool, what string, o *Origin) (*Block, error) {
	if n == 0 {
		return &a.empty, nil
	}
	if n < 0 || queue < 0 || queue >= maxQueues {
		return nil, fmt.Errorf("device: cannot allocate %d bytes for queue %d: want a size above 0 and a queue below %d", n, queue, maxQueues)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting > 0 && a.begun == 0 {
		if err := a.processMarks(false); err != nil {
			return nil, err
		}
	}
	if n >= maxRequest {
		return nil, a.outOfMemory(n, queue)
	}
	from, err := a.source(of, queue)
	if err != nil {
		return nil, err
	}
	r := a.request(n, queue, from, what)
	b := a.fit(&r)
	if b == nil {
		if b, err = a.miss(&r, o); err != nil {
			return nil, err
		}
	}
	a.take(b, &r, o)
	return b, nil
}

// fit takes the best free block out of its pool, or returns nil.
func (a *Allocator) fit(r *request) *Block {
	b := r.pool.fit(r.queue, r.size)
	if b == nil {
		return nil
	}
	most := a.cfg.MaxSplit
	if r.size < most && b.mem.Size >= most || r.size >= most && b.mem.Size >= r.size+a.cfg.MaxNonSplitRounding {
		return nil
	}
	r.pool.remove(b)
	return b
}

// take hands out a block that is in no set, cut to size. The origin is no part of the request, so that those of launches need not
// be allocated.
func (a *Allocator) take(b *Block, r *request, o *Origin) {
	kind, was := r.pool.kind, b.isSplit()
	switch rest := b.mem.Size - r.size; {
	case a.splits(r, rest):
		r.pool.insert(a.split(b, r.size))
		switch {
		case b.seg != nil:
		case was:
			a.stats.InactiveSplitBytes.sub(kind, r.size)
		default:
			a.stats.InactiveSplitBytes.add(kind, rest)
			a.stats.InactiveSplit.add(kind, 1)
		}
	case was && b.seg == nil:
		a.stats.InactiveSplitBytes.sub(kind, b.mem.Size)
		a.stats.InactiveSplit.sub(kind, 1)
	}
	b.state, b.requested = live, r.asked
	a.stats.Allocation.add(kind, 1)
	a.stats.AllocatedBytes.add(kind, b.mem.Size)
	a.stats.Active.add(kind, 1)
	a.stats.ActiveBytes.add(kind, b.mem.Size)
	a.stats.RequestedBytes.add(kind, r.asked)
	if b.mem.Size >= a.cfg.MaxSplit {
		a.stats.OversizeAllocations.add(1)
	}
	if a.poison {
		a.checkPoison(b)
	}
	if a.cfg.Stream.Wants(KindAlloc) {
		a.tell(&Event{Kind: KindAlloc, What: r.what, Queue: b.queue, Mem: b.mem, Bytes: r.asked}, o)
	}
}

// tell emits an event of work with an origin, which may be nil.
func (a *Allocator) tell(e *Event, o *Origin) {
	if o != nil {
		e.Origin = *o
	}
	a.cfg.Stream.Emit(*e)
}

// splits reports whether a block that is larger than the request by rest is cut. Large blocks of fixed segments are only for a
// rest of more than 1 MiB: what would remain is of little use to the large pool.
func (a *Allocator) splits(r *request, rest int64) bool {
	if r.pool.kind == SmallPool || a.mapper != nil {
		return rest >= minBlock
	}
	return r.size < a.cfg.MaxSplit && rest > smallLimit
}

// Free gives blocks back, in their order. Work on a block's own queue may still be underway; other queues that use it must
// have been named by [Allocator.RecordUse]. It panics if a block is not in use.
func (a *Allocator) Free(blocks ...*Block) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, b := range blocks {
		if b != &a.empty {
			a.free(b)
		}
	}
}

func (a *Allocator) free(b *Block) {
	a.wantLive(b, "freed")
	if a.cfg.Stream.Wants(KindFreeRequested) {
		a.tell(&Event{Kind: KindFreeRequested, Queue: b.queue, Mem: b.mem, Bytes: b.requested}, nil)
	}
	kind := b.pool.kind
	a.stats.Allocation.sub(kind, 1)
	a.stats.AllocatedBytes.sub(kind, b.mem.Size)
	if b.mem.Size >= a.cfg.MaxSplit {
		a.stats.OversizeAllocations.sub(1)
	}
	if b.uses != nil && len(*b.uses) > 0 {
		a.deferFree(b)
		return
	}
	a.release(b)
}

func (a *Allocator) wantLive(b *Block, what string) {
	if b.owner != a || b.state != live {
		panic(fmt.Sprintf("device: a block of %d bytes at %#x is %s, but it is not in use on %s", b.mem.Size, b.mem.Addr, what, a.name))
	}
}

// release puts a block that nothing uses any more into its pool.
func (a *Allocator) release(b *Block) {
	if a.poison {
		fillPoison(b.mem)
	}
	if a.cfg.Stream.Wants(KindFreeCompleted) {
		a.tell(&Event{Kind: KindFreeCompleted, Queue: b.queue, Mem: b.mem, Bytes: b.requested}, nil)
	}
	kind, size, requested := b.pool.kind, b.mem.Size, b.requested
	b.requested = 0
	b, blocks, bytes := a.merge(b, free)
	b.pool.insert(b)
	if b.seg == nil {
		blocks, bytes = -blocks, -bytes
		if b.isSplit() {
			blocks, bytes = blocks+1, bytes+b.mem.Size
		}
		a.stats.InactiveSplit.move(kind, blocks)
		a.stats.InactiveSplitBytes.move(kind, bytes)
	}
	a.stats.Active.sub(kind, 1)
	a.stats.ActiveBytes.sub(kind, size)
	a.stats.RequestedBytes.sub(kind, requested)
}

// SetLimit sets how many bytes the allocator may have reserved from the device; 0 lifts the limit. What is reserved
// beyond it stays so until it is freed and the cache emptied.
func (a *Allocator) SetLimit(bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.limit = bytes
	if bytes <= 0 {
		a.limit = unlimited
	}
}

// Limit is the limit in bytes, 0 when there is none.
func (a *Allocator) Limit() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.limit == unlimited {
		return 0
	}
	return a.limit
}

// SetFraction limits the allocator to a part, from 0 to 1, of the device's memory.
func (a *Allocator) SetFraction(f float64) error {
	if !(f >= 0 && f <= 1) {
		return fmt.Errorf("device: a memory fraction of %v for %s: want 0 to 1", f, a.name)
	}
	if a.info.Memory <= 0 {
		return fmt.Errorf("device: %s has no memory size of its own to take a fraction of: set a limit in bytes", a.name)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.limit = int64(f * float64(a.info.Memory))
	return nil
}

// EmptyCache waits for outstanding marks and returns every unused segment to the device, but for those of private pools that
// are not closed. It is an error while a private pool serves a queue.
func (a *Allocator) EmptyCache() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.begun > 0 {
		return fmt.Errorf("device: the cache of %s cannot be emptied while a private pool serves one of its queues: end that first", a.name)
	}
	return a.releaseAll()
}
