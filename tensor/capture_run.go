package tensor

import (
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/tensor/internal/arena"
	"github.com/warpline-ml/warpline/tensor/internal/heap"
)

// form is a step as it was recorded for one kind of batches, with the memory that its runs work in.
type form struct {
	kind     kind
	asked    []leafState
	queue    *queue
	slots    []slot
	launches []launchRecord
	keys     keyring
	drawn    []int // which keys the device is told
	outside  []outsider
	leaves   []*leaf
	before   []func()
	after    []func()
	writes   map[*heap.Storage]bool // of what was there before
	result   *Tensor                // nil: none
	place    int                    // slot of the result; -1: none, or outside
	settled  bool                   // nothing was made that later runs find

	arena   *heap.Ref    // nil until the first run
	inputs  []device.Arg // where the batch's tensors are copied to
	aside   []*Tensor    // where those are copied before that lie in the arena; nil until one does
	words   []byte       // of the keys that are drawn
	wordsAt device.Arg
	graph   device.Graph // nil: the launches are made one by one
}

// formOf is the form of a recorded step, whose result is y or nil. It has no memory yet.
func (s *stepper) formOf(r *recording, y *Tensor) *form {
	f := &form{kind: s.batch.kind(), asked: r.asked, queue: r.queue, slots: r.slots, launches: r.launches, keys: r.keys,
		outside: r.outside, leaves: r.leaves, before: r.before, after: r.after, writes: map[*heap.Storage]bool{}, place: -1, settled: !r.made}
	for _, o := range r.outside {
		if o.written {
			f.writes[o.ref.Storage] = true
		}
	}
	for i := range r.launches {
		if k := r.launches[i].key; k >= 0 {
			f.drawn = append(f.drawn, k)
		}
	}
	if y != nil {
		own := *y
		f.result = &own
		if i, ok := r.slotOf[y.st.Storage]; ok {
			f.place = i
		}
	}
	f.keys.close()
	return f
}

// serves tells whether the form is one for b, with the leaves as they are.
func (f *form) serves(b *batch) bool {
	for i := range f.asked {
		if a := &f.asked[i]; *a != a.leaf.state() {
			return false
		}
	}
	return f.kind.is(b)
}

// prepare plans the memory of a form and gives its launches their places. An out-of-memory leaves it as it was.
func (s *stepper) prepare(f *form) {
	places, bytes := f.plan()
	f.arena = s.room(f, bytes+int64(len(f.drawn))*device.CellSize)
	mem := f.arena.Block().Mem()
	f.wordsAt = device.Arg{Mem: mem, Offset: bytes}
	f.words = make([]byte, len(f.drawn)*device.CellSize)
	f.put(mem, places)
	for i := range s.batch.tensors {
		f.inputs = append(f.inputs, device.Arg{Mem: f.slotIn(mem, places, i)})
	}
	if f.place >= 0 {
		f.result.st, f.result.off = f.arena, f.result.off+int(places[f.place])/f.result.typ.DType.Size()
	}
	f.capture()
}

// plan places the slots in one piece of memory of total bytes.
func (f *form) plan() (places []int64, total int64) {
	values := make([]arena.Value, len(f.slots))
	for i, s := range f.slots {
		values[i] = arena.Value{Size: s.size, First: s.first, Last: s.last}
		switch {
		case i == f.place:
			values[i].Last = len(f.launches) + 1
		case s.first < 0:
			values[i].Size = 0
		}
	}
	return arena.Plan(values, blockAlign)
}

// blockAlign is what blocks of the caching allocator are aligned to: kernels then see in a run what they saw in the step.
const blockAlign = 512

// put gives the launches the addresses that they have in each run, and their random keys cells.
func (f *form) put(mem device.Mem, places []int64) {
	next := uint64(0)
	for i := range f.launches {
		l := &f.launches[i]
		for j, s := range l.places {
			if s >= 0 {
				l.args[j].Mem = f.slotIn(mem, places, s)
			}
		}
		for _, c := range l.cells {
			at := f.slotIn(mem, places, c.slot)
			l.params.P[c.param].Cell = device.Mem{Addr: at.Addr + uint64(c.offset), Size: device.CellSize, Host: mem.Host}
		}
		if l.key >= 0 {
			at := mem.Addr + uint64(f.wordsAt.Offset) + next*device.CellSize
			l.params.P[randomKey[l.kernel.Op.Code]].Cell = device.Mem{Addr: at, Size: device.CellSize, Host: mem.Host}
			next++
		}
	}
}

func (f *form) slotIn(mem device.Mem, places []int64, i int) device.Mem {
	if f.slots[i].size == 0 {
		return device.Mem{}
	}
	return device.Mem{Addr: mem.Addr + uint64(places[i]), Size: f.slots[i].size, Host: mem.Host}
}

// room is memory for a form: that of another one, which does not run at the same time, if it is enough. What the recorded runs
// worked in goes back to the device before, since nobody else may need as much. A form that finds a value in the memory of
// another one, its result, has its own.
func (s *stepper) room(own *form, n int64) *heap.Ref {
	for _, f := range s.forms {
		if f.queue == own.queue && f.arena != nil && !own.finds(f.arena) && f.arena.Bytes() >= n && f.arena.Gone() == nil {
			return f.arena
		}
	}
	_ = s.env.dev.EmptyCache() // what a private pool serves stays
	return s.memory(own.queue, max(n, 1))
}

// finds tells whether the step uses memory that was there before.
func (f *form) finds(st *heap.Ref) bool {
	return slices.ContainsFunc(f.outside, func(o outsider) bool { return o.ref.Storage == st.Storage })
}

