package tensor

import (
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/rng"
	"github.com/warpline-ml/warpline/tensor/internal/heap"
)

// recording is a step on its way through the library: what it launches, on which memory, and what else it does in each run.
type recording struct {
	dev       *Device
	queue     *queue
	goroutine uint64
	first     bool      // the first run: nothing is recorded, so that a step may make what later runs find
	fresh     bool      // nothing was recorded for this kind of batches yet
	made      bool      // the host has made something: what is recorded is not what later runs do
	paused    int       // the work under way is of the host's part of the step
	given     []*Tensor // the batch's, as the caller has them
	scope     *scope    // of the step's values; guarded by the registry, as is stray
	stray     string    // work on them by another goroutine; "": none

	keys     keyring
	slots    []slot
	slotOf   map[*heap.Storage]int
	outside  []outsider
	outerOf  map[*heap.Storage]int
	launches []launchRecord
	before   []func()
	after    []func()
	leaves   []*leaf     // that the step adds to the gradients of
	asked    []leafState // leaves that the step's graphs may end in
	casts    map[*ahead]bool
}

// slot is memory that the step takes, with the launches that use it; the batch is there from launch 0.
type slot struct {
	st          *heap.Storage
	size        int64
	first, last int // -1: none does
}

// outsider is memory that was there before the step.
type outsider struct {
	ref     *heap.Ref
	written bool
}

// launchRecord is a launch. Its addresses are those of the recorded run until the form has memory.
type launchRecord struct {
	kernel *device.Kernel
	params device.Params
	args   []device.Arg
	places []int // slots of the arguments; -1: outside
	cells  []cellRecord
	key    int // of the random numbers; -1: no such, or the same ones in each run
}

// cellRecord is a launch parameter that lies in memory of the step.
type cellRecord struct {
	param, slot int
	offset      int64
}

func newRecording(e *Env, first bool) *recording {
	return &recording{dev: e.dev, queue: e.onQueue(), goroutine: callsite.Goroutine(), first: first,
		slotOf: map[*heap.Storage]int{}, outerOf: map[*heap.Storage]int{}, casts: map[*ahead]bool{}}
}

// leafState is what of a leaf a step's Go code asks for.
type leafState struct {
	leaf         *leaf
	frozen       bool
	hooks, after int
}

func (l *leaf) state() leafState { return leafState{l, l.frozen.Load(), len(l.hooks), len(l.after)} }

// asks notes that what the step does depends on a leaf's state.
func (r *recording) asks(l *leaf) {
	if !slices.ContainsFunc(r.asked, func(a leafState) bool { return a.leaf == l }) {
		r.asked = append(r.asked, l.state())
	}
}

// host runs a part of the step that the host does in each run: its work is not recorded.
func (r *recording) host(f func()) {
	r.paused++
	defer func() { r.paused-- }()
	f()
}

// batchHint is what to do where a step writes into its batch.
const batchHint = "write into x.Clone()"

// admits refuses a launch that would not be in the step's one order of work on one device, or that writes into the batch: of
// that a run has copies, and the caller would not see what it writes.
func (r *recording) admits(pl *opPlan, q *queue, out []*Tensor) {
	switch op := pl.what(); {
	case q.dev != r.dev:
		raise(op, "do it before Run, or after", "work on %s within a step captured on %s", q.dev.name, r.dev.name)
	case q != r.queue:
		raise(op, "leave out env.On, env.NewQueue and env.Replica", "work on another queue than that of the captured step")
	}
	for _, t := range out {
		if r.gets(t.st.Storage) {
			raise(pl.what(), batchHint, "a write in place into the memory of %s, which is of the batch of a captured step", t.title())
		}
	}
}

// gets tells whether memory is the batch's, or of the copies that take its place.
func (r *recording) gets(st *heap.Storage) bool {
	if i, ok := r.slotOf[st]; ok {
		return i < len(r.given)
	}
	return slices.ContainsFunc(r.given, func(t *Tensor) bool { return t.st.Storage == st })
}

