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
	node := &driver.KernelNode{Func: 7, Grid: config.Grid, Block: config.Block, Params: params}
	launch := func() driver.Result { return api.LaunchKernelEx(config, 7, params) }
	return map[string]func(){
		"LaunchKernelEx":               func() { launch() },
		"CtxSetCurrent":                func() { api.CtxSetCurrent(1) },
		"Do+launch":                    func() { api.Do(1, launch) },
		"MemcpyHtoDAsync":              func() { api.MemcpyHtoDAsync(1<<40, 4096, 16, 3) },
		"MemcpyDtoHAsync":              func() { api.MemcpyDtoHAsync(4096, 1<<40, 16, 3) },
		"MemcpyDtoDAsync":              func() { api.MemcpyDtoDAsync(1<<40, 2<<40, 16, 3) },
		"MemsetD32Async":               func() { api.MemsetD32Async(1<<40, 0, 16, 3) },
		"MemAlloc":                     func() { api.MemAlloc(512) },
		"MemAllocAsync":                func() { api.MemAllocAsync(512, 3) },
		"MemFree":                      func() { api.MemFree(1 << 40) },
		"EventCreate":                  func() { api.EventCreate(0) },
		"EventRecord":                  func() { api.EventRecord(5, 3) },
		"EventQuery":                   func() { api.EventQuery(5) },
		"StreamWaitEvent":              func() { api.StreamWaitEvent(3, 5) },
		"GraphLaunch":                  func() { api.GraphLaunch(7, 3) },
		"GraphExecKernelNodeSetParams": func() { api.GraphExecKernelNodeSetParams(7, 8, node) },
		"StreamQuery":                  func() { api.StreamQuery(3) },
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

// TestNoOpGraphs: the library that does nothing captures, and launches what was captured.
func TestNoOpGraphs(t *testing.T) {
	path, counts := shimtest.NoOp(t)
	api, _ := open(t, path)
	const s = driver.Stream(7)
	status := func(want driver.CaptureStatus) {
		t.Helper()
		if got, r := api.StreamIsCapturing(s); got != want || r != driver.Success {
			t.Errorf("status %d, %v, want %d", got, r, want)
		}
		if info, r := api.StreamGetCaptureInfo(s); info.Status != want || r != driver.Success {
			t.Errorf("%+v, %v, want status %d", info, r, want)
		}
	}
	status(driver.CaptureNone)
	api.StreamBeginCapture(s, driver.CaptureRelaxed)
	status(driver.CaptureActive)
	g, r := api.StreamEndCapture(s)
	status(driver.CaptureNone)
	x, r2 := api.GraphInstantiateWithFlags(g, 0)
	if g == 0 || x == 0 || r != driver.Success || r2 != driver.Success {
		t.Errorf("graph %#x, %v; exec %#x, %v", uintptr(g), r, uintptr(x), r2)
	}
	for range 3 {
		if r := api.GraphLaunch(x, s); r != driver.Success {
			t.Error(r)
		}
	}
	if n := counts()["cuGraphLaunch"]; n != 3 {
		t.Errorf("%d launches counted", n)
	}
}
