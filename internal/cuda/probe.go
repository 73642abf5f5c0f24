package cuda

import (
	"encoding/binary"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// DriverVersion is the version of CUDA that the driver supports: 12040 for 12.4.
func (d *Device) DriverVersion() (int, error) {
	v, r := d.api.DriverGetVersion()
	return v, d.check("cuDriverGetVersion", r)
}

// Probe compiles a module of PTX and runs its kernel (.param .u64 in, .param .u64 out) once, on one dimension of blocks
// and threads. The kernel finds a copy of in, and writes over zeros what comes back in out. The error is a [driver.Error].
func (d *Device) Probe(ptx []byte, kernel string, blocks, threads int, in, out []byte) error {
	size := max(len(in), len(out), 1)
	host, err := d.pinned.alloc(size)
	if err != nil {
		return err
	}
	defer d.pinned.give(host, size)
	copy(hostmem.Bytes(host, size), in)
	p := &probe{api: d.api, host: host, grid: driver.LaunchConfig{Grid: [3]uint32{uint32(blocks), 1, 1}, Block: [3]uint32{uint32(threads), 1, 1}}}
	r := d.api.Do(d.ctx, func() driver.Result {
		p.open(ptx, kernel, len(in), len(out))
		p.run(len(in), len(out))
		p.close()
		return p.result
	})
	if r == driver.Success {
		copy(out, hostmem.Bytes(host, len(out)))
		return nil
	}
	err = d.check(p.call, r)
	if e, ok := err.(*driver.Error); ok && e.Detail == "" {
		e.Detail = p.log
	}
	return err
}

// probe is a launch of its own: module, buffers and stream.
type probe struct {
	api    *driver.API
	grid   driver.LaunchConfig
	module driver.Module
	fn     driver.Function
	stream driver.Stream
	in     driver.Ptr
	out    driver.Ptr
	host   uintptr // pinned

	call   string // the first that failed, or the last
	result driver.Result
	log    string // the compiler's
}

// step makes a call unless one before has failed.
func (p *probe) step(call string, f func() driver.Result) {
	if p.result == driver.Success {
		p.call, p.result = call, f()
	}
}

func (p *probe) open(ptx []byte, kernel string, in, out int) {
	p.step("cuModuleLoadDataEx", func() (r driver.Result) {
		p.module, p.log, r = p.api.ModuleLoadData(ptx)
		return r
	})
	p.step("cuModuleGetFunction", func() (r driver.Result) {
		p.fn, r = p.api.ModuleGetFunction(p.module, kernel)
		return r
	})
	p.step("cuStreamCreate", func() (r driver.Result) {
		p.stream, r = p.api.StreamCreateWithPriority(driver.StreamNonBlocking, 0)
		return r
	})
	p.step("cuMemAlloc", func() (r driver.Result) {
		p.in, r = p.api.MemAlloc(int64(max(in, 1)))
		return r
	})
	p.step("cuMemAlloc", func() (r driver.Result) {
		p.out, r = p.api.MemAlloc(int64(max(out, 1)))
		return r
	})
}

func (p *probe) run(in, out int) {
	if in > 0 {
		p.step("cuMemcpyHtoDAsync", func() driver.Result { return p.api.MemcpyHtoDAsync(p.in, p.host, int64(in), p.stream) })
	}
	p.step("cuMemsetD8Async", func() driver.Result { return p.api.MemsetD8Async(p.out, 0, int64(max(out, 1)), p.stream) })
	p.step("cuLaunchKernelEx", func() driver.Result {
		p.grid.Stream = p.stream
		params := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(p.in)), uint64(p.out))
		return p.api.LaunchKernelEx(&p.grid, p.fn, params)
	})
	if out > 0 {
		p.step("cuMemcpyDtoHAsync", func() driver.Result { return p.api.MemcpyDtoHAsync(p.host, p.out, int64(out), p.stream) })
	}
	p.step("cuStreamSynchronize", func() driver.Result { return p.api.StreamSynchronize(p.stream) })
}

// close gives back what there is, whatever became of the launch.
func (p *probe) close() {
	give := func(call string, r driver.Result) { p.step(call, func() driver.Result { return r }) }
	if p.in != 0 {
		give("cuMemFree", p.api.MemFree(p.in))
	}
	if p.out != 0 {
		give("cuMemFree", p.api.MemFree(p.out))
	}
	if p.stream != 0 {
		give("cuStreamDestroy", p.api.StreamDestroy(p.stream))
	}
	if p.module != 0 {
		give("cuModuleUnload", p.api.ModuleUnload(p.module))
	}
}