// ownsAny tells whether one of ts ends with the step.
func (r *recording) ownsAny(ts []*Tensor) bool {
	return slices.ContainsFunc(ts, func(t *Tensor) bool {
		return t.env.dev == r.dev && r.dev.heap.Owner(t.st.Storage).Within(&r.scope.Scope)
	})
}

// refuseStray raises an error if another goroutine has worked on values of the step.
func (r *recording) refuseStray() {
	if what := recordings.strayed(r); what != "" {
		raise("Run", "call it from the step's own goroutine", "%s is the work of another goroutine than the captured step's, and would not be done again", what)
	}
}

// makes notes memory that the step takes.
func (r *recording) makes(ref *heap.Ref) {
	r.slotOf[ref.Storage] = len(r.slots)
	r.slots = append(r.slots, slot{st: ref.Storage, size: ref.Bytes(), first: -1, last: -1})
}

// randomKey is which launch parameter of an op is the key of its random numbers.
var randomKey = map[ir.Code]int{ir.Uniform: 2, ir.Normal: 2, ir.RandInt: 2, ir.Dropout: 1}

// add records a launch that was done.
func (r *recording) add(pl *opPlan, params *ir.Params, from *cells, in, out []*Tensor, scratch *heap.Ref, o *device.Origin) {
	l := launchRecord{kernel: pl.kernel, key: -1}
	l.params.Set(params)
	if o != nil {
		l.params.Origin = *o
	}
	if i, random := randomKey[pl.op.Code]; random {
		l.key = r.keys.find(rng.Key(params.Value[i]))
	}
	r.launches = append(r.launches, l)
	at := len(r.launches) // from 1
	p := &r.launches[at-1]
	for _, t := range out {
		p.arg(t.arg(), r.uses(t.st, at, true))
	}
	for _, t := range in {
		p.arg(t.arg(), r.uses(t.st, at, false))
	}
	if scratch != nil {
		p.arg(device.Arg{Mem: scratch.Block().Mem()}, r.uses(scratch, at, true))
	}
	if from != nil {
		from.set(&p.params)
		for i, t := range from {
			if t == nil {
				continue
			}
			if s := r.uses(t.st, at, false); s >= 0 {
				p.cells = append(p.cells, cellRecord{i, s, t.arg().Offset})
			}
		}
	}
}

func (l *launchRecord) arg(a device.Arg, slot int) {
	l.args, l.places = append(l.args, a), append(l.places, slot)
}

// uses notes that a launch uses memory, and returns its slot: -1 for what was there before.
func (r *recording) uses(st *heap.Ref, at int, written bool) int {
	if i, ok := r.slotOf[st.Storage]; ok {
		s := &r.slots[i]
		if s.last = at; s.first < 0 {
			s.first = at
		}
		return i
	}
	i, ok := r.outerOf[st.Storage]
	if !ok {
		r.mayUse(st)
		i = len(r.outside)
		r.outerOf[st.Storage] = i
		r.outside = append(r.outside, outsider{ref: st})
	}
	r.outside[i].written = r.outside[i].written || written
	return -1
}

// mayUse refuses memory that later runs would not find, or find with what another turn left.
func (r *recording) mayUse(st *heap.Ref) {
	if root := &r.dev.base.scope.Scope; r.dev.heap.Owner(st.Storage) != root {
		r.refuseStray()
		raise("Run", "pass it in the batch; what stays the same from turn to turn is made in the root env, before Run",
			"the step uses the result of %s at %s, which is not of its batch and goes with another turn", st.What(), st.Site.String())
	}
}

// lasting is what the step has made and left behind, beside what is kept of its result; nil: nothing.
func (r *recording) lasting(result *heap.Ref) *heap.Storage {
	for _, s := range r.slots {
		if s.st.Gone() == nil && (result == nil || s.st != result.Storage) {
			return s.st
		}
	}
	return nil
}

// String tells how far the recording is.
func (r *recording) String() string {
	return fmt.Sprintf("step on %s, %d launches", r.dev.name, len(r.launches))
}
