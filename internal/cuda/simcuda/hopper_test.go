package simcuda

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/gpusim"
)

// boxed stores, for each block of a cluster, its rank and the first row of a box of 4 by 4 numbers at its block's place.
const boxed = `.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out)
{
	.reg .b64 %m, %o, %d; .reg .b32 %r, %b, %y, %s; .reg .f32 %f<4>; .reg .pred %p;
	.shared .align 128 .b8 box[128]; .shared .align 8 .b8 bar[8];
	mov.b64 %m, map; cvta.param.u64 %m, %m; ld.param.u64 %o, [out]; mov.u32 %b, %ctaid.x; mov.u32 %r, %cluster_ctarank; mov.u32 %s, box;
	mbarrier.init.shared.b64 [bar], 1; fence.proxy.async;
	mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;
	shl.b32 %y, %b, 1;
	cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%m, {0, %y}], [bar];
W:	mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
	@!%p bra W;
	ld.shared.v4.f32 {%f0, %f1, %f2, %f3}, [box];
	cvt.rn.f32.u32 %f0, %r;
	mul.wide.u32 %d, %b, 16; add.u64 %o, %o, %d;
	st.global.v4.f32 [%o], {%f0, %f1, %f2, %f3};
	ret;
}
`

// TestHopper: a launch with the dimensions of a cluster, and a tensor map as the driver makes it, on the card that has them.
func TestHopper(t *testing.T) {
	r := newRig(t, Config{Card: "h100-80"})
	a := r.api
	var f driver.Function
	r.do(0, func() driver.Result {
		m, _, res := a.ModuleLoadData([]byte(boxed))
		if res == driver.Success {
			f, res = a.ModuleGetFunction(m, "k")
		}
		return res
	})
	in := make([]float32, 8*4)
	for i := range in {
		in[i] = float32(i)
	}
	out := r.upload(0, make([]float32, 16))
	tensor := &driver.TensorMap{Type: 7, Address: r.upload(0, in), Dims: []uint64{4, 8}, Strides: []uint64{16}, Box: []uint32{4, 4}, ElementStrides: []uint32{1, 1}}
	var m driver.CUtensorMap
	encode := func() (res driver.Result) { m, res = a.TensorMapEncodeTiled(tensor); return res }
	r.do(0, encode)
	launch := func(cluster uint32) func() driver.Result {
		return func() driver.Result {
			c := &driver.LaunchConfig{Grid: [3]uint32{4, 1, 1}, Block: [3]uint32{1, 1, 1}, Cluster: [3]uint32{cluster, 1, 1}, Dependent: true}
			return a.LaunchKernelEx(c, f, binary.LittleEndian.AppendUint64(m[:], uint64(out)))
		}
	}
	r.do(0, launch(2))
	if got := r.download(0, out, 16); !slices.Equal(got, []float32{0, 1, 2, 3, 1, 9, 10, 11, 0, 17, 18, 19, 1, 25, 26, 27}) {
		t.Error(got)
	}
	r.fails(driver.InvalidClusterSize, 0, "no multiple", launch(3))
	for _, c := range []struct {
		explain string
		change  func(m *driver.TensorMap)
	}{
		{"no multiple of 16", func(m *driver.TensorMap) { m.Address += 8 }},
		{"dimensions", func(m *driver.TensorMap) { m.Dims = nil }},
		{"types 0 to", func(m *driver.TensorMap) { m.Type = -1 }},
		{"element strides", func(m *driver.TensorMap) { m.ElementStrides = m.ElementStrides[:1] }},
		{"1 to 256", func(m *driver.TensorMap) { m.Box = []uint32{4, 1 << 31} }},
		{"the swizzle takes", func(m *driver.TensorMap) { m.Swizzle, m.Box = 1, []uint32{16, 4} }},
	} {
		wrong := *tensor
		c.change(&wrong)
		r.fails(driver.InvalidValue, 0, c.explain, func() driver.Result { _, res := a.TensorMapEncodeTiled(&wrong); return res })
	}
	pixels := &driver.TensorMap{Type: 7, Address: tensor.Address, Dims: []uint64{4, 2, 4}, Strides: []uint64{16, 32}, ElementStrides: []uint32{1, 1, 1}, Lower: []int32{-1}, Upper: []int32{1}, Channels: 4, Pixels: 8}
	r.do(0, func() driver.Result { _, res := a.TensorMapEncodeIm2col(pixels); return res })
	pixels.Lower[0] = 1 << 20
	r.fails(driver.InvalidValue, 0, "a corner at", func() driver.Result { _, res := a.TensorMapEncodeIm2col(pixels); return res })
	replace := func(m driver.CUtensorMap, p driver.Ptr) (to driver.CUtensorMap) {
		r.do(0, func() (res driver.Result) { to, res = a.TensorMapReplaceAddress(m, p); return res })
		return to
	}
	r.do(0, encode)
	if moved := replace(m, out); moved == m || replace(moved, tensor.Address) != m {
		t.Error("a map with another address, and that with the old one")
	}
	r.fails(driver.InvalidValue, 0, "no multiple of 16", func() driver.Result { _, res := a.TensorMapReplaceAddress(m, out+8); return res })
	r.fails(driver.InvalidValue, 0, "map", func() driver.Result { _, res := a.TensorMapReplaceAddress(driver.CUtensorMap{}, out); return res })
	ampere := newRig(t, Config{})
	ampere.fails(driver.NotSupported, 0, "compute capability 8.0", func() driver.Result { _, res := ampere.api.TensorMapEncodeTiled(tensor); return res })
}

