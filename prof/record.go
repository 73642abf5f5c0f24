package prof

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/tensor"
)

// record is an event as it is kept: small and without pointers, since a window may have a million.
type record struct {
	start, took int64 // nanoseconds of the host since the window's beginning
	seq         uint64
	part        uint32 // the innermost range, in a table of them, from 1; 0: none
	what        uint32 // what it is of, in a table
	span        uint32 // the device's own times, in a table, from 1; 0: none
}

// what is all of an event that is the same each time that a program comes to its place.
type what struct {
	kind     device.Kind
	backward bool
	captured bool
	queue    uint8
	step     uint16 // of the kernel's
	kernel   *device.Kernel
	bytes    int64
	text     string // what a copy or wait is; of launches the paths of parameters
	site     callsite.Site
}

// recorder keeps the events of a window.
type recorder struct {
	room   atomic.Int64 // how many events may still be kept
	lanes  []*lane
	memory bool
	steps  []boundary // by the clock of the first device; guarded by the profiler's lock
}

// lane keeps the events of one device, whose observer it is: one event comes at a time, and none once it was stopped.
type lane struct {
	of   *recorder
	dev  *tensor.Device
	base time.Duration // of the host's clock
	stop []func()

	epoch device.Stamp // taken at the time that at says
	at    time.Duration

	chunks [][]record
	spans  spans
	open   []opened // ranges that have not ended
	late   int      // events for which there was no room

	last  uint32 // what the latest event was of
	whats []seen
	known map[what]uint32

	blocks *blocks // nil where memory is not recorded

	part   *device.Range // of the latest event
	number uint32        // and its number
	parts  []*device.Range
	partOf map[*device.Range]uint32
}

// seen is what events were of.
type seen struct {
	what
	paths []string // of a launch, which text has as one
	next  uint32   // what came after it last time
}

type opened struct {
	number uint64
	record *record
}

// boundary is where a step begins.
type boundary struct {
	step int
	at   int64
}

// chunk is how many events memory is taken for at a time.
const chunk = 1 << 12

// room is of windows before.
var room = sync.Pool{New: func() any { return new([chunk]record) }}

// chunks is a list that never moves what it has.
type chunks[T any] struct {
	n    int
	list [][]T
}

func (c *chunks[T]) add(v T) {
	if c.n%chunk == 0 {
		c.list = append(c.list, make([]T, 0, chunk))
	}
	last := len(c.list) - 1
	c.list[last] = append(c.list[last], v)
	c.n++
}

func (c *chunks[T]) at(i int) *T { return &c.list[i/chunk][i%chunk] }

func newRecorder(most, step int) *recorder {
	r := &recorder{steps: []boundary{{step, 0}}}
	r.room.Store(int64(most))
	return r
}

// observe records a device from now on.
func (r *recorder) observe(d *tensor.Device) {
	l := &lane{of: r, dev: d, known: map[what]uint32{}, partOf: map[*device.Range]uint32{}}
	l.epoch, l.at = d.Epoch()
	l.base = d.Now()
	r.lanes = append(r.lanes, l)
	l.stop = append(l.stop, d.Time(), d.Observe(l.add,
		device.KindLaunch, device.KindFill, device.KindCopy, device.KindWait, device.KindRange))
	if r.memory {
		l.blocks = &blocks{lane: l}
		l.stop = append(l.stop, l.blocks.observe(d))
	}
}

// close ends the recording: nothing is added any more.
func (r *recorder) close() {
	for _, l := range r.lanes {
		for _, stop := range l.stop {
			stop()
		}
	}
}

// step notes that a step begins.
func (r *recorder) step(n int) {
	l := r.lanes[0]
	r.steps = append(r.steps, boundary{n, int64(l.dev.Now() - l.base)})
	for _, l := range r.lanes {
		if l.epoch != nil && !l.virtual() { // a model's host would spend its time on asking
			l.spans.settle(l.epoch)
		}
	}
}

// add is the observer.
func (l *lane) add(e *device.Event) {
	if e.End && e.Kind == device.KindRange {
		l.end(e)
		return
	}
	r := l.next()
	if r == nil {
		l.late++
		return
	}
	*r = record{start: int64(e.Start - l.base), took: int64(e.Took), seq: e.Seq, what: l.what(e)}
	if e.Range != nil {
		r.part = l.partNumber(e.Range)
	}
	if e.Span.Began != nil {
		l.spans.add(e.Span)
		r.span = uint32(l.spans.n)
	}
	if e.Kind == device.KindRange {
		l.open = append(l.open, opened{e.Range.Number, r})
	}
}

// next is room for a record; nil if there is none left.
func (l *lane) next() *record {
	n := len(l.chunks) - 1
	if n < 0 || len(l.chunks[n]) == cap(l.chunks[n]) {
		left := l.of.room.Add(-chunk)
		size := min(chunk, left+chunk)
		if size <= 0 {
			return nil
		}
		l.chunks = append(l.chunks, room.Get().(*[chunk]record)[:0:size])
		n++
	}
	c := l.chunks[n]
	c = c[:len(c)+1]
	l.chunks[n] = c
	return &c[len(c)-1]
}

// end completes the record of a range, if its beginning was recorded. The latest is most often the one.
func (l *lane) end(e *device.Event) {
	for i := len(l.open) - 1; i >= 0; i-- {
		if l.open[i].number == e.Range.Number {
			l.open[i].record.took = int64(e.Took)
			l.open = slices.Delete(l.open, i, i+1)
			return
		}
	}
}

// what is the number of what e is of. A program does the same things in the same order again and again: what came next last time
// is tried first.
func (l *lane) what(e *device.Event) uint32 {
	if len(l.whats) > 0 {
		if i := l.whats[l.last].next; l.whats[i].is(e) {
			l.last = i
			return i
		}
	}
	w := what{kind: e.Kind, backward: e.Backward, captured: e.Captured, queue: uint8(e.Queue), step: uint16(e.Step), kernel: e.Kernel, bytes: e.Bytes, text: text(e)}
	if e.Site != nil {
		w.site = *e.Site
	}
	i, ok := l.known[w]
	if !ok {
		i = uint32(len(l.whats))
		l.whats = append(l.whats, seen{what: w, paths: slices.Clone(e.Paths)})
		l.known[w] = i
	}
	l.whats[l.last].next = i
	l.last = i
	return i
}

// is reports whether e is of s.
func (s *seen) is(e *device.Event) bool {
	return s.kernel == e.Kernel && s.kind == e.Kind && s.backward == e.Backward && s.captured == e.Captured &&
		int(s.queue) == e.Queue && int(s.step) == e.Step && s.bytes == e.Bytes &&
		(e.Site == nil && s.site == callsite.Site{} || e.Site != nil && s.site == *e.Site) &&
		(e.Kernel == nil && s.text == e.What || e.Kernel != nil && slices.Equal(s.paths, e.Paths))
}

// text is what a copy or a wait is; of launches the paths of parameters.
func text(e *device.Event) string {
	if e.Kernel == nil {
		return e.What
	}
	return strings.Join(e.Paths, " ")
}

// partNumber is the number of a range, from 1.
func (l *lane) partNumber(r *device.Range) uint32 {
	if r == l.part {
		return l.number
	}
	i, ok := l.partOf[r]
	if !ok {
		l.parts = append(l.parts, r)
		i = uint32(len(l.parts))
		l.partOf[r] = i
	}
	l.part, l.number = r, i
	return i
}
