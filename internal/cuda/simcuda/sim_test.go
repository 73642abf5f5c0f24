package simcuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// source has kernels over n float32: add is c = a + b, scale is x *= 2 in place, and others that go wrong.
const source = `.version 7.4
.target sm_70
.address_size 64
.visible .global .align 4 .u32 answer = 42;
.const .align 4 .f32 two = 2.0;
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
	.reg .b32 %i, %n, %t; .reg .b64 %a, %b, %c, %o; .reg .f32 %x, %y; .reg .pred %p;
	ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; ld.param.u64 %c, [c]; ld.param.u32 %n, [n];
	mov.u32 %i, %ctaid.x; mov.u32 %t, %ntid.x; mul.lo.s32 %i, %i, %t; mov.u32 %t, %tid.x; add.s32 %i, %i, %t;
	setp.ge.u32 %p, %i, %n;
	@%p bra done;
	mul.wide.u32 %o, %i, 4;
	add.s64 %a, %a, %o; add.s64 %b, %b, %o; add.s64 %c, %c, %o;
	ld.global.f32 %x, [%a]; ld.global.f32 %y, [%b];
	add.rn.f32 %x, %x, %y;
	st.global.f32 [%c], %x;
done:
	ret;
}
.visible .entry scale(.param .u64 a, .param .u32 n)
{
	.reg .b32 %i, %n, %t; .reg .b64 %a, %o; .reg .f32 %x, %y; .reg .pred %p;
	ld.param.u64 %a, [a]; ld.param.u32 %n, [n];
	mov.u32 %i, %ctaid.x; mov.u32 %t, %ntid.x; mul.lo.s32 %i, %i, %t; mov.u32 %t, %tid.x; add.s32 %i, %i, %t;
	setp.ge.u32 %p, %i, %n;
	@%p bra done;
	mul.wide.u32 %o, %i, 4;
	add.s64 %a, %a, %o;
	ld.global.f32 %x, [%a]; ld.const.f32 %y, [two];
	mul.rn.f32 %x, %x, %y;
	st.global.f32 [%a], %x;
done:
	ret;
}
.visible .entry bounded(.param .u32 n) .maxntid 64, 1, 1
{
	.shared .align 4 .b8 buf[1024];
	ret;
}
.visible .entry exact() .reqntid 32, 2, 1
{
	ret;
}
.visible .entry trap()
{
	trap;
	ret;
}
.visible .entry misaligned(.param .u64 a)
{
	.reg .b64 %a; .reg .b32 %x;
	ld.param.u64 %a, [a];
	ld.global.u32 %x, [%a+2];
	ret;
}
.visible .entry endless()
{
again:
	bra again;
}
.visible .entry racy()
{
	.reg .b32 %x, %y;
	.shared .align 4 .b8 buf[4];
	mov.u32 %x, %tid.x; mov.u32 %y, buf;
	st.shared.u32 [%y], %x;
	ret;
}
`

// rig is a machine with the module above on every device. Each call is made in the context of a device.
type rig struct {
	t    testing.TB
	sys  *System
	api  *driver.API
	ctx  []driver.Context
	mods []driver.Module
	lent sync.Map // slices by their addresses
}

func newRig(t testing.TB, c Config) *rig {
	t.Helper()
	before := hostmem.Mapped()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, sys: s, api: s.API()}
	r.want(driver.Success, r.api.Init(0))
	for d := range max(c.Devices, 1) {
		ctx, res := r.api.DevicePrimaryCtxRetain(driver.Device(d))
		r.want(driver.Success, res)
		r.ctx = append(r.ctx, ctx)
		r.mods = append(r.mods, 0)
		r.do(d, func() driver.Result {
			m, log, res := r.api.ModuleLoadData([]byte(source))
			if log != "" {
				t.Error(log)
			}
			r.mods[d] = m
			return res
		})
	}
	t.Cleanup(func() {
		for d := range r.ctx {
			r.api.DevicePrimaryCtxReset(driver.Device(d))
		}
		if now := hostmem.Mapped(); now != before {
			t.Errorf("host memory is still mapped: %+v, before %+v", now, before)
		}
	})
	return r
}

// want compares results.
func (r *rig) want(want, got driver.Result) {
	r.t.Helper()
	if got != want {
		r.t.Fatalf("got %v, want %v: %s", got, want, r.sys.lastWhy())
	}
}

func (s *System) lastWhy() string {
	var list []string
	for _, d := range s.devices {
		if d.ctx != nil {
			list = append(list, d.ctx.why, d.ctx.refused)
		}
	}
	return strings.Join(append(list, s.why), " | ")
}

// do makes calls that must succeed.
func (r *rig) do(device int, f func() driver.Result) {
	r.t.Helper()
	r.want(driver.Success, r.api.Do(r.ctx[device], f))
}

