package simcuda

import (
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
)

// TestLeaks: what is not given back is told of the program's places, when contexts end and at the program's end; what is given back,
// by whatever call, is not.
func TestLeaks(t *testing.T) {
	where := ""
	r := newRig(t, Config{Devices: 2, Caller: func() string { return where }})
	at := func(place string) { where = place }
	at("a.cu:1")
	kept := r.alloc(0, 4096)
	gone := r.alloc(0, 100)
	r.do(0, func() driver.Result { return r.api.MemFree(gone) })
	at("a.cu:2")
	for range 3 {
		r.alloc(1, 1000)
	}
	short := r.pinned(64)
	r.do(0, func() driver.Result { return r.api.MemFreeHost(short) })
	host := r.pinned(512)
	at("")
	st := r.stream(0, 0)
	r.do(0, func() (res driver.Result) {
		p, res := r.api.MemAllocAsync(256, st)
		if res != driver.Success {
			return res
		}
		return r.api.MemFreeAsync(p, st)
	})
	handle := r.create(0, 2<<20)

	leaks := r.sys.Leaks()
	if len(leaks) != 6 {
		t.Fatalf("%+v", leaks)
	}
	if l := leaks[0]; l != (Leak{0, DeviceMemory, uint64(kept), 4096, "MemAlloc at a.cu:1", 1}) {
		t.Errorf("%+v", l)
	}
	if l := leaks[4]; l != (Leak{0, PinnedMemory, uint64(host), 512, "MemHostAlloc at a.cu:2", 7}) {
		t.Errorf("%+v", l)
	}
	if l := leaks[5]; l.Kind != HandleMemory || l.Addr != uint64(handle) || l.Bytes != 2<<20 || l.By != "MemCreate" {
		t.Errorf("%+v", l)
	}
	text := LeakText(leaks)
	for _, want := range []string{"leak: 2.01 MiB never freed, in 6 allocations\n", "2.93 KiB of device memory on device 1 in 3, made by MemAlloc at a.cu:2: the first is 1000 bytes at "} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}

	r.do(0, func() driver.Result { return r.api.MemFree(kept) })
	r.do(0, func() driver.Result { return r.api.MemFreeHost(host) })
	r.do(0, func() driver.Result { return r.api.MemRelease(handle) })
	if res := r.api.DevicePrimaryCtxReset(1); res != driver.Success {
		t.Fatal(res)
	}
	if leaks = r.sys.Leaks(); len(leaks) != 3 || leaks[0].Device != 1 {
		t.Errorf("at the end of a context: %+v", leaks)
	}
	if leaks = r.sys.Leaks(); len(leaks) != 0 || LeakText(leaks) != "" {
		t.Errorf("told twice: %+v", leaks)
	}
}

// TestNoLeaksAfterAFault: nothing can be freed any more.
func TestNoLeaksAfterAFault(t *testing.T) {
	r := newRig(t, Config{})
	r.alloc(0, 4096)
	f := r.kernel(0, "trap")
	r.fails(driver.IllegalInstruction, 0, "", func() driver.Result {
		if res := r.api.LaunchKernelEx(&driver.LaunchConfig{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}, f, nil); res != driver.Success {
			return res
		}
		return r.api.CtxSynchronize()
	})
	if leaks := r.sys.Leaks(); len(leaks) != 0 {
		t.Errorf("%+v", leaks)
	}
}

// TestMisuses: what is freed twice, freed and not taken, or copied to and from after it was freed is told with who made and freed it.
func TestMisuses(t *testing.T) {
	where := "a.cu:1"
	r := newRig(t, Config{Caller: func() string { return where }})
	p, live := r.alloc(0, 512), r.alloc(0, 512)
	host := r.pinned(512)
	st := r.stream(0, 0)
	where = "b.cu:2"
	r.do(0, func() driver.Result { return r.api.MemFree(p) })
	where = "c.cu:3"
	for _, c := range []struct {
		kind MisuseKind
		addr driver.Ptr
		want string
		call func() driver.Result
	}{
		{DoubleFree, p, "double free: MemFree at c.cu:3 of ", func() driver.Result { return r.api.MemFree(p) }},
		{DoubleFree, p, "double free: MemFreeAsync at c.cu:3 of ", func() driver.Result { return r.api.MemFreeAsync(p, st) }},
		{BadFree, live + 256, "free of what is no allocation: MemFree at c.cu:3 of ", func() driver.Result { return r.api.MemFree(live + 256) }},
		{BadFree, p + 256, "free of what is no allocation", func() driver.Result { return r.api.MemFree(p + 256) }},
		{BadFree, 8, "no device's", func() driver.Result { return r.api.MemFree(8) }},
		{UseAfterFree, p + 8, "use after free: a copy or a fill at c.cu:3 of ", func() driver.Result { return r.api.MemcpyHtoD(p+8, host, 8) }},
		{UseAfterFree, p, "use after free", func() driver.Result { return r.api.MemcpyDtoHAsync(host, p, 8, st) }},
		{UseAfterFree, p, "use after free", func() driver.Result { return r.api.MemsetD8Async(p, 0, 8, st) }},
	} {
		r.fails(driver.InvalidValue, 0, "", c.call)
		list := r.sys.Misuses()
		if len(list) != 1 || list[0].Kind != c.kind || list[0].Addr != uint64(c.addr) || !strings.Contains(list[0].String(), c.want) {
			t.Errorf("%s: %v", c.want, list)
			continue
		}
		if c.addr == p && !strings.Contains(list[0].Text, "allocation of 512 bytes at") || c.addr == p && !strings.Contains(list[0].Text, "made by MemAlloc at a.cu:1, freed by MemFree at b.cu:2") {
			t.Errorf("%s: %v", c.want, list[0])
		}
	}
	r.fails(driver.InvalidValue, 0, "", func() driver.Result { return r.api.MemcpyHtoD(live+500, host, 100) })
	if list := r.sys.Misuses(); len(list) != 0 {
		t.Errorf("a copy past the end is %v", list)
	}

	late := newRig(t, Config{LateEffects: true})
	st = late.stream(0, 0)
	q := late.alloc(0, 64)
	late.do(0, func() driver.Result { return late.api.MemFreeAsync(q, st) })
	late.fails(driver.InvalidValue, 0, "", func() driver.Result { return late.api.MemFree(q) })
	if list := late.sys.Misuses(); len(list) != 1 || list[0].Kind != DoubleFree {
		t.Errorf("a free behind one of a stream is %v", list)
	}
}
