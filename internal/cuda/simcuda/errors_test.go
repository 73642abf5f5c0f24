package simcuda

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/gpusim"
)

// calls has every function of the table that needs a context, with arguments that are right as far as they can be.
func calls(r *rig) map[string]func() driver.Result {
	p, h := r.alloc(0, 4096), r.pinned(4096)
	st, ev := r.stream(0, 0), r.event(0, 0)
	f := r.kernel(0, "exact")
	mem := make([]byte, 64)
	host := r.address(mem)
	a := r.api
	list := graphCalls(r, p, st, ev, f)
	maps.Copy(list, map[string]func() driver.Result{
		"CtxSynchronize":            a.CtxSynchronize,
		"CtxEnablePeerAccess":       func() driver.Result { return a.CtxEnablePeerAccess(r.ctx[1]) },
		"CtxGetStreamPriorityRange": func() driver.Result { _, _, res := a.CtxGetStreamPriorityRange(); return res },
		"ModuleLoadData":            func() driver.Result { _, _, res := a.ModuleLoadData([]byte(source)); return res },
		"ModuleGetFunction":         func() driver.Result { _, res := a.ModuleGetFunction(r.mods[0], "add"); return res },
		"ModuleGetGlobal":           func() driver.Result { _, _, res := a.ModuleGetGlobal(r.mods[0], "answer"); return res },
		"FuncLoad":                  func() driver.Result { return a.FuncLoad(f) },
		"FuncGetAttribute":          func() driver.Result { _, res := a.FuncGetAttribute(driver.FuncNumRegs, f); return res },
		"Parameters":                func() driver.Result { _, _, res := a.Parameters(f); return res },
		"FuncSetAttribute":          func() driver.Result { return a.FuncSetAttribute(f, driver.FuncPreferredCarveout, 50) },
		"Occupancy": func() driver.Result {
			_, res := a.OccupancyMaxActiveBlocksPerMultiprocessor(f, 64, 0)
			return res
		},
		"MemGetInfo":    func() driver.Result { _, _, res := a.MemGetInfo(); return res },
		"MemAlloc":      func() driver.Result { _, res := a.MemAlloc(16); return res },
		"MemAllocAsync": func() driver.Result { _, res := a.MemAllocAsync(16, st); return res },
		"MemGetAllocationGranularity": func() driver.Result {
			_, res := a.MemGetAllocationGranularity(0, driver.GranularityMinimum)
			return res
		},
		"MemAddressReserve": func() driver.Result { _, res := a.MemAddressReserve(gpusim.Granularity, 0, 0); return res },
		"MemCreate":         func() driver.Result { _, res := a.MemCreate(gpusim.Granularity, 0); return res },
		"MemHostAlloc":      func() driver.Result { _, res := a.MemHostAlloc(16, 0); return res },
		"MemHostRegister":   func() driver.Result { return a.MemHostRegister(host, 64, 0) },
		"MemHostUnregister": func() driver.Result { return a.MemHostUnregister(host) },
		"MemcpyHtoD":        func() driver.Result { return a.MemcpyHtoD(p, h, 64) },
		"MemcpyDtoH":        func() driver.Result { return a.MemcpyDtoH(h, p, 64) },
		"MemcpyDtoD":        func() driver.Result { return a.MemcpyDtoD(p, p+64, 64) },
		"MemcpyHtoDAsync":   func() driver.Result { return a.MemcpyHtoDAsync(p, h, 64, st) },
		"MemcpyDtoHAsync":   func() driver.Result { return a.MemcpyDtoHAsync(h, p, 64, st) },
		"MemcpyDtoDAsync":   func() driver.Result { return a.MemcpyDtoDAsync(p, p+64, 64, st) },
		"MemcpyPeerAsync":   func() driver.Result { return a.MemcpyPeerAsync(p, r.ctx[0], p+64, r.ctx[0], 64, st) },
		"MemsetD8Async":     func() driver.Result { return a.MemsetD8Async(p, 1, 64, st) },
		"MemsetD32Async":    func() driver.Result { return a.MemsetD32Async(p, 1, 16, st) },
		"StreamCreate":      func() driver.Result { _, res := a.StreamCreateWithPriority(0, 0); return res },
		"StreamSynchronize": func() driver.Result { return a.StreamSynchronize(st) },
		"StreamQuery":       func() driver.Result { return a.StreamQuery(st) },
		"StreamWaitEvent":   func() driver.Result { return a.StreamWaitEvent(st, ev) },
		"EventCreate":       func() driver.Result { _, res := a.EventCreate(0); return res },
		"EventRecord":       func() driver.Result { return a.EventRecord(ev, st) },
		"EventSynchronize":  func() driver.Result { return a.EventSynchronize(ev) },
		"EventQuery":        func() driver.Result { return a.EventQuery(ev) },
		"EventTime":         func() driver.Result { _, _, res := a.EventTime(ev); return res },
		"EventElapsedTime":  func() driver.Result { _, res := a.EventElapsedTime(ev, ev); return res },
		"LaunchKernelEx": func() driver.Result {
			return a.LaunchKernelEx(&driver.LaunchConfig{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 2, 1}, Stream: st}, f, nil)
		},
		"Annotate": func() driver.Result { return a.Annotate(p, 64, driver.Fresh, st, "here") },
	})
	return list
}

