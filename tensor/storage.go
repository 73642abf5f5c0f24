package tensor

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"weak"

	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// storage is what handles and graph nodes point to, and nothing else does: when Go's collector finds it unreachable,
// no handle reaches the memory any more. It points only at its record, so it keeps nothing but its page alive.
type storage struct{ rec *record }

// record is the owner's side of a storage: the scope holds it, strongly. A storage may die while its record lives.
type record struct {
	block   *device.Block         // nil for an empty value
	bytes   int64                 // asked for
	watch   weak.Pointer[storage] // to the first storage of its page, or to the storage itself when it is large
	scope   atomic.Pointer[scope] // owner; moves with Keep, with the end of a block, with a gradient
	home    atomic.Pointer[scope] // the scope whose graph's holds need no list: where it was made
	homely  atomic.Int32          // how many of the holds those are; a value moved away loses them when home ends
	index   int                   // place in scope.records
	holds   atomic.Int32          // graph nodes that saved it
	version atomic.Uint32         // writes in place
	writer  atomic.Pointer[queue] // last queue that wrote it
	readers atomic.Uint64         // queues other than the allocating one that used it since, by id
	queue   *queue                // whose work its memory is ordered with
	made    bool                  // by a recorded op: Backward may release it
	exempt  bool                  // from release by Backward: the head, kept and detached values
	orphan  bool                  // its owner let go; released when no graph holds it
	uses    int                   // pending gradients that share it, during one Backward
	gone    atomic.Pointer[cause]
	code    ir.Code
	site    callsite.Site
}

// cause says what released a storage and what to do about it.
type cause struct{ by, hint string }

var (
	turnEnd     = &cause{"the end of its batch", "t.Keep() keeps a value beyond its batch"}
	blockEnd    = &cause{"the end of its Do or Try block", "return it from the block, or t.Keep()"}
	ranBack     = &cause{"Backward", "call t.Keep() or t.Detach() before Backward, or use BackwardRetain"}
	stepped     = &cause{"Step, which consumes gradients", "read it before Step"}
	slotSet     = &cause{"Slot.Set", "t.Keep() keeps the old value too"}
	replaced    = &cause{"a new value for its parameter", "take the handle again from the model"}
	internal    = &cause{"its operation, as a temporary", "t.Keep() within the operation keeps it"}
	unreachable = &cause{by: "a collection: no handle reached it"}
)

const (
	pageSize   = 32
	smallBytes = 16 << 10 // a storage up to this size shares its page's weak pointer
	paceFloor  = 8 << 20
	allFloor   = 64 << 20

	recordBytes = 352 // what a value costs in Go's heap, a little more than its record, its storage and its places in lists
)

// newStorage allocates n bytes owned by s, ordered with q, made at a site or, when that is nil, above skip callers. It may
// run a collection first.
func (s *scope) newStorage(n int64, code ir.Code, q *queue, site *callsite.Site, skip int) *storage {
	d := s.dev
	d.mu.Lock()
	if !d.collecting && d.due(n) {
		d.collect()
	}
	block, err := d.take(n, q)
	if err != nil {
		d.collect() // an out-of-memory is believed only after this
		if block, err = d.take(n, q); err != nil {
			d.failed = false
			d.mu.Unlock()
			d.outOfMemory(n, code, err)
		}
	}
	d.inUse += n
	d.peak = max(d.peak, d.inUse)
	st := s.watched(n)
	rec := st.rec
	rec.bytes, rec.code, rec.block, rec.queue = n, code, block, q
	rec.writer.Store(q)
	s.own(rec)
	rec.home.Store(s)
	d.scopeOnly.Add(n)
	d.mu.Unlock()
	if site != nil {
		rec.site = *site
	} else {
		callsite.Capture(1+skip, &rec.site)
	}
	return st
}

// watched makes a storage with its record. Small ones come from the scope's open page.
func (s *scope) watched(n int64) *storage {
	if len(s.book) == 0 {
		s.book = make([]record, pageSize)
	}
	rec := &s.book[0]
	s.book = s.book[1:]
	if n > smallBytes {
		st := &storage{rec}
		rec.watch = weak.Make(st)
		return st
	}
	if len(s.page) == 0 {
		s.page = make([]storage, pageSize)
		s.pageWatch = weak.Make(&s.page[0])
	}
	st := &s.page[0]
	st.rec, rec.watch = rec, s.pageWatch
	s.page = s.page[1:]
	return st
}

// errInjected is the failure that FailAt asks for, errLimit that of SetLimit.
var (
	errInjected = errors.New("failure injected by FailAt")
	errLimit    = fmt.Errorf("%w: the limit set is reached", device.ErrOutOfMemory)
)

// take allocates from the caching allocator; d.mu is held. An injected failure is not cured by a collection.
func (d *Device) take(n int64, q *queue) (*device.Block, error) {
	if d.failed {
		return nil, errInjected
	}
	if d.failAt > 0 {
		if d.failAt--; d.failAt == 0 {
			d.failed = true
			return nil, errInjected
		}
	}
	if n == 0 {
		return nil, nil
	}
	if d.most > 0 && d.inUse+n > d.most {
		return nil, errLimit
	}
	return d.alloc.Alloc(n, q.id)
}

