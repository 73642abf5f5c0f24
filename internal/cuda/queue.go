package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/numbers"
)

// queue is a stream. Work on it starts in order and runs while the host goes on.
type queue struct {
	d      *Device
	stream driver.Stream
	log    launchLog
	events eventLog
	fault  faultCell

	flights []flight // copies from staging memory, oldest first
	flying  int      // bytes of their blocks
	small   nook     // for small copies

	// What the calls under way need, kept here so that they allocate nothing.
	params []byte
	shape  driver.LaunchConfig
	plan   *plan
	args   []device.Arg
	p      *device.Params
	call   string
	begun  int // calls of the driver that it took
	times  []*stamp
	launch func() driver.Result
}

// NewQueue opens a stream that is not ordered with any other.
func (d *Device) NewQueue() (device.Queue, error) {
	q := &queue{d: d}
	q.launch = q.runPlan
	q.events.q = q
	err := d.do("cuStreamCreate", func() (r driver.Result) {
		q.stream, r = d.api.StreamCreateWithPriority(driver.StreamNonBlocking, 0)
		return r
	})
	if err != nil {
		return nil, err
	}
	d.lost.opened(q)
	if err := q.fault.open(q); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// Launch starts the kernels of a plan. Beside the driver's errors it reports arguments that are missing or too small.
func (q *queue) Launch(k *device.Kernel, args []device.Arg, p *device.Params) error {
	plan, ok := k.Impl.(*plan)
	if !ok {
		return fmt.Errorf("%s: %s was prepared by another engine", q.d.info.Name, k.What())
	}
	if err := device.Fits(plan.need, args); err != nil {
		return fmt.Errorf("%s: %s: %w", q.d.info.Name, k.What(), err)
	}
	if err := checkParams(k, plan, p); err != nil {
		return err
	}
	q.times = q.times[:0]
	if p != nil && p.Times != nil {
		if err := q.timeSteps(len(plan.steps)); err != nil {
			return err
		}
	}
	q.log.add(k, p)
	q.plan, q.args, q.p, q.call, q.begun = plan, args, p, "cuCtxSetCurrent", 0
	r := q.d.api.Do(q.d.ctx, q.launch)
	q.plan, q.args, q.p = nil, nil, nil
	if plan.faults && q.begun > 0 {
		q.fault.last = q.log.serial
		q.log.reports()
	}
	if r != driver.Success {
		if q.begun == 0 {
			q.log.withdraw()
		}
		return q.d.failed(q.call, r)
	}
	if len(q.times) > 0 {
		q.spans(p.Times)
	}
	if q.d.blocking {
		return q.Sync()
	}
	return nil
}

// checkParams refuses parameters that are missing, and cells of those that the kernels take by value.
func checkParams(k *device.Kernel, plan *plan, p *device.Params) error {
	n := 0
	if k.Name == "" {
		n = k.Op.Code.NumParams()
	}
	if n > 0 && (p == nil || p.N < n) {
		return fmt.Errorf("%s takes %d parameters", k.Op.Code, n)
	}
	for i := range n {
		if p.P[i].Cell.Size > 0 && plan.fixed>>i&1 == 1 {
			return &device.CellError{Code: k.Op.Code, Param: i}
		}
	}
	return nil
}

// runPlan does the steps of the plan under way. The context is current.
func (q *queue) runPlan() driver.Result {
	for i := range q.plan.steps {
		if r := q.reach(i); r != driver.Success {
			return r
		}
		s := &q.plan.steps[i]
		if s.fn == nil {
			q.call = "cuMemsetD8Async"
			if r := q.d.api.MemsetD8Async(driver.Ptr(q.address(s.to)), 0, s.bytes, q.stream); r != driver.Success {
				return r
			}
			q.begun++
			continue
		}
		q.params = append(q.params[:0], s.params...)
		for j := range s.patches {
			p := &s.patches[j]
			numbers.Put(q.params[p.at:], p.from.size, q.value(&p.from))
		}
		q.shape = s.shape
		q.shape.Stream = q.stream
		q.call = "cuLaunchKernelEx"
		if r := q.d.api.LaunchKernelEx(&q.shape, s.fn.handle, q.params); r != driver.Success {
			return r
		}
		q.begun++
	}
	return q.reach(len(q.plan.steps))
}

func (q *queue) address(r ref) uint64 {
	a := &q.args[r.arg]
	return a.Mem.Addr + uint64(a.Offset+r.offset)
}

// value is the bits of a parameter of the launch under way.
func (q *queue) value(p *param) uint64 {
	switch p.kind {
	case fromRef:
		return q.address(p.ref)
	case fromScalar:
		return p.dt.Encode(math.Float64frombits(q.p.P[p.index].Value))
	case fromWord:
		return q.p.P[p.index].Value
	case fromCell:
		return q.p.P[p.index].Cell.Addr
	case fromFault:
		return q.fault.cell.Addr
	case fromSerial:
		return uint64(q.log.serial)
	case fromTickets:
		return q.fault.cell.Addr + ticketsAt
	}
	return p.bits
}

// Copy moves n bytes. A copy from host memory has read its source when it returns; one to host memory is there after the
// next Sync, though the driver may wait for it at once.
func (q *queue) Copy(dst, src device.Arg, n int64) error {
	if err := q.copyable(dst, src, n); err != nil {
		return err
	}
	to, from := dst.Mem.Addr+uint64(dst.Offset), src.Mem.Addr+uint64(src.Offset)
	switch {
	case n == 0:
		return nil
	case dst.Mem.Host && src.Mem.Host:
		return q.hostCopy(to, from, n)
	case src.Mem.Host:
		return q.Upload(dst, hostmem.Bytes(uintptr(from), int(n)))
	case dst.Mem.Host:
		return q.do("cuMemcpyDtoHAsync", func() driver.Result {
			return q.d.api.MemcpyDtoHAsync(uintptr(to), driver.Ptr(from), n, q.stream)
		})
	}
	return q.do("cuMemcpyDtoDAsync", func() driver.Result {
		return q.d.api.MemcpyDtoDAsync(driver.Ptr(to), driver.Ptr(from), n, q.stream)
	})
}

func (q *queue) copyable(dst, src device.Arg, n int64) error {
	if err := device.Copyable(dst, src, n); err != nil {
		return fmt.Errorf("%s: %w", q.d.info.Name, err)
	}
	return nil
}

// CopyFrom implements [device.Peer] for devices of one driver.
func (q *queue) CopyFrom(dst device.Arg, from device.Device, src device.Arg, n int64) (bool, error) {
	other, ok := device.As[*Device](from)
	if !ok || other.api != q.d.api {
		return false, nil
	}
	if err := q.copyable(dst, src, n); err != nil || n == 0 {
		return true, err
	}
	if err := errors.Join(q.d.reach(other), other.reach(q.d)); err != nil {
		return true, err
	}
	return true, q.do("cuMemcpyPeerAsync", func() driver.Result {
		return q.d.api.MemcpyPeerAsync(driver.Ptr(dst.Mem.Addr+uint64(dst.Offset)), q.d.ctx, driver.Ptr(src.Mem.Addr+uint64(src.Offset)), other.ctx, n, q.stream)
	})
}

// peering guards every device's peers: letting cards reach each other takes two of them.
var peering sync.Mutex

// reach lets the card read and write another's memory directly, where the two can: else the driver copies by way of the
// host's memory.
func (d *Device) reach(other *Device) error {
	peering.Lock()
	defer peering.Unlock()
	if d == other || d.peers[other] {
		return nil
	}
	d.peers[other] = true
	can, r := d.api.DeviceCanAccessPeer(d.handle, other.handle)
	if r == driver.Success && can {
		r = d.api.Do(d.ctx, func() driver.Result { return d.api.CtxEnablePeerAccess(other.ctx) })
		if r == driver.Success || r == driver.PeerAlreadyEnabled {
			return other.admit(d)
		}
	}
	if r.Sticky() {
		return d.failed("cuCtxEnablePeerAccess", r)
	}
	return nil // refused: the copy is made in any case
}

// Checked implements [device.Checker].
func (q *queue) Checked() bool { return q.d.api.Annotate != nil }

// Gap implements [device.Checker].
func (q *queue) Gap() int64 { return q.d.api.Gap }

// Note implements [device.Checker] for a simulated GPU: without it, a use after free inside a cached block would go
// unseen.
func (q *queue) Note(m device.Mem, inUse bool, tag string) error {
	state := driver.Free
	if inUse {
		state = driver.Fresh
	}
	return q.d.check("annotate", q.d.api.Do(q.d.ctx, func() driver.Result {
		return q.d.api.Annotate(driver.Ptr(m.Addr), m.Size, state, q.stream, tag)
	}))
}

// do makes one call on the stream.
func (q *queue) do(call string, f func() driver.Result) error {
	if r := q.d.api.Do(q.d.ctx, f); r != driver.Success {
		return q.d.failed(call, r)
	}
	return nil
}

// Wait makes what follows wait for an event of any queue of this engine.
func (q *queue) Wait(e device.Mark) error {
	if ev, ok := device.As[*event](e); ok {
		return ev.log.await(ev, q)
	}
	if f, ok := device.As[*fetch](e); ok {
		return f.log.await(f.event, q)
	}
	if s, ok := device.As[*stamp](e); ok {
		return s.await(q)
	}
	return fmt.Errorf("%s: cannot wait for a mark of another engine", q.d.info.Name)
}

// Sync waits until all work is done, and reports what went wrong since the last Sync.
func (q *queue) Sync() error {
	faults := q.fault.due()
	if faults {
		if err := q.fault.fetch(q, q.fault.host); err != nil {
			return err
		}
	}
	if err := q.do("cuStreamSynchronize", func() driver.Result { return q.d.api.StreamSynchronize(q.stream) }); err != nil {
		return err
	}
	q.events.allDone()
	if err := q.land(); err != nil {
		return err
	}
	return q.ended(q.log.serial, faults, q.fault.host)
}

// ended notes that the launches up to one have ended, and makes an error of what they reported, if that was fetched
// to host.
func (q *queue) ended(serial uint32, faults bool, host uintptr) error {
	q.log.ended(serial)
	if !faults {
		return nil
	}
	if after(serial, q.fault.seen) {
		q.fault.seen = serial
	}
	return q.fault.read(q, hostmem.Bytes(host, faultSize))
}

// Close waits for the stream's work and gives it back. On a device that is out of use it has nothing to add to the error
// that was reported.
func (q *queue) Close() error {
	if q.stream == 0 {
		return nil
	}
	reported := q.d.lost.get() != nil
	err := q.Sync()
	q.small.close(q)
	given := errors.Join(q.events.close(), q.fault.close(q),
		q.do("cuStreamDestroy", func() driver.Result { return q.d.api.StreamDestroy(q.stream) }))
	q.stream = 0
	q.d.lost.closed(q)
	switch {
	case reported:
		return nil
	case err != nil && q.d.lost.get() != nil:
		return err // which the others only refer to
	}
	return errors.Join(err, given)
}

// faultCell is the record that kernels with indices write, Fault in base.cuh, and behind it the tickets of last.cuh. A
// queue's kernels run one after the other, and each leaves the tickets at 0 as it finds them.
type faultCell struct {
	cell device.Mem
	host uintptr // pinned
	last uint32  // launch of a kernel that may write it
	seen uint32  // what launches up to this one reported was looked at
	told uint32  // the launch whose record was made an error of
}

const (
	faultSize  = 24
	ticketsAt  = faultSize
	maxTickets = enoughBlocks / 2
	cellSize   = ticketsAt + 4*maxTickets
)

func (f *faultCell) open(q *queue) error {
	var err error
	if f.cell, err = q.d.Alloc(cellSize); err != nil {
		return err
	}
	if f.host, err = q.d.pinned.alloc(faultSize); err != nil {
		return err
	}
	return f.clear(q, cellSize)
}

func (f *faultCell) clear(q *queue, bytes int64) error {
	return q.do("cuMemsetD8Async", func() driver.Result {
		return q.d.api.MemsetD8Async(driver.Ptr(f.cell.Addr), 0, bytes, q.stream)
	})
}

// due reports whether the record may hold what was not looked at.
func (f *faultCell) due() bool { return after(f.last, f.seen) }

// fetch asks for the record.
func (f *faultCell) fetch(q *queue, host uintptr) error {
	return q.do("cuMemcpyDtoHAsync", func() driver.Result {
		return q.d.api.MemcpyDtoHAsync(host, driver.Ptr(f.cell.Addr), faultSize, q.stream)
	})
}

// read makes an error of a record, unless it was told before, and clears it.
func (f *faultCell) read(q *queue, b []byte) error {
	launch := binary.LittleEndian.Uint32(b)
	if launch == 0 || launch == f.told {
		return nil
	}
	f.told = launch
	value, bound := int64(binary.LittleEndian.Uint64(b[8:])), int64(binary.LittleEndian.Uint64(b[16:]))
	return errors.Join(&IndexError{Index: value, Bound: bound, Label: q.log.labels(launch), Launch: q.log.find(launch)}, f.clear(q, faultSize))
}

func (f *faultCell) close(q *queue) error {
	if f.cell.Size > 0 {
		q.d.Free(f.cell)
	}
	if f.host != 0 {
		q.d.pinned.give(f.host, faultSize)
	}
	return nil
}
