package cuda

import (
	"fmt"
	"slices"
	"sync"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/kernels"
	"github.com/warpline-ml/warpline/internal/device"
)

// own is a module of the program's own kernels. It is there as long as the device: nobody tells which graphs use it.
type own struct {
	d      *Device
	handle driver.Module

	mu        sync.Mutex
	functions map[string]*function
}

// Load implements [device.Loader].
func (d *Device) Load(name string, ptx []byte) (device.Module, error) {
	start := d.stream.Now()
	h, err := d.compile(ptx)
	if err != nil {
		return nil, fmt.Errorf("kernels %s: %w", name, err)
	}
	d.stream.Emit(device.Event{Kind: device.KindModuleLoad, What: name, Bytes: int64(len(ptx)), Start: start, Took: d.stream.Now() - start})
	d.mu.Lock()
	d.own = append(d.own, h)
	d.mu.Unlock()
	return &own{d: d, handle: h, functions: map[string]*function{}}, nil
}

// Prepare implements [device.Module]: the plan of a launch is one step.
func (m *own) Prepare(l *device.Own) (*device.Kernel, error) {
	f, err := m.function(l)
	if err != nil {
		return nil, err
	}
	k := l.AsKernel()
	k.Steps[0].Static, k.Steps[0].Registers = f.kernel.Shared, f.kernel.Registers
	s := step{fn: f, shape: driver.LaunchConfig{Grid: dims(l.Grid), Block: dims(l.Block), Cluster: dims(l.Cluster), Shared: uint32(l.Shared)}, params: slices.Clone(l.Params)}
	for _, p := range l.Places {
		s.patches = append(s.patches, patch{p.At, pointer(ref{arg: p.Arg})})
	}
	k.Impl = &plan{steps: []step{s}, need: l.Need}
	return k, nil
}

// function is a kernel of the module, with leave to use the shared memory of a launch.
func (m *own) function(l *device.Own) (*function, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.functions[l.Kernel]
	if f == nil {
		f = &function{d: m.d, kernel: &kernels.Kernel{Name: l.Kernel}, module: &module{d: m.d, handle: m.handle}}
		if err := f.resolve(0); err != nil {
			return nil, err
		}
		for a, to := range map[driver.FuncAttribute]*int{driver.FuncSharedSize: &f.kernel.Shared, driver.FuncNumRegs: &f.kernel.Registers} {
			err := m.d.do("cuFuncGetAttribute", func() (r driver.Result) {
				*to, r = m.d.api.FuncGetAttribute(a, f.handle)
				return r
			})
			if err != nil {
				return nil, err
			}
		}
		m.functions[l.Kernel] = f
	}
	return f, f.resolve(l.Shared)
}
