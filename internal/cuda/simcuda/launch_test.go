package simcuda

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/gpusim"
)

// header begins modules of tests.
const header = ".version 7.4\n.target sm_80\n.address_size 64\n"

func TestModuleLoad(t *testing.T) {
	r := newRig(t, Config{})
	for _, c := range []struct {
		image, log string
		want       driver.Result
	}{
		{"", "empty", driver.InvalidValue},
		{"\x7fELF\x02", "cubin", driver.NoBinaryForGPU},
		{"garbage", "line 1:1; error", driver.InvalidPTX},
		{header + ".visible .entry k()\n{\n\tret\n}\n", "line 7:1; error", driver.InvalidPTX},
		{header + ".visible .entry k()\n{\n.reg .f32 %x;\nadd.rn.s32 %x, %x, %x;\nret;\n}\n", "line 7:1; error", driver.InvalidPTX},
		{header + ".visible .entry k()\n{\nret;\n}\n\x00", "line 8:1; error", driver.InvalidPTX},
		{".version 9.9\n.target sm_80\n.address_size 64\n", "PTX 9.9; the driver, of CUDA 12.8, knows PTX up to 8.7", driver.UnsupportedPTXVersion},
		{".version 9.9\n.target sm_990\n.address_size 64\n.new_directive\n", "PTX 9.9", driver.UnsupportedPTXVersion},
		{".version 8.0\n.target sm_90\n.address_size 64\n", "for sm_90 and later; the card is of compute capability 8.0", driver.NoBinaryForGPU},
		{".version 7.4\n.target sm_80\n.address_size 32\n", "32 bits", driver.InvalidPTX},
		{".version 7.4\n.target sm_80\n.address_size 64\n.visible .global .b8 big[100000000000];", "out of memory", driver.OutOfMemory},
	} {
		var log string
		got := r.api.Do(r.ctx[0], func() (res driver.Result) {
			_, log, res = r.api.ModuleLoadData([]byte(c.image))
			return res
		})
		if got != c.want || !strings.Contains(log, c.log) {
			t.Errorf("%.60q: %v, %q; want %v, %q", c.image, got, log, c.want, c.log)
		}
	}
	h100 := newRig(t, Config{Card: "h100-80"})
	b200 := newRig(t, Config{Card: "b200"})
	module := []byte(".version 8.0\n.target sm_90a\n.address_size 64\n")
	load := func(r *rig) func() driver.Result {
		return func() driver.Result { _, _, res := r.api.ModuleLoadData(module); return res }
	}
	h100.do(0, load(h100))
	b200.fails(driver.NoBinaryForGPU, 0, "sm_90a alone", load(b200))
}

func TestFunctions(t *testing.T) {
	r := newRig(t, Config{})
	a := r.api
	get := func(f driver.Function, x driver.FuncAttribute) (v int) {
		r.do(0, func() (res driver.Result) { v, res = a.FuncGetAttribute(x, f); return res })
		return v
	}
	bounded, add := r.kernel(0, "bounded"), r.kernel(0, "add")
	if again := r.kernel(0, "add"); again != add {
		t.Error("two handles of a function")
	}
	for x, want := range map[driver.FuncAttribute]int{driver.FuncMaxThreadsPerBlock: 64, driver.FuncSharedSize: 1024, driver.FuncConstSize: 4,
		driver.FuncLocalSize: 0, driver.FuncPTXVersion: 74, driver.FuncBinaryVersion: 80, driver.FuncMaxDynamicShared: 47 << 10, driver.FuncPreferredCarveout: -1} {
		if v := get(bounded, x); v != want {
			t.Errorf("attribute %d is %d, want %d", x, v, want)
		}
	}
	if n := get(add, driver.FuncNumRegs); n < 8 || n > 32 || get(add, driver.FuncMaxThreadsPerBlock) != 1024 {
		t.Error(n)
	}
	r.do(0, func() driver.Result { return a.FuncSetAttribute(add, driver.FuncMaxDynamicShared, 100<<10) })
	r.do(0, func() driver.Result { return a.FuncSetAttribute(add, driver.FuncPreferredCarveout, 40) })
	if get(add, driver.FuncMaxDynamicShared) != 100<<10 || get(add, driver.FuncPreferredCarveout) != 40 {
		t.Error("an attribute was not set")
	}
	// By hand, for 164 KiB of shared memory and 2048 threads on a multiprocessor, a KiB of each block being reserved.
	for _, c := range []struct {
		f      driver.Function
		block  int
		shared int64
		want   int
	}{{add, 1024, 0, 2}, {add, 1025, 0, 0}, {add, 32, 0, 32}, {add, 33, 0, 32}, {add, 96, 0, 21}, {add, 32, 40 << 10, 4}, {add, 32, 163 << 10, 1},
		{add, 32, 163<<10 + 1, 0}, {bounded, 64, 0, 32}, {bounded, 64, 10 << 10, 13}, {bounded, 65, 0, 0}} {
		var n int
		r.do(0, func() (res driver.Result) {
			n, res = a.OccupancyMaxActiveBlocksPerMultiprocessor(c.f, c.block, c.shared)
			return res
		})
		if n != c.want {
			t.Errorf("%d threads, %d bytes: %d blocks, want %d", c.block, c.shared, n, c.want)
		}
	}
}

