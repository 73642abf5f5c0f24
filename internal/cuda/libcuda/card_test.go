package libcuda_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/libcuda"
	"github.com/warpline-ml/warpline/internal/cuda/shimtest"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// addOne increments each of n numbers.
const addOne = `.version 7.4
.target sm_80
.address_size 64
.visible .entry addOne(.param .u64 p, .param .u32 n)
{
	.reg .pred %q;
	.reg .b32 %r<5>;
	.reg .b64 %d<4>;
	ld.param.u64 %d1, [p];
	ld.param.u32 %r4, [n];
	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %ntid.x;
	mov.u32 %r3, %tid.x;
	mad.lo.s32 %r1, %r1, %r2, %r3;
	setp.ge.u32 %q, %r1, %r4;
	@%q ret;
	cvta.to.global.u64 %d1, %d1;
	mul.wide.u32 %d2, %r1, 4;
	add.s64 %d3, %d1, %d2;
	ld.global.u32 %r2, [%d3];
	add.s32 %r2, %r2, 1;
	st.global.u32 [%d3], %r2;
	ret;
}
`

func must(t *testing.T, call string, r driver.Result) {
	t.Helper()
	if err := driver.Check(call, r); err != nil {
		t.Fatal(err)
	}
}

// The simulated GPU computes behind the library, and answers as the driver does when something is wrong.
func TestSimulated(t *testing.T) {
	for _, text := range []string{"", "check=all,seed=3,schedule=independent,late"} {
		c, err := simcuda.ParseConfig(text)
		if err != nil {
			t.Fatal(err)
		}
		sim, err := simcuda.New(c)
		if err != nil {
			t.Fatal(err)
		}
		api, _ := open(t, shimtest.Install(t, sim.API()))
		onFirstCard(t, api, func() {
			runAddOne(t, api)
			if r := api.MemFree(12345); r != driver.InvalidValue {
				t.Errorf("freeing nothing: %v", r)
			}
			_, log, r := api.ModuleLoadData([]byte(strings.Replace(addOne, "add.s32", "add.s99", 1)))
			if r != driver.InvalidPTX || !strings.Contains(log, "line 21") {
				t.Errorf("bad PTX: %v, %q", r, log)
			}
		})
		if f := sim.Findings(); len(f) != 0 {
			t.Errorf("findings: %v", f)
		}
	}
}

// A real driver with a card computes.
func TestRealDriver(t *testing.T) {
	built(t)
	t.Setenv(libcuda.PathEnv, "")
	api, src, err := libcuda.Open()
	if err != nil {
		t.Skipf("%v\nprobes: %v", err, src.Probes)
	}
	t.Logf("%s, CUDA %d, missing %v", src.Path, src.Version, src.Missing)
	onFirstCard(t, api, func() { runAddOne(t, api) })
}

// onFirstCard runs f with the first card's context current.
func onFirstCard(t *testing.T, api *driver.API, f func()) {
	t.Helper()
	d, r := api.DeviceGet(0)
	must(t, "cuDeviceGet", r)
	ctx, r := api.DevicePrimaryCtxRetain(d)
	must(t, "cuDevicePrimaryCtxRetain", r)
	defer api.DevicePrimaryCtxRelease(d)
	must(t, "the work", api.Do(ctx, func() driver.Result {
		f()
		return driver.Success
	}))
}

// runAddOne copies numbers to the card, runs the kernel in the current context, and copies them back.
func runAddOne(t *testing.T, api *driver.API) {
	const n = 1000
	m, log, r := api.ModuleLoadData([]byte(addOne))
	if r != driver.Success {
		t.Fatalf("%v: %s", r, log)
	}
	defer api.ModuleUnload(m)
	f, r := api.ModuleGetFunction(m, "addOne")
	must(t, "cuModuleGetFunction", r)
	must(t, "cuFuncLoad", api.FuncLoad(f))
	p, r := api.MemAlloc(4 * n)
	must(t, "cuMemAlloc", r)
	defer api.MemFree(p)
	host, r := api.MemHostAlloc(4*n, 0)
	must(t, "cuMemHostAlloc", r)
	defer api.MemFreeHost(host)
	s, r := api.StreamCreateWithPriority(driver.StreamNonBlocking, 0)
	must(t, "cuStreamCreateWithPriority", r)
	defer api.StreamDestroy(s)

	numbers := hostmem.Slice[uint32](host, n)
	for i := range numbers {
		numbers[i] = uint32(i)
	}
	params := binary.LittleEndian.AppendUint64(nil, uint64(p))
	params = binary.LittleEndian.AppendUint32(params, n)
	must(t, "cuMemcpyHtoDAsync", api.MemcpyHtoDAsync(p, host, 4*n, s))
	c := &driver.LaunchConfig{Grid: [3]uint32{(n + 127) / 128, 1, 1}, Block: [3]uint32{128, 1, 1}, Stream: s}
	must(t, "cuLaunchKernelEx", api.LaunchKernelEx(c, f, params))
	must(t, "cuMemcpyDtoHAsync", api.MemcpyDtoHAsync(host, p, 4*n, s))
	must(t, "cuStreamSynchronize", api.StreamSynchronize(s))
	for i, v := range numbers {
		if v != uint32(i)+1 {
			t.Fatalf("[%d] = %d", i, v)
		}
	}
}
