package cuda

import (
	"math"
	"sync"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Plan is an op made ready for a card of a compute capability, but for the running: with its scratch memory and steps. The
// error is that of [Device.Prepare], for an op that the engine lacks too. A card before Oldest counts as one of Full.
func Plan(compute [2]int, op ir.Op) (*device.Kernel, error) {
	p := planner
	if compute == Oldest {
		p = older
	}
	k, err := p().Prepare(op)
	if err != nil {
		return nil, err
	}
	k.Impl = nil
	return k, nil
}

// planner plans for the cards of full speed, older for those before.
var (
	planner = sync.OnceValue(func() *Device { return planning(Full) })
	older   = sync.OnceValue(func() *Device { return planning(Oldest) })
)

// planning is a device that plans and runs nothing: all kernels count as compiled.
func planning(compute [2]int) *Device {
	set, err := kernels.Embedded().For(compute)
	if err != nil {
		panic(err) // a test has it that there are all
	}
	d := &Device{kernels: set, sharedOptin: math.MaxInt, modules: map[string]*module{}, functions: map[string]*function{}}
	d.info.Name, d.info.Compute = "a planned card", compute
	d.api = &driver.API{
		CtxSetCurrent:     func(driver.Context) driver.Result { return driver.Success },
		ModuleGetFunction: func(driver.Module, string) (driver.Function, driver.Result) { return 1, driver.Success },
		FuncLoad:          func(driver.Function) driver.Result { return driver.Success },
		FuncSetAttribute:  func(driver.Function, driver.FuncAttribute, int) driver.Result { return driver.Success },
	}
	for _, m := range set.Modules() {
		d.modules[m.Name] = &module{d: d, from: m, handle: 1}
	}
	return d
}
