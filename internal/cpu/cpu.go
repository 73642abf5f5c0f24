// Package cpu is the engine that computes on the host's processor. A kernel is a Go function over slices; loops are cut
// by the sizes of the work alone, so that results do not depend on the number of threads.
//
// Memory is off the Go heap and aligned to cache lines. The 16-bit floating-point types are storage: their tiles are
// widened to float32, computed, and rounded to nearest even at the end.
package cpu

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/ir"
)

// New returns the host's processor as a device. All devices it returns share the processor's worker threads.
func New() device.Device { return engine{} }

type engine struct{}

// Info describes the processor.
func (engine) Info() device.Info {
	return device.Info{Name: "cpu", Model: model(), Memory: hostmem.Physical(), Alignment: hostmem.Alignment, DTypes: dtype.All(), Host: true}
}

// model is what the processor calls itself, or its architecture where the system does not tell.
func model() string {
	if m := cpufeat.Describe().Model; m != "" {
		return m
	}
	return runtime.GOARCH
}

// Alloc returns n zero bytes, aligned to 64.
func (engine) Alloc(n int64) (device.Mem, error) {
	if n != int64(int(n)) {
		return device.Mem{}, fmt.Errorf("cpu: %w: %d bytes exceed the address space", device.ErrOutOfMemory, n)
	}
	b, err := hostmem.Alloc(int(n))
	if err != nil {
		return device.Mem{}, fmt.Errorf("cpu: %w: %v", device.ErrOutOfMemory, err)
	}
	return device.Mem{Addr: uint64(b.Addr), Size: n, Host: true}, nil
}

// Free returns memory of Alloc to the system.
func (engine) Free(m device.Mem) {
	// The system refuses only what Alloc has not returned, and there is nobody to tell.
	_ = hostmem.Block{Addr: uintptr(m.Addr), Size: int(m.Size)}.Free()
}

// Prepare chooses the kernel of an op.
func (engine) Prepare(op ir.Op) (*device.Kernel, error) {
	out, err := op.Infer()
	if err != nil {
		return nil, err
	}
	written()
	if table[op.Code] == nil {
		return nil, fmt.Errorf("cpu: %s: %w", op.Code, device.ErrUnsupported)
	}
	k := &device.Kernel{Op: op, Out: out}
	k.FLOPs, k.Bytes = op.Cost()
	f, err := table[op.Code](k)
	if err != nil {
		return nil, fmt.Errorf("cpu: %w", err)
	}
	k.Impl = &kernel{f, k.Demand()}
	return k, nil
}

// kernel is what [device.Kernel.Impl] holds.
type kernel struct {
	run  run
	need []int64 // bytes of each argument
}

// String is the name of the function that computes.
func (k *kernel) String() string {
	name := runtime.FuncForPC(reflect.ValueOf(k.run).Pointer()).Name()
	name = name[strings.LastIndexByte(name, '/')+1:]
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "cpu."), ".func")
	name, _, _ = strings.Cut(name, "[")
	return strings.TrimPrefix(name, "(*")
}

// NewQueue returns a queue that runs its work in the caller.
func (engine) NewQueue() (device.Queue, error) { return queue{}, nil }

// Close does nothing: the memory is its callers'.
func (engine) Close() error { return nil }
