package prof

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/tensor"
)

// HistoryConfig is what a [History] keeps.
type HistoryConfig struct {
	Events int  // of each device, the latest; 0: 1<<20. Each takes 64 bytes, once it is there
	Stacks bool // up to 64 calls of each, some microseconds more, instead of the 8 that lead to an operation
}

// History records who takes and gives back the memory of devices: a ring of the latest events, with the calls that led to
// them. It may begin in the middle of a program: what is there then is known by the operation and the line that made it.
//
//	h := prof.NewHistory(prof.HistoryConfig{})
//	env = env.Profiled(h)
//	train(env)
//	err := h.WriteSnapshot("snapshot.pickle") // for pytorch.org/memory_viz; any time
//	h.Stop()
//
// Program counters are kept, each chain of calls once, and turned into lines when something is written. Its methods may be
// called by several goroutines at once, while devices work.
type History struct {
	cfg HistoryConfig

	mu      sync.Mutex
	of      []*trace
	stopped bool
}

// NewHistory returns a history of no device: see [tensor.Env.Profiled]. It panics when Events is negative.
func NewHistory(cfg HistoryConfig) *History {
	if cfg.Events < 0 {
		panic(fmt.Sprintf("prof.NewHistory: %d events", cfg.Events))
	}
	if cfg.Events == 0 {
		cfg.Events = 1 << 20
	}
	return &History{cfg: cfg}
}

// Profile implements [tensor.Profiler]: from now on d's memory is recorded. A device is taken once.
func (h *History) Profile(d *tensor.Device) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped || slices.ContainsFunc(h.of, func(t *trace) bool { return t.dev == d }) {
		return
	}
	h.of = append(h.of, newTrace(d, h.cfg))
}

// Stop ends the recording. What was recorded may still be written.
func (h *History) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return
	}
	h.stopped = true
	for _, t := range h.of {
		t.end = t.log()
		t.stop()
	}
}

var errNoDevice = errors.New("prof: the history has no device: env.Profiled(h) gives it one")

// logs are what was recorded of each device.
func (h *History) logs() ([]*memoryLog, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.of) == 0 {
		return nil, errNoDevice
	}
	var all []*memoryLog
	for _, t := range h.of {
		if t.end != nil {
			all = append(all, t.end)
		} else {
			all = append(all, t.log())
		}
	}
	return all, nil
}

// trace is the history of a device.
type trace struct {
	*watch
	most  int
	books *books
	ring  []change
	next  int        // of ring, once it is full: the oldest
	past  int        // changes that have left it
	base  *holdings  // before the oldest
	end   *memoryLog // of a trace that was stopped
}

func newTrace(d *tensor.Device, cfg HistoryConfig) *trace {
	t := &trace{most: cfg.Events, books: newBooks(d.Now, cfg.Stacks), base: newHoldings()}
	t.watch = observing(d, func(v *tensor.Inventory) {
		for _, c := range t.books.there(v) {
			t.base.apply(&c)
		}
	}, func(e *device.Event) { t.add(t.books.change(e)) }, memoryKinds)
	return t
}

// add records c, in the place of the oldest change when the ring is full.
func (t *trace) add(c change) {
	if len(t.ring) < t.most {
		t.ring = append(t.ring, c)
		return
	}
	t.base.apply(&t.ring[t.next])
	t.past++
	t.ring[t.next] = c
	if t.next++; t.next == len(t.ring) {
		t.next = 0
	}
}

// log is what the trace has now.
func (t *trace) log() *memoryLog {
	l := &memoryLog{name: t.dev.Name()}
	t.look(func(v *tensor.Inventory) {
		l.Inventory = v
		l.books, l.base, l.past = t.books.copy(), t.base.clone(), t.past
		l.changes = append(slices.Clone(t.ring[t.next:]), t.ring[:t.next]...)
		l.at = t.books.now()
	})
	l.foresee()
	return l
}

// memoryLog is the history of a device up to a moment.
type memoryLog struct {
	name string
	*tensor.Inventory
	books   *books
	base    *holdings // before the changes
	changes []change
	past    int   // changes before base
	at      int64 // of the end
}

