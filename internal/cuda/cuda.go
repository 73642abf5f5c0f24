// Package cuda is the engine for NVIDIA GPUs, written once against the driver API's table of functions: the real libcuda
// fills the table on a machine with a card, the simulated GPU elsewhere.
//
//	cuda.go      a device: context, memory, what it can do
//	map.go       addresses apart from memory
//	plan.go      an op becomes a plan: kernels, their grids, their parameters as bytes with places to fill in
//	*.go         per family of ops, which kernels a plan has
//	module.go    kernels, compiled by the driver on first use, a family at a time
//	own.go       kernels of the program's own
//	queue.go     a stream: launches, copies, waits
//	staging.go   pinned memory between the Go program's memory and the card
//	event.go     points in a stream
//	graph.go     launches that are made again as one
//	stamp.go     points with a time
//	error.go     what went wrong, and in which launch
//
// An op that has no row is not computed here: the caller lowers it or reports it, and nothing is done on the CPU instead.
package cuda

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// alignment of raw allocations, in bytes, as cuMemAlloc documents it.
const alignment = 256

// Device is one GPU.
type Device struct {
	api    *driver.API
	info   device.Info
	handle driver.Device
	ctx    driver.Context

	kernels     *kernels.Set // those for its compute capability
	sharedOptin int          // bytes of shared memory that a block may have
	pinned      staging
	berths      berths

	blocking, preload bool
	lost              loss
	stream            device.Stream // of modules that are compiled

	peers map[*Device]bool // whose memory this card was to reach directly, if it can; see peering

	loading sync.WaitGroup // modules that are compiled ahead of use

	mu        sync.Mutex // guards the maps
	mapped    mapped
	modules   map[string]*module
	own       []driver.Module // of the program's own kernels
	functions map[string]*function
}

// Options of New.
type Options struct {
	Blocking bool // wait after each launch, so that an error names the launch it belongs to
	Preload  bool // compile what training needs ahead of use, side by side
}