// TestRegisters has a kernel with so many live values that blocks of 1024 threads cannot run, unless a bound on the block
// makes the compiler spill.
func TestRegisters(t *testing.T) {
	var body strings.Builder
	body.WriteString(".reg .b64 %p; .reg .f32 %f<100>;\nld.param.u64 %p, [p];\n")
	for i := range 100 {
		fmt.Fprintf(&body, "ld.global.f32 %%f%d, [%%p+%d];\n", i, 4*i)
	}
	for i := range 100 {
		fmt.Fprintf(&body, "st.global.f32 [%%p+%d], %%f%d;\n", 4*i, 99-i)
	}
	r := newRig(t, Config{})
	a := r.api
	var m driver.Module
	r.do(0, func() (res driver.Result) {
		m, _, res = a.ModuleLoadData([]byte(header + ".visible .entry free(.param .u64 p)\n{\n" + body.String() + "ret;\n}\n" +
			".visible .entry spilled(.param .u64 p) .maxntid 1024, 1, 1\n{\n" + body.String() + "ret;\n}\n"))
		return res
	})
	r.mods[0] = m
	free := r.kernel(0, "free")
	var most, regs int
	r.do(0, func() (res driver.Result) {
		most, _ = a.FuncGetAttribute(driver.FuncMaxThreadsPerBlock, free)
		regs, res = a.FuncGetAttribute(driver.FuncNumRegs, free)
		return res
	})
	// Of warps with 97 to 128 registers a thread, in units of 256, each of the four partitions of 16 Ki registers holds 4.
	if regs < 100 || regs > 112 || most != 512 {
		t.Error(regs, most)
	}
	p := r.alloc(0, 400)
	block := func(f driver.Function, n int) func() driver.Result {
		return func() driver.Result {
			return a.LaunchKernelEx(&driver.LaunchConfig{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{uint32(n), 1, 1}}, f, pack(p))
		}
	}
	r.fails(driver.OutOfResources, 0, "registers", block(free, most+1))
	r.do(0, block(free, most))
	spilled := r.kernel(0, "spilled")
	if n, _ := a.FuncGetAttribute(driver.FuncNumRegs, spilled); n > 64 {
		t.Error(n)
	}
}

func TestGlobal(t *testing.T) {
	r := newRig(t, Config{Checks: gpusim.AllChecks})
	var p driver.Ptr
	var n int64
	r.do(0, func() (res driver.Result) { p, n, res = r.api.ModuleGetGlobal(r.mods[0], "answer"); return res })
	v := make([]uint32, 1)
	r.do(0, func() driver.Result { return r.api.MemcpyDtoH(r.address(v), p, n) })
	if n != 4 || v[0] != 42 {
		t.Error(n, v)
	}
	// The constant that scale multiplies by is 2, then 3.
	var two driver.Ptr
	r.do(0, func() (res driver.Result) { two, _, res = r.api.ModuleGetGlobal(r.mods[0], "two"); return res })
	x, scale := r.upload(0, []float32{5}), r.kernel(0, "scale")
	three := []float32{3}
	r.do(0, func() driver.Result { return r.api.LaunchKernelEx(line(1, 0), scale, pack(x, uint32(1))) })
	r.do(0, func() driver.Result { return r.api.MemcpyHtoD(two, r.address(three), 4) })
	r.do(0, func() driver.Result { return r.api.LaunchKernelEx(line(1, 0), scale, pack(x, uint32(1))) })
	if got := r.download(0, x, 1); got[0] != 30 {
		t.Error(got)
	}
	var before, after int64
	r.do(0, func() (res driver.Result) { before, _, res = r.api.MemGetInfo(); return res })
	r.do(0, func() driver.Result { return r.api.ModuleUnload(r.mods[0]) })
	r.do(0, func() (res driver.Result) { after, _, res = r.api.MemGetInfo(); return res })
	if after-before != 8 {
		t.Error(before, after)
	}
	r.fails(driver.InvalidHandle, 0, "no function", func() driver.Result { return r.api.FuncLoad(scale) })
}

