package tensor

import (
	"fmt"
	"slices"
	"sync"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
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
	stager device.Stager // q, unless the host reads the device's memory or there is none
	args   []device.Arg
	params device.Params
}

const maxQueues = 64 // a record's readers are a bit set

// addQueue gives a queue of the engine its number, or returns nil when there are maxQueues.
func (d *Device) addQueue(q device.Queue) *queue {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := *d.queues.Load()
	if len(all) == maxQueues {
		return nil
	}
	n := &queue{dev: d, id: len(all), q: q}
	n.stager, _ = q.(device.Stager)
	all = append(slices.Clone(all), n)
	d.queues.Store(&all)
	return n
}

// newQueue opens a queue; after the 64th, existing ones are handed out in turn.
func (d *Device) newQueue() *queue {
	if len(*d.queues.Load()) < maxQueues {
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

func (d *Device) eventOn(id int) (device.Event, error) {
	q := (*d.queues.Load())[id]
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.q.Record()
}

func (d *Device) sync() {
	for _, q := range *d.queues.Load() {
		q.sync()
	}
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

func (q *queue) record() device.Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	ev, err := q.q.Record()
	if err != nil {
		raiseErr("Record", "", err)
	}
	return ev
}

// reads orders q after the last write of r; writes orders it after the last write and the other queues' reads.
func (q *queue) reads(r *record) {
	if w := r.writer.Load(); w != q {
		q.after(w)
		r.readers.Or(1 << q.id)
	} else if r.queue != q {
		r.readers.Or(1 << q.id)
	}
}

func (q *queue) writes(r *record) {
	q.reads(r)
	if others := r.readers.Load() &^ (1 << q.id); others != 0 {
		for id, w := range *q.dev.queues.Load() {
			if others>>id&1 == 1 {
				q.after(w)
			}
		}
	}
	r.writer.Store(q)
}

// after makes q wait for what w was asked so far.
func (q *queue) after(w *queue) {
	if w == nil || w == q {
		return
	}
	ev := w.record()
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.q.Wait(ev); err != nil {
		raiseErr("Wait", "", err)
	}
}

func (t *Tensor) arg() device.Arg {
	b := t.st.rec.block
	if b == nil {
		return device.Arg{}
	}
	return device.Arg{Mem: b.Mem(), Offset: int64(t.off) * int64(t.typ.DType.Size())}
}

// launch runs a kernel with its outputs, inputs and scratch memory.
func (q *queue) launch(k *device.Kernel, out, in []*Tensor, scratch *device.Block, p *ir.Params) error {
	for _, t := range in {
		if t.st.rec.writer.Load() != q || t.st.rec.queue != q {
			q.reads(t.st.rec)
		}
	}
	for _, t := range out {
		if r := t.st.rec; r.writer.Load() != q || r.queue != q || r.readers.Load() != 0 {
			q.writes(r)
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.args = q.args[:0]
	for _, t := range out {
		q.args = append(q.args, t.arg())
	}
	q.params.Module = ""
	for _, t := range in {
		q.args = append(q.args, t.arg())
		if t.leaf != nil && t.param {
			q.params.Module = t.leaf.path()
		}
	}
	if scratch != nil {
		q.args = append(q.args, device.Arg{Mem: scratch.Mem()})
	}
	q.params.Set(p)
	if len(out) > 0 {
		q.params.Site = &out[0].st.rec.site
	}
	return q.q.Launch(k, q.args, &q.params)
}
