package heap

import (
	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/device"
)

// Use is what a storage serves for.
type Use struct {
	Label string // of package device
	Path  string // of the parameter that it belongs to, or ""
}

var (
	noUse = &Use{Label: device.LabelOther}
	saved = &Use{Label: device.LabelSaved}
)

// UseFor is the Use with a label and a path. Storages alike share one: a model has as many as parameters, whatever the
// steps.
func (h *Heap) UseFor(label, path string) *Use {
	if known, ok := h.uses.Load(Use{label, path}); ok {
		return known.(*Use)
	}
	known, _ := h.uses.LoadOrStore(Use{label, path}, &Use{label, path})
	return known.(*Use)
}

// Use is what the storage serves for, as far as somebody said.
func (st *Storage) Use() *Use {
	if u := st.use.Load(); u != nil {
		return u
	}
	return noUse
}

// SetUse says what the storage serves for from now on.
func (st *Storage) SetUse(u *Use) { st.use.Store(u) }

// MarkSaved says that a recorded operation keeps the storage, and reports whether that is all it serves for.
func (st *Storage) MarkSaved() bool { return st.use.CompareAndSwap(nil, saved) }

// Each calls f with the storages that live and have memory, in no order, while none is made or released. f must be quick and not
// call the heap.
func (h *Heap) Each(f func(*Storage)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := h.open; s != nil; s = s.next {
		for _, st := range s.storages {
			if st.block != nil {
				f(st)
			}
		}
	}
}

// Inventory is what a device's memory holds at one moment.
type Inventory struct {
	device.Layout
	Storages []*Storage                  // that live and have memory, in no order
	Placed   map[*Storage]*callsite.Site // of those that the program took over: where. It is the heap's, for the time of the call
	Held     int64                       // as in Usage
	Dropped  int64                       // bytes that were kept in vain since WalkedBack
	Turn     uint32                      // how often NextTurn was called
}

// Inventory calls f with what there is, while nothing changes hands. f must be quick and not call the heap or the
// allocator; it may begin to observe their stream.
func (h *Heap) Inventory(f func(*Inventory)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := &Inventory{Placed: h.placed, Held: h.held.Load(), Dropped: h.dropped, Turn: h.turn}
	for s := h.open; s != nil; s = s.next {
		for _, st := range s.storages {
			if st.block != nil {
				v.Storages = append(v.Storages, st)
			}
		}
	}
	h.alloc.Inventory(func(l device.Layout) {
		v.Layout = l
		f(v)
	})
}
