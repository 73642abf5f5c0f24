package libcuda_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/libcuda"
	"github.com/warpline-ml/warpline/internal/cuda/shimtest"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// onEach runs a test on the simulated GPU, on it through the C library, and on a card where there is one.
func onEach(t *testing.T, c simcuda.Config, f func(t *testing.T, api *driver.API)) {
	simulated := func(t *testing.T) *driver.API {
		sim, err := simcuda.New(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if f := sim.Findings(); len(f) != 0 {
				t.Errorf("findings: %v", f)
			}
		})
		return sim.API()
	}
	t.Run("simulated", func(t *testing.T) {
		api := simulated(t)
		must(t, "cuInit", api.Init(0))
		f(t, api)
	})
	t.Run("library", func(t *testing.T) {
		api, _ := open(t, shimtest.Install(t, simulated(t)))
		f(t, api)
	})
	t.Run("card", func(t *testing.T) {
		built(t)
		t.Setenv(libcuda.PathEnv, "")
		api, _, err := libcuda.Open()
		if err != nil {
			t.Skip(err)
		}
		f(t, api)
	})
}

// sumOf is z = x + y of n numbers.
const sumOf = `.version 7.4
.target sm_80
.address_size 64
.visible .entry sum(.param .u64 x, .param .u64 y, .param .u64 z, .param .u32 n)
{
	.reg .pred %q;
	.reg .b32 %r<5>;
	.reg .b64 %x, %y, %z, %o;
	ld.param.u64 %x, [x];
	ld.param.u64 %y, [y];
	ld.param.u64 %z, [z];
	ld.param.u32 %r4, [n];
	mov.u32 %r1, %tid.x;
	setp.ge.u32 %q, %r1, %r4;
	@%q ret;
	mul.wide.u32 %o, %r1, 4;
	add.s64 %x, %x, %o;
	add.s64 %y, %y, %o;
	add.s64 %z, %z, %o;
	ld.global.u32 %r2, [%x];
	ld.global.u32 %r3, [%y];
	add.s32 %r2, %r2, %r3;
	st.global.u32 [%z], %r2;
	ret;
}
`

// cells is how many numbers there are in a buffer.
const cells = 32

// bench is a context on the test's own thread, with a kernel, memory, streams and events.
type bench struct {
	t        *testing.T
	api      *driver.API
	ctx      driver.Context
	sum      driver.Function
	mem      driver.Ptr
	host     uintptr
	s        [4]driver.Stream // the last is ordered with the legacy stream
	e        [4]driver.Event
	events   []driver.Event // made on the way
	captured []driver.Graph
}

func newBench(t *testing.T, api *driver.API) *bench {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	d, r := api.DeviceGet(0)
	must(t, "cuDeviceGet", r)
	b := &bench{t: t, api: api}
	b.ctx, r = api.DevicePrimaryCtxRetain(d)
	must(t, "cuDevicePrimaryCtxRetain", r)
	must(t, "cuCtxSetCurrent", api.CtxSetCurrent(b.ctx))
	m, log, r := api.ModuleLoadData([]byte(sumOf))
	if r != driver.Success {
		t.Fatalf("%v: %s", r, log)
	}
	b.sum, r = api.ModuleGetFunction(m, "sum")
	must(t, "cuModuleGetFunction", r)
	must(t, "cuFuncLoad", api.FuncLoad(b.sum))
	b.mem, r = api.MemAlloc(4096)
	must(t, "cuMemAlloc", r)
	must(t, "cuMemsetD8Async", api.MemsetD8Async(b.mem, 0, 4096, 0))
	b.host, r = api.MemHostAlloc(4096, 0)
	must(t, "cuMemHostAlloc", r)
	for i := range b.s {
		flags := uint32(driver.StreamNonBlocking)
		if i == len(b.s)-1 {
			flags = 0
		}
		b.s[i], r = api.StreamCreateWithPriority(flags, 0)
		must(t, "cuStreamCreateWithPriority", r)
		b.e[i], r = api.EventCreate(0)
		must(t, "cuEventCreate", r)
	}
	must(t, "cuCtxSynchronize", api.CtxSynchronize())
	t.Cleanup(func() {
		for _, s := range b.s {
			api.StreamEndCapture(s)
		}
		must(t, "cuCtxSynchronize", api.CtxSynchronize())
		must(t, "cuModuleUnload", api.ModuleUnload(m))
		must(t, "cuMemFree", api.MemFree(b.mem))
		must(t, "cuMemFreeHost", api.MemFreeHost(b.host))
		for i := range b.s {
			must(t, "cuStreamDestroy", api.StreamDestroy(b.s[i]))
			must(t, "cuEventDestroy", api.EventDestroy(b.e[i]))
		}
		for _, e := range b.events {
			must(t, "cuEventDestroy", api.EventDestroy(e))
		}
		for _, g := range b.captured {
			must(t, "cuGraphDestroy", api.GraphDestroy(g))
		}
		must(t, "cuDevicePrimaryCtxRelease", api.DevicePrimaryCtxRelease(d))
	})
	return b
}

