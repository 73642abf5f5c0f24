package cuda

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/kernels"
)

// module is a family of kernels on a device.
type module struct {
	d    *Device
	name string

	mu     sync.Mutex
	handle driver.Module
	err    error // one that another attempt would not cure
}

// function is a kernel on a device.
type function struct {
	d      *Device
	kernel *kernels.Kernel
	module *module

	mu      sync.Mutex
	handle  driver.Function
	dynamic int // bytes of dynamic shared memory that it may be launched with
}

// withoutAsking is the shared memory that every block may have, static and dynamic.
const withoutAsking = 48 << 10

// function returns a kernel whose module is compiled, with leave to use so much dynamic shared memory.
func (d *Device) function(k *kernels.Kernel, dynamic int) (*function, error) {
	d.mu.Lock()
	f := d.functions[k.Name]
	if f == nil {
		f = &function{d: d, kernel: k, module: d.module(k.Module)}
		d.functions[k.Name] = f
	}
	d.mu.Unlock()
	d.loadAhead(k.Module)
	if err := f.module.load(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f, f.resolve(dynamic)
}

func (f *function) resolve(dynamic int) error {
	d := f.d
	if f.handle == 0 {
		if err := d.do("cuModuleGetFunction", func() (r driver.Result) {
			f.handle, r = d.api.ModuleGetFunction(f.module.handle, f.kernel.Name)
			return r
		}); err != nil {
			return fmt.Errorf("kernel %s: %w", f.kernel.Name, err)
		}
	}
	if dynamic <= f.dynamic || f.kernel.Shared+dynamic <= withoutAsking {
		return nil
	}
	if f.kernel.Shared+dynamic > d.sharedOptin {
		return fmt.Errorf("kernel %s needs %d bytes of shared memory, a block of %s has %d", f.kernel.Name, f.kernel.Shared+dynamic, d.info.Model, d.sharedOptin)
	}
	err := d.do("cuFuncSetAttribute", func() driver.Result {
		return d.api.FuncSetAttribute(f.handle, driver.FuncMaxDynamicShared, dynamic)
	})
	if err == nil {
		f.dynamic = dynamic
	}
	return err
}

// module returns a module, compiled or not. The caller holds d.mu.
func (d *Device) module(name string) *module {
	m := d.modules[name]
	if m == nil {
		m = &module{d: d, name: name}
		d.modules[name] = m
	}
	return m
}

// load has the module compiled, once. A card without memory for it may have some later.
func (m *module) load() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.handle != 0 || m.err != nil {
		return m.err
	}
	err := m.compile()
	if err == nil {
		return nil
	}
	err = fmt.Errorf("kernels %s: %w", m.name, err)
	var e *driver.Error
	if !errors.As(err, &e) || e.Result != driver.OutOfMemory {
		m.err = err
	}
	return err
}

func (m *module) compile() error {
	image, err := kernels.PTX(m.name)
	if err != nil {
		return err
	}
	var log string
	err = m.d.do("cuModuleLoadDataEx", func() (r driver.Result) {
		m.handle, log, r = m.d.api.ModuleLoadData(image)
		return r
	})
	var e *driver.Error
	if errors.As(err, &e) && e.Detail == "" {
		e.Detail = log
	}
	return err
}

// families are what a step of training needs of nearly every model, by the names of modules before the dtype.
var families = []string{"gemm_kk", "gemm_kn", "gemm_mn", "gemm_large_kk", "gemm_large_kn", "gemm_large_mn", "layernorm", "elementwise", "activation", "reduce_sum", "random", "loss", "optimizer"}

// loadAhead compiles what a step in a dtype needs, side by side, when the first module of that dtype is asked for: a
// driver takes a tenth to a quarter of a second for each.
func (d *Device) loadAhead(first string) {
	dt := first[strings.LastIndexByte(first, '_')+1:]
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.preload || d.ahead[dt] {
		return
	}
	d.ahead[dt] = true
	for _, m := range kernels.Modules() {
		if family, ok := strings.CutSuffix(m.Name, "_"+dt); ok && slices.Contains(families, family) {
			m := d.module(m.Name)
			d.loading.Go(func() { _ = m.load() }) // whoever asks for it meets the error
		}
	}
}

func (m *module) unload() error {
	if m.handle == 0 {
		return nil
	}
	return m.d.do("cuModuleUnload", func() driver.Result { return m.d.api.ModuleUnload(m.handle) })
}
