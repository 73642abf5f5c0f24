package cuda

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/kernels"
	"github.com/warpline-ml/warpline/internal/device"
)

// module is a family of kernels on a device.
type module struct {
	d    *Device
	from *kernels.Module

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
		if d.preload && d.modules[k.Module.Name] == nil {
			d.loadAhead(k.Module)
		}
		f = &function{d: d, kernel: k, module: d.module(k.Module)}
		d.functions[k.Name] = f
	}
	d.mu.Unlock()
	if err := f.module.load(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f, f.resolve(dynamic)
}

// assembled tells a simulated GPU of the registers that are known; where they are not, it goes by an estimate.
func (f *function) assembled() error {
	d, n := f.d, f.kernel.Registers
	if d.api.Assembled == nil || n == 0 {
		return nil
	}
	return d.do("Assembled", func() driver.Result { return d.api.Assembled(f.handle, n) })
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
		// Else a driver that loads lazily does so in the first launch, and may wait for all work.
		if err := d.do("cuFuncLoad", func() driver.Result { return d.api.FuncLoad(f.handle) }); err != nil {
			f.handle = 0
			return fmt.Errorf("kernel %s: %w", f.kernel.Name, err)
		}
		if err := f.assembled(); err != nil {
			return err
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
func (d *Device) module(from *kernels.Module) *module {
	m := d.modules[from.Name]
	if m == nil {
		m = &module{d: d, from: from}
		d.modules[from.Name] = m
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
	start := m.d.stream.Now()
	size, err := m.compile()
	if err == nil {
		m.d.stream.Emit(device.Event{Kind: device.KindModuleLoad, What: m.from.Name, Bytes: size, Start: start, Took: m.d.stream.Now() - start})
		return nil
	}
	err = fmt.Errorf("kernels %s: %w", m.from.Name, err)
	var e *driver.Error
	if !errors.As(err, &e) || e.Result != driver.OutOfMemory {
		m.err = err
	}
	return err
}

// compile returns the bytes of the module's text.
func (m *module) compile() (size int64, err error) {
	image, err := m.from.PTX()
	if err != nil {
		return 0, err
	}
	if m.d.api.Lines {
		lines, err := m.from.Lines()
		if err != nil {
			return 0, err
		}
		image = slices.Concat(image, lines)
	}
	m.handle, err = m.d.compile(image)
	return int64(len(image)), err
}

// compile has the driver compile a module. The error has what the compiler says.
func (d *Device) compile(image []byte) (m driver.Module, err error) {
	var log string
	err = d.do("cuModuleLoadDataEx", func() (r driver.Result) {
		m, log, r = d.api.ModuleLoadData(image)
		return r
	})
	var e *driver.Error
	if errors.As(err, &e) && e.Detail == "" {
		e.Detail = log
	}
	return m, err
}

// companies are modules of which a step of training needs all, or most, where it needs one of the first. * is a
// floating-point dtype.
var companies = []struct{ first, rest []string }{
	{
		[]string{"elementwise_*", "random_*", "cast_float_*"},
		[]string{"elementwise_*", "random_*", "cast_float_*", "reduce_sum_rows_*", "reduce_sum_columns_*", "gemm_any_*", "gemm_kk_*", "gemm_kn_*", "gemm_mn_*", "gemm_large_kk_*", "gemm_large_kn_*", "gemm_large_mn_*"},
	},
	{ // whatever the products' dtype, and with the counts of an accuracy
		[]string{"elementwise_f32", "random_f32", "cast_float_f32"},
		[]string{"loss_f32", "optimizer_f32", "optimizer_total", "create_fill", "copy_4", "cast_integer_bool", "cast_float_i64", "reduce_sum_rows_i64", "compare_i64"},
	},
	{[]string{"index_b32"}, []string{"index_add_f32", "index_sort", "scan_i32", "layernorm_f32", "layernorm_columns_f32", "activation_gelu_tanh_f32"}},
	{[]string{"conv_*"}, []string{"pool_*"}},
}

// companions lists what a step that needs a module soon needs too.
func companions(module string) (names []string) {
	dt := module[strings.LastIndexByte(module, '_')+1:]
	if t, err := dtype.Parse(dt); err != nil || !t.IsFloat() {
		dt = "*" // matches nothing
	}
	for _, c := range companies {
		if slices.ContainsFunc(c.first, func(p string) bool { return strings.Replace(p, "*", dt, 1) == module }) {
			for _, p := range c.rest {
				names = append(names, strings.Replace(p, "*", dt, 1))
			}
		}
	}
	if rest, ok := strings.CutPrefix(module, "attention_"); ok { // by head size and mask
		names = append(names, "attention_statistics_"+dt, "attentiongrad_"+rest)
	}
	return names
}

// loadAhead compiles what follows a module, side by side: a driver takes a tenth to a quarter of a second for each. The
// caller holds d.mu.
func (d *Device) loadAhead(first *kernels.Module) {
	names := companions(first.Name)
	for _, m := range d.kernels.Modules() {
		if m != first && d.modules[m.Name] == nil && slices.Contains(names, m.Name) {
			m := d.module(m)
			d.loading.Go(func() { _ = m.load() }) // whoever asks for it meets the error
		}
	}
}

// Compile has the driver compile all kernels ahead of use, as many modules at once as there are processors, and says of each
// module how that ended, of one at a time. A cancelled context leaves the rest for their first use.
func (d *Device) Compile(ctx context.Context, each func(module string, err error)) {
	modules := make(chan *kernels.Module)
	var telling sync.Mutex
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for from := range modules {
				d.mu.Lock()
				m := d.module(from)
				d.mu.Unlock()
				err := m.load()
				telling.Lock()
				each(from.Name, err)
				telling.Unlock()
			}
		})
	}
	for _, m := range d.kernels.Modules() {
		if ctx.Err() != nil {
			break
		}
		modules <- m
	}
	close(modules)
	workers.Wait()
}

func (d *Device) unload(m driver.Module) error {
	if m == 0 {
		return nil
	}
	return d.do("cuModuleUnload", func() driver.Result { return d.api.ModuleUnload(m) })
}