func (b *bench) event() driver.Event {
	e, r := b.api.EventCreate(driver.EventDisableTiming)
	must(b.t, "cuEventCreate", r)
	b.events = append(b.events, e)
	return e
}

// params are those of sum over three buffers of the memory.
func (b *bench) params(x, y, z int) []byte {
	var p []byte
	for _, i := range []int{x, y, z} {
		p = binary.LittleEndian.AppendUint64(p, uint64(b.buffer(i)))
	}
	return binary.LittleEndian.AppendUint32(p, cells)
}

func (b *bench) buffer(i int) driver.Ptr       { return b.mem + driver.Ptr(4*cells*i) }
func (b *bench) hostBuffer(i int) uintptr      { return b.host + uintptr(4*cells*i) }
func (b *bench) numbers(host uintptr) []uint32 { return hostmem.Slice[uint32](host, cells) }

func (b *bench) launch(s driver.Stream) driver.Result {
	c := &driver.LaunchConfig{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{cells, 1, 1}, Stream: s}
	return b.api.LaunchKernelEx(c, b.sum, b.params(0, 0, 1))
}

// elsewhere makes a call on another thread.
func (b *bench) elsewhere(f func() driver.Result) driver.Result {
	done := make(chan driver.Result)
	go func() { done <- b.api.Do(b.ctx, f) }()
	return <-done
}

// want fails the test if a call gave another result.
func (b *bench) want(what string, want, got driver.Result) {
	b.t.Helper()
	if got != want {
		why := ""
		if b.api.Explain != nil {
			why = b.api.Explain()
		}
		b.t.Errorf("%s: %v, want %v: %s", what, got, want, why)
	}
}

// end ends a capture in a stream.
func (b *bench) end(s driver.Stream) driver.Result {
	g, r := b.api.StreamEndCapture(s)
	if (g != 0) != (r == driver.Success) {
		b.t.Errorf("the capture ends with graph %#x, %v", uintptr(g), r)
	}
	if g != 0 {
		b.captured = append(b.captured, g)
	}
	return r
}

// fork lets stream 1 take part in the capture of stream 0.
func (b *bench) fork() {
	b.want("record", driver.Success, b.api.EventRecord(b.e[0], b.s[0]))
	b.want("wait", driver.Success, b.api.StreamWaitEvent(b.s[1], b.e[0]))
}

var captureModes = []driver.CaptureMode{driver.CaptureGlobal, driver.CaptureThreadLocal, driver.CaptureRelaxed}

