package heap

import (
	"slices"
	"sync/atomic"
)

// Scope owns storages until it closes. Scopes form a tree; a child holds its parent open. It must not be copied once
// opened.
type Scope struct {
	heap   *Heap
	parent *Scope
	home   *Scope // s itself; of a frame, the scope that it is a part of
	opened uint64
	closed atomic.Pointer[Cause]

	// guarded by heap.mu
	next, previous *Scope // of the open ones

	refs     int32
	pageUsed uint8
	page     *[pageSize]Ref // open: the next Refs come from it
	book     []Storage      // open: the next storages come from it
	storages []*Storage
	away     []*Hold    // this scope's holds on storages of outer scopes
	moved    []*Storage // made here and owned elsewhere now; this scope's holds on them end with it all the same
}

var openings atomic.Uint64

// Open opens s, a zero Scope, within parent or, when that is nil, as the outermost one.
func (h *Heap) Open(s, parent *Scope) {
	s.home = s
	h.begin(s, parent)
}

// OpenFrame opens s, a zero Scope, as a frame of parent: a stretch of work in it, by code that knows who can still name
// what is made there. Holds made in a frame are its home's, that of the next scope around it that is no frame; what they
// keep moves out when the frame lets go of it.
func (h *Heap) OpenFrame(s, parent *Scope) {
	s.home = parent.home
	h.begin(s, parent)
}

func (h *Heap) begin(s, parent *Scope) {
	s.heap, s.parent, s.opened, s.refs = h, parent, openings.Add(1), 1
	h.mu.Lock()
	if parent != nil {
		parent.refs++
	}
	h.list(s)
	h.mu.Unlock()
}

// list adds s to the open scopes.
func (h *Heap) list(s *Scope) {
	if s.next = h.open; s.next != nil {
		s.next.previous = s
	}
	h.open = s
	h.scopes++
}

func (h *Heap) unlist(s *Scope) {
	if s.previous != nil {
		s.previous.next = s.next
	} else {
		h.open = s.next
	}
	if s.next != nil {
		s.next.previous = s.previous
	}
	s.next, s.previous = nil, nil
	h.scopes--
}

// Leave lets go of all that a frame owns but the storages that are to stay: it is released, or left to what holds it.
func (s *Scope) Leave(why *Cause, stay ...*Storage) {
	s.heap.mu.Lock()
	s.leave(why, stay)
	s.heap.mu.Unlock()
}

// Return ends a frame: it lets go of what it owns, as Leave does, and hands what is to stay to the scope around it.
func (s *Scope) Return(why *Cause, stay ...*Storage) {
	s.heap.mu.Lock()
	defer s.heap.mu.Unlock()
	s.leave(why, stay)
	for len(s.storages) > 0 {
		s.parent.adopt(s.storages[len(s.storages)-1])
	}
	s.end(why)
}

func (s *Scope) leave(why *Cause, stay []*Storage) {
	for i := len(s.storages) - 1; i >= 0; i-- {
		st := s.storages[i]
		switch {
		case slices.Contains(stay, st):
		case st.holds.Load() == 0:
			s.heap.retire(st, why)
		default:
			st.orphan = why
			s.home.adopt(st)
		}
	}
	s.heap.giveBack()
}

// Opened numbers scopes by the order in which they were opened, on all devices.
func (s *Scope) Opened() uint64 { return s.opened }

// Home is s itself or, of a frame, the scope that it is a part of.
func (s *Scope) Home() *Scope { return s.home }

// Within tells whether s is outer or lies in it. A nil scope, which owns what was released, lies in none.
func (s *Scope) Within(outer *Scope) bool {
	for s != nil && s != outer {
		s = s.parent
	}
	return s != nil
}

// Closed is what ended the scope, or nil while it is open.
func (s *Scope) Closed() *Cause { return s.closed.Load() }

// Retain keeps s open until one more End.
func (s *Scope) Retain() {
	s.heap.mu.Lock()
	s.refs++
	s.heap.mu.Unlock()
}

// End drops one reference; the last one releases everything that s owns and ends its holds.
func (s *Scope) End(why *Cause) {
	s.heap.mu.Lock()
	defer s.heap.mu.Unlock()
	s.end(why)
}

