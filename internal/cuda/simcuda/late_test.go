package simcuda

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

func pinnedFloats(r *rig, n int) (uintptr, []float32) {
	h := r.pinned(int64(4 * n))
	return h, hostmem.Slice[float32](h, n)
}

// TestReuseTooEarly changes pinned memory that an asynchronous copy has yet to read: late effects show it, and an event
// that is waited for puts it right.
func TestReuseTooEarly(t *testing.T) {
	for _, wait := range []bool{false, true} {
		r := newRig(t, Config{LateEffects: true})
		h, v := pinnedFloats(r, 4)
		p, s, ev := r.alloc(0, 16), r.stream(0, driver.StreamNonBlocking), r.event(0, 0)
		copy(v, []float32{1, 2, 3, 4})
		r.do(0, func() driver.Result { return r.api.MemcpyHtoDAsync(p, h, 16, s) })
		r.do(0, func() driver.Result { return r.api.EventRecord(ev, s) })
		if wait {
			r.do(0, func() driver.Result { return r.api.EventSynchronize(ev) })
		}
		clear(v)
		r.do(0, func() driver.Result { return r.api.StreamSynchronize(s) })
		want := []float32{0, 0, 0, 0}
		if wait {
			want = []float32{1, 2, 3, 4}
		}
		if got := r.download(0, p, 4); !slices.Equal(got, want) {
			t.Errorf("wait %v: %v, want %v", wait, got, want)
		}
	}
}

// TestPageable reuses pageable memory at once, which the driver allows. What it receives is there after a wait and, under
// late effects, not before: NVIDIA's "might be synchronous" is nothing to rely on.
func TestPageable(t *testing.T) {
	r := newRig(t, Config{LateEffects: true})
	p, s := r.alloc(0, 16), r.stream(0, driver.StreamNonBlocking)
	v, got := []float32{1, 2, 3, 4}, make([]float32, 4)
	r.do(0, func() driver.Result { return r.api.MemcpyHtoDAsync(p, r.address(v), 16, s) })
	v[0] = 9
	receive := func() {
		r.do(0, func() driver.Result { return r.api.MemcpyDtoHAsync(r.address(got), p, 16, s) })
		r.do(0, func() driver.Result { return r.api.StreamSynchronize(s) })
	}
	r.do(0, func() driver.Result { return r.api.MemcpyDtoHAsync(r.address(got), p, 16, s) })
	if !slices.Equal(got, make([]float32, 4)) {
		t.Errorf("%v before a wait", got)
	}
	r.do(0, func() driver.Result { return r.api.StreamSynchronize(s) })
	if !slices.Equal(got, []float32{1, 2, 3, 4}) {
		t.Error(got)
	}
	// A synchronous copy from pageable memory returns before the bytes are where another stream would see them; one from
	// pinned memory does not.
	h, pinned := pinnedFloats(r, 4)
	r.do(0, func() driver.Result { return r.api.MemcpyHtoD(p, r.address(v), 16) })
	receive()
	if got[0] != 1 {
		t.Error(got)
	}
	pinned[0] = 8
	r.do(0, func() driver.Result { return r.api.MemcpyHtoD(p, h, 16) })
	receive()
	if got[0] != 8 {
		t.Error(got)
	}
	// Effects at the call are those of a driver that waits.
	r = newRig(t, Config{})
	p, s = r.alloc(0, 16), r.stream(0, driver.StreamNonBlocking)
	r.do(0, func() driver.Result { return r.api.MemcpyHtoDAsync(p, r.address(v), 16, s) })
	r.do(0, func() driver.Result { return r.api.MemcpyDtoHAsync(r.address(got), p, 16, s) })
	if !slices.Equal(got, v) {
		t.Errorf("%v, want %v", got, v)
	}
}

