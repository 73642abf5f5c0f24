package devicetest

import (
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Subtracting is a device that subtracts where it should add, for tests of those who look for such mistakes.
func Subtracting(dev device.Device) device.Device { return subtracting{dev} }

type subtracting struct{ device.Device }

func (s subtracting) Prepare(op ir.Op) (*device.Kernel, error) {
	asked := op
	if op.Code == ir.Add {
		op.Code = ir.Sub
	}
	k, err := s.Device.Prepare(op)
	if err == nil {
		k.Op = asked
	}
	return k, err
}

// Failing is a device that fails while it works, which who waits for it is told, from the moment on when it is told to. It knows
// whether somebody observes it.
type Failing struct {
	device.Device
	fault  atomic.Pointer[func() error]
	events device.Stream
}

// Fail makes waiting for d the error that fault makes; nothing if fault is nil.
func (d *Failing) Fail(fault func() error) {
	if fault == nil {
		d.fault.Store(nil)
		return
	}
	d.fault.Store(&fault)
}

// Observed reports whether somebody observes launches, or blocks of memory.
func (d *Failing) Observed() bool {
	return d.events.Wants(device.KindLaunch) || d.events.Wants(device.KindAlloc)
}

// Events implements [device.Source].
func (d *Failing) Events() *device.Stream { return &d.events }

// NewQueue implements [device.Device].
func (d *Failing) NewQueue() (device.Queue, error) {
	q, err := d.Device.NewQueue()
	return failingQueue{q, d}, err
}

type failingQueue struct {
	device.Queue
	dev *Failing
}

func (q failingQueue) Sync() error {
	if fault := q.dev.fault.Load(); fault != nil {
		return (*fault)()
	}
	return q.Queue.Sync()
}
