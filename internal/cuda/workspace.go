package cuda

import (
	"math"
	"sync"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Plan is an op made ready for any card, but for the running: with its scratch memory and steps. The error is that of
// [Device.Prepare], for an op that the engine lacks too.
func Plan(op ir.Op) (*device.Kernel, error) {
	k, err := planner().Prepare(op)
	if err != nil {
		return nil, err
	}
	k.Impl = nil
	return k, nil
}

// planner is a device that plans and runs nothing: all kernels count as compiled. Its card is the oldest that there are
// kernels for.
var planner = sync.OnceValue(func() *Device {
	set, err := kernels.Embedded().For(Oldest)
	if err != nil {
		panic(err) // it is the oldest that has all
	}
	d := &Device{kernels: set, sharedOptin: math.MaxInt, modules: map[string]*module{}, functions: map[string]*function{}}
	d.info.Name = "a planned card"
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
})
