// Package null is a device without memory or arithmetic. It hands out addresses in a space as large as the memory of a
// card and computes nothing, so that a program can be run for its memory and its work alone.
//
// What is copied to the host is zeros: a value read from this device says nothing, and neither does what the program
// derives from it.
package null

import (
	"cmp"
	"fmt"
	"sync"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Register offers devices that imitate cards as an engine. Their kernels have the scratch memory and the steps that plan
// tells, which may refuse an op as Prepare does.
func Register(plan func(compute [2]int, op ir.Op) (*device.Kernel, error)) {
	device.Register("null", device.Engine{Cards: cards.Names(), Open: func(n device.Name) (device.Device, error) {
		c, ok := cards.Find(cmp.Or(n.Card, cards.Default))
		if !ok {
			return nil, fmt.Errorf("there is no card %q", n.Card)
		}
		d := New(n.String(), c)
		d.plan = func(op ir.Op) (*device.Kernel, error) { return plan(c.Compute, op) }
		return d, nil
	}})
}

// alignment of addresses in bytes, as a CUDA driver's.
const alignment = 512

// base keeps address 0 free and makes addresses easy to tell from the host's.
const base = 1 << 56

// Device imitates the memory of a card.
type Device struct {
	info device.Info
	plan func(ir.Op) (*device.Kernel, error)

	mu     sync.Mutex
	space  *space
	beyond *space           // addresses without memory, for Reserve
	pages  map[uint64]int64 // mapped ones, by address
	room   int64            // bytes that are neither allocated nor mapped
}

// New returns a device that imitates a card and calls itself name. Its kernels have no scratch memory and no steps.
func New(name string, c cards.Card) *Device {
	return newDevice(device.Info{
		Name: name, Model: c.Model + " (not there)", Memory: c.Memory, Alignment: alignment,
		DTypes: dtype.All(), Compute: c.Compute, SMs: c.SMs, Clock: int64(c.Clock) * 1_000_000, Null: true,
	}, unplanned, c.Memory)
}

func newDevice(info device.Info, plan func(ir.Op) (*device.Kernel, error), room int64) *Device {
	return &Device{info: info, plan: plan, room: room, space: newSpace(base, room), beyond: newSpace(base<<1, base), pages: map[uint64]int64{}}
}

// Like returns a device that imitates another one: what that says of itself, and kernels with the scratch memory and the steps
// that it would prepare. It has addresses without end, and computes nothing.
func Like(d device.Device) *Device {
	info := d.Info()
	info.Near = info.Near || info.Host
	info.Host, info.Null = false, true
	return newDevice(info, d.Prepare, base)
}

// unplanned is an op on a card without an engine.
func unplanned(op ir.Op) (*device.Kernel, error) {
	out, err := op.Infer()
	if err != nil {
		return nil, err
	}
	k := &device.Kernel{Op: op, Out: out}
	k.FLOPs, k.Bytes = op.Cost()
	return k, nil
}

// Info describes the device.
func (d *Device) Info() device.Info { return d.info }

// Alloc takes addresses at the first place with room for n bytes.
func (d *Device) Alloc(n int64) (device.Mem, error) {
	if n <= 0 {
		return device.Mem{}, fmt.Errorf("null: cannot allocate %d bytes", n)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	size := (n + alignment - 1) &^ (alignment - 1)
	var addr uint64
	ok := size <= d.room
	if ok {
		addr, ok = d.space.take(size)
	}
	if !ok {
		return device.Mem{}, fmt.Errorf("%s has no %d bytes in one piece: %w", d.info.Name, n, device.ErrOutOfMemory)
	}
	d.room -= size
	return device.Mem{Addr: addr, Size: n}, nil
}

// Free gives addresses back. It panics if they are not allocated.
func (d *Device) Free(m device.Mem) {
	d.mu.Lock()
	defer d.mu.Unlock()
	size := (m.Size + alignment - 1) &^ (alignment - 1)
	if !d.space.give(m.Addr, size) {
		panic(fmt.Sprintf("null: %d bytes at %#x are freed, but were not allocated", m.Size, m.Addr))
	}
	d.room += size
}

// Prepare accepts every valid op that the imitated card's engine does.
func (d *Device) Prepare(op ir.Op) (*device.Kernel, error) {
	k, err := d.plan(op)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.info.Name, err)
	}
	return k, nil
}

// Load implements [device.Loader]: of a card, which runs kernels. It compiles nothing.
func (d *Device) Load(string, []byte) (device.Module, error) {
	if d.info.Compute == [2]int{} {
		return nil, fmt.Errorf("%s imitates a device that runs no kernels of GPUs", d.info.Name)
	}
	return module{}, nil
}

type module struct{}

func (module) Prepare(l *device.Own) (*device.Kernel, error) { return l.AsKernel(), nil }

// NewQueue returns a queue on which everything is done at once.
func (d *Device) NewQueue() (device.Queue, error) { return queue{}, nil }

// Close does nothing.
func (d *Device) Close() error { return nil }

type queue struct{}

func (q queue) Launch(k *device.Kernel, args []device.Arg, _ *device.Params) error {
	if want := k.Args(); len(args) != want {
		return fmt.Errorf("null: %s has %d arguments, want %d", k.What(), len(args), want)
	}
	return nil
}

// Copy checks its arguments, and writes zeros where the destination is the host's.
func (q queue) Copy(dst, src device.Arg, n int64) error {
	if err := device.Copyable(dst, src, n); err != nil {
		return fmt.Errorf("null: %w", err)
	}
	if dst.Mem.Host {
		clear(hostmem.Bytes(uintptr(dst.Mem.Addr)+uintptr(dst.Offset), int(n)))
	}
	return nil
}

type done struct{}

func (done) Done() (bool, error) { return true, nil }

func (q queue) Record() (device.Mark, error) { return done{}, nil }
func (q queue) Wait(device.Mark) error       { return nil }
func (q queue) Sync() error                  { return nil }
func (q queue) Close() error                 { return nil }