// TestDefaultStream orders the legacy stream with blocking streams and not with others.
func TestDefaultStream(t *testing.T) {
	for _, flags := range []uint32{0, driver.StreamNonBlocking} {
		r := newRig(t, Config{LateEffects: true})
		s, p, v := r.stream(0, flags), r.alloc(0, 4), make([]uint32, 1)
		read := func() uint32 {
			r.do(0, func() driver.Result { return r.api.MemcpyDtoH(r.address(v), p, 4) })
			return v[0]
		}
		set := func(to uint32, s driver.Stream) {
			r.do(0, func() driver.Result { return r.api.MemsetD32Async(p, to, 1, s) })
		}
		set(1, driver.StreamLegacy)
		if read() != 1 {
			t.Error("a copy overtakes its stream")
		}
		set(2, s)
		if got := read(); got == 2 != (flags == 0) {
			t.Errorf("flags %d: the default stream sees %d", flags, got)
		}
		set(3, 0)
		r.do(0, func() driver.Result { return r.api.MemcpyDtoHAsync(r.address(v), p, 4, s) })
		r.do(0, func() driver.Result { return r.api.StreamSynchronize(s) })
		if v[0] == 3 != (flags == 0) {
			t.Errorf("flags %d: the stream sees %d", flags, v[0])
		}
		set(4, driver.StreamPerThread)
		if read() != 4 {
			t.Error("the default stream overtakes that of the thread")
		}
		r.do(0, r.api.CtxSynchronize)
	}
}

// TestQueries stay at NOT_READY until something waits, and end anyhow for a host that polls.
func TestQueries(t *testing.T) {
	r := newRig(t, Config{LateEffects: true})
	s, ev, p := r.stream(0, 0), r.event(0, 0), r.alloc(0, 4)
	query := func(f func() driver.Result) driver.Result { return r.api.Do(r.ctx[0], f) }
	event := func() driver.Result { return r.api.EventQuery(ev) }
	stream := func() driver.Result { return r.api.StreamQuery(s) }
	legacy := func() driver.Result { return r.api.StreamQuery(0) }
	for _, f := range []func() driver.Result{event, stream, legacy} {
		r.want(driver.Success, query(f))
	}
	r.do(0, func() driver.Result { return r.api.EventSynchronize(ev) })
	work := func() {
		r.do(0, func() driver.Result { return r.api.MemsetD32Async(p, 5, 1, s) })
		r.do(0, func() driver.Result { return r.api.EventRecord(ev, s) })
	}
	work()
	for _, f := range []func() driver.Result{event, stream, legacy, event} {
		r.want(driver.NotReady, query(f))
	}
	r.want(driver.NotReady, query(func() driver.Result { _, res := r.api.EventElapsedTime(ev, ev); return res }))
	r.do(0, func() driver.Result { return r.api.EventSynchronize(ev) })
	for _, f := range []func() driver.Result{event, stream, legacy} {
		r.want(driver.Success, query(f))
	}
	for _, f := range []func() driver.Result{event, stream, legacy} {
		work()
		n := 0
		for query(f) == driver.NotReady {
			n++
		}
		if n == 0 || n > 16 {
			t.Error(n)
		}
	}
}

// TestStreamOrdered uses memory outside of its life in a stream.
func TestStreamOrdered(t *testing.T) {
	for _, c := range []struct {
		name    string
		late    bool
		explain string
		run     func(r *rig, p driver.Ptr, a, b driver.Stream)
	}{
		{"kernel after free", false, "freed by MemFreeAsync", func(r *rig, p driver.Ptr, a, _ driver.Stream) {
			r.do(0, func() driver.Result { return r.api.MemFreeAsync(p, a) })
			scale := r.kernel(0, "scale")
			r.do(0, func() driver.Result { return r.api.LaunchKernelEx(line(32, a), scale, pack(p, uint32(32))) })
		}},
		{"fill after free", true, "a fill, when it came to its turn", func(r *rig, p driver.Ptr, a, _ driver.Stream) {
			r.do(0, func() driver.Result { return r.api.MemFreeAsync(p, a) })
			r.do(0, func() driver.Result { return r.api.MemsetD8Async(p, 0, 8, a) })
		}},
		{"copy beyond a part", true, "allocation of 64 bytes", func(r *rig, p driver.Ptr, a, _ driver.Stream) {
			r.do(0, func() driver.Result { return r.api.Annotate(p, 64, driver.Fresh, a, "x.go:1") })
			q := r.alloc(0, 128)
			r.do(0, func() driver.Result { return r.api.MemcpyDtoDAsync(q, p+63, 65, a) })
		}},
		{"use before alloc", true, "not reached", func(r *rig, _ driver.Ptr, a, b driver.Stream) {
			var q driver.Ptr
			r.do(0, func() (res driver.Result) { q, res = r.api.MemAllocAsync(128, a); return res })
			scale := r.kernel(0, "scale")
			r.do(0, func() driver.Result { return r.api.LaunchKernelEx(line(32, b), scale, pack(q, uint32(32))) })
			r.fails(driver.IllegalAddress, 0, "not reached", func() driver.Result { return r.api.StreamSynchronize(b) })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, late := range []bool{c.late, true} {
				r := newRig(t, Config{LateEffects: late})
				a, b := r.stream(0, driver.StreamNonBlocking), r.stream(0, driver.StreamNonBlocking)
				var p driver.Ptr
				r.do(0, func() (res driver.Result) { p, res = r.api.MemAllocAsync(128, a); return res })
				r.do(0, func() driver.Result { return r.api.MemsetD8Async(p, 0, 128, a) })
				c.run(r, p, a, b)
				r.fails(driver.IllegalAddress, 0, c.explain, r.api.CtxSynchronize)
			}
		})
	}
	r := newRig(t, Config{Card: "gtx-1650", LateEffects: true}) // of 4 GiB
	s := r.stream(0, 0)
	var p driver.Ptr
	r.do(0, func() (res driver.Result) { p, res = r.api.MemAllocAsync(3<<30, s); return res })
	r.do(0, func() driver.Result { return r.api.MemFreeAsync(p, s) })
	r.fails(driver.InvalidValue, 0, "not the start", func() driver.Result { return r.api.MemFreeAsync(p, s) })
	r.alloc(0, 3<<30) // waits for the free
	if free, total := info(r); total-free != 3<<30+8 {
		t.Error(free, total)
	}
}