// first are the calls without which others cannot succeed.
var first = []string{"EventRecord", "MemHostRegister"}

// TestContext makes every call outside of Do, inside, after a fault, after a reset and before Init.
func TestContext(t *testing.T) {
	r := newRig(t, Config{Devices: 2})
	list := calls(r)
	for name, f := range list {
		if got := f(); got != driver.InvalidContext {
			t.Errorf("%s outside of Do: %v", name, got)
		}
		if why := r.api.Explain(); !strings.Contains(why, "no context is current") {
			t.Errorf("%s outside of Do is explained by %q", name, why)
		}
	}
	for _, name := range first {
		r.do(0, list[name])
	}
	for name, f := range list {
		if slices.Contains(first, name) {
			continue
		}
		r.do(0, r.api.CtxSynchronize) // a query is not to find the work of a call before it pending
		if got := r.api.Do(r.ctx[0], f); got != driver.Success {
			t.Errorf("%s: %v: %s", name, got, r.sys.lastWhy())
		}
	}
	trap := r.kernel(0, "trap")
	r.do(0, func() driver.Result {
		return r.api.LaunchKernelEx(&driver.LaunchConfig{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}, trap, nil)
	})
	for _, f := range list {
		r.fails(driver.IllegalInstruction, 0, "trap", f)
	}
	// The other device is as well as before.
	r.do(1, r.api.CtxSynchronize)
	old := r.ctx[0]
	r.want(driver.Success, r.api.DevicePrimaryCtxReset(0))
	r.want(driver.InvalidContext, r.api.Do(old, r.api.CtxSynchronize))
	ctx, res := r.api.DevicePrimaryCtxRetain(0)
	r.want(driver.Success, res)
	r.ctx[0] = ctx
	for _, name := range []string{"ModuleGetFunction", "FuncLoad", "MemcpyDtoD", "EventQuery", "StreamQuery"} {
		if got := r.api.Do(ctx, list[name]); got != driver.InvalidHandle && got != driver.InvalidValue {
			t.Errorf("%s with what the reset took: %v", name, got)
		}
	}
	fresh, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]driver.Result{
		"CtxSynchronize": fresh.API().CtxSynchronize(), "CtxSetCurrent": fresh.API().CtxSetCurrent(0),
		"Release": fresh.API().DevicePrimaryCtxRelease(0), "Reset": fresh.API().DevicePrimaryCtxReset(0),
	} {
		if got != driver.NotInitialized {
			t.Errorf("%s before Init: %v", name, got)
		}
	}
}