// captureRules are calls during a capture in stream 0 and their results, by NVIDIA's documents, and where these are silent by what its
// driver is known to answer. After the call the capture is as good as before, or invalidated.
var captureRules = []struct {
	name        string
	modes       []driver.CaptureMode // of the capture; nil for all
	prep        func(b *bench)
	call        func(b *bench) driver.Result
	want        driver.Result
	invalidates bool
}{
	{name: "launch", call: func(b *bench) driver.Result { return b.launch(b.s[0]) }},
	{name: "launch in a stream that does not capture", call: func(b *bench) driver.Result { return b.launch(b.s[1]) }},
	{name: "legacy stream beside one without order to it", call: func(b *bench) driver.Result { return b.launch(0) }},
	{name: "fill", call: func(b *bench) driver.Result { return b.api.MemsetD8Async(b.mem, 1, 64, b.s[0]) }},
	{name: "copy to the device", call: func(b *bench) driver.Result { return b.api.MemcpyHtoDAsync(b.mem, b.host, 64, b.s[0]) }},
	{name: "copy to the host", call: func(b *bench) driver.Result { return b.api.MemcpyDtoHAsync(b.host, b.mem, 64, b.s[0]) }},
	{name: "copy on the device", call: func(b *bench) driver.Result { return b.api.MemcpyDtoDAsync(b.mem, b.mem+64, 64, b.s[0]) }},
	{name: "record", call: func(b *bench) driver.Result { return b.api.EventRecord(b.e[0], b.s[0]) }},
	{name: "record elsewhere", call: func(b *bench) driver.Result { return b.api.EventRecord(b.e[0], b.s[1]) }},
	{name: "a stream and an event are made", call: func(b *bench) driver.Result {
		s, r := b.api.StreamCreateWithPriority(driver.StreamNonBlocking, 0)
		b.want("destroy", driver.Success, b.api.StreamDestroy(s))
		b.event()
		return r
	}},

	{name: "begin again", call: func(b *bench) driver.Result { return b.api.StreamBeginCapture(b.s[0], driver.CaptureRelaxed) }, want: driver.IllegalState},
	{name: "begin in a stream that joined", prep: (*bench).forkAndJoin,
		call: func(b *bench) driver.Result { return b.api.StreamBeginCapture(b.s[1], driver.CaptureRelaxed) }, want: driver.IllegalState},
	{name: "begin in the legacy stream", call: func(b *bench) driver.Result { return b.api.StreamBeginCapture(0, driver.CaptureRelaxed) },
		want: driver.StreamCaptureUnsupported},
	{name: "begin in a mode that there is not", call: func(b *bench) driver.Result { return b.api.StreamBeginCapture(b.s[1], 3) }, want: driver.InvalidValue},
	{name: "end elsewhere", call: func(b *bench) driver.Result { return b.end(b.s[1]) }, want: driver.IllegalState},
	{name: "end in a stream that joined", prep: (*bench).forkAndJoin, call: func(b *bench) driver.Result { return b.end(b.s[1]) },
		want: driver.StreamCaptureUnmatched, invalidates: true},
	{name: "end on another thread", modes: captureModes[:2],
		call: func(b *bench) driver.Result { return b.elsewhere(func() driver.Result { return b.end(b.s[0]) }) },
		want: driver.StreamCaptureWrongThread, invalidates: true},

	{name: "wait for the stream", call: func(b *bench) driver.Result { return b.api.StreamSynchronize(b.s[0]) },
		want: driver.StreamCaptureUnsupported, invalidates: true},
	{name: "wait for a stream that joined", prep: (*bench).forkAndJoin, call: func(b *bench) driver.Result { return b.api.StreamSynchronize(b.s[1]) },
		want: driver.StreamCaptureUnsupported, invalidates: true},
	{name: "ask about the stream", call: func(b *bench) driver.Result { return b.api.StreamQuery(b.s[0]) }, want: driver.StreamCaptureUnsupported, invalidates: true},
	{name: "wait for the context", call: func(b *bench) driver.Result { return b.api.CtxSynchronize() }, want: driver.StreamCaptureUnsupported, invalidates: true},
	{name: "wait for an event of it", prep: (*bench).forkAndJoin, call: func(b *bench) driver.Result { return b.api.EventSynchronize(b.e[0]) },
		want: driver.CapturedEvent, invalidates: true},
	{name: "ask about an event of it", prep: (*bench).forkAndJoin, call: func(b *bench) driver.Result { return b.api.EventQuery(b.e[0]) },
		want: driver.CapturedEvent, invalidates: true},
	{name: "time between events of it", prep: (*bench).forkAndJoin, call: func(b *bench) driver.Result {
		_, r := b.api.EventElapsedTime(b.e[0], b.e[0])
		return r
	}, want: driver.CapturedEvent, invalidates: true},
	{name: "wait for an event outside", prep: func(b *bench) { b.want("record", driver.Success, b.api.EventRecord(b.e[2], b.s[2])) },
		call: func(b *bench) driver.Result { return b.api.StreamWaitEvent(b.s[0], b.e[2]) }, want: driver.StreamCaptureIsolation, invalidates: true},
	{name: "wait for an event of another capture", prep: func(b *bench) {
		b.want("begin", driver.Success, b.api.StreamBeginCapture(b.s[2], driver.CaptureRelaxed))
		b.want("launch", driver.Success, b.launch(b.s[2]))
		b.want("record", driver.Success, b.api.EventRecord(b.e[2], b.s[2]))
	}, call: func(b *bench) driver.Result { return b.api.StreamWaitEvent(b.s[0], b.e[2]) }, want: driver.StreamCaptureMerge, invalidates: true},
	{name: "the legacy stream waits for an event of it", prep: (*bench).forkAndJoin,
		call: func(b *bench) driver.Result { return b.api.StreamWaitEvent(0, b.e[0]) }, want: driver.StreamCaptureImplicit, invalidates: true},

	{name: "memory", modes: captureModes[:2], call: (*bench).alloc, want: driver.StreamCaptureUnsupported, invalidates: true},
	{name: "memory, relaxed", modes: captureModes[2:], call: (*bench).alloc},
	{name: "memory, by a relaxed thread", call: func(b *bench) driver.Result {
		return b.elsewhere(func() driver.Result { return b.inMode(driver.CaptureRelaxed, b.alloc) })
	}},
	{name: "memory, by another thread", modes: captureModes[:1], call: func(b *bench) driver.Result { return b.elsewhere(b.alloc) },
		want: driver.StreamCaptureUnsupported, invalidates: true},
	{name: "memory, by another thread, that is not looked at", modes: captureModes[1:], call: func(b *bench) driver.Result { return b.elsewhere(b.alloc) }},
	{name: "memory, by another thread that looks at itself", call: func(b *bench) driver.Result {
		return b.elsewhere(func() driver.Result { return b.inMode(driver.CaptureThreadLocal, b.alloc) })
	}},
	{name: "wait for another stream", modes: captureModes[:2], call: func(b *bench) driver.Result { return b.api.StreamSynchronize(b.s[2]) },
		want: driver.StreamCaptureUnsupported, invalidates: true},
	{name: "wait for another stream, relaxed", modes: captureModes[2:], call: func(b *bench) driver.Result { return b.api.StreamSynchronize(b.s[2]) }},
	{name: "another thread waits for another stream", modes: captureModes[:1],
		call: func(b *bench) driver.Result {
			return b.elsewhere(func() driver.Result { return b.api.StreamSynchronize(b.s[2]) })
		},
		want: driver.StreamCaptureUnsupported, invalidates: true},
	{name: "another thread waits for another stream, unseen", modes: captureModes[1:],
		call: func(b *bench) driver.Result {
			return b.elsewhere(func() driver.Result { return b.api.StreamSynchronize(b.s[2]) })
		}},
	{name: "another thread asks about an event", modes: captureModes[:1],
		call: func(b *bench) driver.Result {
			return b.elsewhere(func() driver.Result { return b.api.EventQuery(b.e[3]) })
		},
		want: driver.StreamCaptureUnsupported, invalidates: true},
}

