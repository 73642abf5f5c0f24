package heap

import (
	"sync/atomic"
	"weak"

	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/device"
)

// Ref is what handles and kept values point to, and nothing else does: when Go's collector finds it unreachable, no handle
// reaches the memory any more. It points only at its storage, and at what Tag says, so it keeps nothing else but its page
// alive.
type Ref struct {
	*Storage
	Tag *any // the user's; heap does not look at it
}

// Storage is a value's memory with its owners. Its scope points to it, strongly: a Ref may die while its storage lives. Only a
// collection asks whether it has, and most values are gone before one: until then the storage itself points to the Ref, which
// costs nothing, where a weak pointer costs as much as all the rest.
type Storage struct {
	Site *callsite.Site // where it was made; nil for what kernels work in
	Near *string        // the path of a parameter that it was made of, or of the nearest one among what its operands were made of; or nil

	block      *device.Block         // nil for an empty value
	bytes      int64                 // asked for
	watched    *Ref                  // the first Ref of its page, or its own when the value is large; until a collection watches it
	watch      weak.Pointer[Ref]     // to that Ref since
	scope      *Scope                // owner; moves with Adopt
	birth      *Scope                // the scope whose holds need no list: where it was made, unless they moved
	moved      atomic.Pointer[Scope] // where those have moved to, or nil
	homely     atomic.Int32          // how many of the holds those are; a value moved away loses them when home ends
	holds      atomic.Int32
	version    atomic.Uint32 // writes in place
	writer     atomic.Int32  // last queue that wrote it
	readers    atomic.Uint64 // queues other than the allocating one that used it since, by number
	queue      int32         // whose work its memory is ordered with
	index      int32         // in scope.storages
	pins       int32         // users of a temporary during a walk; see Sweep
	perishable bool          // may be released before its scope ends, by Expire and with its last hold
	exempt     bool          // from that
	kept       bool          // the program's to let go of
	scratch    bool          // memory that one kernel works in
	placed     bool          // a line of the program took it over: the heap has its site
	turn       uint32        // of the heap, when it was made
	orphan     *Cause        // its scope let go, for this cause: it is released when nothing holds it
	gone       atomic.Pointer[Cause]
	what       *string // the operation that made it; shared by all that it makes
	use        atomic.Pointer[Use]
}

const (
	pageSize   = 32
	firstBook  = 8        // storages in a scope's first run: one that ends with a step of a layer has no more
	smallBytes = 16 << 10 // a value up to this size shares its page's fate in a collection

	storageBytes = 352 // what a value costs in Go's heap: a little more than its storage, its Ref and its place in lists
)

// New allocates n bytes owned by s, ordered with a queue's work; what is the name of the operation that makes them. It may
// run a collection first. site is where it is made, near as in [Storage]; observers of the memory are told its origin, which
// may be nil. The error is the allocator's, after everything unreachable was released.
func (s *Scope) New(n int64, what *string, queue int, site *callsite.Site, near *string, o *device.Origin) (*Ref, error) {
	return s.allocate(n, what, queue, site, near, o, false)
}

// NewScratch is New for memory that one kernel works in: it does not count as values.
func (s *Scope) NewScratch(n int64, what *string, queue int, near *string, o *device.Origin) (*Ref, error) {
	return s.allocate(n, what, queue, nil, near, o, true)
}

func (s *Scope) allocate(n int64, what *string, queue int, site *callsite.Site, near *string, o *device.Origin, scratch bool) (*Ref, error) {
	h := s.heap
	h.mu.Lock()
	if !h.collecting && h.due(n) {
		h.collect(n)
	}
	block, err := h.take(n, queue, *what, o)
	if err != nil {
		h.collect(n) // an out-of-memory is believed only after this
		if block, err = h.take(n, queue, *what, o); err != nil {
			h.failed = false
			h.mu.Unlock()
			return nil, err
		}
	}
	h.inUse += n
	h.peak = max(h.peak, h.inUse)
	if scratch {
		h.scratch += n
	}
	h.valuesPeak = max(h.valuesPeak, h.inUse-h.scratch)
	ref := s.home.ref(n)
	st := ref.Storage
	st.bytes, st.what, st.Site, st.Near, st.block, st.queue, st.scratch = n, what, site, near, block, int32(queue), scratch
	if queue != 0 {
		st.writer.Store(int32(queue))
	}
	st.birth, st.turn = s.home, h.turn
	s.own(st)
	h.mu.Unlock()
	return ref, nil
}

// ref makes a storage with its Ref. Small ones come from the scope's open page; frames use their home's.
func (s *Scope) ref(n int64) *Ref {
	st := s.storage()
	if n > smallBytes {
		ref := &Ref{Storage: st}
		st.watched = ref
		return ref
	}
	if s.page == nil || s.pageUsed == pageSize {
		s.page, s.pageUsed = new([pageSize]Ref), 0
	}
	ref := &s.page[s.pageUsed]
	s.pageUsed++
	ref.Storage, st.watched = st, &s.page[0]
	return ref
}

// storage is the next of the open run. In the outermost scope, where values live long and die one by one, each is alone.
func (s *Scope) storage() *Storage {
	if s.parent == nil {
		return new(Storage)
	}
	if len(s.book) == 0 {
		n := pageSize
		if s.book == nil {
			n = firstBook
		}
		s.book = make([]Storage, n)
	}
	st := &s.book[0]
	s.book = s.book[1:]
	return st
}