func info(r *rig) (free, total int64) {
	r.do(0, func() (res driver.Result) { free, total, res = r.api.MemGetInfo(); return res })
	return free, total
}

// TestUnordered is a pair of streams without an event between them: some seed shows it, none does with one.
func TestUnordered(t *testing.T) {
	for _, wait := range []bool{false, true} {
		wrong := 0
		for seed := range uint64(16) {
			r := newRig(t, Config{LateEffects: true, Seed: seed})
			a, b, ev := r.stream(0, driver.StreamNonBlocking), r.stream(0, driver.StreamNonBlocking), r.event(0, 0)
			x := r.upload(0, []float32{1})
			scale := r.kernel(0, "scale")
			r.do(0, r.api.CtxSynchronize)
			r.do(0, func() driver.Result { return r.api.LaunchKernelEx(line(1, a), scale, pack(x, uint32(1))) })
			r.do(0, func() driver.Result { return r.api.EventRecord(ev, a) })
			if wait {
				r.do(0, func() driver.Result { return r.api.StreamWaitEvent(b, ev) })
			}
			r.do(0, func() driver.Result { return r.api.MemsetD32Async(x, 0x40400000, 1, b) }) // 3
			r.do(0, r.api.CtxSynchronize)
			if r.download(0, x, 1)[0] != 3 {
				wrong++
			}
		}
		if wait && wrong > 0 || !wait && (wrong == 0 || wrong == 16) {
			t.Errorf("with an event: %v, wrong under %d of 16 seeds", wait, wrong)
		}
	}
}

// TestDestroyed streams and events leave their work behind.
func TestDestroyed(t *testing.T) {
	r := newRig(t, Config{LateEffects: true})
	s, ev, p := r.stream(0, driver.StreamNonBlocking), r.event(0, 0), r.alloc(0, 4)
	r.do(0, func() driver.Result { return r.api.MemsetD32Async(p, 0x3f800000, 1, s) })
	r.do(0, func() driver.Result { return r.api.EventRecord(ev, s) })
	r.do(0, func() driver.Result { return r.api.StreamWaitEvent(0, ev) })
	r.do(0, func() driver.Result { return r.api.StreamDestroy(s) })
	r.do(0, func() driver.Result { return r.api.EventDestroy(ev) })
	if got := r.download(0, p, 1); got[0] != 1 {
		t.Error(got)
	}
}

