package tensor

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/tensor/internal/heap"
)

// Observe calls f with each event of the device's work and memory, of some kinds or of all, until stop is called: see
// [device.Stream.Observe]. Observers of ranges make programs open them, and events name them from then on.
func (d *Device) Observe(f func(*device.Event), kinds ...device.Kind) (stop func()) {
	own := d.stream.Observe(f, kinds...)
	s, ok := device.As[device.Source](d.dev)
	if !ok {
		return own
	}
	engine := s.Events().Observe(f, kinds...)
	return func() {
		own()
		engine()
	}
}

// Time makes the device's events say when it began and ended the work ([device.Event.Span]), until stop is called. Where the
// host computes the launches themselves say so.
func (d *Device) Time() (stop func()) { return d.stream.Time() }

// Now is the host's time, by which the device's events are told.
func (d *Device) Now() time.Duration { return d.stream.Now() }

// Clock is that of a device whose host's time is its own; false for the machine's.
func (d *Device) Clock() (device.Clock, bool) {
	c, ok := device.As[device.Clock](d.dev)
	if ok {
		_, ok = c.HostTime()
	}
	return c, ok
}

// OnHost tells whether the device is the host's processor, which does the work in the call that asks for it.
func (d *Device) OnHost() bool { return d.info.Host }

// Profiler records the work of devices: package prof has one.
type Profiler interface{ Profile(*Device) }

// Profiled makes p record the work of e's device, in the steps that p is set to, and returns e.
func (e *Env) Profiled(p Profiler) *Env {
	e.present("Profiled")
	p.Profile(e.dev)
	return e
}

// Epoch waits for the device's work and relates its clock to the host's: the stamp was taken at the time. The stamp is nil
// where the device tells no times.
func (d *Device) Epoch() (device.Stamp, time.Duration) {
	d.sync()
	before := d.Now()
	t, ok := device.As[device.Timer](d.first.q)
	if !ok {
		return nil, before
	}
	d.first.mu.Lock()
	s, err := t.Stamp()
	d.first.mu.Unlock()
	if err != nil {
		raiseErr("Epoch", "", err)
	}
	d.first.sync()
	return s, (before + d.Now()) / 2
}

// Stamping is what a stamp costs the host: of some, on a device that has nothing to do, the mean. 0 where there are none.
func (d *Device) Stamping() time.Duration {
	const some = 16
	t, ok := device.As[device.Timer](d.first.q)
	if !ok {
		return 0
	}
	d.sync()
	d.first.mu.Lock()
	defer d.first.mu.Unlock()
	began := d.Now()
	for range some {
		if _, err := t.Stamp(); err != nil {
			return 0 // the next call on the queue says so
		}
	}
	return (d.Now() - began) / some
}

