package simcuda

import (
	"runtime"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/gpusim"
)

// FuzzCalls makes calls with right and wrong arguments in any order: nothing panics or leaks, and a reset mends all.
func FuzzCalls(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30})
	f.Add([]byte{7, 1, 3, 1, 1, 12, 2, 2, 3, 1, 9, 1, 3, 3, 1, 20, 1, 15, 3, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newRig(t, Config{Devices: 2, LateEffects: true, Seed: uint64(len(data)), Checks: gpusim.AllChecks, StepLimit: 1e6})
		m := newMonkey(r, data)
		for range 200 {
			if len(m.data) == 0 {
				break
			}
			m.call()
		}
		defer runtime.KeepAlive(m) // the reset does what is pending
		for d := range 2 {
			r.want(driver.Success, r.api.DevicePrimaryCtxReset(driver.Device(d)))
			ctx, res := r.api.DevicePrimaryCtxRetain(driver.Device(d))
			r.want(driver.Success, res)
			r.want(driver.Success, r.api.Do(ctx, r.api.CtxSynchronize))
		}
	})
}

// monkey picks calls and arguments by bytes.
type monkey struct {
	*rig
	data    []byte
	ptrs    []driver.Ptr
	hosts   []uintptr
	streams []driver.Stream
	events  []driver.Event
	funcs   []driver.Function
	buffer  []byte
}

func newMonkey(r *rig, data []byte) *monkey {
	m := &monkey{rig: r, data: data, buffer: make([]byte, 4096), ptrs: []driver.Ptr{0, ^driver.Ptr(0)}, hosts: []uintptr{0},
		streams: []driver.Stream{driver.StreamLegacy, driver.StreamPerThread, 777}, events: []driver.Event{5}, funcs: []driver.Function{6}}
	m.hosts = append(m.hosts, address(m.buffer), r.pinned(4096))
	for d := range 2 {
		p := r.alloc(d, 4096)
		m.ptrs = append(m.ptrs, p, p+512)
		m.streams = append(m.streams, r.stream(d, 0), r.stream(d, driver.StreamNonBlocking))
		m.events = append(m.events, r.event(d, 0))
		m.funcs = append(m.funcs, r.kernel(d, "scale"), r.kernel(d, "exact"))
	}
	return m
}

// n is a number below most.
func (m *monkey) n(most int) int {
	if len(m.data) == 0 {
		return 0
	}
	b := m.data[0]
	m.data = m.data[1:]
	return int(b) % most
}

func pick[T any](m *monkey, list []T) T { return list[m.n(len(list))] }

func (m *monkey) size() int64 { return pick(m, []int64{0, 1, 64, 512, 4096, 4097, -1, 1 << 62}) }

func (m *monkey) call() {
	a := m.api
	p, q, host := pick(m, m.ptrs), pick(m, m.ptrs), pick(m, m.hosts)
	s, e, size := pick(m, m.streams), pick(m, m.events), m.size()
	list := []func() driver.Result{
		a.CtxSynchronize,
		func() driver.Result { return a.CtxEnablePeerAccess(pick(m, m.ctx)) },
		func() driver.Result { x, res := a.MemAlloc(size); m.ptrs = append(m.ptrs, x); return res },
		func() driver.Result { x, res := a.MemAllocAsync(size, s); m.ptrs = append(m.ptrs, x); return res },
		func() driver.Result { return a.MemFree(p) },
		func() driver.Result { return a.MemFreeAsync(p, s) },
		func() driver.Result { x, res := a.MemHostAlloc(size, 0); m.hosts = append(m.hosts, x); return res },
		func() driver.Result { return a.MemFreeHost(host) },
		func() driver.Result { return a.MemHostRegister(address(m.buffer), size, 0) },
		func() driver.Result { return a.MemHostUnregister(host) },
		func() driver.Result { return a.MemcpyDtoD(p, q, size) },
		func() driver.Result { return a.MemcpyDtoDAsync(p, q, size, s) },
		func() driver.Result { return a.MemcpyPeerAsync(p, m.ctx[0], q, m.ctx[1], size, s) },
		func() driver.Result { return a.MemsetD8Async(p, 1, size, s) },
		func() driver.Result { return a.MemsetD32Async(p, 1, size, s) },
		func() driver.Result { return a.StreamSynchronize(s) },
		func() driver.Result { return a.StreamQuery(s) },
		func() driver.Result { return a.StreamWaitEvent(s, e) },
		func() driver.Result { return a.StreamDestroy(s) },
		func() driver.Result { return a.EventRecord(e, s) },
		func() driver.Result { return a.EventSynchronize(e) },
		func() driver.Result { return a.EventQuery(e) },
		func() driver.Result { _, res := a.EventElapsedTime(e, pick(m, m.events)); return res },
		func() driver.Result { return a.EventDestroy(e) },
		func() driver.Result { return a.Annotate(p, size, driver.State(m.n(2)), s, "monkey") },
		func() driver.Result {
			return a.LaunchKernelEx(line(32*m.n(9), s), pick(m, m.funcs), pack(p, uint32(m.n(64))))
		},
		func() driver.Result { return a.ModuleUnload(m.mods[0]) },
	}
	// Copies with the host stay in memory that is there, whatever was freed: a real address is all that a driver can check.
	if host == address(m.buffer) {
		size = min(size, int64(len(m.buffer)))
		list = append(list, func() driver.Result { return a.MemcpyHtoD(p, host, size) }, func() driver.Result { return a.MemcpyDtoH(host, p, size) },
			func() driver.Result { return a.MemcpyHtoDAsync(p, host, size, s) }, func() driver.Result { return a.MemcpyDtoHAsync(host, p, size, s) })
	}
	d := m.n(2)
	if res := a.Do(m.ctx[d], pick(m, list)); strings.HasPrefix(res.String(), "CUDA error") {
		m.t.Errorf("%v, which package driver has no name for", res)
	}
}