// TestPeers copies between devices and runs a kernel on one over memory of another.
func TestPeers(t *testing.T) {
	for _, late := range []bool{false, true} {
		r := newRig(t, Config{Devices: 3, LateEffects: late, Checks: gpusim.AllChecks})
		x := r.upload(0, []float32{1, 2, 3})
		y, z := r.alloc(1, 12), r.upload(2, []float32{0, 0, 0})
		s0, s1, ev := r.stream(0, driver.StreamNonBlocking), r.stream(1, driver.StreamNonBlocking), r.event(0, 0)
		scale, add := r.kernel(0, "scale"), r.kernel(1, "add")
		r.do(0, r.api.CtxSynchronize)
		r.do(0, func() driver.Result { return r.api.LaunchKernelEx(line(3, s0), scale, pack(x, uint32(3))) })
		r.do(0, func() driver.Result { return r.api.EventRecord(ev, s0) })
		r.do(1, func() driver.Result { return r.api.StreamWaitEvent(s1, ev) }) // of another device
		r.do(1, func() driver.Result { return r.api.MemcpyPeerAsync(y, r.ctx[1], x, r.ctx[0], 12, s1) })
		r.do(1, func() driver.Result { return r.api.CtxEnablePeerAccess(r.ctx[2]) })
		r.want(driver.PeerAlreadyEnabled, r.api.Do(r.ctx[1], func() driver.Result { return r.api.CtxEnablePeerAccess(r.ctx[2]) }))
		r.do(2, r.api.CtxSynchronize)
		r.do(1, func() driver.Result { return r.api.LaunchKernelEx(line(3, s1), add, pack(y, y, z, uint32(3))) })
		r.do(0, func() driver.Result { return r.api.StreamSynchronize(s1) }) // from another context
		if got := r.download(2, z, 3); !slices.Equal(got, []float32{4, 8, 12}) {
			t.Error(got)
		}
		// Memory is freed from any context. Access without leave is a fault of the device whose kernel it was.
		r.do(0, func() driver.Result { return r.api.MemFree(y) })
		r.do(0, func() driver.Result { return r.api.LaunchKernelEx(line(3, s0), scale, pack(z, uint32(3))) })
		r.fails(driver.IllegalAddress, 0, "another device", func() driver.Result { return r.api.StreamSynchronize(s0) })
		r.do(2, r.api.CtxSynchronize)
		r.want(driver.Success, r.api.DevicePrimaryCtxReset(2))
		r.fails(driver.InvalidContext, 1, "no context", func() driver.Result { return r.api.CtxEnablePeerAccess(r.ctx[2]) })
	}
}

// TestNoPeers copies between cards that do not reach each other's memory.
func TestNoPeers(t *testing.T) {
	r := newRig(t, Config{Devices: 2, Card: "rtx-4090"})
	r.fails(driver.PeerAccessUnsupported, 0, "GeForce RTX 4090", func() driver.Result { return r.api.CtxEnablePeerAccess(r.ctx[1]) })
	x, y := r.upload(0, []float32{7}), r.alloc(1, 4)
	r.do(0, func() driver.Result { return r.api.MemcpyPeerAsync(y, r.ctx[1], x, r.ctx[0], 4, 0) })
	if got := r.download(1, y, 1); got[0] != 7 {
		t.Error(got)
	}
}

// TestElapsed is the virtual clock: 25 GB/s to the host make 1 MB take 40 µs, plus 2 µs, and it begins 2.2 µs behind the event
// before it, which its call takes. What follows in the stream begins when it ends. Seeds and late effects change nothing.
func TestElapsed(t *testing.T) {
	for seed := range uint64(4) {
		for _, late := range []bool{false, true} {
			r := newRig(t, Config{Seed: seed, LateEffects: late})
			s, e0, e1, e2 := r.stream(0, 0), r.event(0, 0), r.event(0, driver.EventBlockingSync), r.event(0, 0)
			p, h := r.alloc(0, 1<<20), r.pinned(1<<20)
			record := func(e driver.Event) { r.do(0, func() driver.Result { return r.api.EventRecord(e, s) }) }
			record(e0)
			r.do(0, func() driver.Result { return r.api.MemcpyHtoDAsync(p, h, 1000_000, s) })
			record(e1)
			r.do(0, func() driver.Result { return r.api.MemcpyDtoDAsync(p, p+4096, 8, s) })
			record(e2)
			r.do(0, func() driver.Result { return r.api.StreamSynchronize(s) })
			elapsed := func(a, b driver.Event) (ms float32) {
				r.do(0, func() (res driver.Result) { ms, res = r.api.EventElapsedTime(a, b); return res })
				return ms
			}
			if a, b, c := elapsed(e0, e1), elapsed(e1, e2), elapsed(e1, e0); a != 0.0442 || b != 0.002 || c != -a {
				t.Error(a, b, c)
			}
		}
	}
}

// TestAllocationFails by order.
func TestAllocationFails(t *testing.T) {
	r := newRig(t, Config{})
	r.sys.FailAllocation(2)
	r.alloc(0, 8)
	r.fails(driver.OutOfMemory, 0, "told to fail", func() driver.Result { _, res := r.api.MemAlloc(8); return res })
	r.alloc(0, 8)
}

