package tensor

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/tensor/internal/heap"
)

// Captured is a step on batches of type B, a pointer, struct, slice or map of tensors, that is recorded once and then done
// again as one launch, without the Go code that led to it. One goroutine at a time may run it.
type Captured[B any] struct {
	f func(b B) *Tensor
	s stepper
}

// Capture makes a captured step of f, a whole step of training for one: forward, backward, and the optimizers' Steps. Memory
// that its runs work in is env's device's, and lives as long as values made in env or until [Captured.Close].
//
// Every run gives what f would give, to the bit. It takes the batch's tensors, draws new random numbers from the batch's
// path, and finds parameters, buffers and other values of the root scope, and learning rates, as they are by then. What is
// not done again is what f's Go code does by itself: it must ask the device for the same in each run.
//
// Of a Go variable that f uses, such as a factor that a schedule changes, each run has what the recorded one found. That it
// differs between the two runs that are recorded is an error too; a later change is seen by [Captured.Check] only. What
// changes from run to run is a tensor of the batch, or lies in a buffer.
//
// So f reads no values (no Item, Later or printing), takes no data from the host, stays on one queue of one device, uses no
// values of other turns than its batch's, writes nothing into the memory that its batch lies in (not by a view of it either:
// x.Clone() is written into), and leaves nothing behind but its result, of which gradients without a Step are an example.
// Each of these is an error that names the line. Rates are set before the run: opt.SetLR(schedule(step)).
//
// All of f's work is done by the goroutine that calls Run. A goroutine that f starts, or gives work to, is in no recording:
// what it does with values of the step is an error too, but what it does with parameters and buffers alone cannot be told
// from another training beside this one, and is silently not done again.
func Capture[B any](env *Env, f func(b B) *Tensor) *Captured[B] {
	env.present("Capture")
	if f == nil {
		raise("Capture", "give the step", "the function is nil")
	}
	return &Captured[B]{f: f, s: stepper{env: env}}
}

// Run does the step on b. The result, which is nil if f's is, carries no graph, and its value is good until the next Run,
// which may have it in its batch; its Clone is good for longer.
//
// The first run is f's own, in which a step makes what stays, such as the state of an optimizer. After it, the first two runs
// on tensors of other shapes, dtypes or modes, beside other Go values in b, or with other parameters frozen, call f and record
// it; later ones do not call it. The two are compared: f asks for the same in both, or the second is an error.
func (c *Captured[B]) Run(b B) *Tensor {
	if c.s.read(reflect.ValueOf(b)); c.s.ready() {
		return c.s.replay()
	}
	return c.s.call(c.with(b))
}

// Check is Run, by f itself: an error says where f asks for other work by now than was recorded, because Go values have
// changed that it depends on. The step is done in either case. It takes the memory of a step beside that of the runs.
func (c *Captured[B]) Check(b B) *Tensor {
	c.s.read(reflect.ValueOf(b))
	return c.s.check(c.with(b))
}

// with calls f on b, or on a copy whose tensors and envs are a recording's.
func (c *Captured[B]) with(b B) func(*mover) *Tensor {
	return func(m *mover) *Tensor {
		if m == nil {
			return c.f(b)
		}
		return c.f(move(m, b))
	}
}

// Replayed is how many runs were done as one launch, and recorded for how many kinds of batches.
func (c *Captured[B]) Replayed() (runs, recorded int) { return c.s.replayed, c.s.recorded }

// Close lets go of the memory of the runs, and of their results. The next Run begins anew.
func (c *Captured[B]) Close() { c.s.close() }

// String tells how many runs there were of each sort.
func (c *Captured[B]) String() string {
	return fmt.Sprintf("captured step on %s, %d kinds of batches, replayed %d times", c.s.env.dev.name, c.s.recorded, c.s.replayed)
}

// Capturing tells whether the calling goroutine is in the function of a [Captured].
func Capturing() bool { return recordings.any() && recordings.find() != nil }

// BeforeRun calls f, the host's part of a step: in a captured one again before each run. What f asks of the device is not
// recorded. It serves optimizers, whose rates the host knows.
func BeforeRun(f func()) {
	s := recordings.step()
	if s == nil {
		f()
		return
	}
	s.before = append(s.before, f)
	s.host(f)
}

// AfterRun is BeforeRun for what is done after each run: what the host counts.
func AfterRun(f func()) {
	s := recordings.step()
	if s == nil {
		f()
		return
	}
	s.after = append(s.after, f)
	s.host(f)
}

// mostForms is how many kinds of batches a step is recorded for: more means that each batch is of its own kind.
const mostForms = 32

// stepper is what of a Captured does not depend on the type of batches.
type stepper struct {
	env      *Env
	batch    batch // of the run under way
	began    bool
	forms    []*form
	form     *form   // for the batch
	tried    []*form // that were recorded once, and are compared with a second recording
	replayed int
	recorded int
}

func (s *stepper) read(b reflect.Value) {
	if Capturing() {
		raise("Run", "call the function itself", "a captured step within a captured step")
	}
	s.batch.read(s.env, b)
}

// replay does the step again in the form that is ready.
func (s *stepper) replay() *Tensor {
	for _, t := range s.batch.tensors {
		if s.form.writes[t.st.Storage] {
			raise("Run", batchHint, "the step writes in place into the memory of %s, which is of its batch", t.title())
		}
	}
	s.putAside()
	s.replayed++
	return s.form.run(s.batch.env, s.batch.tensors)
}

// ready finds the form of the step for the batch, and memory for its runs; there is none if it must be recorded.
func (s *stepper) ready() bool {
	for i, f := range s.forms {
		if !f.serves(&s.batch) {
			continue
		}
		if s.form = f; f.there() {
			if f.arena == nil {
				s.prepare(f)
			}
			return true
		}
		f.close()
		s.forms = slices.Delete(s.forms, i, i+1)
		break
	}
	s.form = nil
	return false
}