// outOfMemory reports an allocation that failed; on a device that has failed altogether, that.
func (d *Device) outOfMemory(n int64, code ir.Code, err error) {
	if !errors.Is(err, device.ErrOutOfMemory) && !errors.Is(err, errInjected) {
		raiseErr(code.String(), "", err)
	}
	m := d.Memory()
	e := &OOMError{Device: d.name, Op: code.String(), Line: userLine(), Asked: n, Allocated: m.Allocated.Current,
		Reserved: m.Reserved.Current, Limit: d.limit(), Free: -1, Err: err}
	var refused *device.OOMError
	if errors.As(err, &refused) {
		e.Free = refused.Free
	}
	panic(e)
}

// due reports whether n more bytes call for a collection; d.mu is held.
func (d *Device) due(n int64) bool {
	return d.scopeOnly.Load()+n-d.paceScope > max(d.floor, d.inUse/8) || d.inUse+n > max(allFloor, 2*d.paceAll)
}

// collect runs Go's collector and releases what no handle reaches. d.mu is held on entry and on return.
func (d *Device) collect() {
	for d.collecting { // another goroutine's collection may have begun before our garbage was made
		d.collected.Wait()
	}
	d.collecting = true
	for s := range d.open {
		s.page = nil // an open page is reachable from its scope: it would keep its storages
	}
	d.mu.Unlock()
	runtime.GC()
	d.mu.Lock()
	// A collection costs what the user's own heap costs: 0.1 ms, or 80 ms beside three million objects. So the least
	// growth follows that heap, as Go's own pacing does, without the records that are released now: those of small values
	// are larger than their memory and would put off each next collection by a multiple. Not the clock: a plan must see
	// the same peak as the run.
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	released := 0
	for s := range d.open {
		released += len(s.records)
		d.releaseUnreachable(s)
		released -= len(s.records)
	}
	d.floor = max(paceFloor, 2*(int64(live[0].Value.Uint64())-recordBytes*int64(released)))
	d.paceScope, d.paceAll = d.scopeOnly.Load(), d.inUse
	d.collections++
	d.collecting = false
	d.collected.Broadcast()
}

func (d *Device) releaseUnreachable(s *scope) {
	var last weak.Pointer[storage]
	alive := true
	for i := len(s.records) - 1; i >= 0; i-- {
		r := s.records[i]
		if r.watch != last {
			last, alive = r.watch, r.watch.Value() != nil
		}
		if !alive {
			d.release(r, unreachable)
		}
	}
}

// release gives the memory back; d.mu is held. Handles that still point here will say why.
func (d *Device) release(r *record, why *cause) {
	if r.gone.Load() != nil {
		return
	}
	r.gone.Store(why)
	r.scope.Load().disown(r)
	if r.holds.Load() == 0 {
		d.scopeOnly.Add(-r.bytes)
	}
	d.inUse -= r.bytes
	if r.block != nil {
		d.giveBack(r)
	}
}

// giveBack frees r's memory once the queues that used it are done with it.
func (d *Device) giveBack(r *record) {
	if others := r.readers.Load(); others != 0 {
		for id := range *d.queues.Load() {
			if others>>id&1 == 1 {
				d.alloc.RecordUse(r.block, id)
			}
		}
	}
	d.alloc.Free(r.block)
	r.block = nil
}

// hold makes the graph an owner of r.
func (d *Device) hold(r *record) {
	if r.holds.Add(1) == 1 {
		d.scopeOnly.Add(-r.bytes)
	}
}

// unhold ends one node's ownership; d.mu is held. With a reason, it also releases what only that graph wanted.
func (d *Device) unhold(r *record, why *cause) {
	if r.holds.Add(-1) > 0 || r.gone.Load() != nil {
		return
	}
	d.scopeOnly.Add(r.bytes)
	if r.orphan {
		d.release(r, slotSet)
	} else if why != nil {
		d.dropMade(r, why)
	}
}

// dropMade releases r if a recorded op made it and neither a graph nor a person still claims it; d.mu is held.
func (d *Device) dropMade(r *record, why *cause) {
	if r.made && !r.exempt && r.holds.Load() == 0 {
		d.release(r, why)
	}
}

// exempt keeps Backward from releasing r, and moves it to another scope if one is given.
func (d *Device) exempt(r *record, to *scope) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r.exempt = true
	if to != nil {
		from := r.home.Load()
		from.moved = append(from.moved, r)
		to.adopt(r)
	}
}

// alive panics if t was released.
func (t *Tensor) alive(op string) {
	t.present()
	if t.st.rec.gone.Load() != nil {
		t.dead(op)
	}
}

func (t *Tensor) dead(op string) {
	r := t.st.rec
	why := r.gone.Load()
	raise(op, why.hint, "the result of %s at %s was released by %s and is used", r.code, r.site.String(), why.by)
}