// TestFaults runs kernels that fail: the launch succeeds, the next call does not, nor any other until the reset.
func TestFaults(t *testing.T) {
	one := &driver.LaunchConfig{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{33, 1, 1}}
	for _, c := range []struct {
		kernel  string
		config  Config
		want    driver.Result
		explain []string
		params  func(r *rig) []byte
	}{
		{"trap", Config{}, driver.IllegalInstruction, []string{"in trap", "thread 0,0,0 of block 0,0,0"}, nil},
		{"misaligned", Config{}, driver.MisalignedAddress, []string{"memcheck: misaligned read", fmt.Sprintf("PTX line %d", 1+strings.Count(source[:strings.Index(source, "ld.global.u32 %x, [%a+2]")], "\n"))}, func(r *rig) []byte { return pack(r.alloc(0, 64)) }},
		{"misaligned", Config{}, driver.IllegalAddress, []string{"out-of-bounds read", "the address is no device's"}, func(r *rig) []byte { return pack(uint64(2)) }},
		{"endless", Config{StepLimit: 1000}, driver.LaunchTimeout, []string{"more than 1000 instructions"}, nil},
		{"racy", Config{Checks: gpusim.Racecheck}, driver.LaunchFailed, []string{"racecheck", "in racy"}, nil},
		{"scale", Config{Checks: gpusim.Initcheck}, driver.LaunchFailed, []string{"initcheck", "never written", "MemAlloc"}, func(r *rig) []byte { return pack(r.alloc(0, 4*33), uint32(33)) }},
		{"scale", Config{}, driver.IllegalAddress, []string{"thread 32,0,0", "0 bytes past the end of the allocation of 128 bytes"}, func(r *rig) []byte { return pack(r.alloc(0, 128), uint32(33)) }},
		{"scale", Config{}, driver.IllegalAddress, []string{"after free", "freed by MemFree"}, func(r *rig) []byte {
			p := r.alloc(0, 256)
			r.do(0, func() driver.Result { return r.api.MemFree(p) })
			return pack(p, uint32(33))
		}},
		{"scale", Config{}, driver.IllegalAddress, []string{"after free", "made by a.go:1, freed by b.go:2"}, func(r *rig) []byte {
			p := r.alloc(0, 4096)
			r.do(0, func() driver.Result { return r.api.Annotate(p+512, 512, driver.Fresh, 0, "a.go:1") })
			r.do(0, func() driver.Result { return r.api.Annotate(p+512, 512, driver.Free, 0, "b.go:2") })
			return pack(p+512, uint32(33))
		}},
	} {
		for _, late := range []bool{false, true} {
			t.Run(c.kernel+"/"+c.explain[0], func(t *testing.T) {
				c.config.LateEffects = late
				r := newRig(t, c.config)
				f := r.kernel(0, c.kernel)
				var params []byte
				if c.params != nil {
					params = c.params(r)
				}
				r.do(0, func() driver.Result { return r.api.LaunchKernelEx(one, f, params) })
				for range 2 {
					for _, e := range c.explain {
						r.fails(c.want, 0, e, r.api.CtxSynchronize)
						r.fails(c.want, 0, e, func() driver.Result { _, res := r.api.MemAlloc(8); return res })
					}
				}
				if !c.want.Sticky() {
					t.Errorf("%v is not sticky", c.want)
				}
				if found := r.sys.Findings(); c.config.Checks != 0 && len(found) != 1 {
					t.Error(found)
				}
				r.want(driver.Success, r.api.DevicePrimaryCtxReset(0))
				ctx, res := r.api.DevicePrimaryCtxRetain(0)
				r.want(driver.Success, res)
				r.want(driver.Success, r.api.Do(ctx, r.api.CtxSynchronize))
			})
		}
	}
}

// TestCollect keeps findings instead of failing the context.
func TestCollect(t *testing.T) {
	r := newRig(t, Config{Checks: gpusim.AllChecks, Collect: true})
	racy := r.kernel(0, "racy")
	r.do(0, func() driver.Result { return r.api.LaunchKernelEx(line(64, 0), racy, nil) })
	p := r.alloc(0, 64)
	r.download(0, p, 16)
	r.do(0, r.api.CtxSynchronize)
	found := r.sys.Findings()
	if len(found) != 2 || found[0].Check != gpusim.Racecheck || found[1].Check != gpusim.Initcheck || found[1].Kernel != "copy to the host" {
		t.Errorf("%+v", found)
	}
	if again := r.sys.Findings(); len(again) != 0 {
		t.Error(again)
	}
}

// TestUnwritten downloads what nobody wrote, under initcheck.
func TestUnwritten(t *testing.T) {
	r := newRig(t, Config{Checks: gpusim.Initcheck})
	p := r.alloc(0, 64)
	v := make([]byte, 64)
	r.do(0, func() driver.Result { return r.api.MemsetD8Async(p, 7, 63, 0) })
	r.do(0, func() driver.Result { return r.api.MemcpyDtoH(r.address(v), p, 63) })
	r.fails(driver.LaunchFailed, 0, "in a copy to the host; allocation of 64 bytes", func() driver.Result { return r.api.MemcpyDtoH(r.address(v), p, 64) })
}

