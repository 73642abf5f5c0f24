package heap

// Hold is a scope's claim on a storage of another scope. It ends by EndHold or with the scope whose it is.
type Hold struct {
	storage *Storage
	scope   *Scope
	done    bool
}

// Hold makes s an owner of st, beside the scope that st ends with. For a storage that was made in s there is nothing to
// note, and the result is nil; EndHold takes it all the same.
func (s *Scope) Hold(st *Storage) *Hold {
	if st.home() != s.home {
		return s.HoldAway(st)
	}
	s.heap.hold(st)
	st.homely.Add(1)
	return nil
}

// HoldAway is Hold for a claim that may move to a scope where st was not made: the result is never nil.
func (s *Scope) HoldAway(st *Storage) *Hold {
	s.heap.hold(st)
	c := &Hold{storage: st, scope: s.home}
	s.heap.mu.Lock()
	s.home.note(c)
	s.heap.mu.Unlock()
	return c
}

// EndHold ends c, what Hold returned for st, unless the end of its scope did. With a cause, it also releases a perishable
// storage that only holds wanted.
func (l Locked) EndHold(st *Storage, c *Hold, why *Cause) {
	switch {
	case c == nil:
		st.homely.Add(-1)
	case c.done:
		return
	default:
		c.done = true
	}
	l.h.unhold(st, why)
}

// MoveHold hands a hold that has not ended to another scope.
func (l Locked) MoveHold(c *Hold, to *Scope) {
	if c != nil && !c.done {
		c.scope = to.home
		to.home.note(c)
	}
}

// HeldBy tells whether c is a claim of s that has not ended.
func (l Locked) HeldBy(c *Hold, s *Scope) bool { return !c.done && c.scope == s.home }

func (h *Heap) hold(st *Storage) {
	if st.holds.Add(1) == 1 {
		h.held.Add(st.bytes)
	}
}

func (h *Heap) unhold(st *Storage, why *Cause) {
	if st.holds.Add(-1) > 0 || st.gone.Load() != nil {
		return
	}
	h.held.Add(-st.bytes)
	if st.orphan != nil {
		h.release(st, st.orphan)
	} else if why != nil {
		h.expire(st, why)
	}
}