// Stamp is the point that e's queue has come to, with a time on the device once it is done; nil where the host computes.
func (e *Env) Stamp() (device.Stamp, error) {
	e.present("Stamp")
	q := e.onQueue()
	t, ok := device.As[device.Timer](q.q)
	switch {
	case e.dev.info.Host:
		return nil, nil
	case !ok:
		return nil, fmt.Errorf("%s has no clock", e.dev.name)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return t.Stamp()
}

// Ranged tells whether somebody observes the ranges of the device.
func (d *Device) Ranged() bool { return d.stream.Wants(device.KindRange) }

var rangeNumber atomic.Uint64

// Range derives an env whose operations, and those of values made in it, are attributed to a part of the program under a
// name, within e's own; end ends it. Without an observer of the device's ranges it is e.
func (e *Env) Range(name string) (inner *Env, end func()) {
	if !e.dev.Ranged() {
		return e, func() {}
	}
	return e.RangeOf(name, nil)
}

// RangeOf is Range with what opened it, for observers who know that. It does not ask whether there is one.
func (e *Env) RangeOf(name string, of any) (inner *Env, end func()) {
	r := &device.Range{Name: name, Parent: e.part, Number: rangeNumber.Add(1), Of: of}
	o, start := e.here(r), e.dev.stream.Now()
	if e.dev.Ranged() {
		o.Site = new(callsite.Site)
		callsite.User(o.Site) // once for both ends
	}
	e.dev.stream.Emit(device.Event{Kind: device.KindRange, Origin: o, Start: start})
	inner = e.with(func(c *Env) { c.part = r })
	return inner, func() {
		e.dev.stream.Emit(device.Event{Kind: device.KindRange, Origin: o, Start: start, Took: e.dev.stream.Now() - start, End: true})
	}
}

// Enter is t in a range that is opened for what will be made of it; end ends the range and returns its result, of which
// what is made is attributed to t's range again. It does not ask whether somebody observes ranges.
func (t *Tensor) Enter(name string, of any) (inner *Tensor, end func(y *Tensor) *Tensor) {
	inner, both := t.EnterPair(name, of)
	return inner, func(y *Tensor) *Tensor {
		y, _ = both(y, nil)
		return y
	}
}

// EnterPair is Enter for what makes two results, of which either may be nil.
func (t *Tensor) EnterPair(name string, of any) (inner *Tensor, end func(y, z *Tensor) (*Tensor, *Tensor)) {
	t.present()
	outer := t.env
	in, ends := outer.RangeOf(name, of)
	return t.inside(in), func(y, z *Tensor) (*Tensor, *Tensor) {
		ends()
		return y.leave(in, outer), z.leave(in, outer)
	}
}

// leave is t, made in env inner or in one derived from it, in the range of outer.
func (t *Tensor) leave(inner, outer *Env) *Tensor {
	switch {
	case t == nil || t.env == nil || t.env.part == outer.part || t.param:
		return t
	case t.env == inner:
		return t.inside(outer)
	}
	return t.inside(t.env.with(func(c *Env) { c.part = outer.part }))
}

// Opener is what opened the innermost range of e; nil without one.
func (e *Env) Opener() any {
	if e.part == nil {
		return nil
	}
	return e.part.Of
}

// here is the origin of what the host does at the current place of the program.
func (e *Env) here(r *device.Range) device.Origin {
	return device.Origin{Range: r, Seq: e.seq, Backward: e.back}
}

// backward is e for the accumulation of gradients, which observers are told is a part of Backward.
func (e *Env) backward() *Env {
	if !e.dev.stream.WantsWork() {
		return e
	}
	return e.with(func(c *Env) { c.back = true })
}

// origin is what an operation's work is attributed to, for observers. Its site begins skip calls above origin's caller.
//
//go:noinline
func (e *Env) origin(skip int) device.Origin {
	o := e.here(e.part)
	if o.Site = e.site; o.Site == nil {
		o.Site = callsite.At(1 + skip)
	}
	return o
}

// originOf is the origin of what the caller launches on operands, or nil if nobody observes work.
//
//go:noinline
func (e *Env) originOf(in []*Tensor) *device.Origin {
	if !e.dev.stream.WantsWork() {
		return nil
	}
	o := e.origin(2)
	o.Paths = pathsOf(in)
	return &o
}

// pathsOf is the paths of the parameters among operands. That of a single one is shared.
func pathsOf(in []*Tensor) []string {
	var first *[1]string
	for _, t := range in {
		if l := t.parameter(); l == nil {
			continue
		} else if s := l.name.Load(); s == nil || s[0] == "" || s == first {
			continue
		} else if first != nil {
			return appendPaths(nil, in)
		} else {
			first = s
		}
	}
	if first == nil {
		return nil
	}
	return first[:]
}

// appendPaths adds the paths of the parameters among operands. Of few, each comes once.
func appendPaths(paths []string, in []*Tensor) []string {
	const few = 8
next:
	for _, t := range in {
		l := t.parameter()
		if l == nil {
			continue
		}
		p := l.path()
		if p == "" {
			continue
		}
		if len(in) <= few {
			for _, other := range paths {
				if other == p {
					continue next
				}
			}
		}
		paths = append(paths, p)
	}
	return paths
}

// tell emits the events of a launch that q has been asked for: its steps. q.mu is held.
func (q *queue) tell(k *device.Kernel, start time.Duration, err error) {
	e := &q.event // nothing else of it is ever set
	e.Kind, e.Origin, e.Queue, e.Start, e.Took = device.KindLaunch, q.params.Origin, q.id, start, q.dev.stream.Now()-start
	e.Kernel, e.Step, e.Args, e.Params, e.Bytes, e.Err = k, 0, q.args, &q.params, k.Bytes, err
	if k.Steps == nil {
		q.dev.stream.Tell(e)
		return
	}
	for i := range k.Steps {
		e.Kind, e.Bytes, e.Step, e.Span = device.KindLaunch, k.Bytes, i, device.Span{}
		if n := k.Steps[i].Fill; n > 0 {
			e.Kind, e.Bytes = device.KindFill, n
		}
		if i < len(q.times) {
			e.Span = q.times[i]
		}
		q.dev.stream.Tell(e)
	}
	e.Span = device.Span{}
	clear(q.times)
}

// begun is when a copy began: by the host's clock if somebody observes copies, by the device's if somebody wants times.
type begun struct {
	at    time.Duration
	stamp device.Stamp
}

// copies begins a copy for observers.
func (q *queue) copies() (b begun) {
	if q.dev.stream.Wants(device.KindCopy) {
		b = begun{q.dev.stream.Now(), q.stamp()}
	}
	return b
}

// copied emits the event of a copy that moved n bytes in e's name.
func (q *queue) copied(e *Env, what string, dst, src device.Arg, n int64, from begun) {
	if q.dev.stream.Wants(device.KindCopy) {
		q.dev.stream.Emit(device.Event{Kind: device.KindCopy, Origin: e.here(e.part), Queue: q.id, What: what,
			Start: from.at, Took: q.dev.stream.Now() - from.at, Span: device.Span{Began: from.stamp, Ended: q.stamp()}, Bytes: n, Dst: dst, Src: src})
	}
}

// stamp is the point that q's device has come to, or nil where nobody wants times or the device does not tell them: a
// stamp that fails says so in the next call on the queue.
func (q *queue) stamp() device.Stamp {
	if !q.dev.stream.Timed() || q.dev.info.Host {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if t, ok := device.As[device.Timer](q.q); ok {
		if s, err := t.Stamp(); err == nil {
			return s
		}
	}
	return nil
}

// ownMemory is the Go program's, of n bytes.
func ownMemory(n int64) device.Arg { return device.Arg{Mem: device.Mem{Size: n, Host: true}} }

// Label says what t's memory serves for from now on: one of the labels of package device. path is that of the parameter that
// it belongs to, or "".
func (t *Tensor) Label(label, path string) {
	t.present()
	t.st.SetUse(t.env.dev.heap.UseFor(label, path))
	if label == device.LabelState {
		t.place() // deep in an optimizer, from where a site does not reach the program
	}
	t.tellUse(label, path)
}

// place says that t's memory is what it is because of the line of the program that is being executed.
func (t *Tensor) place() {
	var at callsite.Site
	callsite.User(&at)
	t.env.dev.heap.Place(t.st.Storage, &at)
}

// tellUse tells the device's observers of a label.
func (t *Tensor) tellUse(label, path string) {
	if t.env.dev.stream.Wants(device.KindRelabel) {
		o := t.env.here(t.env.part)
		t.env.dev.tellUse(t.st.Storage, label, path, &o)
	}
}

// tellUse tells d's observers what a storage serves for.
func (d *Device) tellUse(st *heap.Storage, label, path string, from *device.Origin) {
	b := st.Block()
	if b == nil {
		return
	}
	o := *from
	if o.Paths = nil; path != "" {
		o.Paths = []string{path}
	}
	d.stream.Emit(device.Event{Kind: device.KindRelabel, Origin: o, What: label, Mem: b.Mem(), Bytes: st.Bytes()})
}

// tell emits that the pass begins or ends, on each device that it goes through.
func (p *pass) tell(end bool) {
	var told []*Device
	for _, n := range p.order {
		if d := n.scope.dev; d.stream.Wants(device.KindBackward) && !slices.Contains(told, d) {
			told = append(told, d)
			d.stream.Emit(device.Event{Kind: device.KindBackward, Bytes: d.heap.Usage().Held, End: end})
		}
	}
}

// Inventory is what a device's memory holds at one moment.
type Inventory struct {
	device.Layout
	Values  []Value // what is in use of its segments, in no order
	Kept    int64   // bytes of Values that recorded operations keep for Backward, and programs for their next run
	Dropped int64   // bytes, since the last Backward, of values that were released with a graph that nothing had walked
	Turn    uint32  // of values made now
}

// Value is memory in use.
type Value struct {
	Mem   device.Mem
	Bytes int64          // asked for
	Op    string         // the operation that made it
	Label string         // what it serves for, a label of package device
	Path  string         // of the parameter that it belongs to, or ""
	Near  string         // the path of the nearest parameter that it was made of, or ""
	Held  bool           // by recorded operations, or by programs
	Turn  uint32         // later ones are larger: turns end with batches, and each Backward begins one
	Site  *callsite.Site // where it was made or, where a line of the program has taken it over, as Keep does, that
}

// Holdings calls f with each value in d's memory: where it was made, what it serves for, and its bytes. f must be quick and not
// call the device.
func (d *Device) Holdings(f func(site *callsite.Site, label string, bytes int64)) {
	d.heap.Each(func(st *heap.Storage) { f(st.Site, st.Use().Label, st.Bytes()) })
}

// Inventory calls f with what the device's memory holds, while nothing changes hands. f must be quick and not use the device,
// but it may begin to observe it: then it is told of all that changes hands later.
func (d *Device) Inventory(f func(*Inventory)) {
	d.heap.Inventory(func(v *heap.Inventory) {
		all := &Inventory{Layout: v.Layout, Kept: v.Held, Dropped: v.Dropped, Turn: v.Turn}
		for _, st := range v.Storages {
			u := st.Use()
			x := Value{Mem: st.Block().Mem(), Bytes: st.Bytes(), Op: st.What(), Label: u.Label, Path: u.Path, Held: st.Held(), Turn: st.Turn(), Site: st.Site}
			if at := v.Placed[st]; at != nil {
				x.Site = at
			}
			if st.Near != nil {
				x.Near = *st.Near
			}
			all.Values = append(all.Values, x)
		}
		f(all)
	})
}