// call has the program's function called, and records what it does.
func (s *stepper) call(f func(*mover) *Tensor) *Tensor {
	i := slices.IndexFunc(s.tried, func(t *form) bool { return t.serves(&s.batch) })
	if i < 0 && len(s.forms)+len(s.tried) >= mostForms {
		raise("Run", "give batches of equal shapes, and no Go values that change beside their tensors", "the step was recorded for %d kinds of batches", mostForms)
	}
	now, left, y := s.record(f, i < 0)
	switch {
	case now == nil:
		return y
	case i < 0:
		now.settled = now.settled && left == nil
		s.tried = append(s.tried, now)
		return y
	}
	before := s.tried[i]
	switch s.tried[i] = now; {
	case left != nil:
		raise("Run", "make values in the batch's env, let the optimizer take its Step within, and write into a buffer (tensor.NewBuffer, CopyInPlace) what goes from turn to turn",
			"the captured step leaves the result of %s at %s behind, which each run would make anew", left.What(), left.Site.String())
	case before.settled || now.like(before) == "":
		now.same(before)
		s.tried = slices.Delete(s.tried, i, i+1)
		s.forms = append(s.forms, now)
		s.recorded++
	default: // the run before has made what this one has found
		now.settled = true
	}
	return y
}

// check has the program's function called, and compares what it does with the form for the batch.
func (s *stepper) check(f func(*mover) *Tensor) *Tensor {
	if !s.ready() {
		return s.call(f)
	}
	before := s.form
	now, _, y := s.record(f, false)
	now.same(before)
	return y
}

// record has the program's function called; in all runs but the first, it returns what was recorded and what, beside the
// result, it left behind.
func (s *stepper) record(f func(*mover) *Tensor, fresh bool) (*form, *heap.Storage, *Tensor) {
	r := newRecording(s.batch.env, !s.began)
	r.fresh, r.given = fresh, s.batch.tensors
	recordings.beginStep(r)
	defer recordings.endStep(r)
	if r.first {
		y := f(nil)
		s.began = true
		if y == nil {
			return nil, nil, nil
		}
		return nil, nil, y.Detach()
	}
	y := r.record(&s.batch, f)
	var result *heap.Ref
	if y != nil {
		result = y.st
	}
	return s.formOf(r, y), r.lasting(result), y
}

func (s *stepper) close() {
	for _, f := range s.forms {
		f.close()
		if f.arena != nil && f.arena.Gone() == nil {
			s.env.dev.heap.Drop(f.arena.Storage, closed)
		}
	}
	s.forms, s.form, s.tried, s.began = nil, nil, nil, false
}

var (
	stepEnd = &heap.Cause{By: "the end of its captured step", Hint: "return it from the step"}
	closed  = &heap.Cause{By: "Close of its captured step", Hint: "t.Keep() keeps a result"}
)

// record runs f in a scope of its own, on copies of the batch's tensors that nothing else lies in.
func (r *recording) record(b *batch, f func(*mover) *Tensor) *Tensor {
	e := b.env
	path, outer := e.stream(), e.inScope(e.live())
	r.keys.open(r, path)
	s := newScope(e.dev, outer.scope, 0)
	s.block, s.random = true, path
	defer s.End(stepEnd)
	recordings.open(r, s)
	defer r.dev.Observe(func(*device.Event) {}, device.KindLaunch, device.KindRange)() // so that origins are known
	m := r.batch(b, s)
	y := f(m)
	r.refuseStray()
	if y == nil {
		return nil
	}
	y.alive("Run")
	if y.env.dev != r.dev {
		raise("Run", "return a value of the step's device", "the result is on %s, the step on %s", y.env.dev.name, r.dev.name)
	}
	y = y.Detach()
	l := r.dev.heap.Lock()
	if l.Owner(y.st.Storage) == &s.Scope {
		l.Inherit(&outer.scope.Scope, y.st.Storage)
	}
	l.Unlock()
	y.env = outer
	return y
}

// batch copies the batch's tensors, as they lie in memory, into the step's scope, and says what takes their place.
func (r *recording) batch(b *batch, s *scope) *mover {
	envs, copies := map[*Env]*Env{}, map[*Tensor]*Tensor{}
	within := func(e *Env) *Env {
		if e.dev != r.dev {
			return e
		}
		if envs[e] == nil {
			envs[e] = e.with(func(c *Env) { c.scope, c.seeded = s, nil })
		}
		return envs[e]
	}
	for _, t := range b.tensors {
		e := within(t.env)
		c := &Tensor{st: s.storage(e, t.span(), ir.Copy, 0, nil, nil), typ: t.typ, env: e, apart: t.apart}
		r.slots[len(r.slots)-1].first, r.slots[len(r.slots)-1].last = 0, 0
		r.queue.within(t, c.arg())
		copies[t] = c
	}
	return &mover{tensor: func(t *Tensor) *Tensor { return copies[t] }, env: within}
}

// span is how many bytes lie between t's first element and its last, both included.
func (t *Tensor) span() int64 { return int64(t.typ.Span()) * int64(t.typ.DType.Size()) }

// within copies t, as it lies in memory, to another place of the device.
func (q *queue) within(t *Tensor, to device.Arg) {
	n := t.span()
	if n == 0 {
		return
	}
	if !t.st.Settled(q.id) {
		t.st.Reads(q)
	}
	start := q.copies()
	q.copy(to, t.arg(), n)
	q.copied(t.env, device.CopyWithin, to, t.arg(), n, start)
	runtime.KeepAlive(t)
}