// putAside copies those of the batch's tensors that lie in the memory of the runs, results of the last one, out of it:
// copying the batch in would overwrite them. The memory for that is kept for later runs.
func (s *stepper) putAside() {
	f := s.form
	for i, t := range s.batch.tensors {
		if t.st.Storage != f.arena.Storage {
			continue
		}
		if f.aside == nil {
			f.aside = make([]*Tensor, len(s.batch.tensors))
		}
		if f.aside[i] == nil {
			f.aside[i] = &Tensor{st: s.memory(f.queue, max(t.span(), 1)), typ: t.typ, env: s.env}
		}
		c := f.aside[i]
		f.queue.within(t, c.arg())
		s.batch.tensors[i] = c
	}
}

// memory takes n bytes that live as long as the step.
func (s *stepper) memory(q *queue, n int64) *heap.Ref {
	ref, err := s.env.live().New(n, &stepName, q.id, callsite.At(4), nil, nil)
	if err != nil {
		s.env.dev.outOfMemory(s.env, n, ir.Copy, err, nil, nil)
	}
	ref.SetUse(workspace)
	return ref
}

var stepName = "captured step"

// capture makes one launch of all, where the queue can.
func (f *form) capture() {
	c, ok := device.As[device.Capturer](f.queue.q)
	if !ok {
		return
	}
	f.queue.mu.Lock()
	defer f.queue.mu.Unlock()
	var failed *launchRecord
	g, err := c.Capture(func() error {
		for i := range f.launches {
			l := &f.launches[i]
			if err := f.queue.q.Launch(l.kernel, l.args, &l.params); err != nil {
				failed = l
				return err
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, device.ErrUnsupported):
		return
	case failed != nil:
		raiseErr(failed.kernel.What(), "", described{err, failed.kernel.What(), ""})
	case err != nil:
		raiseErr("Capture", "", err)
	}
	f.graph = g
	q := f.queue
	runtime.AddCleanup(f, func(g device.Graph) { q.drop(g) }, g)
}

// drop gives back a graph, once.
func (q *queue) drop(g device.Graph) {
	q.mu.Lock()
	defer q.mu.Unlock()
	_ = g.Close() // what is wrong with the device shows in the next call that gives it work
}

func (f *form) close() {
	if f.graph != nil {
		f.queue.drop(f.graph)
		f.graph = nil
	}
	for _, t := range f.aside {
		if t != nil {
			t.drop(closed)
		}
	}
	f.aside = nil
}

// there tells whether all memory that the runs use is still there.
func (f *form) there() bool {
	if f.arena != nil && f.arena.Gone() != nil {
		return false
	}
	for i := range f.outside {
		if f.outside[i].ref.Gone() != nil {
			return false
		}
	}
	return true
}

// run does the step on tensors, the batch's, whose env is e.
func (f *form) run(e *Env, tensors []*Tensor) *Tensor {
	for _, h := range f.before {
		h()
	}
	for _, l := range f.leaves {
		if l.idle("Run"); l.grad != nil {
			raise("Run", "call Step or Discard before", "a gradient of %s is left from before the captured step", l.title())
		}
	}
	f.order()
	f.keys.turn(e.stream())
	f.tell()
	for i, t := range tensors {
		f.queue.within(t, f.inputs[i])
	}
	f.launch()
	for i := range f.outside {
		if f.outside[i].written {
			f.outside[i].ref.Written()
		}
	}
	f.arena.Written()
	for _, h := range f.after {
		h()
	}
	if f.result != nil {
		f.result.env = e
	}
	return f.result
}

// order puts the run behind other queues' work on its memory.
func (f *form) order() {
	q := f.queue
	if !f.arena.Sole(q.id) {
		f.arena.Writes(q)
	}
	for i := range f.outside {
		switch o := &f.outside[i]; {
		case o.written && !o.ref.Sole(q.id):
			o.ref.Writes(q)
		case !o.written && !o.ref.Settled(q.id):
			o.ref.Reads(q)
		}
	}
}

// tell writes the random keys of the run where its launches find them.
func (f *form) tell() {
	if len(f.drawn) == 0 {
		return
	}
	for i, k := range f.drawn {
		binary.LittleEndian.PutUint64(f.words[i*device.CellSize:], uint64(f.keys.now[k]))
	}
	q := f.queue
	start := q.copies()
	switch i := &q.dev.info; {
	case i.Null:
	case i.Host:
		copy(hostBytes(f.wordsAt, int64(len(f.words))), f.words)
	default:
		q.upload(f.wordsAt, f.words)
	}
	q.copied(q.dev.base, device.CopyUpload, f.wordsAt, ownMemory(int64(len(f.words))), int64(len(f.words)), start)
}

// launch starts the run's work: as one launch, or one by one where the queue cannot, or where somebody wants the times of
// each, which a graph does not tell.
func (f *form) launch() {
	q := f.queue
	watched := q.dev.stream.WantsWork()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.event.Captured = true
	defer func() { q.event.Captured = false }()
	whole := f.graph != nil && !q.dev.stream.Timed()
	start := q.dev.stream.Now()
	if whole {
		if err := f.graph.Launch(); err != nil {
			raiseErr("Run", "", err)
		}
	}
	for i := range f.launches {
		switch l := &f.launches[i]; {
		case whole && !watched:
			return
		case whole:
			q.told(l, start)
			start = q.dev.stream.Now()
		default:
			q.again(l.kernel, l.args, &l.params, &l.params.Origin)
		}
	}
}

// told emits the events of a launch that was made with others.
func (q *queue) told(l *launchRecord, start time.Duration) {
	own := q.params
	q.args, q.params, q.times = append(q.args[:0], l.args...), l.params, q.times[:0]
	q.tell(l.kernel, start, nil)
	q.params = own
}