// dependents are kernels that write, read and read elsewhere; with wait as the instruction that is to come first.
const dependents = `.version 7.8
.target sm_90
.address_size 64
.visible .entry put(.param .u64 x)
{
	.reg .b64 %x; .reg .b32 %v;
	ld.param.u64 %x, [x];
	griddepcontrol.launch_dependents;
	st.global.u32 [%x], 7;
	ld.global.u32 %v, [%x+8];
	ret;
}
.visible .entry get(.param .u64 x)
{
	.reg .b64 %x; .reg .b32 %v;
	ld.param.u64 %x, [x];
	BEFORE
	ld.global.u32 %v, [%x+OFFSET];
	BEHIND
	st.global.u32 [%x+8], %v;
	ret;
}
`

// TestDependentStart: what a kernel takes to start is over when the one ahead ends, if that lets it and is as long.
func TestDependentStart(t *testing.T) {
	took := func(from, to string, dependent bool, fill bool) float32 {
		r := newRig(t, Config{Card: "h100-80"})
		src := strings.NewReplacer("BEFORE", "griddepcontrol.wait;", "BEHIND", "", "OFFSET", "0", from, to).Replace(dependents)
		var k [2]driver.Function
		r.do(0, func() driver.Result {
			m, _, res := r.api.ModuleLoadData([]byte(src))
			for i, name := range []string{"put", "get"} {
				if res == driver.Success {
					k[i], res = r.api.ModuleGetFunction(m, name)
				}
			}
			return res
		})
		x, one, s := r.upload(0, make([]float32, 4)), [3]uint32{1, 1, 1}, r.stream(0, 0)
		e0, e1 := r.event(0, 0), r.event(0, 0)
		far, host := r.alloc(0, 1<<20), r.pinned(1<<20)
		r.do(0, func() driver.Result { return r.api.MemcpyHtoDAsync(far, host, 1<<20, s) }) // so that the card is late, not the host
		r.do(0, func() driver.Result { return r.api.EventRecord(e0, s) })
		for i, f := range k {
			r.do(0, func() driver.Result {
				return r.api.LaunchKernelEx(&driver.LaunchConfig{Grid: one, Block: one, Dependent: dependent && i == 1, Stream: s}, f, pack(x))
			})
			if fill && i == 0 {
				r.do(0, func() driver.Result { return r.api.MemsetD32Async(x, 1, 1, s) })
			}
		}
		r.do(0, func() driver.Result { return r.api.EventRecord(e1, s) })
		r.do(0, func() driver.Result { return r.api.StreamSynchronize(s) })
		var ms float32
		r.do(0, func() (res driver.Result) { ms, res = r.api.EventElapsedTime(e0, e1); return res })
		return ms
	}
	plain, early := took("", "", false, false), took("", "", true, false)
	if got := plain - early; got < 0.0014 || got > 0.0016 {
		t.Errorf("%v ms less, of %v; want 1.5 µs", got, plain)
	}
	const trigger = "griddepcontrol.launch_dependents;"
	if got, want := took(trigger, "", true, false), took(trigger, "", false, false); got != want {
		t.Errorf("without a trigger %v ms, want %v", got, want)
	}
	if got, want := took("", "", true, true), took("", "", false, true); got != want {
		t.Errorf("with a fill in between %v ms, want %v", got, want)
	}
}

// TestDependentLaunch: a launch that may begin before the one ahead has ended waits before it touches what that touches.
func TestDependentLaunch(t *testing.T) {
	const wait = "griddepcontrol.wait;"
	for _, c := range []struct {
		name, before, behind, offset string
		dependent, between           bool
		want                         []string
	}{
		{"it waits", wait, "", "0", true, false, nil},
		{"no wait", "", "", "0", true, false, []string{"read of what kernel put, the launch ahead in the stream, writes, before griddepcontrol.wait", "write of what kernel put, the launch ahead in the stream, reads"}},
		{"it waits too late", "", wait, "0", true, false, []string{"read of what kernel put"}},
		{"it reads something else first", "", wait, "4", true, false, nil},
		{"it writes too soon", "", "", "4", true, false, []string{"write of what kernel put, the launch ahead in the stream, reads"}},
		{"no dependent launch", "", "", "0", false, false, nil},
		{"a fill in between", "", "", "0", true, true, nil},
	} {
		r := newRig(t, Config{Card: "h100-80", Checks: gpusim.Globalcheck, Collect: true})
		src := strings.NewReplacer("BEFORE", c.before, "BEHIND", c.behind, "OFFSET", c.offset).Replace(dependents)
		var put, get driver.Function
		r.do(0, func() driver.Result {
			m, _, res := r.api.ModuleLoadData([]byte(src))
			if res == driver.Success {
				put, res = r.api.ModuleGetFunction(m, "put")
			}
			if res == driver.Success {
				get, res = r.api.ModuleGetFunction(m, "get")
			}
			return res
		})
		x, one := r.upload(0, make([]float32, 4)), [3]uint32{1, 1, 1}
		launch := func(f driver.Function, dependent bool) {
			r.do(0, func() driver.Result {
				return r.api.LaunchKernelEx(&driver.LaunchConfig{Grid: one, Block: one, Dependent: dependent}, f, pack(x))
			})
		}
		launch(put, false)
		if c.between {
			r.do(0, func() driver.Result { return r.api.MemsetD32Async(x, 1, 1, 0) })
		}
		launch(get, c.dependent)
		r.do(0, func() driver.Result { return r.api.CtxSynchronize() })
		found := r.sys.Findings()
		if len(found) != len(c.want) {
			t.Errorf("%s: %v", c.name, found)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(found[i].Message(), want) || found[i].Other.Inst == "" {
				t.Errorf("%s: %v, want %q", c.name, found[i], want)
			}
		}
	}
}