// TestManyPending gives a stream more than it holds: some of it happens.
func TestManyPending(t *testing.T) {
	r := newRig(t, Config{LateEffects: true})
	p, s := r.alloc(0, 4), r.stream(0, 0)
	for range maxPending + 10 {
		r.do(0, func() driver.Result { return r.api.MemsetD32Async(p, 1, 1, s) })
	}
	if st := r.sys.streams[s]; len(st.pending) != maxPending {
		t.Error(len(st.pending))
	}
	r.do(0, r.api.CtxSynchronize)
}

// TestGoroutines drives several devices at once. Each goroutine finds its own context on whatever thread it is.
func TestGoroutines(t *testing.T) {
	const n = 4
	r := newRig(t, Config{Devices: n, LateEffects: true, Seed: 7})
	scale := make([]driver.Function, n)
	x := make([]driver.Ptr, n)
	for d := range n {
		scale[d], x[d] = r.kernel(d, "scale"), r.upload(d, []float32{float32(d + 1)})
	}
	var wg sync.WaitGroup
	errs := make([]string, n)
	for d := range n {
		wg.Go(func() {
			v := make([]float32, 1)
			for range 20 {
				for _, f := range []func() driver.Result{
					func() driver.Result { return r.api.LaunchKernelEx(line(1, 0), scale[d], pack(x[d], uint32(1))) },
					func() driver.Result {
						runtime.Gosched()
						if c, _ := r.api.CtxGetCurrent(); c != r.ctx[d] {
							errs[d] = fmt.Sprintf("context %#x", uintptr(c))
						}
						return driver.Success
					},
				} {
					if res := r.api.Do(r.ctx[d], f); res != driver.Success {
						errs[d] = res.String()
					}
				}
			}
			r.api.Do(r.ctx[d], func() driver.Result { return r.api.MemcpyDtoH(r.address(v), x[d], 4) })
			if v[0] != float32(d+1)*(1<<20) {
				errs[d] = fmt.Sprint(v)
			}
		})
	}
	wg.Wait()
	if s := strings.Join(errs, ""); s != "" {
		t.Error(errs)
	}
}

// TestCallsThatWait free what pending work still uses, or give up what it was told of: that work happens first.
func TestCallsThatWait(t *testing.T) {
	one := []float32{1}
	for name, free := range map[string]func(r *rig, p driver.Ptr, h uintptr) driver.Result{
		"MemFree":           func(r *rig, p driver.Ptr, _ uintptr) driver.Result { return r.api.MemFree(p) },
		"MemFreeHost":       func(r *rig, _ driver.Ptr, h uintptr) driver.Result { return r.api.MemFreeHost(h) },
		"MemHostUnregister": func(r *rig, _ driver.Ptr, _ uintptr) driver.Result { return r.api.MemHostUnregister(r.address(one)) },
		"ModuleUnload":      func(r *rig, _ driver.Ptr, _ uintptr) driver.Result { return r.api.ModuleUnload(r.mods[0]) },
		"reset":             func(r *rig, _ driver.Ptr, _ uintptr) driver.Result { return r.api.DevicePrimaryCtxReset(0) },
	} {
		t.Run(name, func(t *testing.T) {
			ran := 0
			r := newRig(t, Config{LateEffects: true, OnLaunch: func(string, *gpusim.Report) { ran++ }})
			h, v := pinnedFloats(r, 1)
			v[0] = 5
			p, scratch, s := r.alloc(0, 4), r.alloc(0, 4), r.stream(0, driver.StreamNonBlocking)
			f := r.kernel(0, "scale")
			r.do(0, func() driver.Result { return r.api.MemHostRegister(r.address(one), 4, 0) })
			r.do(0, func() driver.Result { return r.api.MemcpyHtoDAsync(p, h, 4, s) })
			params := pack(p, uint32(1))
			r.do(0, func() driver.Result { return r.api.LaunchKernelEx(line(1, s), f, params) })
			clear(params) // the call has read it
			r.do(0, func() driver.Result { return r.api.MemcpyHtoDAsync(scratch, r.address(one), 4, s) })
			r.do(0, func() driver.Result { return r.api.MemcpyDtoHAsync(r.address(one), p, 4, s) })
			if ran != 0 {
				t.Fatal("the kernel ran too early")
			}
			r.do(0, func() driver.Result { return free(r, p, h) })
			if ran != 1 || one[0] != 10 {
				t.Error(ran, one)
			}
			one[0] = 1
		})
	}
}