// Bytes is how many were asked for.
func (st *Storage) Bytes() int64 { return st.bytes }

// Block is the allocator's; nil for an empty value and for one that was released.
func (st *Storage) Block() *device.Block { return st.block }

// What names the operation that made it.
func (st *Storage) What() string { return *st.what }

// Gone is what released it, or nil while it lives.
func (st *Storage) Gone() *Cause { return st.gone.Load() }

// home is the scope whose holds need no list.
func (st *Storage) home() *Scope {
	if s := st.moved.Load(); s != nil {
		return s
	}
	return st.birth
}

// Turn is how often NextTurn had been called when it was made.
func (st *Storage) Turn() uint32 { return st.turn }

// Place says that the program took a storage over at a site, which inventories name from now on.
func (h *Heap) Place(st *Storage, site *callsite.Site) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if st.gone.Load() == nil {
		st.placed, h.placed[st] = true, site
	}
}

// Held tells whether something holds it beside its scope.
func (st *Storage) Held() bool { return st.holds.Load() > 0 }

// Holds is how many claims there are on it beside its scope's.
func (st *Storage) Holds() int { return int(st.holds.Load()) }

// Orphaned tells whether the storage's scope has let go of it.
func (h *Heap) Orphaned(st *Storage) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return st.orphan != nil
}

// Version counts the writes in place.
func (st *Storage) Version() uint32 { return st.version.Load() }

// Written notes a write in place.
func (st *Storage) Written() { st.version.Add(1) }

// MarkPerishable lets a storage go before its scope ends: by Expire, and with its last hold.
func (st *Storage) MarkPerishable() {
	if !st.perishable { // what several goroutines record is marked before
		st.perishable = true
	}
}

// Perishable tells whether a storage was marked so and nothing has exempted it.
func (st *Storage) Perishable() bool { return st.perishable && !st.exempt }

// Pin adds n to the users of a temporary, which Sweep spares while there are any. Only the goroutine of the walk that made
// it may call this.
func (st *Storage) Pin(n int32) { st.pins += n }

// Pinned tells whether a temporary has users.
func (st *Storage) Pinned() bool { return st.pins > 0 }

// Drop releases a storage at once.
func (h *Heap) Drop(st *Storage, why *Cause) {
	h.mu.Lock()
	h.release(st, why)
	h.mu.Unlock()
}

// Orphan ends the claim of a storage's scope: it is released now, or when nothing holds it any more.
func (h *Heap) Orphan(st *Storage, why *Cause) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.letGo(st, why)
}

func (h *Heap) letGo(st *Storage, why *Cause) {
	if st.orphan = why; st.holds.Load() == 0 {
		h.release(st, why)
	}
}

// Exempt keeps a storage from being released before its scope ends.
func (h *Heap) Exempt(st *Storage) {
	h.mu.Lock()
	st.exempt = true
	h.mu.Unlock()
}

// MarkKept says that the program may let go of a storage itself.
func (h *Heap) MarkKept(st *Storage) {
	h.mu.Lock()
	st.kept = true
	h.mu.Unlock()
}

// LetGo ends the claim of the scope of a storage that was marked so; false: it was not.
func (h *Heap) LetGo(st *Storage, why *Cause) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if st.kept {
		h.letGo(st, why)
	}
	return st.kept
}

// Keep moves a storage to another scope and keeps it from being released before that ends.
func (h *Heap) Keep(st *Storage, to *Scope) {
	h.mu.Lock()
	defer h.mu.Unlock()
	st.exempt = true
	from := st.home()
	from.moved = append(from.moved, st)
	to.adopt(st)
}

// Release releases a storage. Handles that still point to it will say why.
func (l Locked) Release(st *Storage, why *Cause) { l.h.release(st, why) }

// Exempt keeps a storage from being released before its scope ends.
func (l Locked) Exempt(st *Storage) { st.exempt = true }

// Expire releases a perishable storage that nothing holds.
func (l Locked) Expire(st *Storage, why *Cause) { l.h.expire(st, why) }

// release gives the memory back; h.mu is held.
func (h *Heap) release(st *Storage, why *Cause) {
	h.retire(st, why)
	h.giveBack()
}

// retire is release but for the memory, which giveBack frees: of several storages at once.
func (h *Heap) retire(st *Storage, why *Cause) {
	if st.gone.Load() != nil {
		return
	}
	st.gone.Store(why)
	st.watched = nil
	st.scope.disown(st)
	if st.holds.Load() > 0 {
		h.held.Add(-st.bytes)
		h.dropped += st.bytes
	}
	h.inUse -= st.bytes
	if st.scratch {
		h.scratch -= st.bytes
	}
	if st.placed {
		delete(h.placed, st)
	}
	if st.block != nil {
		h.retired = append(h.retired, h.settle(st))
		st.block = nil
	}
}

// giveBack frees the memory of what was retired.
func (h *Heap) giveBack() {
	if len(h.retired) > 0 {
		h.alloc.Free(h.retired...)
		clear(h.retired)
		h.retired = h.retired[:0]
	}
}

func (h *Heap) expire(st *Storage, why *Cause) {
	if st.Perishable() && st.holds.Load() == 0 {
		h.release(st, why)
	}
}