func TestPrimaryContext(t *testing.T) {
	r := newRig(t, Config{Devices: 2})
	a := r.api
	again, res := a.DevicePrimaryCtxRetain(0)
	if res != driver.Success || again != r.ctx[0] || again == r.ctx[1] {
		t.Error(again, r.ctx, res)
	}
	r.want(driver.Success, a.DevicePrimaryCtxRelease(0))
	r.do(0, a.CtxSynchronize) // one retain is left
	r.want(driver.Success, a.CtxSetCurrent(r.ctx[0]))
	if c, res := a.CtxGetCurrent(); c != r.ctx[0] || res != driver.Success {
		t.Error(c, res)
	}
	r.want(driver.Success, a.DevicePrimaryCtxRelease(0))
	r.want(driver.ContextDestroyed, a.CtxSynchronize())
	r.want(driver.Success, a.CtxSetCurrent(0))
	if c, res := a.CtxGetCurrent(); c != 0 || res != driver.Success {
		t.Error(c, res)
	}
	r.want(driver.InvalidContext, a.DevicePrimaryCtxRelease(0))
	r.want(driver.InvalidContext, a.CtxSetCurrent(r.ctx[0]))
	r.want(driver.InvalidContext, a.CtxSetCurrent(12345))
	r.want(driver.Success, a.DevicePrimaryCtxReset(0))
	r.want(driver.Success, a.DevicePrimaryCtxSetFlags(0, driver.CtxSchedBlockingSync))
	r.want(driver.InvalidValue, a.DevicePrimaryCtxSetFlags(0, 1<<30))
	for _, d := range []driver.Device{-1, 2} {
		_, res := a.DevicePrimaryCtxRetain(d)
		r.want(driver.InvalidDevice, res)
		r.want(driver.InvalidDevice, a.DevicePrimaryCtxRelease(d))
		r.want(driver.InvalidDevice, a.DevicePrimaryCtxReset(d))
		r.want(driver.InvalidDevice, a.DevicePrimaryCtxSetFlags(d, 0))
	}
	// Release after a reset is safe as often as there were retains.
	r.want(driver.Success, a.DevicePrimaryCtxReset(1))
	r.want(driver.Success, a.DevicePrimaryCtxRelease(1))
	r.want(driver.InvalidContext, a.DevicePrimaryCtxRelease(1))
}