func (b *bench) forkAndJoin() {
	b.fork()
	b.want("record", driver.Success, b.api.EventRecord(b.e[1], b.s[1]))
	b.want("wait", driver.Success, b.api.StreamWaitEvent(b.s[0], b.e[1]))
}

// alloc takes memory, which the end of the context frees.
func (b *bench) alloc() driver.Result {
	_, r := b.api.MemAlloc(512)
	return r
}

// inMode makes a call while the thread is of a mode.
func (b *bench) inMode(m driver.CaptureMode, f func() driver.Result) driver.Result {
	old, r := b.api.ThreadExchangeStreamCaptureMode(m)
	b.want("exchange", driver.Success, r)
	defer func() {
		now, r := b.api.ThreadExchangeStreamCaptureMode(old)
		if r != driver.Success || now != m {
			b.t.Errorf("the mode was %d, %v, want %d", now, r, m)
		}
	}()
	return f()
}

func (b *bench) status(s driver.Stream, want driver.CaptureStatus) {
	b.t.Helper()
	if got, r := b.api.StreamIsCapturing(s); got != want || r != driver.Success {
		b.t.Errorf("stream %#x: status %d, %v, want %d", uintptr(s), got, r, want)
	}
	info, r := b.api.StreamGetCaptureInfo(s)
	if info.Status != want || r != driver.Success || (info.ID != 0) != (want == driver.CaptureActive) || (info.Graph != 0) != (want == driver.CaptureActive) {
		b.t.Errorf("stream %#x: %+v, %v, want status %d", uintptr(s), info, r, want)
	}
}

