// Package heap knows who owns a device's memory. It has no operations and no graphs: it sees storages with a name, and
// those who claim them.
//
// A [Storage] is owned by a [Scope], by any number of [Hold]s, and by the work in flight on queues; handles point to it
// by its [Ref] and own nothing. It is released when its scope ends, when it was left to its holds and the last one
// ended, or when Go's collector finds its Ref unreachable, whatever comes first; and its memory is given back once the
// queues that used it are done with it.
package heap

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/device"
)

// Heap is the memory of one device with its open scopes. It may be used by several goroutines at once.
type Heap struct {
	alloc *device.Allocator

	mu          sync.Mutex // guards everything below, and every storage's owner and flags
	inUse       int64      // bytes asked for and not released
	peak        int64
	scratch     int64 // of inUse, what kernels work in
	valuesPeak  int64 // the most of the rest
	most        int64 // limit of inUse; 0: none
	failAt      int   // out-of-memory injection: fail this many allocations from now (0: never)
	failed      bool
	open        *Scope       // the open scopes, as a list
	lists       [][]*Storage // of scopes that have ended, empty, for the next ones
	scopes      int          // in it
	paceLoose   int64        // loose() after the last collection
	paceAll     int64        // inUse after the last collection
	floor       int64        // least growth between collections
	collections int
	collecting  bool
	collected   *sync.Cond

	retired []*device.Block // of released storages, on the way to the allocator

	placed  map[*Storage]*callsite.Site // where a line of the program took values that others made
	turn    uint32                      // how often NextTurn was called
	dropped int64                       // bytes, since WalkedBack, of storages that were released while something held them

	uses sync.Map     // *Use by Use
	held atomic.Int64 // of inUse, bytes that something holds beside their scope
}

// New returns the heap of a device that alloc hands out the memory of.
func New(alloc *device.Allocator) *Heap {
	h := &Heap{alloc: alloc, floor: paceFloor, placed: map[*Storage]*callsite.Site{}}
	h.collected = sync.NewCond(&h.mu)
	return h
}

// Cause says what released a storage, and what to do about it.
type Cause struct{ By, Hint string }

var unreachable = &Cause{By: "a collection: no handle reached it"}

// ErrInjected is the failure that FailAt asks for.
var ErrInjected = errors.New("failure injected by FailAt")

var errLimit = fmt.Errorf("%w: the limit set is reached", device.ErrOutOfMemory)

// take allocates from the caching allocator; h.mu is held. An injected failure is not cured by a collection.
func (h *Heap) take(n int64, queue int, what string, o *device.Origin) (*device.Block, error) {
	if h.failed {
		return nil, ErrInjected
	}
	if h.failAt > 0 {
		if h.failAt--; h.failAt == 0 {
			h.failed = true
			return nil, ErrInjected
		}
	}
	if n == 0 {
		return nil, nil
	}
	if h.most > 0 && h.inUse+n > h.most {
		return nil, errLimit
	}
	return h.alloc.AllocFor(n, queue, what, o)
}

// Usage is a snapshot of a heap's counters. All but the numbers of scopes and collections are bytes.
type Usage struct {
	InUse       int64 // asked for and not released
	Peak        int64 // the most of InUse since ResetPeak
	ValuesPeak  int64 // that without the scratch memory of kernels
	Loose       int64 // of InUse, what scopes own and nothing holds
	Held        int64 // of InUse, the rest: what something holds beside a scope, as recorded operations do
	Scopes      int   // open ones
	Collections int   // since ResetPeak
}

// Usage returns the counters.
func (h *Heap) Usage() Usage {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Usage{InUse: h.inUse, Peak: h.peak, ValuesPeak: h.valuesPeak, Loose: h.loose(), Held: h.held.Load(), Scopes: h.scopes, Collections: h.collections}
}

// loose is the number of bytes that scopes own and nothing holds; h.mu is held.
func (h *Heap) loose() int64 { return h.inUse - h.held.Load() }

// NextTurn tells values that are made from now on from earlier ones.
func (h *Heap) NextTurn() {
	h.mu.Lock()
	h.turn++
	h.mu.Unlock()
}

// WalkedBack says that a graph is used now: what is released from now on while something holds it was kept in vain.
func (h *Heap) WalkedBack() {
	h.mu.Lock()
	h.turn++
	h.dropped = 0
	h.mu.Unlock()
}

// ResetPeak starts a new measurement of the peak and of the number of collections.
func (h *Heap) ResetPeak() {
	h.mu.Lock()
	h.peak, h.valuesPeak, h.collections = h.inUse, h.inUse-h.scratch, 0
	h.mu.Unlock()
}

// SetLimit makes allocations fail, as out of memory, that would bring the bytes in use beyond n; 0 lifts the limit.
func (h *Heap) SetLimit(n int64) {
	h.mu.Lock()
	h.most = n
	h.mu.Unlock()
}

// Limit is what SetLimit set.
func (h *Heap) Limit() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.most
}

// FailAt makes the k-th allocation from now fail once, by ErrInjected; 0 takes that back. For tests.
func (h *Heap) FailAt(k int) {
	h.mu.Lock()
	h.failAt, h.failed = k, false
	h.mu.Unlock()
}

// Locked is a heap whose lock is held. Its methods change owners; Unlock ends it.
type Locked struct{ h *Heap }

// Lock begins changes that must be seen together.
func (h *Heap) Lock() Locked {
	h.mu.Lock()
	return Locked{h}
}

// Unlock ends the changes.
func (l Locked) Unlock() { l.h.mu.Unlock() }