// TestRefusals is by function: what makes a call fail, how, and what Explain says.
func TestRefusals(t *testing.T) {
	r := newRig(t, Config{Devices: 2})
	a := r.api
	p, far, h := r.alloc(0, 4096), r.alloc(1, 4096), r.pinned(4096)
	st, other := r.stream(0, 0), r.stream(1, 0)
	ev, otherEv, untimed := r.event(0, 0), r.event(1, 0), r.event(0, driver.EventDisableTiming)
	add, exact, bounded := r.kernel(0, "add"), r.kernel(0, "exact"), r.kernel(0, "bounded")
	r.do(0, func() driver.Result { return a.EventRecord(untimed, 0) })
	r.do(1, func() driver.Result { return a.EventRecord(otherEv, 0) })
	freed := r.alloc(0, 512)
	r.do(0, func() driver.Result { return a.MemFree(freed) })
	pageable := make([]byte, 256)
	r.do(0, func() driver.Result { return a.MemHostRegister(r.address(pageable), 128, 0) })
	gone := r.stream(0, 0)
	r.do(0, func() driver.Result { return a.StreamDestroy(gone) })
	lost := r.event(0, 0)
	r.do(0, func() driver.Result { return a.EventDestroy(lost) })
	unloaded := func() (m driver.Module) {
		r.do(0, func() (res driver.Result) { m, _, res = a.ModuleLoadData([]byte(source)); return res })
		r.do(0, func() driver.Result { return a.ModuleUnload(m) })
		return m
	}()
	alloc := func(n int64) func() driver.Result {
		return func() driver.Result { _, res := a.MemAlloc(n); return res }
	}
	launch := func(f driver.Function, grid, block [3]uint32, shared uint32, s driver.Stream, params int) func() driver.Result {
		return func() driver.Result {
			return a.LaunchKernelEx(&driver.LaunchConfig{Grid: grid, Block: block, Shared: shared, Stream: s}, f, make([]byte, params))
		}
	}
	one, warp := [3]uint32{1, 1, 1}, [3]uint32{32, 1, 1}
	const bad, handle = driver.InvalidValue, driver.InvalidHandle
	for _, c := range []struct {
		name    string
		want    driver.Result
		explain string
		call    func() driver.Result
	}{
		{"alloc 0", bad, "0 bytes", alloc(0)},
		{"alloc -1", bad, "-1 bytes", alloc(-1)},
		{"alloc too much", driver.OutOfMemory, "in use", alloc(81 << 30)},
		{"alloc beyond all addresses", bad, "allocation of", alloc(1 << 59)},
		{"alloc async 0", bad, "0 bytes", func() driver.Result { _, res := a.MemAllocAsync(0, st); return res }},
		{"alloc async, no stream", handle, "no stream", func() driver.Result { _, res := a.MemAllocAsync(8, 77); return res }},
		{"free twice", bad, "freed by MemFree", func() driver.Result { return a.MemFree(freed) }},
		{"free inside", bad, "not the start", func() driver.Result { return a.MemFree(p + 256) }},
		{"free 0", bad, "not the start", func() driver.Result { return a.MemFree(0) }},
		{"free async inside", bad, "not the start", func() driver.Result { return a.MemFreeAsync(p+256, st) }},
		{"free async, no stream", handle, "", func() driver.Result { return a.MemFreeAsync(p, gone) }},
		{"pinned 0", bad, "", func() driver.Result { _, res := a.MemHostAlloc(0, 0); return res }},
		{"pinned flags", bad, "flags", func() driver.Result { _, res := a.MemHostAlloc(8, 64); return res }},
		{"free pinned inside", bad, "", func() driver.Result { return a.MemFreeHost(h + 8) }},
		{"free pinned that is registered", bad, "", func() driver.Result { return a.MemFreeHost(r.address(pageable)) }},
		{"register twice", driver.HostMemoryRegistered, "pinned", func() driver.Result { return a.MemHostRegister(r.address(pageable)+64, 128, 0) }},
		{"register nothing", bad, "", func() driver.Result { return a.MemHostRegister(r.address(pageable)+128, 0, 0) }},
		{"register 0", bad, "", func() driver.Result { return a.MemHostRegister(0, 8, 0) }},
		{"unregister twice", driver.HostMemoryNotRegistered, "", func() driver.Result { return a.MemHostUnregister(r.address(pageable) + 8) }},
		{"unregister pinned", driver.HostMemoryNotRegistered, "", func() driver.Result { return a.MemHostUnregister(h) }},
		{"unregister 0", bad, "", func() driver.Result { return a.MemHostUnregister(0) }},
		{"copy past the end", bad, "not in a live allocation", func() driver.Result { return a.MemcpyHtoD(p+4000, h, 97) }},
		{"copy to freed", bad, "freed by MemFree", func() driver.Result { return a.MemcpyHtoD(freed, h, 8) }},
		{"copy to nowhere", bad, "which is none", func() driver.Result { return a.MemcpyHtoD(8, h, 8) }},
		{"copy of -1", bad, "", func() driver.Result { return a.MemcpyHtoD(p, h, -1) }},
		{"copy from host 0", bad, "host address 0", func() driver.Result { return a.MemcpyHtoD(p, 0, 8) }},
		{"copy half pinned", bad, "only in part", func() driver.Result { return a.MemcpyHtoD(p, r.address(pageable)+100, 64) }},
		{"copy to host past the end", bad, "", func() driver.Result { return a.MemcpyDtoH(h, p, 4097) }},
		{"copy async, no stream", handle, "", func() driver.Result { return a.MemcpyHtoDAsync(p, h, 8, gone) }},
		{"copy to host async, no stream", handle, "", func() driver.Result { return a.MemcpyDtoHAsync(h, p, 8, gone) }},
		{"copy on device past the end", bad, "", func() driver.Result { return a.MemcpyDtoD(p, p+4000, 97) }},
		{"copy on device onto itself", bad, "overlap", func() driver.Result { return a.MemcpyDtoD(p+8, p, 9) }},
		{"copy peer, no context", driver.InvalidContext, "not both alive", func() driver.Result { return a.MemcpyPeerAsync(p, 5, far, r.ctx[1], 8, st) }},
		{"copy peer, not there", bad, "not on device 0", func() driver.Result { return a.MemcpyPeerAsync(far, r.ctx[0], far, r.ctx[1], 8, st) }},
		{"copy peer, not from there", bad, "not on device 1", func() driver.Result { return a.MemcpyPeerAsync(p, r.ctx[0], p, r.ctx[1], 8, st) }},
		{"fill past the end", bad, "", func() driver.Result { return a.MemsetD8Async(p, 0, 4097, st) }},
		{"fill words past the end", bad, "", func() driver.Result { return a.MemsetD32Async(p, 0, 1025, st) }},
		{"fill words overflow", bad, "", func() driver.Result { return a.MemsetD32Async(p, 0, math.MaxInt64, st) }},
		{"fill words misaligned", bad, "multiple of 4", func() driver.Result { return a.MemsetD32Async(p+2, 0, 4, st) }},
		{"fill, no stream", handle, "", func() driver.Result { return a.MemsetD8Async(p, 0, 1, gone) }},
		{"stream flags", bad, "flags", func() driver.Result { _, res := a.StreamCreateWithPriority(8, 0); return res }},
		{"destroy default stream", handle, "default", func() driver.Result { return a.StreamDestroy(0) }},
		{"destroy twice", handle, "no stream", func() driver.Result { return a.StreamDestroy(gone) }},
		{"synchronize an event", handle, "no stream", func() driver.Result { return a.StreamSynchronize(driver.Stream(ev)) }},
		{"query, no stream", handle, "", func() driver.Result { return a.StreamQuery(gone) }},
		{"wait, no stream", handle, "", func() driver.Result { return a.StreamWaitEvent(gone, ev) }},
		{"wait, no event", handle, "", func() driver.Result { return a.StreamWaitEvent(st, lost) }},
		{"event flags", bad, "", func() driver.Result { _, res := a.EventCreate(4); return res }},
		{"destroy event twice", handle, "no event", func() driver.Result { return a.EventDestroy(lost) }},
		{"record, no event", handle, "", func() driver.Result { return a.EventRecord(lost, st) }},
		{"record, no stream", handle, "", func() driver.Result { return a.EventRecord(ev, gone) }},
		{"record elsewhere", handle, "device 1", func() driver.Result { return a.EventRecord(ev, other) }},
		{"synchronize, no event", handle, "", func() driver.Result { return a.EventSynchronize(lost) }},
		{"query, no event", handle, "", func() driver.Result { return a.EventQuery(lost) }},
		{"elapsed, not recorded", handle, "never recorded", func() driver.Result { _, res := a.EventElapsedTime(ev, ev); return res }},
		{"elapsed, untimed", handle, "without timing", func() driver.Result { _, res := a.EventElapsedTime(untimed, untimed); return res }},
		{"elapsed elsewhere", handle, "device 1", func() driver.Result { _, res := a.EventElapsedTime(otherEv, otherEv); return res }},
		{"elapsed, no event", handle, "", func() driver.Result { _, res := a.EventElapsedTime(lost, ev); return res }},
		{"peer of itself", driver.InvalidDevice, "", func() driver.Result { return a.CtxEnablePeerAccess(r.ctx[0]) }},
		{"peer of nothing", driver.InvalidContext, "", func() driver.Result { return a.CtxEnablePeerAccess(3) }},
		{"unload twice", handle, "no module", func() driver.Result { return a.ModuleUnload(unloaded) }},
		{"module of another device", handle, "device 0", func() driver.Result { return a.ModuleUnload(r.mods[1]) }},
		{"no kernel", driver.NotFound, "it has add, scale", func() driver.Result { _, res := a.ModuleGetFunction(r.mods[0], "sub"); return res }},
		{"no module", handle, "", func() driver.Result { _, res := a.ModuleGetFunction(unloaded, "add"); return res }},
		{"no variable", driver.NotFound, "no variable", func() driver.Result { _, _, res := a.ModuleGetGlobal(r.mods[0], "x"); return res }},
		{"no module for a variable", handle, "", func() driver.Result { _, _, res := a.ModuleGetGlobal(unloaded, "answer"); return res }},
		{"load no function", handle, "", func() driver.Result { return a.FuncLoad(9) }},
		{"function attribute", bad, "", func() driver.Result { _, res := a.FuncGetAttribute(99, add); return res }},
		{"attribute of no function", handle, "", func() driver.Result { _, res := a.FuncGetAttribute(0, 9); return res }},
		{"set a fixed attribute", bad, "cannot be set", func() driver.Result { return a.FuncSetAttribute(add, driver.FuncNumRegs, 3) }},
		{"set for no function", handle, "", func() driver.Result { return a.FuncSetAttribute(9, driver.FuncMaxDynamicShared, 3) }},
		{"too much dynamic shared", bad, "0 to 166912", func() driver.Result { return a.FuncSetAttribute(add, driver.FuncMaxDynamicShared, 163<<10+1) }},
		{"static counts", bad, "", func() driver.Result { return a.FuncSetAttribute(bounded, driver.FuncMaxDynamicShared, 163<<10) }},
		{"carveout", bad, "", func() driver.Result { return a.FuncSetAttribute(add, driver.FuncPreferredCarveout, 101) }},
		{"occupancy of 0", bad, "", func() driver.Result {
			_, res := a.OccupancyMaxActiveBlocksPerMultiprocessor(add, 0, 0)
			return res
		}},
		{"occupancy of nothing", handle, "", func() driver.Result {
			_, res := a.OccupancyMaxActiveBlocksPerMultiprocessor(9, 32, 0)
			return res
		}},
		{"no configuration", bad, "", func() driver.Result { return a.LaunchKernelEx(nil, add, nil) }},
		{"no function", handle, "", launch(9, one, warp, 0, 0, 28)},
		{"stream of another device", handle, "device 1", launch(add, one, warp, 0, other, 28)},
		{"grid 0", bad, "dimension 1", launch(add, [3]uint32{1, 0, 1}, warp, 0, 0, 28)},
		{"grid z", bad, "65535", launch(add, [3]uint32{1, 1, 65536}, warp, 0, 0, 28)},
		{"grid x", bad, "2147483647", launch(add, [3]uint32{1 << 31, 1, 1}, warp, 0, 0, 28)},
		{"block 0", bad, "dimension 2", launch(add, one, [3]uint32{1, 1, 0}, 0, 0, 28)},
		{"block z", bad, "64", launch(add, one, [3]uint32{1, 1, 65}, 0, 0, 28)},
		{"block of 2048", bad, "2048 threads", launch(add, one, [3]uint32{1024, 2, 1}, 0, 0, 28)},
		{"beyond maxntid", driver.OutOfResources, "can have 64", launch(bounded, one, [3]uint32{65, 1, 1}, 0, 0, 4)},
		{"not reqntid", bad, "[32 2 1]", launch(exact, one, [3]uint32{64, 1, 1}, 0, 0, 0)},
		{"48 KiB and a byte", bad, "FuncSetAttribute", launch(add, one, warp, 48<<10+1, 0, 28)},
		{"static and dynamic", bad, "48128 are set", launch(bounded, one, warp, 48<<10, 0, 4)},
		{"parameters too long", bad, "at [0 8 16 24], take 28", launch(add, one, warp, 0, 0, 32)},
		{"parameters missing", bad, "0 bytes", launch(add, one, warp, 0, 0, 0)},
		{"cluster", driver.InvalidClusterSize, "compute capability 8.0 has none", func() driver.Result {
			return a.LaunchKernelEx(&driver.LaunchConfig{Grid: warp, Block: warp, Cluster: [3]uint32{2, 1, 1}}, add, make([]byte, 28))
		}},
		{"annotate past the end", bad, "", func() driver.Result { return a.Annotate(p, 4097, driver.Free, 0, "") }},
		{"annotate nothing of ours", bad, "", func() driver.Result { return a.Annotate(16, 16, driver.Free, 0, "") }},
		{"annotate, no stream", handle, "", func() driver.Result { return a.Annotate(p, 16, driver.Free, gone, "") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.t = t
			r.fails(c.want, 0, c.explain, c.call)
			r.do(0, a.CtxSynchronize)
		})
	}
	r.t = t
}