func (r *rig) fails(want driver.Result, device int, explain string, f func() driver.Result) {
	r.t.Helper()
	why := ""
	got := r.api.Do(r.ctx[device], func() driver.Result {
		res := f()
		why = r.api.Explain()
		return res
	})
	r.want(want, got)
	if !strings.Contains(why, explain) {
		r.t.Errorf("%v is explained by %q, want %q in it", got, why, explain)
	}
}

func (r *rig) alloc(device int, bytes int64) (p driver.Ptr) {
	r.t.Helper()
	r.do(device, func() (res driver.Result) { p, res = r.api.MemAlloc(bytes); return res })
	return p
}

func (r *rig) pinned(bytes int64) (h uintptr) {
	r.t.Helper()
	r.do(0, func() (res driver.Result) { h, res = r.api.MemHostAlloc(bytes, driver.HostPortable); return res })
	return h
}

func (r *rig) stream(device int, flags uint32) (s driver.Stream) {
	r.t.Helper()
	r.do(device, func() (res driver.Result) { s, res = r.api.StreamCreateWithPriority(flags, 0); return res })
	return s
}

func (r *rig) event(device int, flags uint32) (e driver.Event) {
	r.t.Helper()
	r.do(device, func() (res driver.Result) { e, res = r.api.EventCreate(flags); return res })
	return e
}

func (r *rig) kernel(device int, name string) (f driver.Function) {
	r.t.Helper()
	r.do(device, func() (res driver.Result) { f, res = r.api.ModuleGetFunction(r.mods[device], name); return res })
	return f
}

// upload makes memory with these values.
func (r *rig) upload(device int, v []float32) driver.Ptr {
	r.t.Helper()
	p := r.alloc(device, int64(4*len(v)))
	r.do(device, func() driver.Result { return r.api.MemcpyHtoD(p, r.address(v), int64(4*len(v))) })
	return p
}

func (r *rig) download(device int, p driver.Ptr, n int) []float32 {
	r.t.Helper()
	v := make([]float32, n)
	r.do(device, func() driver.Result { return r.api.MemcpyDtoH(r.address(v), p, int64(4*n)) })
	return v
}

// address is where a slice is, which stays there as long as the rig: the driver's functions take addresses, of which the garbage
// collector and a stack that grows know nothing.
func (r *rig) address(slice any) uintptr {
	at := reflect.ValueOf(slice).Pointer()
	r.lent.Store(at, slice)
	return at
}

func floats(n int, f func(i int) float32) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = f(i)
	}
	return v
}

// pack lays out parameters at multiples of their sizes, as PTX does.
func pack(args ...any) []byte {
	var b []byte
	for _, a := range args {
		x, err := binary.Append(nil, binary.LittleEndian, a)
		if err != nil {
			panic(err)
		}
		for len(b)%len(x) != 0 {
			b = append(b, 0)
		}
		b = append(b, x...)
	}
	return b
}

// line is a launch of n threads in blocks of 128.
func line(n int, s driver.Stream) *driver.LaunchConfig {
	return &driver.LaunchConfig{Grid: [3]uint32{uint32((n + 127) / 128), 1, 1}, Block: [3]uint32{128, 1, 1}, Stream: s}
}

func TestVectorAdd(t *testing.T) {
	for _, text := range []string{"", "check=all,seed=5", "check=all,schedule=independent,late", "late,seed=9"} {
		t.Run(text, func(t *testing.T) {
			c, err := ParseConfig(text)
			if err != nil {
				t.Fatal(err)
			}
			r := newRig(t, c)
			const n = 1000
			x := floats(n, func(i int) float32 { return float32(i) * 0.1 })
			y := floats(n, func(i int) float32 { return float32(i%7) - 3 })
			a, b, z := r.upload(0, x), r.upload(0, y), r.alloc(0, 4*n)
			f := r.kernel(0, "add")
			r.do(0, func() driver.Result { return r.api.LaunchKernelEx(line(n, 0), f, pack(a, b, z, uint32(n))) })
			for i, v := range r.download(0, z, n) {
				if math.Float32bits(v) != math.Float32bits(x[i]+y[i]) {
					t.Fatalf("element %d: %v, want %v", i, v, x[i]+y[i])
				}
			}
		})
	}
}

func ExampleParseConfig() {
	_, err := ParseConfig("check=all,sed=3")
	fmt.Println(err)
	// Output: simulator setting "sed=3": unknown or without a proper value; there are check=all|none|memcheck+initcheck+synccheck+racecheck+global, seed=N, schedule=reconverge|independent, numerics=float32|exact|truncating, late, clock, warm, host=real|virtual, cores=N, steps=N
}
