package model_test

import (
	"fmt"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/tensor"
)

// counted is what the engine of this name opens next, each time under another number.
var counted struct {
	api   *driver.API
	cards int
}

func init() {
	device.Register("counted", device.Engine{Open: func(n device.Name) (device.Device, error) {
		return cuda.New(counted.api, 0, n.String(), cuda.Options{})
	}})
}

// TestStepStaysOnTheDevice counts what a step of training brings to the host, where the CPU could work on it: nothing. All
// of it is done by kernels of the GPU.
func TestStepStaysOnTheDevice(t *testing.T) {
	launches, toHost := 0, 0
	s, err := simcuda.New(simcuda.Config{OnLaunch: func(string, *gpusim.Report) { launches++ }})
	if err != nil {
		t.Fatal(err)
	}
	api := *s.API()
	async, sync := api.MemcpyDtoHAsync, api.MemcpyDtoH
	api.MemcpyDtoHAsync = func(dst uintptr, src driver.Ptr, n int64, q driver.Stream) driver.Result {
		toHost++
		return async(dst, src, n, q)
	}
	api.MemcpyDtoH = func(dst uintptr, src driver.Ptr, n int64) driver.Result {
		toHost++
		return sync(dst, src, n)
	}
	counted.api = &api
	counted.cards++
	env, err := tensor.Fresh(fmt.Sprintf("counted:%d", counted.cards))
	if err != nil {
		t.Fatal(err)
	}
	r := newTrainer(env)
	env.Sync()
	launches, toHost = 0, 0
	r.step(0)
	if launches < 100 || toHost != 0 {
		t.Errorf("a step was %d launches and %d copies to the host", launches, toHost)
	}
	if env.Sync(); toHost > 1 {
		t.Errorf("a Sync copied %d times to the host; it asks for one record of faults", toHost)
	}
}