// TestLimits stays just inside of what TestRefusals exceeds.
func TestLimits(t *testing.T) {
	r := newRig(t, Config{})
	a := r.api
	add, bounded := r.kernel(0, "add"), r.kernel(0, "bounded")
	params := pack(uint64(0), uint64(0), uint64(0), uint32(0))
	one := [3]uint32{1, 1, 1}
	r.do(0, func() driver.Result {
		return a.LaunchKernelEx(&driver.LaunchConfig{Grid: one, Block: [3]uint32{1024, 1, 1}, Shared: 48 << 10, Cluster: one, Dependent: true}, add, params)
	})
	r.do(0, func() driver.Result {
		return a.LaunchKernelEx(&driver.LaunchConfig{Grid: one, Block: [3]uint32{64, 1, 1}, Shared: 47 << 10}, bounded, make([]byte, 4))
	})
	r.do(0, func() driver.Result { return a.FuncSetAttribute(add, driver.FuncMaxDynamicShared, 163<<10) })
	r.do(0, func() driver.Result {
		return a.LaunchKernelEx(&driver.LaunchConfig{Grid: one, Block: one, Shared: 163 << 10}, add, params)
	})
	for _, f := range []func() driver.Result{
		func() driver.Result { return a.MemcpyHtoD(0, 0, 0) }, func() driver.Result { return a.MemcpyDtoH(0, 0, 0) },
		func() driver.Result { return a.MemcpyDtoD(0, 0, 0) }, func() driver.Result { return a.MemsetD8Async(0, 0, 0, 0) },
		a.CtxSynchronize,
	} {
		r.do(0, f)
	}
}

