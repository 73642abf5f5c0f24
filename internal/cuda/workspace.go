package cuda

import (
	"math"
	"sync"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/kernels"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Workspace is how many bytes of scratch memory a launch of an op needs, on any card. The error is that of
// [Device.Prepare], for an op that the engine lacks too.
func Workspace(op ir.Op) (int64, error) {
	k, err := planner().Prepare(op)
	if err != nil {
		return 0, err
	}
	return k.Workspace, nil
}

// planner is a device that plans and runs nothing: all kernels count as compiled.
var planner = sync.OnceValue(func() *Device {
	d := &Device{sharedOptin: math.MaxInt, modules: map[string]*module{}, functions: map[string]*function{}}
	d.info.Name = "a planned card"
	d.api = &driver.API{
		CtxSetCurrent:     func(driver.Context) driver.Result { return driver.Success },
		ModuleGetFunction: func(driver.Module, string) (driver.Function, driver.Result) { return 1, driver.Success },
		FuncLoad:          func(driver.Function) driver.Result { return driver.Success },
		FuncSetAttribute:  func(driver.Function, driver.FuncAttribute, int) driver.Result { return driver.Success },
	}
	for _, m := range kernels.Modules() {
		d.modules[m.Name] = &module{d: d, name: m.Name, handle: 1}
	}
	return d
})