func TestOutput(t *testing.T) {
	var out bytes.Buffer
	var names []string
	r := newRig(t, Config{Output: &out, Counters: true, OnLaunch: func(kernel string, rep *gpusim.Report) {
		names = append(names, kernel)
		if kernel == "scale" && rep.Counters.GlobalRequests != 2*4 { // a load and a store of each of four warps
			t.Errorf("%+v", rep.Counters)
		}
	}})
	r.do(0, func() (res driver.Result) {
		r.mods[0], _, res = r.api.ModuleLoadData([]byte(strings.Replace(source, ".visible .entry racy()", `.global .align 1 .b8 text[7] = {104, 105, 32, 37, 100, 10, 0};
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.visible .entry hello()
{
	.local .align 8 .b8 frame[8];
	.reg .b64 %f, %a; .reg .b32 %r;
	mov.u64 %a, frame; st.local.u32 [frame], 7; cvta.local.u64 %a, %a;
	mov.u64 %f, text; cvta.global.u64 %f, %f;
	{
	.param .b64 p0; .param .b64 p1; .param .b32 r0;
	st.param.b64 [p0], %f; st.param.b64 [p1], %a;
	call.uni (r0), vprintf, (p0, p1);
	ld.param.b32 %r, [r0];
	}
	ret;
}
.visible .entry racy()`, 1)))
		return res
	})
	hello, scale := r.kernel(0, "hello"), r.kernel(0, "scale")
	p := r.upload(0, make([]float32, 128))
	r.do(0, func() driver.Result {
		return r.api.LaunchKernelEx(&driver.LaunchConfig{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{1, 1, 1}}, hello, nil)
	})
	r.do(0, func() driver.Result { return r.api.LaunchKernelEx(line(128, 0), scale, pack(p, uint32(128))) })
	r.do(0, r.api.CtxSynchronize)
	if out.String() != "hi 7\nhi 7\n" || !slices.Equal(names, []string{"hello", "scale"}) {
		t.Errorf("%q %v", out.String(), names)
	}
}

// TestProcessors gets the same bits, times and findings on any number of processors.
func TestProcessors(t *testing.T) {
	run := func(procs int) (v []float32, ms float32, found []gpusim.Finding) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		r := newRig(t, Config{Checks: gpusim.AllChecks, Collect: true, Seed: 3, LateEffects: true, Schedule: gpusim.Independent})
		const n = 5000
		s, start, end := r.stream(0, driver.StreamNonBlocking), r.event(0, 0), r.event(0, 0)
		x := r.upload(0, floats(n, func(i int) float32 { return float32(i) }))
		scale, racy := r.kernel(0, "scale"), r.kernel(0, "racy")
		r.do(0, r.api.CtxSynchronize)
		r.do(0, func() driver.Result { return r.api.EventRecord(start, s) })
		for range 3 {
			r.do(0, func() driver.Result { return r.api.LaunchKernelEx(line(n, s), scale, pack(x, uint32(n))) })
			r.do(0, func() driver.Result { return r.api.LaunchKernelEx(line(256, s), racy, nil) })
		}
		r.do(0, func() driver.Result { return r.api.EventRecord(end, s) })
		r.do(0, func() driver.Result { return r.api.EventSynchronize(end) })
		r.do(0, func() (res driver.Result) { ms, res = r.api.EventElapsedTime(start, end); return res })
		return r.download(0, x, n), ms, r.sys.Findings()
	}
	v1, ms1, found1 := run(1)
	v4, ms4, found4 := run(4)
	if !slices.Equal(v1, v4) || ms1 != ms4 || ms1 <= 0 || len(found1) == 0 || !slices.Equal(found1, found4) {
		t.Error(ms1, ms4, found1, found4)
	}
	if v1[100] != 800 {
		t.Error(v1[100])
	}
}

func BenchmarkLaunch(b *testing.B) {
	for _, late := range []bool{false, true} {
		name := "eager"
		if late {
			name = "late"
		}
		b.Run(name, func(b *testing.B) {
			r := newRig(b, Config{LateEffects: late, Cores: 1})
			x, f := r.upload(0, make([]float32, 32)), r.kernel(0, "scale")
			cfg := &driver.LaunchConfig{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}}
			params := pack(x, uint32(32))
			call := func() driver.Result { return r.api.LaunchKernelEx(cfg, f, params) }
			b.ReportAllocs()
			for b.Loop() {
				r.want(driver.Success, r.api.Do(r.ctx[0], call))
			}
			r.do(0, r.api.CtxSynchronize)
		})
	}
}