func TestInit(t *testing.T) {
	s, err := New(Config{Devices: 3, Card: "gtx-1650"})
	if err != nil {
		t.Fatal(err)
	}
	a := s.API()
	if v, res := a.DriverGetVersion(); v < 12000 || res != driver.Success {
		t.Error(v, res)
	}
	if _, res := a.DeviceGetCount(); res != driver.NotInitialized {
		t.Error(res)
	}
	if res := a.Init(1); res != driver.InvalidValue {
		t.Error(res)
	}
	if res := a.Init(0); res != driver.Success {
		t.Error(res)
	}
	if n, res := a.DeviceGetCount(); n != 3 || res != driver.Success {
		t.Error(n, res)
	}
	if _, err := New(Config{Devices: 17}); err == nil {
		t.Error("17 devices")
	}
	if _, err := New(Config{Card: "h900"}); err == nil || !strings.Contains(err.Error(), `"h900"`) || !strings.Contains(err.Error(), "a100-80") {
		t.Error(err)
	}
}

// TestCards opens a device of every card and compares what it says of itself with what NVIDIA's data sheets do.
func TestCards(t *testing.T) {
	attributes := []driver.Attribute{
		driver.MaxThreadsPerBlock, driver.MaxBlockDimX, driver.MaxBlockDimY, driver.MaxBlockDimZ, driver.MaxGridDimX, driver.MaxGridDimY, driver.MaxGridDimZ,
		driver.MaxSharedPerBlock, driver.TotalConstant, driver.WarpSize, driver.MaxRegistersPerBlock, driver.ClockRate, driver.MultiprocessorCount,
		driver.ConcurrentKernels, driver.PCIBusID, driver.MemoryClockRate, driver.MemoryBusWidth, driver.L2CacheSize,
		driver.MaxThreadsPerSM, driver.AsyncEngineCount, driver.UnifiedAddressing, driver.ComputeMajor, driver.MaxSharedPerSM,
		driver.MaxRegistersPerSM, driver.MaxSharedPerBlockOptin, driver.MaxBlocksPerSM, driver.MemoryPoolsSupported, driver.VirtualMemory,
	}
	zero := []driver.Attribute{driver.Integrated, driver.CanMapHostMemory, driver.ManagedMemory, driver.PageableMemoryAccess, driver.CooperativeLaunch}
	ids := map[[16]byte]bool{}
	for _, card := range cards.All {
		s, err := New(Config{Card: card.Name, Devices: 2})
		if err != nil {
			t.Fatal(err)
		}
		a := s.API()
		a.Init(0)
		d, res := a.DeviceGet(1)
		if d != 1 || res != driver.Success {
			t.Fatal(d, res)
		}
		name, _ := a.DeviceGetName(d)
		mem, _ := a.DeviceTotalMem(d)
		bus, _ := a.DeviceGetPCIBusId(d)
		id, _ := a.DeviceGetUuid(d)
		if name != "Simulated "+card.Model || mem != card.Memory || bus != "0000:02:00.0" || ids[id] {
			t.Error(name, mem, bus, id)
		}
		ids[id] = true
		for _, x := range attributes {
			if v, res := a.DeviceGetAttribute(x, d); v <= 0 || res != driver.Success {
				t.Errorf("%s: attribute %d is %d, %v", card.Name, x, v, res)
			}
		}
		for _, x := range zero {
			if v, res := a.DeviceGetAttribute(x, d); v != 0 || res != driver.Success {
				t.Errorf("%s: attribute %d is %d, %v", card.Name, x, v, res)
			}
		}
		if _, res := a.DeviceGetAttribute(9999, d); res != driver.InvalidValue {
			t.Error(res)
		}
		if _, res := a.DeviceGetAttribute(driver.WarpSize, 2); res != driver.InvalidDevice {
			t.Error(res)
		}
		if ok, res := a.DeviceCanAccessPeer(0, 1); ok == strings.HasPrefix(card.Model, "GeForce") || res != driver.Success {
			t.Error(ok, res)
		}
		if ok, _ := a.DeviceCanAccessPeer(1, 1); ok {
			t.Error("a device is its own peer")
		}
	}
	s, _ := New(Config{Card: "a100-80"})
	a := s.API()
	a.Init(0)
	for x, want := range map[driver.Attribute]int{driver.MultiprocessorCount: 108, driver.ClockRate: 1_410_000, driver.MemoryBusWidth: 5120,
		driver.L2CacheSize: 40 << 20, driver.ComputeMajor: 8, driver.ComputeMinor: 0, driver.MaxSharedPerBlockOptin: 166_912,
		driver.MaxSharedPerSM: 167_936, driver.MaxThreadsPerSM: 2048, driver.ReservedSharedPerBlock: 1024} {
		if v, _ := a.DeviceGetAttribute(x, 0); v != want {
			t.Errorf("attribute %d of an A100 is %d, want %d", x, v, want)
		}
	}
}