// TestCaptureRules makes each call in captures of each mode, then sees whether the capture still serves, and whether the stream
// does when it has ended.
func TestCaptureRules(t *testing.T) {
	onEach(t, simcuda.Config{LateEffects: true}, func(t *testing.T, api *driver.API) {
		for _, rule := range captureRules {
			modes := rule.modes
			if modes == nil {
				modes = captureModes
			}
			for _, mode := range modes {
				t.Run(fmt.Sprintf("%s, mode %d", strings.ReplaceAll(rule.name, ",", ""), mode), func(t *testing.T) {
					b := newBench(t, api)
					b.want("begin", driver.Success, api.StreamBeginCapture(b.s[0], mode))
					if rule.prep != nil {
						rule.prep(b)
					}
					b.status(b.s[0], driver.CaptureActive)
					b.want(rule.name, rule.want, rule.call(b))
					if rule.invalidates {
						b.status(b.s[0], driver.CaptureInvalidated)
						b.want("launch in a invalidated capture", driver.StreamCaptureInvalidated, b.launch(b.s[0]))
						b.want("end of a invalidated capture", driver.StreamCaptureInvalidated, b.end(b.s[0]))
					} else {
						b.status(b.s[0], driver.CaptureActive)
						b.want("launch", driver.Success, b.launch(b.s[0]))
						b.want("end", driver.Success, b.end(b.s[0]))
					}
					b.status(b.s[0], driver.CaptureNone)
					b.want("launch after the capture", driver.Success, b.launch(b.s[0]))
					b.want("wait after the capture", driver.Success, api.StreamSynchronize(b.s[1]))
				})
			}
		}
	})
}

// TestCaptureEnds: what a capture was given before it ends, and how it ends then.
func TestCaptureEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		prep func(b *bench)
		end  driver.Result
	}{
		{"nothing", func(*bench) {}, driver.Success},
		{"a fork without work", func(b *bench) { b.fork() }, driver.Success},
		{"a fork that captured", func(b *bench) {
			b.fork()
			b.want("launch", driver.Success, b.launch(b.s[1]))
		}, driver.StreamCaptureUnjoined},
		{"a fork that captured after the join", func(b *bench) {
			b.forkAndJoin()
			b.want("launch", driver.Success, b.launch(b.s[1]))
		}, driver.StreamCaptureUnjoined},
		{"a fork of a fork, joined through it", func(b *bench) {
			b.fork()
			b.want("record", driver.Success, b.api.EventRecord(b.e[1], b.s[1]))
			b.want("wait", driver.Success, b.api.StreamWaitEvent(b.s[2], b.e[1]))
			b.want("launch", driver.Success, b.launch(b.s[2]))
			b.want("record", driver.Success, b.api.EventRecord(b.e[2], b.s[2]))
			b.want("wait", driver.Success, b.api.StreamWaitEvent(b.s[1], b.e[2]))
			b.want("launch", driver.Success, b.launch(b.s[1]))
			b.want("record", driver.Success, b.api.EventRecord(b.e[1], b.s[1]))
			b.want("wait", driver.Success, b.api.StreamWaitEvent(b.s[0], b.e[1]))
		}, driver.Success},
	} {
		onEach(t, simcuda.Config{}, func(t *testing.T, api *driver.API) {
			b := newBench(t, api)
			b.want("begin", driver.Success, api.StreamBeginCapture(b.s[0], driver.CaptureGlobal))
			b.want("launch", driver.Success, b.launch(b.s[0]))
			c.prep(b)
			b.want(c.name, c.end, b.end(b.s[0]))
			for _, s := range b.s {
				b.status(s, driver.CaptureNone)
				b.want("launch", driver.Success, b.launch(s))
			}
		})
	}
}