// foresee calls blocks by their first name from the moment on when they were handed out: operations are recorded, and what they
// keep is named, once they have run.
func (l *memoryLog) foresee() {
	other := l.books.wordOf[device.LabelOther]
	open := map[uint64]*change{}
	for i := range l.changes {
		switch c := &l.changes[i]; c.kind {
		case device.KindAlloc:
			open[c.addr] = c
		case device.KindFreeRequested:
			delete(open, c.addr)
		case device.KindRelabel:
			if b := open[c.addr]; b != nil && b.label == other {
				b.label, b.path = c.label, c.path
			}
		}
	}
}

// ledger is who holds what behind the changes; each is called after every one.
func (l *memoryLog) ledger(each func(*ledger, *change)) *ledger {
	led := newLedger(l.books)
	led.begin(l.base.sorted())
	for i := range l.changes {
		led.apply(&l.changes[i])
		each(led, &l.changes[i])
	}
	return led
}

// last are the holdings behind the changes.
func (l *memoryLog) last() *holdings {
	s := l.base.clone()
	for i := range l.changes {
		s.apply(&l.changes[i])
	}
	return s
}

// holdings are what a device's memory holds at one moment, by address: segments, and blocks that are handed out or wait for
// other queues (whose kind is that of a free that was requested).
type holdings struct{ segments, blocks map[uint64]change }

func newHoldings() *holdings { return &holdings{map[uint64]change{}, map[uint64]change{}} }

func (s *holdings) clone() *holdings { return &holdings{maps.Clone(s.segments), maps.Clone(s.blocks)} }

func (s *holdings) apply(c *change) {
	switch c.kind {
	case device.KindAlloc:
		s.blocks[c.addr] = *c
	case device.KindFreeRequested, device.KindRelabel:
		b, ok := s.blocks[c.addr]
		if !ok || b.kind != device.KindAlloc {
			return
		}
		if c.kind == device.KindRelabel {
			b.label, b.path = c.label, c.path
		} else {
			b.kind = c.kind
		}
		s.blocks[c.addr] = b
	case device.KindFreeCompleted:
		delete(s.blocks, c.addr)
	case device.KindSegmentAlloc:
		s.segments[c.addr] = *c
	case device.KindMap:
		s.mapped(*c)
	case device.KindSegmentFree:
		delete(s.segments, c.addr)
	case device.KindUnmap:
		s.unmap(c)
	}
}

// mapped puts pages behind addresses, which with those before and behind are one segment: blocks lie over both.
func (s *holdings) mapped(c change) {
	for addr, m := range s.segments {
		if m.kind != device.KindMap || addr+uint64(m.size) != c.addr && c.addr+uint64(c.size) != addr {
			continue
		}
		delete(s.segments, addr)
		if c.size += m.size; addr < c.addr {
			c.addr, c.stack = addr, m.stack
		}
	}
	s.segments[c.addr] = c
}

// unmap takes away what lies behind addresses, which may be parts of what was put there.
func (s *holdings) unmap(c *change) {
	end := c.addr + uint64(c.size)
	for addr, m := range maps.Clone(s.segments) {
		last := addr + uint64(m.size)
		if addr >= end || last <= c.addr {
			continue
		}
		delete(s.segments, addr)
		if addr < c.addr {
			front := m
			front.size = int64(c.addr - addr)
			s.segments[addr] = front
		}
		if last > end {
			m.addr, m.size = end, int64(last-end)
			s.segments[end] = m
		}
	}
}

// sorted are all changes that lead to s, segments before blocks, by address.
func (s *holdings) sorted() (all []change) {
	for _, of := range []map[uint64]change{s.segments, s.blocks} {
		for _, addr := range slices.Sorted(maps.Keys(of)) {
			c := of[addr]
			if of[addr].kind != device.KindFreeRequested {
				all = append(all, c)
				continue
			}
			c.kind = device.KindAlloc
			free := c
			free.kind = device.KindFreeRequested
			all = append(all, c, free)
		}
	}
	return all
}
