package cuda

import (
	"errors"
	"fmt"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/numbers"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// bareDevice runs plans on a simulated GPU without a driver between, so that a test chooses how and sees the counters of
// each kernel.
type bareDevice struct {
	planner *Device
	sim     *gpusim.Device
	loaded  map[string]*gpusim.Program
	options gpusim.Options
	reports map[string]*gpusim.Report // of the last launch of each kernel
	skew    int64                     // bytes from the start of their memory at which the operands of a product lie
	prepare func(b *builder) error    // in place of the engine's, unless nil
}

func newBareDevice(o gpusim.Options) *bareDevice {
	ok := func() driver.Result { return driver.Success }
	api := &driver.API{
		CtxSetCurrent:     func(driver.Context) driver.Result { return driver.Success },
		ModuleLoadData:    func([]byte) (driver.Module, string, driver.Result) { return 1, "", ok() },
		ModuleGetFunction: func(driver.Module, string) (driver.Function, driver.Result) { return 1, ok() },
		FuncLoad:          func(driver.Function) driver.Result { return ok() },
		FuncSetAttribute:  func(driver.Function, driver.FuncAttribute, int) driver.Result { return ok() },
	}
	card := gpusim.A100()
	set, err := kernels.Embedded().For(card.Compute)
	if err != nil {
		panic(err)
	}
	d := &Device{api: api, kernels: set, modules: map[string]*module{}, functions: map[string]*function{}}
	d.sharedOptin, d.info.Compute = card.SM.SharedPerBlock, card.Compute
	return &bareDevice{planner: d, sim: gpusim.NewDevice(card, o.Checks&gpusim.Initcheck != 0), loaded: map[string]*gpusim.Program{},
		options: o, reports: map[string]*gpusim.Report{}}
}

func (d *bareDevice) Info() device.Info { return device.Info{Name: "bare", Alignment: 256} }
func (d *bareDevice) Prepare(op ir.Op) (*device.Kernel, error) {
	if d.prepare == nil {
		return d.planner.Prepare(op)
	}
	out, err := op.Infer()
	if err != nil {
		return nil, err
	}
	k := &device.Kernel{Op: op, Out: out}
	b := &builder{d: d.planner, op: &k.Op, outs: out}
	err = errors.Join(d.prepare(b), b.err)
	k.Workspace, k.Impl = b.work, &b.plan
	return k, err
}
func (d *bareDevice) NewQueue() (device.Queue, error) { return bareQueue{d}, nil }
func (d *bareDevice) Close() error                    { return nil }
func (d *bareDevice) Free(m device.Mem)               { _ = d.sim.Free(m.Addr, "") }
func (d *bareDevice) Alloc(n int64) (device.Mem, error) {
	at, err := d.sim.Alloc(int(n), "")
	return device.Mem{Addr: at, Size: n}, err
}

type bareQueue struct{ d *bareDevice }

func (q bareQueue) Record() (device.Mark, error) { return nil, nil }
func (q bareQueue) Wait(device.Mark) error       { return nil }
func (q bareQueue) Sync() error                  { return nil }
func (q bareQueue) Close() error                 { return nil }

func (q bareQueue) Copy(dst, src device.Arg, n int64) error {
	to, from := dst.Mem.Addr+uint64(dst.Offset), src.Mem.Addr+uint64(src.Offset)
	switch {
	case src.Mem.Host:
		return q.d.sim.Write(to, hostmem.Bytes(uintptr(from), int(n)))
	case dst.Mem.Host:
		return q.d.sim.Read(hostmem.Bytes(uintptr(to), int(n)), from)
	}
	return fmt.Errorf("a copy within the device")
}

// Launch makes an error of a finding too.
func (q bareQueue) Launch(k *device.Kernel, args []device.Arg, _ *device.Params) error {
	at := func(r ref) uint64 { return args[r.arg].Mem.Addr + uint64(args[r.arg].Offset+r.offset) }
	for _, s := range k.Impl.(*plan).steps {
		if s.fn == nil {
			if err := q.d.sim.Write(at(s.to), make([]byte, s.bytes)); err != nil {
				return err
			}
			continue
		}
		params := append([]byte(nil), s.params...)
		for _, p := range s.patches {
			numbers.Put(params[p.at:], 8, at(p.from.ref))
		}
		if err := q.launch(s.fn.kernel, s.shape, params); err != nil {
			return err
		}
	}
	return nil
}

func (q bareQueue) launch(k *kernels.Kernel, c driver.LaunchConfig, params []byte) error {
	p, err := q.d.program(k.Module)
	if err != nil {
		return err
	}
	size := func(v [3]uint32) [3]int { return [3]int{int(v[0]), int(v[1]), int(v[2])} }
	rep, err := q.d.sim.Launch(p.Kernel(k.Name), size(c.Grid), size(c.Block), int(c.Shared), params, q.d.options)
	if err != nil {
		return fmt.Errorf("%s: %w", k.Name, err)
	}
	q.d.reports[k.Name] = rep
	for _, f := range rep.Findings {
		return fmt.Errorf("%s: %v", k.Name, f)
	}
	return nil
}

func (d *bareDevice) program(from *kernels.Module) (*gpusim.Program, error) {
	if p := d.loaded[from.Name]; p != nil {
		return p, nil
	}
	text, err := from.PTX()
	if err != nil {
		return nil, err
	}
	m, err := ptx.Parse(string(text))
	if err != nil {
		return nil, err
	}
	d.loaded[from.Name], err = d.sim.Load(m)
	return d.loaded[from.Name], err
}