// TestLegacy: while a stream captures that is ordered with it, the legacy stream is of no use, and its use invalidates the capture; to ask
// whether it captures does not.
func TestLegacy(t *testing.T) {
	calls := map[string]func(b *bench) driver.Result{
		"launch":         func(b *bench) driver.Result { return b.launch(0) },
		"fill":           func(b *bench) driver.Result { return b.api.MemsetD8Async(b.mem, 0, 64, 0) },
		"copy":           func(b *bench) driver.Result { return b.api.MemcpyHtoD(b.mem, b.host, 64) },
		"copy back":      func(b *bench) driver.Result { return b.api.MemcpyDtoH(b.host, b.mem, 64) },
		"record":         func(b *bench) driver.Result { return b.api.EventRecord(b.e[1], 0) },
		"wait":           func(b *bench) driver.Result { return b.api.StreamWaitEvent(0, b.e[2]) },
		"wait for it":    func(b *bench) driver.Result { return b.api.StreamSynchronize(0) },
		"ask about it":   func(b *bench) driver.Result { return b.api.StreamQuery(driver.StreamLegacy) },
		"launch a graph": nil, // below: it is made first
	}
	onEach(t, simcuda.Config{}, func(t *testing.T, api *driver.API) {
		for name, call := range calls {
			t.Run(name, func(t *testing.T) {
				b := newBench(t, api)
				if call == nil {
					g, _ := api.GraphCreate()
					b.captured = append(b.captured, g)
					x, _ := api.GraphInstantiateWithFlags(g, 0)
					defer api.GraphExecDestroy(x)
					call = func(b *bench) driver.Result { return api.GraphLaunch(x, 0) }
				}
				b.want("begin", driver.Success, api.StreamBeginCapture(b.s[3], driver.CaptureRelaxed))
				_, r := api.StreamIsCapturing(0)
				b.want("is it capturing", driver.StreamCaptureImplicit, r)
				_, r = api.StreamGetCaptureInfo(0)
				b.want("what does it capture", driver.StreamCaptureImplicit, r)
				b.status(b.s[3], driver.CaptureActive)
				b.want(name, driver.StreamCaptureImplicit, call(b))
				b.want("end", driver.StreamCaptureInvalidated, b.end(b.s[3]))
				b.want(name+" after the capture", driver.Success, waited(b, call))
			})
		}
	})
}

// waited makes a call until it does not ask for patience.
func waited(b *bench, call func(b *bench) driver.Result) driver.Result {
	for {
		if r := call(b); r != driver.NotReady {
			return r
		}
	}
}

// TestInvalidatedEvents: an event of a invalidated capture helps nobody, nor does one of a capture that has ended.
func TestInvalidatedEvents(t *testing.T) {
	onEach(t, simcuda.Config{}, func(t *testing.T, api *driver.API) {
		b := newBench(t, api)
		b.want("begin", driver.Success, api.StreamBeginCapture(b.s[0], driver.CaptureRelaxed))
		b.fork()
		b.want("wait for the stream", driver.StreamCaptureUnsupported, api.StreamSynchronize(b.s[0]))
		b.want("wait of an idle stream", driver.InvalidValue, api.StreamWaitEvent(b.s[2], b.e[0]))
		b.want("wait of a stream that joined", driver.StreamCaptureInvalidated, api.StreamWaitEvent(b.s[1], b.e[0]))
		b.want("record", driver.StreamCaptureInvalidated, api.EventRecord(b.e[1], b.s[1]))
		b.status(b.s[1], driver.CaptureInvalidated)
		b.status(b.s[2], driver.CaptureNone)
		b.want("end", driver.StreamCaptureInvalidated, b.end(b.s[0]))
		b.want("query", driver.CapturedEvent, api.EventQuery(b.e[0]))
		b.want("record anew", driver.Success, api.EventRecord(b.e[0], b.s[0]))
		b.want("synchronize", driver.Success, api.EventSynchronize(b.e[0]))
	})
}

// TestModes: a thread begins in mode global, and keeps what it is given.
func TestModes(t *testing.T) {
	onEach(t, simcuda.Config{}, func(t *testing.T, api *driver.API) {
		b := newBench(t, api)
		if old, r := api.ThreadExchangeStreamCaptureMode(driver.CaptureThreadLocal); old != driver.CaptureGlobal || r != driver.Success {
			t.Errorf("a thread begins in mode %d, %v", old, r)
		}
		for _, m := range []driver.CaptureMode{-1, 3, 1 << 30} {
			_, r := api.ThreadExchangeStreamCaptureMode(m)
			b.want("exchange", driver.InvalidValue, r)
		}
		if old, r := api.ThreadExchangeStreamCaptureMode(driver.CaptureGlobal); old != driver.CaptureThreadLocal || r != driver.Success {
			t.Errorf("the thread was in mode %d, %v", old, r)
		}
	})
}