// New opens the device of an ordinal. name is what it is called in messages and by device.Open.
func New(api *driver.API, ordinal int, name string, o Options) (*Device, error) {
	d := &Device{api: api, blocking: o.Blocking, preload: o.Preload, peers: map[*Device]bool{}, modules: map[string]*module{}, functions: map[string]*function{}}
	var err error
	must := func(call string, r driver.Result) {
		if err == nil {
			err = d.check(call, r)
		}
	}
	must("cuInit", api.Init(0))
	if err != nil {
		return nil, err
	}
	n, r := api.DeviceGetCount()
	if must("cuDeviceGetCount", r); err == nil && ordinal >= n {
		return nil, fmt.Errorf("there is no device %d: the driver has %d, numbered from 0; CUDA_VISIBLE_DEVICES may hide some", ordinal, n)
	}
	var res driver.Result
	d.handle, res = api.DeviceGet(ordinal)
	if must("cuDeviceGet", res); err == nil {
		must("cuDevicePrimaryCtxSetFlags", api.DevicePrimaryCtxSetFlags(d.handle, driver.CtxSchedBlockingSync))
	}
	if err == nil {
		d.ctx, res = api.DevicePrimaryCtxRetain(d.handle)
		must("cuDevicePrimaryCtxRetain", res)
	}
	if err != nil {
		return nil, err
	}
	err = d.describe(name)
	if err == nil {
		err = d.trial()
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.pinned.d = d
	return d, nil
}

// nothing is a module in the version of the kernels, for a target of theirs.
const nothing = ".version 7.4\n.target %s\n.address_size 64\n.visible .entry nothing() { ret; }\n"

// trial has the driver compile a module: one without a compiler is found out here, and not by the first operation.
func (d *Device) trial() error {
	var m driver.Module
	var log string
	err := d.do("cuModuleLoadDataEx", func() (r driver.Result) {
		m, log, r = d.api.ModuleLoadData(fmt.Appendf(nil, nothing, d.kernels.Targets[len(d.kernels.Targets)-1]))
		return r
	})
	var e *driver.Error
	if errors.As(err, &e) {
		if e.Detail == "" {
			e.Detail = log
		}
		return fmt.Errorf("%s is there and runs no kernel: %w", d.info.Model, err)
	}
	return d.do("cuModuleUnload", func() driver.Result { return d.api.ModuleUnload(m) })
}

// Oldest is the least compute capability that the kernels are compiled for, and Full that from which on they run at full
// speed: before it bf16 and products in TF32 are computed in float32, and nothing is copied ahead of its use.
var (
	Oldest = [2]int{7, 5}
	Full   = [2]int{8, 0}
)

// Wider is what cards before Full compute in float32.
const Wider = "bf16 and products in TF32 are computed in float32 here, f16 by its own instructions"

// older reports whether the card is one before Full.
func (d *Device) older() bool { return slices.Compare(d.info.Compute[:], Full[:]) < 0 }

func (d *Device) describe(name string) error {
	model, r := d.api.DeviceGetName(d.handle)
	if r != driver.Success {
		return d.check("cuDeviceGetName", r)
	}
	memory, r := d.api.DeviceTotalMem(d.handle)
	if r != driver.Success {
		return d.check("cuDeviceTotalMem", r)
	}
	var failed error
	attr := func(a driver.Attribute) int {
		v, r := d.api.DeviceGetAttribute(a, d.handle)
		if r != driver.Success && failed == nil {
			failed = d.check("cuDeviceGetAttribute", r)
		}
		return v
	}
	clock, _ := d.api.DeviceGetAttribute(driver.ClockRate, d.handle) // virtual GPUs may keep it to themselves
	d.info = device.Info{
		Name: name, Model: model, Memory: memory, Alignment: alignment, DTypes: dtype.All(),
		Compute: [2]int{attr(driver.ComputeMajor), attr(driver.ComputeMinor)}, SMs: attr(driver.MultiprocessorCount),
		Clock: int64(clock) * 1000, Warp: attr(driver.WarpSize),
	}
	if d.older() {
		d.info.Wider = Wider
	}
	if d.info.Bus, r = d.api.DeviceGetPCIBusId(d.handle); r != driver.Success {
		return d.check("cuDeviceGetPCIBusId", r)
	}
	if _, ok := d.HostTime(); ok {
		d.stream.Clock = func() time.Duration { t, _ := d.HostTime(); return t }
	}
	d.sharedOptin = attr(driver.MaxSharedPerBlockOptin)
	if failed != nil {
		return failed
	}
	var err error
	if d.kernels, err = kernels.Embedded().For(d.info.Compute); err != nil {
		return advice.Failf("take a later card (cuda:N; nvidia-smi -L lists those here), or cpu, or sim:0, which simulates one: all that a device runs works there; warpline doctor, plan and diagnose need no card",
			"%s has compute capability %d.%d; the kernels need %d.%d (Turing) or later", model, d.info.Compute[0], d.info.Compute[1], Oldest[0], Oldest[1])
	}
	return nil
}

// Info describes the device.
func (d *Device) Info() device.Info { return d.info }

// Events implements [device.Source].
func (d *Device) Events() *device.Stream { return &d.stream }

// do runs f with the device's context current and makes an error of its result.
func (d *Device) do(call string, f func() driver.Result) error {
	return d.failed(call, d.api.Do(d.ctx, f))
}

// Alloc returns memory of the device; its bytes hold anything.
func (d *Device) Alloc(n int64) (device.Mem, error) {
	if n <= 0 {
		return device.Mem{}, fmt.Errorf("%s: cannot allocate %d bytes", d.info.Name, n)
	}
	if n > d.info.Memory { // of sizes beyond its address space a driver says that they are invalid
		return device.Mem{}, d.outOfMemory(n)
	}
	var p driver.Ptr
	err := d.do("cuMemAlloc", func() (r driver.Result) {
		p, r = d.api.MemAlloc(n)
		return r
	})
	var e *driver.Error
	if errors.As(err, &e) && e.Result == driver.OutOfMemory {
		return device.Mem{}, d.outOfMemory(n)
	}
	return device.Mem{Addr: uint64(p), Size: n}, err
}

func (d *Device) outOfMemory(n int64) error {
	return fmt.Errorf("%s has no %d bytes left in one piece: %w", d.info.Name, n, device.ErrOutOfMemory)
}

// Free returns memory of Alloc, once the work that the device has been given is done: whether the driver waits for what
// uses it, no document says.
func (d *Device) Free(m device.Mem) {
	// The driver refuses only what Alloc has not returned, or after an error that every later call reports.
	_ = d.api.Do(d.ctx, func() driver.Result {
		if r := d.api.CtxSynchronize(); r != driver.Success {
			return r
		}
		return d.api.MemFree(driver.Ptr(m.Addr))
	})
}

// Unused implements [device.Meter].
func (d *Device) Unused() (bytes int64, ok bool) {
	r := d.api.Do(d.ctx, func() (r driver.Result) {
		bytes, _, r = d.api.MemGetInfo()
		return r
	})
	return bytes, r == driver.Success
}

// Prepare plans an op and has its kernels compiled.
func (d *Device) Prepare(op ir.Op) (*device.Kernel, error) {
	out, err := op.Infer()
	if err != nil {
		return nil, err
	}
	if table[op.Code] == nil {
		return nil, fmt.Errorf("%s: %s: %w", d.info.Name, op.Code, device.ErrUnsupported)
	}
	k := &device.Kernel{Op: op, Out: out}
	k.FLOPs, k.Bytes = op.Cost()
	b := &builder{d: d, op: &k.Op, outs: out}
	if err := table[op.Code](b); err != nil {
		return nil, fmt.Errorf("%s: %w", d.info.Name, err)
	}
	if b.err != nil {
		return nil, fmt.Errorf("%s: %s: %w", d.info.Name, op.Code, b.err)
	}
	k.Workspace = b.work
	if moved := b.read + b.written; moved > 0 {
		k.Bytes, k.Stored = moved, b.written
	}
	b.plan.need = k.Demand()
	k.Steps = b.plan.describe()
	k.Impl = &b.plan
	return k, nil
}

// Close unloads the kernels and gives the context back. Queues and memory must have been given back before. A device that
// is out of use has nothing to add to the error that was reported.
func (d *Device) Close() error {
	d.loading.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	err := errors.Join(d.pinned.close(), d.closeBerths())
	for _, m := range d.modules {
		err = errors.Join(err, d.unload(m.handle))
	}
	for _, m := range d.own {
		err = errors.Join(err, d.unload(m))
	}
	d.own = nil
	clear(d.modules)
	clear(d.functions)
	err = errors.Join(err, d.check("cuDevicePrimaryCtxRelease", d.api.DevicePrimaryCtxRelease(d.handle)))
	if d.lost.get() != nil {
		return nil
	}
	return err
}