func TestParseConfig(t *testing.T) {
	for text, want := range map[string]Config{
		"":                                  {},
		" late , cores=2 ":                  {LateEffects: true, Cores: 2},
		"late,collect":                      {Checks: 99}, // would silence what it collects
		"check=all,seed=3":                  {Checks: gpusim.AllChecks, Seed: 3},
		"check=none":                        {Checks: gpusim.Memcheck},
		"check=racecheck+initcheck,seed=0x": {Checks: 99},
		"check=racecheck+initcheck":         {Checks: gpusim.Racecheck | gpusim.Initcheck},
		"schedule=independent,numerics=truncating": {Schedule: gpusim.Independent, Numerics: gpusim.Truncating},
		"schedule=reconverge,numerics=float32":     {},
		"numerics=exact":                           {Numerics: gpusim.Exact},
		"cores=1,steps=1000":                       {Cores: 1, StepLimit: 1000},
		"cores=0":                                  {Checks: 99},
		"steps=-1":                                 {Checks: 99},
		"late=1":                                   {Checks: 99},
		"check":                                    {Checks: 99},
		"check=":                                   {Checks: 99},
		"check=memcheck+all":                       {Checks: 99},
		"schedule=late":                            {Checks: 99},
		"seed=-1":                                  {Checks: 99},
	} {
		got, err := ParseConfig(text)
		bad := want.Checks == 99
		if bad {
			want = Config{}
		}
		if got.Checks != want.Checks || got.Seed != want.Seed || got.Schedule != want.Schedule || got.Numerics != want.Numerics ||
			got.LateEffects != want.LateEffects || got.Collect != want.Collect || got.Cores != want.Cores || got.StepLimit != want.StepLimit || (err != nil) != bad {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if bad && !strings.Contains(err.Error(), "schedule=reconverge|independent") {
			t.Error(err)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add("check=all,seed=3,schedule=independent,late")
	f.Add("check=memcheck+racecheck,cores=2")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := ParseConfig(text); err != nil && strings.ContainsAny(err.Error(), "\n") {
			t.Error(err)
		}
	})
}
