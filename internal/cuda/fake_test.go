package cuda_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/cuda"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/kernels"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/ir"
)

// counting is a driver that does nothing and counts calls by name.
type counting struct {
	mu    sync.Mutex
	calls map[string]int
	next  atomic.Uint64

	pinned atomic.Int64 // bytes
}

func (c *counting) ok(name string) driver.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[name]++
	return driver.Success
}

func (c *counting) count(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[name]
}

func (c *counting) handle() uint64 { return c.next.Add(1 << 32) }

// api answers what the engine asks of a card with 8.0.
func (c *counting) api() *driver.API {
	c.calls = map[string]int{}
	facts := map[driver.Attribute]int{driver.ComputeMajor: 8, driver.MultiprocessorCount: 108, driver.MaxSharedPerBlockOptin: 163 << 10}
	return &driver.API{
		Init:                     func(uint32) driver.Result { return c.ok("init") },
		DeviceGetCount:           func() (int, driver.Result) { return 1, c.ok("count") },
		DeviceGet:                func(i int) (driver.Device, driver.Result) { return driver.Device(i), c.ok("device") },
		DeviceGetName:            func(driver.Device) (string, driver.Result) { return "nothing", c.ok("name") },
		DeviceTotalMem:           func(driver.Device) (int64, driver.Result) { return 1 << 40, c.ok("memory") },
		DeviceGetAttribute:       func(a driver.Attribute, _ driver.Device) (int, driver.Result) { return facts[a], c.ok("attribute") },
		DeviceGetPCIBusId:        func(driver.Device) (string, driver.Result) { return "0000:00:00.0", c.ok("bus") },
		DevicePrimaryCtxSetFlags: func(driver.Device, uint32) driver.Result { return c.ok("flags") },
		DevicePrimaryCtxRetain:   func(driver.Device) (driver.Context, driver.Result) { return 1, c.ok("retain") },
		DevicePrimaryCtxRelease:  func(driver.Device) driver.Result { return c.ok("release") },
		CtxSetCurrent:            func(driver.Context) driver.Result { return c.ok("set current") },
		CtxSynchronize:           func() driver.Result { return c.ok("synchronize all") },
		ModuleLoadData: func([]byte) (driver.Module, string, driver.Result) {
			return driver.Module(c.handle()), "", c.ok("load")
		},
		ModuleUnload: func(driver.Module) driver.Result { return c.ok("unload") },
		ModuleGetFunction: func(driver.Module, string) (driver.Function, driver.Result) {
			return driver.Function(c.handle()), c.ok("function")
		},
		FuncLoad:         func(driver.Function) driver.Result { return c.ok("function load") },
		FuncSetAttribute: func(driver.Function, driver.FuncAttribute, int) driver.Result { return c.ok("function attribute") },
		MemAlloc:         func(int64) (driver.Ptr, driver.Result) { return driver.Ptr(c.handle()), c.ok("alloc") },
		MemFree:          func(driver.Ptr) driver.Result { return c.ok("free") },
		MemHostAlloc: func(n int64, _ uint32) (uintptr, driver.Result) {
			c.pinned.Add(n)
			b, err := hostmem.Alloc(int(n))
			if err != nil {
				return 0, driver.OutOfMemory
			}
			return b.Addr, c.ok("host alloc")
		},
		MemFreeHost:     func(uintptr) driver.Result { return c.ok("host free") },
		MemsetD8Async:   func(driver.Ptr, uint8, int64, driver.Stream) driver.Result { return c.ok("memset") },
		MemcpyHtoDAsync: func(driver.Ptr, uintptr, int64, driver.Stream) driver.Result { return c.ok("upload") },
		MemcpyDtoHAsync: func(uintptr, driver.Ptr, int64, driver.Stream) driver.Result { return c.ok("download") },
		StreamCreateWithPriority: func(uint32, int) (driver.Stream, driver.Result) {
			return driver.Stream(c.handle()), c.ok("stream")
		},
		StreamDestroy:     func(driver.Stream) driver.Result { return c.ok("destroy") },
		StreamSynchronize: func(driver.Stream) driver.Result { return c.ok("synchronize") },
		StreamWaitEvent:   func(driver.Stream, driver.Event) driver.Result { return c.ok("wait") },
		EventCreate:       func(uint32) (driver.Event, driver.Result) { return driver.Event(c.handle()), c.ok("event") },
		EventDestroy:      func(driver.Event) driver.Result { return c.ok("event destroy") },
		EventRecord:       func(driver.Event, driver.Stream) driver.Result { return c.ok("record") },
		EventSynchronize:  func(driver.Event) driver.Result { return c.ok("event synchronize") },
		EventQuery:        func(driver.Event) driver.Result { c.ok("query"); return driver.NotReady },
		LaunchKernelEx:    func(*driver.LaunchConfig, driver.Function, []byte) driver.Result { return c.ok("launch") },
	}
}