func (s *Scope) end(why *Cause) {
	if s.refs--; s.refs > 0 {
		return
	}
	h := s.heap
	s.closed.Store(why)
	h.unlist(s)
	for _, c := range s.away {
		if !c.done && c.scope == s {
			c.done = true
			h.unhold(c.storage, nil)
		}
	}
	for _, st := range s.moved {
		if st.home() != s {
			continue // its holds went to another scope
		}
		for range st.homely.Swap(0) {
			h.unhold(st, nil)
		}
	}
	for i := len(s.storages) - 1; i >= 0; i-- {
		h.retire(s.storages[i], why)
	}
	h.giveBack()
	h.reuse(s.storages)
	s.storages, s.page, s.book, s.away, s.moved = nil, nil, nil, nil, nil
	if s.parent != nil {
		s.parent.end(why)
	}
}

// What is kept of lists: a few, as chains are deep, and no longer ones than a large step's.
const (
	maxLists = 16
	maxList  = 1 << 12
)

// reuse keeps the list of a scope that has released all it owned.
func (h *Heap) reuse(list []*Storage) {
	if n := cap(list); n > 0 && n <= maxList && len(h.lists) < maxLists {
		h.lists = append(h.lists, list[:0])
	}
}

// emptied is such a list, or nil.
func (h *Heap) emptied() []*Storage {
	last := len(h.lists) - 1
	if last < 0 {
		return nil
	}
	l := h.lists[last]
	h.lists[last], h.lists = nil, h.lists[:last]
	return l
}

func (s *Scope) own(st *Storage) {
	if s.storages == nil {
		s.storages = s.heap.emptied()
	}
	st.scope = s
	st.index = int32(len(s.storages))
	s.storages = append(s.storages, st)
}

func (s *Scope) disown(st *Storage) {
	last := len(s.storages) - 1
	moved := s.storages[last]
	s.storages[st.index], moved.index = moved, st.index
	s.storages[last] = nil
	s.storages = s.storages[:last]
}

func (s *Scope) adopt(st *Storage) {
	if from := st.scope; from != s && st.gone.Load() == nil {
		from.disown(st)
		s.own(st)
	}
}

func (s *Scope) inherit(st *Storage) {
	s.adopt(st)
	st.moved.Store(s.home)
}

// Owner is the scope that a storage ends with.
func (l Locked) Owner(st *Storage) *Scope { return st.scope }

// Owner is the scope that a storage ends with.
func (h *Heap) Owner(st *Storage) *Scope {
	h.mu.Lock()
	defer h.mu.Unlock()
	return st.scope
}

// Adopt moves a storage to s.
func (l Locked) Adopt(s *Scope, st *Storage) { s.adopt(st) }

// Inherit moves a storage to s together with the holds of the scope where it was made.
func (l Locked) Inherit(s *Scope, st *Storage) { s.inherit(st) }

// InheritHeld takes over from a scope that ends a storage that s will hold. One that was moved out before stays where it
// is; only its holds come along.
func (l Locked) InheritHeld(s, from *Scope, st *Storage) {
	switch {
	case st.scope == from:
		s.inherit(st)
	case st.home() == from:
		st.moved.Store(s.home)
		s.home.moved = append(s.home.moved, st)
	}
}

// Sweep releases what s owns and nobody has pinned.
func (l Locked) Sweep(s *Scope, why *Cause) {
	for i := len(s.storages) - 1; i >= 0; i-- {
		if st := s.storages[i]; st.pins <= 0 {
			l.h.retire(st, why)
		}
	}
	l.h.giveBack()
}

// note lists a hold. The list forgets holds that ended before it grows, so that a scope may live through many.
func (s *Scope) note(c *Hold) {
	if len(s.away) == cap(s.away) {
		s.away = slices.DeleteFunc(s.away, func(c *Hold) bool { return c.done || c.scope != s })
		s.away = slices.Grow(s.away, len(s.away)+1)
	}
	s.away = append(s.away, c)
}

// Surface moves a storage of a frame to the frame's home, which it then ends with.
func (h *Heap) Surface(st *Storage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := st.scope; s.home != s {
		s.home.adopt(st)
	}
}
