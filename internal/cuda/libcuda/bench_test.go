package libcuda_test

import (
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/shimtest"
)

// hot are the calls of a training step.
func hot(api *driver.API) map[string]func() {
	config := &driver.LaunchConfig{Grid: [3]uint32{64, 1, 1}, Block: [3]uint32{256, 1, 1}}
	params := make([]byte, 48)
	launch := func() driver.Result { return api.LaunchKernelEx(config, 7, params) }
	return map[string]func(){
		"LaunchKernelEx":  func() { launch() },
		"CtxSetCurrent":   func() { api.CtxSetCurrent(1) },
		"Do+launch":       func() { api.Do(1, launch) },
		"MemcpyHtoDAsync": func() { api.MemcpyHtoDAsync(1<<40, 4096, 16, 3) },
		"MemcpyDtoHAsync": func() { api.MemcpyDtoHAsync(4096, 1<<40, 16, 3) },
		"MemcpyDtoDAsync": func() { api.MemcpyDtoDAsync(1<<40, 2<<40, 16, 3) },
		"MemsetD32Async":  func() { api.MemsetD32Async(1<<40, 0, 16, 3) },
		"MemAlloc":        func() { api.MemAlloc(512) },
		"MemAllocAsync":   func() { api.MemAllocAsync(512, 3) },
		"MemFree":         func() { api.MemFree(1 << 40) },
		"EventCreate":     func() { api.EventCreate(0) },
		"EventRecord":     func() { api.EventRecord(5, 3) },
		"EventQuery":      func() { api.EventQuery(5) },
		"StreamWaitEvent": func() { api.StreamWaitEvent(3, 5) },
		"StreamQuery":     func() { api.StreamQuery(3) },
	}
}

func TestHotCallsDoNotAllocate(t *testing.T) {
	path, counts := shimtest.NoOp(t)
	api, _ := open(t, path)
	for name, f := range hot(api) {
		if n := testing.AllocsPerRun(200, f); n >= 1 && fast {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	if n := counts()["cuLaunchKernelEx"]; n != 402 { // a warm-up each
		t.Errorf("%d launches counted", n)
	}
}

func BenchmarkHot(b *testing.B) {
	path, _ := shimtest.NoOp(b)
	api, _ := open(b, path)
	for name, f := range hot(api) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
}