// launcher is an elementwise op ready to be launched on a driver.
type launcher struct {
	q    device.Queue
	k    *device.Kernel
	args []device.Arg
	p    device.Params
	site callsite.Site
}

func newLauncher(t testing.TB, api *driver.API) *launcher {
	t.Helper()
	d, err := cuda.New(api, 0, "cuda:0", cuda.Options{})
	if err != nil {
		t.Fatal(err)
	}
	typ := ir.Dense(dtype.F32, 4)
	l := &launcher{}
	if l.k, err = d.Prepare(ir.New(ir.Add, ir.Attr{}, typ, typ)); err != nil {
		t.Fatal(err)
	}
	if l.q, err = d.NewQueue(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		m, err := d.Alloc(16)
		if err != nil {
			t.Fatal(err)
		}
		l.args = append(l.args, device.Arg{Mem: m})
	}
	callsite.Capture(0, &l.site)
	l.p.Site = &l.site
	t.Cleanup(func() {
		for _, err := range []error{l.q.Close(), d.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return l
}

func (l *launcher) launch() error { return l.q.Launch(l.k, l.args, &l.p) }

// TestLaunchCost demands that an eager launch is one call of the driver beside the change of context, and allocates
// nothing.
func TestLaunchCost(t *testing.T) {
	var c counting
	l := newLauncher(t, c.api())
	clear(c.calls)
	if n := testing.AllocsPerRun(100, func() {
		if err := l.launch(); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations in a launch", n)
	}
	const runs = 101 // AllocsPerRun warms up with one
	if c.calls["launch"] != runs || c.calls["set current"] != runs || len(c.calls) != 2 {
		t.Errorf("%d launches made the calls %v", runs, c.calls)
	}
}

// TestPreload demands that the first op of a dtype has the modules compiled that training in it needs, each once, and that
// attention has its gradient's and those of its queries' statistics.
func TestPreload(t *testing.T) {
	var c counting
	d, err := cuda.New(c.api(), 0, "cuda:0", cuda.Options{Preload: true})
	if err != nil {
		t.Fatal(err)
	}
	trial := c.count("load")
	typ, ids, heads := ir.Dense(dtype.F32, 4), ir.Dense(dtype.I64, 4), ir.Dense(dtype.BF16, 1, 1, 256, 64)
	for _, o := range []struct {
		op   ir.Op
		want int // modules from then on
	}{
		{ir.New(ir.Add, ir.Attr{}, ids, ids), 1},
		// Products of five layouts, elementwise, casts, random numbers, sums; loss, optimizer and counts.
		{ir.New(ir.Add, ir.Attr{}, typ, typ), 1 + 12 + 9},
		{ir.New(ir.Sum, ir.Attr{Axes: 1}, typ), 1 + 12 + 9},
		{ir.New(ir.Exp, ir.Attr{}, typ), 1 + 12 + 9 + 1},
		{ir.New(ir.Attention, ir.Attr{}, heads, heads, heads), 1 + 12 + 9 + 1 + 3},
	} {
		before := c.count("function load")
		if _, err := d.Prepare(o.op); err != nil {
			t.Fatal(err)
		}
		cuda.Loaded(d)
		if n := c.count("load") - trial; n != o.want {
			t.Errorf("%s: %d modules were compiled, want %d", o.op.Code, n, o.want)
		}
		if c.count("function load") == before {
			t.Errorf("%s: its kernel is left for the first launch to load", o.op.Code)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if n := c.calls["load"]; c.calls["unload"] != n {
		t.Errorf("%d modules were compiled, %d unloaded", n, c.calls["unload"])
	}
}

// TestPeers demands that cards reach each other's memory from their first copy on, where they can, and that a copy is made
// in any case.
func TestPeers(t *testing.T) {
	for _, o := range []struct {
		can     bool
		result  driver.Result
		enabled int
	}{{false, driver.Success, 0}, {true, driver.Success, 2}, {true, driver.PeerAlreadyEnabled, 2}, {true, driver.OutOfMemory, 2}} {
		var c counting
		api := c.api()
		api.DeviceCanAccessPeer = func(d, peer driver.Device) (bool, driver.Result) { return o.can, c.ok("can") }
		api.CtxEnablePeerAccess = func(driver.Context) driver.Result { c.ok("enable"); return o.result }
		api.MemcpyPeerAsync = func(driver.Ptr, driver.Context, driver.Ptr, driver.Context, int64, driver.Stream) driver.Result {
			return c.ok("peer")
		}
		l := newLauncher(t, api)
		other, err := cuda.New(api, 0, "cuda:1", cuda.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for n := range int64(3) {
			if ok, err := as[device.Peer](l.q).CopyFrom(l.args[0], other, l.args[1], n); !ok || err != nil {
				t.Errorf("a copy of %d bytes: %v, %v", n, ok, err)
			}
		}
		if c.calls["can"] != 2 || c.calls["enable"] != o.enabled || c.calls["peer"] != 2 {
			t.Errorf("cards that reach each other: %v, %v: calls %v", o.can, o.result, c.calls)
		}
	}
}

// TestUploadCost demands that copies from the program's memory wait for nothing until too many are under way.
func TestUploadCost(t *testing.T) {
	var c counting
	l := newLauncher(t, c.api())
	b, err := hostmem.Alloc(9 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Free()
	from := device.Arg{Mem: device.Mem{Addr: uint64(b.Addr), Size: int64(b.Size), Host: true}}
	to := device.Arg{Mem: device.Mem{Addr: 1 << 40, Size: int64(b.Size)}}
	clear(c.calls)
	for range 7 {
		if err := l.q.Copy(to, from, from.Mem.Size); err != nil {
			t.Fatal(err)
		}
	}
	if c.calls["upload"] != 21 || c.calls["event synchronize"] != 0 || as[device.Stager](l.q).Crowded() != nil {
		t.Errorf("7 copies of 9 MiB made the calls %v", c.calls)
	}
	before := c.calls["host alloc"]
	for range 20 {
		if err := l.q.Copy(to, from, from.Mem.Size); err != nil {
			t.Fatal(err)
		}
	}
	if c.calls["event synchronize"] == 0 || c.calls["synchronize"] != 0 || c.calls["host alloc"]-before > 12 || as[device.Stager](l.q).Crowded() == nil {
		t.Errorf("a driver that never ends a copy: calls %v", c.calls)
	}
}

// TestSendCost demands that what was staged takes a copy, an event and its record, of memory that serves again.
func TestSendCost(t *testing.T) {
	var c counting
	l := newLauncher(t, c.api())
	s := as[device.Stager](l.q)
	ahead, err := s.Stage(make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	clear(c.calls)
	if err := s.Send(l.args[0], ahead); err != nil {
		t.Fatal(err)
	}
	delete(c.calls, "set current")
	if want := map[string]int{"upload": 1, "event": 1, "record": 1}; !maps.Equal(c.calls, want) {
		t.Errorf("a value that was staged made the calls %v", c.calls)
	}
	clear(c.calls)
	for range 5 {
		if ahead, err = s.Stage(make([]byte, 16)); err != nil {
			t.Fatal(err)
		}
		ahead.Drop()
	}
	if c.calls["host alloc"] > 1 {
		t.Errorf("values that were dropped made the calls %v", c.calls)
	}
}

// TestSmallUploads demands that copies of a few bytes share their blocks of staging memory and what marks their end.
func TestSmallUploads(t *testing.T) {
	var c counting
	l := newLauncher(t, c.api())
	b, err := hostmem.Alloc(8)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Free()
	from := device.Arg{Mem: device.Mem{Addr: uint64(b.Addr), Size: 8, Host: true}}
	clear(c.calls)
	c.pinned.Store(0)
	const n, share = 20_480, 4096
	for range n {
		if err := l.q.Copy(l.args[0], from, 8); err != nil {
			t.Fatal(err)
		}
	}
	set := c.calls["set current"]
	delete(c.calls, "set current")
	if want := map[string]int{"upload": n, "host alloc": n / share, "event": n/share - 1, "record": n/share - 1, "query": n/share - 1}; !maps.Equal(c.calls, want) || set > n+20 {
		t.Errorf("%d copies made the calls %v", n, c.calls)
	}
	if p := c.pinned.Load(); p > n*16+n/share*64 {
		t.Errorf("%d copies under way take %d bytes of pinned memory", n, p)
	}
}

// TestFetchCost demands that a read that is waited for costs a copy, an event and the wait, and its memory serves again.
func TestFetchCost(t *testing.T) {
	var c counting
	l := newLauncher(t, c.api())
	q, b := as[device.Stager](l.q), make([]byte, 16)
	clear(c.calls)
	c.pinned.Store(0)
	const n = 100
	for range n {
		f, err := q.Fetch(l.args[0], 16)
		if err != nil {
			t.Fatal(err)
		}
		f.Wait()
		if err := f.Take(b); err != nil {
			t.Fatal(err)
		}
		if f.Take(b) == nil {
			t.Error("a value was taken twice")
		}
	}
	delete(c.calls, "set current")
	if want := map[string]int{"download": n, "record": n, "event synchronize": n, "event": 1, "host alloc": 1}; !maps.Equal(c.calls, want) {
		t.Errorf("%d reads made the calls %v", n, c.calls)
	}
	if p := c.pinned.Load(); p > 4096+64 {
		t.Errorf("%d reads in turn take %d bytes of pinned memory", n, p)
	}
}

// TestUnreadFetches: the pinned memory of reads that nobody took serves again once their copies have ended, also when the
// driver's answer to that was an error before.
func TestUnreadFetches(t *testing.T) {
	var c counting
	api := c.api()
	answer := driver.NotReady
	api.EventQuery = func(driver.Event) driver.Result { return answer }
	l := newLauncher(t, api)
	q := as[device.Stager](l.q)
	clear(c.calls)
	const n = 3
	fetches := make([]device.Fetch, n)
	fetch := func() {
		for i := range fetches {
			var err error
			if fetches[i], err = q.Fetch(l.args[0], 16); err != nil {
				t.Fatal(err)
			}
		}
	}
	fetch()
	clear(fetches)
	for deadline := time.Now().Add(time.Minute); cuda.Abandoned(l.q) < n; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d blocks were left", cuda.Abandoned(l.q), n)
		}
	}
	answer = driver.Unknown
	var e *driver.Error
	if _, err := q.Fetch(l.args[0], 16); !errors.As(err, &e) || e.Result != driver.Unknown {
		t.Errorf("a fetch while the driver has an error: %v", err)
	}
	if left := cuda.Abandoned(l.q); left != n {
		t.Errorf("%d of %d blocks are known after the error", left, n)
	}
	answer = driver.Success
	fetch()
	if left := cuda.Abandoned(l.q); left != 0 || c.count("host alloc") != n {
		t.Errorf("%d blocks are left and %d were allocated, want %d of the first reads", left, c.count("host alloc"), n)
	}
	runtime.KeepAlive(fetches)
}

// TestEvents: what an event has in common with those before it is asked once, and a driver's event serves again.
func TestEvents(t *testing.T) {
	var c counting
	api := c.api()
	api.EventQuery = func(driver.Event) driver.Result { return c.ok("query") }
	l := newLauncher(t, api)
	record := func() device.Mark {
		e, err := l.q.Record()
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	done := func(e device.Mark) {
		if ok, err := e.Done(); !ok || err != nil {
			t.Errorf("done: %v, %v", ok, err)
		}
	}
	first, second, third := record(), record(), record()
	done(second)
	done(first)
	done(third)
	if c.calls["query"] != 2 {
		t.Errorf("calls %v, want 2 queries", c.calls)
	}
	api.EventRecord = func(driver.Event, driver.Stream) driver.Result { return driver.InvalidValue }
	if _, err := l.q.Record(); err == nil {
		t.Error("a record that the driver refuses is none")
	}
	api.EventRecord = func(driver.Event, driver.Stream) driver.Result { return c.ok("record") }
	for range 3 {
		record()
	}
	if c.calls["event"] != 3 {
		t.Errorf("calls %v, want 3 events to be made", c.calls)
	}
}

// TestModuleWithoutMemory loads a module again that there was no memory for, and one that is wrong no more.
func TestModuleWithoutMemory(t *testing.T) {
	for failure, attempts := range map[driver.Result]int{driver.OutOfMemory: 3, driver.InvalidPTX: 1} {
		var c counting
		api := c.api()
		api.ModuleLoadData = func([]byte) (driver.Module, string, driver.Result) {
			if c.ok("load"); c.calls["load"] == 2 || c.calls["load"] == 3 {
				return 0, "", failure
			}
			return 1, "", driver.Success
		}
		d, err := cuda.New(api, 0, "cuda:0", cuda.Options{}) // loads once
		if err != nil {
			t.Fatal(err)
		}
		typ := ir.Dense(dtype.F32, 4)
		for range 3 {
			_, err = d.Prepare(ir.New(ir.Add, ir.Attr{}, typ, typ))
		}
		if c.calls["load"] != 1+attempts || (err == nil) != (failure == driver.OutOfMemory) {
			t.Errorf("%v: %d attempts, then %v", failure, c.calls["load"], err)
		}
	}
}

// TestTrial: a driver that compiles nothing is found out when the device is opened, and says what to do.
func TestTrial(t *testing.T) {
	var c counting
	api := c.api()
	api.ModuleLoadData = func([]byte) (driver.Module, string, driver.Result) { return 0, "", driver.CompilerNotFound }
	d, err := cuda.New(api, 0, "cuda:0", cuda.Options{})
	var e *driver.Error
	if d != nil || !errors.As(err, &e) || !strings.Contains(err.Error(), "runs no kernel") || !strings.Contains(e.Hint(), "libnvidia-ptxjitcompiler") {
		t.Errorf("%v", err)
	}
}

// TestWithoutClock: a virtual GPU that does not tell its clock is used all the same, one that does not tell its multiprocessors is not.
func TestWithoutClock(t *testing.T) {
	for secret, ok := range map[driver.Attribute]bool{driver.ClockRate: true, driver.MultiprocessorCount: false} {
		var c counting
		api := c.api()
		tell := api.DeviceGetAttribute
		api.DeviceGetAttribute = func(a driver.Attribute, d driver.Device) (int, driver.Result) {
			if a == secret {
				return 0, driver.NotSupported
			}
			return tell(a, d)
		}
		if _, err := cuda.New(api, 0, "cuda:0", cuda.Options{}); (err == nil) != ok {
			t.Errorf("without attribute %d: %v", secret, err)
		}
	}
}

// TestCompile has every module compiled once, several at a time, and the rest on first use when it is cut short.
func TestCompile(t *testing.T) {
	var c counting
	api := c.api()
	load := api.ModuleLoadData
	refused := 0
	api.ModuleLoadData = func(image []byte) (driver.Module, string, driver.Result) {
		if bytes.Contains(image, []byte(".entry softmax_warp_f32(")) {
			return 0, "no", driver.InvalidPTX
		}
		return load(image)
	}
	d, err := cuda.New(api, 0, "cuda:0", cuda.Options{Preload: true})
	if err != nil {
		t.Fatal(err)
	}
	trial := c.count("load")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.Compile(ctx, func(module string, _ error) { t.Errorf("%s is compiled after the end", module) })
	told := map[string]bool{}
	for range 2 {
		d.Compile(t.Context(), func(module string, err error) {
			if told[module] = true; err != nil {
				refused++
			}
		})
	}
	set, err := kernels.Embedded().For(cuda.Full)
	if err != nil {
		t.Fatal(err)
	}
	all := len(set.Modules())
	if n := c.count("load") - trial; n != all-1 || len(told) != all || refused != 2 {
		t.Errorf("of %d modules %d were compiled, %d told of, %d refused", all, n, len(told), refused)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestRefusedBeforeTheDriver: what cannot be is not asked for, and an error names its call.
func TestRefusedBeforeTheDriver(t *testing.T) {
	var c counting
	api := c.api()
	d, err := cuda.New(api, 0, "cuda:0", cuda.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := newLauncher(t, api)
	allocs := c.count("alloc")
	if _, err := d.Alloc(d.Info().Memory + 1); !errors.Is(err, device.ErrOutOfMemory) || c.count("alloc") != allocs {
		t.Errorf("an allocation of more than the card has: %v", err)
	}
	if _, err := d.Prepare(ir.New(ir.Sum, ir.Attr{Axes: 2}, ir.Dense(dtype.U8, 1<<41, 8))); err == nil || !strings.Contains(err.Error(), "over a grid of") {
		t.Errorf("a grid of more than 2^32 blocks: %v", err)
	}
	q := as[device.Peer](l.q)
	if ok, err := q.CopyFrom(l.args[0], d, l.args[1], 17); !ok || err == nil {
		t.Errorf("a copy of 17 bytes between 16: %v, %v", ok, err)
	}
	set := api.CtxSetCurrent
	api.CtxSetCurrent = func(driver.Context) driver.Result { return driver.InvalidContext }
	var e *driver.Error
	if err := l.launch(); !errors.As(err, &e) || e.Call != "cuCtxSetCurrent" {
		t.Errorf("got %v", err)
	}
	api.CtxSetCurrent = set
}

// BenchmarkLaunch is the host's cost of a launch without the driver's own.
func BenchmarkLaunch(b *testing.B) {
	var c counting
	l := newLauncher(b, c.api())
	b.ReportAllocs()
	for b.Loop() {
		if err := l.launch(); err != nil {
			b.Fatal(err)
		}
	}
}

// as is a power that a queue has.
func as[T any](q device.Queue) T {
	t, _ := device.As[T](q)
	return t
}
