package heap_test

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/null"
	"github.com/warpline-ml/warpline/tensor/internal/heap"
)

var name = "test"

// fresh is a heap over the memory of a card that computes nothing.
func fresh(t *testing.T) *heap.Heap {
	t.Helper()
	var c cards.Card
	c.Memory = 8 << 30
	return heap.New(device.NewAllocator(null.New("null", c), device.Config{}))
}

func open(h *heap.Heap, parent *heap.Scope) *heap.Scope {
	s := new(heap.Scope)
	h.Open(s, parent)
	return s
}

func alloc(t *testing.T, s *heap.Scope, n int64) *heap.Ref {
	t.Helper()
	ref, err := s.New(n, &name, 0, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

var end = &heap.Cause{By: "the test"}

func inUse(t *testing.T, h *heap.Heap, want heap.Usage) {
	t.Helper()
	got := h.Usage()
	if got.Held != got.InUse-got.Loose {
		t.Errorf("%+v", got)
	}
	got.Peak, got.ValuesPeak, got.Collections, got.Held = 0, 0, 0, 0
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestScopeOwns(t *testing.T) {
	h := fresh(t)
	root := open(h, nil)
	s := open(h, root)
	ref := alloc(t, s, 100)
	root.End(end) // s holds it open
	inUse(t, h, heap.Usage{InUse: 100, Loose: 100, Scopes: 2})
	s.End(end)
	inUse(t, h, heap.Usage{})
	if ref.Gone() != end || ref.Block() != nil || root.Closed() != end {
		t.Error("something outlived its scope")
	}
}

// TestHolds: what a hold keeps goes with the last hold only when it was left to them, and with its scope anyway.
func TestHolds(t *testing.T) {
	h := fresh(t)
	root := open(h, nil)
	inner := open(h, root)
	a, b, c := alloc(t, root, 1), alloc(t, root, 10), alloc(t, inner, 100)
	holds := []*heap.Hold{inner.Hold(a.Storage), inner.Hold(b.Storage), inner.Hold(c.Storage)}
	if holds[2] != nil {
		t.Error("a hold of the scope's own storage is listed")
	}
	inUse(t, h, heap.Usage{InUse: 111, Scopes: 2})
	h.Orphan(a.Storage, end)
	b.MarkPerishable()
	c.MarkPerishable()
	h.Exempt(c.Storage)
	if a.Gone() != nil {
		t.Error("orphaned under a hold, and gone")
	}
	l := h.Lock()
	for i, ref := range []*heap.Ref{a, b, c} {
		l.EndHold(ref.Storage, holds[i], end)
		if i < 2 {
			l.EndHold(ref.Storage, holds[i], end) // a listed hold ends once
		}
	}
	l.Unlock()
	if a.Gone() == nil || b.Gone() == nil || c.Gone() != nil {
		t.Error("with the last hold go orphans and perishables, and not what is exempt")
	}
	inner.End(end)
	root.End(end)
	inUse(t, h, heap.Usage{})
}

// TestKeptOutlives: a kept storage outlives its scope, and that scope's holds on it end all the same.
func TestKeptOutlives(t *testing.T) {
	h := fresh(t)
	root := open(h, nil)
	s := open(h, root)
	ref := alloc(t, s, 64)
	s.Hold(ref.Storage)
	h.Keep(ref.Storage, root)
	s.End(end)
	inUse(t, h, heap.Usage{InUse: 64, Loose: 64, Scopes: 1})
	if h.Owner(ref.Storage) != root {
		t.Error("kept elsewhere")
	}
	root.End(end)
	inUse(t, h, heap.Usage{})
}

func TestSweepSparesPinned(t *testing.T) {
	h := fresh(t)
	s := open(h, nil)
	a, b := alloc(t, s, 1), alloc(t, s, 2)
	b.Pin(2)
	b.Pin(-1)
	l := h.Lock()
	l.Sweep(s, end)
	l.Unlock()
	if a.Gone() == nil || b.Gone() != nil || !b.Pinned() {
		t.Error("a sweep releases what is not pinned, and only that")
	}
	s.End(end)
}

// TestCollect: an unreachable storage goes, one with a handle stays; small ones stay with their page.
func TestCollect(t *testing.T) {
	h := fresh(t)
	s := open(h, nil)
	alloc(t, s, 1<<20)
	alive := alloc(t, s, 1<<19)
	small := alloc(t, s, 8)
	alloc(t, s, 16)
	h.Collect()
	inUse(t, h, heap.Usage{InUse: 1<<19 + 24, Loose: 1<<19 + 24, Scopes: 1})
	runtime.KeepAlive(alive)
	runtime.KeepAlive(small)
	h.Collect()
	inUse(t, h, heap.Usage{Scopes: 1})
}

// TestPace: what nobody reaches does not pile up, and what is reached asks for few collections.
func TestPace(t *testing.T) {
	h := fresh(t)
	s := open(h, nil)
	for range 1000 {
		alloc(t, s, 1<<20)
	}
	if u := h.Usage(); u.Peak > 64<<20 || u.Collections > 150 {
		t.Errorf("garbage: %+v", u)
	}
	s.End(end)

	s = open(h, nil)
	h.ResetPeak()
	var kept []*heap.Ref
	for range 1000 {
		kept = append(kept, alloc(t, s, 1<<20))
	}
	if u := h.Usage(); u.Collections > 50 {
		t.Errorf("live values: %+v", u)
	}
	runtime.KeepAlive(kept)
}

func TestFailures(t *testing.T) {
	h := fresh(t)
	s := open(h, nil)
	h.FailAt(2)
	kept := []*heap.Ref{alloc(t, s, 1)}
	if _, err := s.New(1, &name, 0, nil, nil, nil); !errors.Is(err, heap.ErrInjected) {
		t.Errorf("the second: %v", err)
	}
	h.SetLimit(2)
	kept = append(kept, alloc(t, s, 1))
	if _, err := s.New(1, &name, 0, nil, nil, nil); !errors.Is(err, device.ErrOutOfMemory) {
		t.Errorf("beyond the limit: %v", err)
	}
	h.Drop(kept[0].Storage, end)
	kept = append(kept, alloc(t, s, 1))
	runtime.KeepAlive(kept)
	s.End(end)
}

// order notes which queue waits for which.
type order struct {
	number int
	waits  *[][2]int
}

func (o order) Number() int { return o.number }
func (o order) After(w int) { *o.waits = append(*o.waits, [2]int{o.number, w}) }

// TestQueues: a reader comes after the last writer, a writer after that and after other readers.
func TestQueues(t *testing.T) {
	h := fresh(t)
	s := open(h, nil)
	st := alloc(t, s, 1)
	var waits [][2]int
	q := [4]order{}
	for i := range q {
		q[i] = order{i, &waits}
	}
	if !st.Settled(0) || !st.Sole(0) || st.Settled(1) {
		t.Error("fresh: only its own queue needs no order")
	}
	st.Reads(q[0])
	st.Reads(q[2])
	st.Reads(q[3])
	if st.Sole(0) || !st.Settled(0) {
		t.Error("read elsewhere: its queue may read, not write")
	}
	st.Writes(q[1])
	st.Reads(q[0])
	want := [][2]int{{2, 0}, {3, 0}, {1, 0}, {1, 2}, {1, 3}, {0, 1}}
	if !slices.Equal(waits, want) {
		t.Errorf("%v, want %v", waits, want)
	}
}
