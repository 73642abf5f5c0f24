package tensor

import (
	"fmt"
	"slices"
	"sync"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/tensor/internal/heap"
)

// Queue is an order of work on a device. Queues run side by side; where a value crosses from one to another, the wait
// is inserted. It may be used by several goroutines at once.
type Queue struct{ q *queue }

// queue is a Queue's inside: the engine's queue and the scratch of its next launch.
type queue struct {
	dev *Device
	id  int

	mu     sync.Mutex // guards everything below; not held while the host waits
	q      device.Queue
	stager device.Stager // nil where the host reads the device's memory or there is none
	args   []device.Arg
	params device.Params
	paths  []string      // of the parameters among the operands, where nobody observes
	event  device.Event  // of the launch under way, where somebody observes
	times  []device.Span // of it, where somebody asked for them
}

// addQueue gives a queue of the engine its number, or returns nil when there are heap.MaxQueues.
func (d *Device) addQueue(q device.Queue) *queue {
	d.queuesMu.Lock()
	defer d.queuesMu.Unlock()
	all := *d.queues.Load()
	if len(all) == heap.MaxQueues {
		return nil
	}
	n := &queue{dev: d, id: len(all), q: q}
	if !d.info.Host && !d.info.Null {
		n.stager = device.Staging(q)
	}
	all = append(slices.Clone(all), n)
	d.queues.Store(&all)
	return n
}

// newQueue opens a queue; after the 64th, existing ones are handed out in turn.
func (d *Device) newQueue() *queue {
	if len(*d.queues.Load()) < heap.MaxQueues {
		q, err := d.dev.NewQueue()
		if err != nil {
			raiseErr("NewQueue", "", fmt.Errorf("%s: %w", d.name, err))
		}
		if n := d.addQueue(q); n != nil {
			return n
		}
		if err := q.Close(); err != nil { // others took the last numbers meanwhile
			raiseErr("NewQueue", "", fmt.Errorf("%s: %w", d.name, err))
		}
	}
	all := *d.queues.Load()
	return all[1+int(d.handed.Add(1))%(len(all)-1)]
}

func (d *Device) markOn(id int) (device.Mark, error) {
	q := (*d.queues.Load())[id]
	return q.recorded()
}

// recorded is the point that q's work has come to.
func (q *queue) recorded() (device.Mark, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dev.stream.Emit(device.Event{Kind: device.KindMark, Queue: q.id})
	return q.q.Record()
}

func (d *Device) sync() {
	w := d.waits(device.WaitSync, d.first)
	for _, q := range *d.queues.Load() {
		q.sync()
	}
	w.over()
}

// sync waits for what q was asked so far; other goroutines may go on asking.
func (q *queue) sync() {
	if q.stager != nil {
		q.take("Sync", q.fetch("Sync", device.Arg{}, 0), nil)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.q.Sync(); err != nil {
		raiseErr("Sync", "", err)
	}
}

func (q *queue) mark() device.Mark {
	m, err := q.recorded()
	if err != nil {
		raiseErr("Record", "", err)
	}
	return m
}

// Number is q's among the device's queues; with After it is what package heap orders work by.
func (q *queue) Number() int { return q.id }

// After makes q wait for what the queue of a number was asked so far.
func (q *queue) After(number int) { q.after((*q.dev.queues.Load())[number]) }

// after makes q wait for what w was asked so far.
func (q *queue) after(w *queue) {
	if w == q {
		return
	}
	m := w.mark()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dev.stream.Emit(device.Event{Kind: device.KindWait, What: device.WaitQueue, Queue: q.id, Other: w.id})
	if err := q.q.Wait(m); err != nil {
		raiseErr("Wait", "", err)
	}
}

func (t *Tensor) arg() device.Arg {
	b := t.st.Block()
	if b == nil {
		return device.Arg{}
	}
	return device.Arg{Mem: b.Mem(), Offset: int64(t.off) * int64(t.typ.DType.Size())}
}

// launch runs a kernel with its outputs, inputs and scratch memory. from may be nil; o is nil unless somebody observes work.
func (q *queue) launch(k *device.Kernel, out, in []*Tensor, scratch *device.Block, p *ir.Params, from *cells, o *device.Origin) error {
	if from != nil {
		from.settle(q)
	}
	for _, t := range in {
		if !t.st.Settled(q.id) {
			t.st.Reads(q)
		}
	}
	for _, t := range out {
		if !t.st.Sole(q.id) {
			t.st.Writes(q)
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.args = q.args[:0]
	for _, t := range out {
		q.args = append(q.args, t.arg())
	}
	for _, t := range in {
		q.args = append(q.args, t.arg())
	}
	if scratch != nil {
		q.args = append(q.args, device.Arg{Mem: scratch.Mem()})
	}
	q.params.Set(p)
	if from != nil {
		from.set(&q.params)
	}
	if o != nil {
		return q.observed(k, o)
	}
	q.paths = appendPaths(q.paths[:0], in)
	q.params.Origin = device.Origin{Paths: q.paths}
	if len(out) > 0 {
		q.params.Site = out[0].st.Site
	}
	return q.q.Launch(k, q.args, &q.params)
}

// observed launches with the arguments and scalars at hand, for somebody who observes work.
func (q *queue) observed(k *device.Kernel, o *device.Origin) error {
	q.params.Origin = *o
	if q.times = q.times[:0]; q.dev.stream.Timed() {
		q.params.Times = &q.times
	}
	start := q.dev.stream.Now()
	err := q.q.Launch(k, q.args, &q.params)
	q.tell(k, start, err)
	q.params.Times = nil
	q.params.Range, q.event.Range, q.event.Err = nil, nil, nil // they may lead to a model
	return err
}
