package tensor

import (
	"slices"
	"sync/atomic"
	"weak"

	"github.com/warpline-ml/warpline/internal/rng"
)

// scope owns storages until it closes. Scopes form a tree; a child holds its parent open.
type scope struct {
	dev    *Device
	parent *scope
	opened uint64      // later-opened wins a join
	begun  uint64      // sequence number of the last node before it
	ended  atomic.Bool // by its opener; holders may keep it open
	block  bool        // of Do or Try: when closed, its env stands for the parent's
	key    rng.Key
	draws  atomic.Uint64
	closed atomic.Pointer[cause]

	// guarded by dev.mu
	refs      int
	records   []*record
	page      []storage // what is left of the open page
	pageWatch weak.Pointer[storage]
	book      []record  // what is left of the open run of records
	outer     []*hold   // what this scope's graph holds of outer scopes
	moved     []*record // values made here that now live elsewhere; this scope's graph may still hold them
}

// hold is a graph's claim on a storage of an outer scope, ended by its node or by the end of the graph's scope.
type hold struct {
	rec   *record
	scope *scope // whose graph it is
	done  bool
}

var openings atomic.Uint64

func newScope(d *Device, parent *scope, key rng.Key) *scope {
	s := &scope{dev: d, parent: parent, opened: openings.Add(1), begun: nodeSeq.Load(), refs: 1, key: key}
	d.mu.Lock()
	if parent != nil {
		parent.refs++
	}
	d.open[s] = struct{}{}
	d.mu.Unlock()
	return s
}

func (s *scope) own(r *record) {
	r.scope.Store(s)
	r.index = len(s.records)
	s.records = append(s.records, r)
}

func (s *scope) disown(r *record) {
	last := len(s.records) - 1
	moved := s.records[last]
	s.records[r.index], moved.index = moved, r.index
	s.records[last] = nil
	s.records = s.records[:last]
}

// adopt moves r into s; dev.mu is held.
func (s *scope) adopt(r *record) {
	if from := r.scope.Load(); from != s && r.gone.Load() == nil {
		from.disown(r)
		s.own(r)
	}
}

// inherit adopts r together with the graph that holds it.
func (s *scope) inherit(r *record) {
	s.adopt(r)
	r.home.Store(s)
}

// holds lists h. The list forgets holds that ended before it grows, so that a scope may live through many graphs.
func (s *scope) holds(h *hold) {
	if len(s.outer) == cap(s.outer) {
		s.outer = slices.DeleteFunc(s.outer, func(h *hold) bool { return h.done || h.scope != s })
		s.outer = slices.Grow(s.outer, len(s.outer)+1)
	}
	s.outer = append(s.outer, h)
}

// inheritHeld takes over from a block what a node that leaves it holds. A value that was moved out before stays where
// it is; only its graph comes along.
func (s *scope) inheritHeld(from *scope, r *record) {
	switch {
	case r.scope.Load() == from:
		s.inherit(r)
	case r.home.Load() == from:
		r.home.Store(s)
		s.moved = append(s.moved, r)
	}
}

func (s *scope) retain() {
	s.dev.mu.Lock()
	s.refs++
	s.dev.mu.Unlock()
}

// end drops one reference; the last one releases everything the scope owns and ends its graph.
func (s *scope) end(why *cause) {
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	s.endLocked(why)
}

func (s *scope) endLocked(why *cause) {
	if s.refs--; s.refs > 0 {
		return
	}
	s.closed.Store(why)
	delete(s.dev.open, s)
	for _, h := range s.outer {
		if !h.done && h.scope == s {
			h.done = true
			s.dev.unhold(h.rec, nil)
		}
	}
	for _, r := range s.moved {
		if r.home.Load() != s {
			continue // its graph went to another scope
		}
		for range r.homely.Swap(0) {
			s.dev.unhold(r, nil)
		}
	}
	for i := len(s.records) - 1; i >= 0; i-- {
		s.dev.release(s.records[i], why)
	}
	s.records, s.page, s.book, s.outer, s.moved = nil, nil, nil, nil, nil
	if s.parent != nil {
		s.parent.endLocked(why)
	}
}

// Scope is an open lifetime, for packages that own loops. Users see it as a batch. It may be used by several goroutines at
// once.
type Scope struct{ s *scope }

// Scope derives an env whose new values live until End. The path of stable indices is folded into its random key.
func (e *Env) Scope(path ...uint64) (*Env, Scope) {
	s := newScope(e.dev, e.live(), rng.Key(e.Key(path...)))
	c := *e
	c.scope, c.seeded = s, nil
	return &c, Scope{s}
}

// Hold keeps the scope open until the returned function is called. The zero Scope, which no Env.Scope made, has nothing to
// keep.
func (s Scope) Hold() (release func()) {
	if s.s == nil {
		return func() {}
	}
	s.s.retain()
	var once atomic.Bool
	return func() {
		if once.CompareAndSwap(false, true) {
			s.s.end(turnEnd)
		}
	}
}

// End closes the scope, unless somebody holds it. Only the first End counts.
func (s Scope) End() {
	if s.s != nil && s.s.ended.CompareAndSwap(false, true) {
		s.s.end(turnEnd)
	}
}
