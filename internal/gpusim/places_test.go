package gpusim

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// TestNaNToInteger follows the manual: zero if the source is not .f64 and the destination not of 64 bits, else the highest
// bit of the destination alone.
func TestNaNToInteger(t *testing.T) {
	for _, c := range []struct {
		inst, dst, src string
		want           uint64
	}{
		{"cvt.rni.s32.f64", "b32", "f64", 1 << 31}, {"cvt.rni.u32.f64", "b32", "f64", 1 << 31}, {"cvt.rzi.s16.f64", "b16", "f64", 1 << 15},
		{"cvt.rni.s64.f64", "b64", "f64", 1 << 63}, {"cvt.rni.u64.f32", "b64", "f32", 1 << 63}, {"cvt.rni.s64.f16", "b64", "b16", 1 << 63},
		{"cvt.rni.s32.f32", "b32", "f32", 0}, {"cvt.rni.u16.f32", "b16", "f32", 0}, {"cvt.rni.u32.f16", "b32", "b16", 0},
	} {
		nan := map[string]uint64{"f64": 0x7ff8 << 48, "f32": 0x7fc00000, "b16": 0x7e00}[c.src]
		got := runLanes(t, c.inst+" %d, %a;", c.dst, [3]string{c.src, c.src, c.src}, [][3]uint64{{nan}})
		if got[0] != c.want {
			t.Errorf("%s of NaN is %#x, want %#x", c.inst, got[0], c.want)
		}
	}
}

// TestPackedConversions checks cvt.pack of each width by the manual's description: b's bits lowest, then a's, then c's.
func TestPackedConversions(t *testing.T) {
	edges := []uint64{0, 1, 2, 3, 4, 7, 8, 15, 16, 127, 128, 255, 256, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe, 0xfffffff8, 0xfffffff7, 0xffffff00}
	for _, c := range []struct {
		typ    string
		lo, hi int64
		bits   uint
	}{{"u8", 0, 255, 8}, {"s8", -128, 127, 8}, {"u4", 0, 15, 4}, {"s4", -8, 7, 4}, {"u2", 0, 3, 2}, {"s2", -2, 1, 2}} {
		sat := func(v uint64) uint64 { return uint64(min(max(int64(int32(v)), c.lo), c.hi)) & (1<<c.bits - 1) }
		compareLanes(t, "cvt.pack.sat."+c.typ+".s32.b32 %d, %a, %b, %c;", "b32", "b32", triples(edges, 3), func(v [3]uint64) uint64 {
			return (v[2]<<(2*c.bits) | sat(v[0])<<c.bits | sat(v[1])) & 0xffffffff
		})
	}
}

// TestMad24Sat clamps the sum of the upper half of a product of 24 bits.
func TestMad24Sat(t *testing.T) {
	edges := []uint64{0, 1, 0x7fffff, 0x800000, 0xffffff, 0x7fffffff, 0x80000000, 0xffffffff, 0x12345678}
	compareLanes(t, "mad24.hi.sat.s32 %d, %a, %b, %c;", "b32", "b32", triples(edges, 3), func(v [3]uint64) uint64 {
		x, y := int64(int32(v[0]<<8))>>8, int64(int32(v[1]<<8))>>8
		return uint64(uint32(min(max(x*y>>16+int64(int32(v[2])), -1<<31), 1<<31-1)))
	})
}

func load(t *testing.T, src string) (*rig, error) {
	t.Helper()
	m, err := ptx.Parse(".version 7.4\n.target sm_80\n.address_size 64\n" + src)
	if err != nil {
		t.Fatal(err)
	}
	d := NewDevice(A100(), false)
	p, err := d.Load(m)
	return &rig{t, d, p}, err
}

// TestDynamicAlignment puts dynamic shared memory on what its declaration asks for, behind 4 bytes of static memory.
func TestDynamicAlignment(t *testing.T) {
	r, err := load(t, `.extern .shared .align 128 .b8 dyn[];
.visible .entry k(.param .u64 out)
{
	.reg .b64 %o; .reg .b32 %r;
	.shared .align 4 .b8 st[4];
	ld.param.u64 %o, [out];
	mov.u32 %r, dyn;
	st.shared.u32 [%r+252], %r;
	st.shared.u32 [st], %r;
	st.global.u32 [%o], %r;
	ret;
}
`)
	if err != nil {
		t.Fatal(err)
	}
	out := r.alloc(4, "out")
	k := r.prog.Kernel("k")
	rep, err := r.dev.Launch(k, d1(1), d1(1), 256, pack(k, out), Options{Checks: AllChecks})
	if err != nil || len(rep.Findings) > 0 || rep.Shared != 128+256 {
		t.Fatal(rep, err)
	}
	if got := download[uint32](r, out, 1)[0]; got != 128 {
		t.Errorf("dynamic shared memory starts at %d", got)
	}
	// 164 KiB less what the driver takes are there, of which 128 bytes lie before the dynamic memory.
	if _, err := r.dev.Launch(k, d1(1), d1(1), 163<<10-64, pack(k, out), Options{}); err == nil {
		t.Error("the gap before dynamic memory is not counted")
	}
}

// TestConstantMemory: generic addresses of constants are told from those of global memory, and not written to.
func TestConstantMemory(t *testing.T) {
	const src = `.const .align 4 .u32 c[2] = {5, 7}; .global .u32 g;
.visible .entry k(.param .u64 out)
{
	.reg .b64 %o, %c, %g; .reg .pred %p, %q; .reg .b32 %r, %s;
	ld.param.u64 %o, [out];
	mov.u64 %c, c; cvta.const.u64 %c, %c; mov.u64 %g, g; cvta.global.u64 %g, %g;
	isspacep.const %p, %c; selp.u32 %r, 1, 0, %p;
	isspacep.global %p, %c; selp.u32 %s, 2, 0, %p; add.u32 %r, %r, %s;
	isspacep.const %p, %g; selp.u32 %s, 4, 0, %p; add.u32 %r, %r, %s;
	isspacep.global %p, %g; selp.u32 %s, 8, 0, %p; add.u32 %r, %r, %s;
	ld.u32 %s, [%c+4]; shl.b32 %s, %s, 4; add.u32 %r, %r, %s;
	st.global.u32 [%o], %r;
	// write
	ret;
}
`
	r, err := load(t, src)
	if err != nil {
		t.Fatal(err)
	}
	out := r.alloc(4, "out")
	r.launch("k", d1(1), d1(64), Options{Checks: Memcheck | Racecheck}, out)
	if got := download[uint32](r, out, 1)[0]; got != 1+8+7<<4 {
		t.Errorf("%#x", got)
	}
	for _, o := range []Options{{}, {Checks: AllChecks}, {Counters: true}} {
		for _, store := range []string{"st.u32 [%c], %r;", "st.global.u32 [%c], %r;", "red.add.u32 [%c], 1;"} {
			r, err := load(t, strings.Replace(src, "// write", store, 1))
			if err != nil {
				t.Fatal(err)
			}
			var f *Fault
			if _, err := r.try("k", d1(1), d1(32), o, r.alloc(4, "out")); !errors.As(err, &f) || f.Finding.Check != Memcheck || !strings.Contains(f.Finding.Msg, "to constant memory") {
				t.Errorf("%s: %v", store, err)
			}
		}
	}
}

// TestBlockBounds: what .maxntid and .reqntid say is named as they say it.
func TestBlockBounds(t *testing.T) {
	for directive, want := range map[string]string{
		".maxntid 32":   "a block of [64 1 1] is 64 threads; k was compiled for at most 32",
		".reqntid 8, 4": "a block of [64 1 1] threads; k was compiled for exactly [8 4 1]",
	} {
		r, err := load(t, ".visible .entry k()\n"+directive+"\n{\nret;\n}\n")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.try("k", d1(1), d1(64), Options{}); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", directive, err)
		}
	}
}

// TestSpecialWidths reads special registers in the widths that mov and cvt take.
func TestSpecialWidths(t *testing.T) {
	r, err := load(t, `.visible .entry k(.param .u64 out)
{
	.reg .b64 %o, %d; .reg .b32 %r, %s, %i; .reg .b16 %h, %g;
	ld.param.u64 %o, [out];
	mov.u32 %i, %tid.x; mul.wide.u32 %d, %i, 16; add.u64 %o, %o, %d;
	mov.u16 %h, %tid.x; cvt.u16.u32 %g, %laneid; mov.u32 %r, %gridid; cvt.u32.u8 %s, %tid.x;
	pmevent 1; pmevent.mask 3;
	cvt.u32.u16 %i, %h; st.global.u32 [%o], %i;
	cvt.u32.u16 %i, %g; st.global.u32 [%o+4], %i;
	st.global.u32 [%o+8], %r; st.global.u32 [%o+12], %s;
	ret;
}
`)
	if err != nil {
		t.Fatal(err)
	}
	out := r.alloc(300*16, "out")
	for serial := range uint32(2) {
		r.launch("k", d1(1), d1(300), Options{}, out)
		for i, v := range download[[4]uint32](r, out, 300) {
			if n := uint32(i); v != [4]uint32{n, n % 32, serial + 1, n & 255} {
				t.Fatalf("thread %d: %v", i, v)
			}
		}
	}
}

// TestAlias calls a function by the name of an alias, as constructors of C++ are called.
func TestAlias(t *testing.T) {
	r, err := load(t, `.func (.param .b32 r) b(.param .b32 x) { .reg .b32 %r; ld.param.b32 %r, [x]; add.u32 %r, %r, 5; st.param.b32 [r], %r; ret; }
.func (.param .b32 r) a(.param .b32 x);
.alias a, b;
.visible .entry k(.param .u64 out)
{
	.reg .b64 %o; .reg .b32 %r;
	.param .b32 p, q;
	ld.param.u64 %o, [out];
	mov.u32 %r, 2; st.param.b32 [p], %r;
	call (q), a, (p);
	ld.param.b32 %r, [q]; st.global.u32 [%o], %r;
	ret;
}
`)
	if err != nil {
		t.Fatal(err)
	}
	out := r.alloc(4, "out")
	r.launch("k", d1(1), d1(1), Options{Checks: AllChecks}, out)
	if got := download[uint32](r, out, 1)[0]; got != 7 {
		t.Error(got)
	}
}

// TestRegisterArguments passes registers, numbers and .param variables for parameters of either kind.
func TestRegisterArguments(t *testing.T) {
	r, err := load(t, `.func (.reg .b32 r) f(.reg .b32 x, .reg .b32 unused, .reg .f32 y)
{
	.reg .pred %p; .reg .b32 %t;
	cvt.rni.s32.f32 %t, y; add.u32 x, x, 1;
	setp.gt.u32 %p, x, 20; @%p bra BIG;
	add.u32 r, x, %t; ret;
BIG: mad.lo.u32 r, x, 100, %t; ret;
}
.func (.param .b32 r) g(.param .b32 x, .param .b32 y)
{
	.reg .b32 %a, %b; ld.param.b32 %a, [x]; ld.param.b32 %b, [y]; mad.lo.u32 %a, %a, 1000, %b; st.param.b32 [r], %a; ret;
}
.visible .entry k(.param .u64 out)
{
	.reg .b64 %o, %d; .reg .b32 %i, %r<8>; .reg .f32 %f; .reg .pred %q; .param .b32 p0, p1;
	ld.param.u64 %o, [out]; mov.u32 %i, %tid.x; mul.wide.u32 %d, %i, 32; add.u64 %o, %o, %d;
	mov.f32 %f, 0f40400000;
	call (%r0), f, (%i, 9, %f);
	call (%r1), g, (%i, 7);
	st.param.b32 [p0], %i;
	call (p1), f, (p0, %i, 0f40000000); ld.param.b32 %r2, [p1];
	call (%r3), g, (p0, %r2);
	call (p1), g, (1, p0); ld.param.b32 %r4, [p1];
	call (_), f, (%i, 9, %f); call (_), g, (%i, 9);
	mov.u32 %r5, 0; setp.lt.u32 %q, %i, 10; @%q call (%r5), f, (%r0, %i, %f);
	st.global.v4.u32 [%o], {%r0, %r1, %r2, %r3}; st.global.v2.u32 [%o+16], {%r4, %r5};
	ret;
}
`)
	if err != nil {
		t.Fatal(err)
	}
	f := func(x, y uint32) uint32 {
		if x+1 > 20 {
			return (x+1)*100 + y
		}
		return x + 1 + y
	}
	for _, o := range []Options{{}, {Checks: AllChecks}, {Schedule: Independent, Seed: 3}} {
		out := r.alloc(40*32, "out")
		r.launch("k", d1(1), d1(40), o, out)
		for i, v := range download[[8]uint32](r, out, 40) {
			n := uint32(i)
			want := [8]uint32{f(n, 3), n*1000 + 7, f(n, 2), n*1000 + f(n, 2), 1000 + n, 0, v[6], v[7]}
			if i < 10 {
				want[5] = f(want[0], 3)
			}
			if v != want {
				t.Fatalf("thread %d: %v, want %v", i, v, want)
			}
		}
	}
}

// TestVariableBounds: variables above what the simulator keeps are refused before memory is asked for; below, they cost
// what is touched.
func TestVariableBounds(t *testing.T) {
	var many strings.Builder
	for i := range 20 {
		fmt.Fprintf(&many, ".global .b8 g%d[500000000];\n", i)
	}
	for src, want := range map[string]string{
		".global .b8 g[9000000000];\n":   "the module's variables up to g, in line 4, have 9000000000 bytes",
		".global .b8 g[900000000000];\n": "variable g of 900000000000 bytes",
		many.String():                    "up to g2, in line 6, have 1500000000 bytes",
	} {
		if _, err := load(t, src+".visible .entry k() { ret; }\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	m, err := ptx.Parse(".version 7.4\n.target sm_80\n.address_size 64\n.global .b8 g[1000000000];\n.visible .entry k() { ret; }\n")
	if err != nil {
		t.Fatal(err)
	}
	d := NewDevice(A100(), true)
	p, err := d.Load(m)
	if err != nil {
		t.Fatal(err)
	}
	addr, n, ok := p.Global("g")
	if !ok || n != 1e9 || !d.Written(addr+uint64(n)-4, 4) {
		t.Error(addr, n, ok)
	}
	if err := p.Unload("the test"); err != nil {
		t.Error(err)
	}
}

// TestBodyVariables: variables of two bodies may have one name, and values to start with.
func TestBodyVariables(t *testing.T) {
	const body = `(.param .u64 out)
{
	.global .u32 v = START; .reg .b64 %o; .reg .b32 %r;
	ld.param.u64 %o, [out]; ld.global.u32 %r, [v]; st.global.u32 [%o], %r; ret;
}
`
	r, err := load(t, ".visible .entry a"+strings.Replace(body, "START", "5", 1)+".visible .entry b"+strings.Replace(body, "START", "7", 1))
	if err != nil {
		t.Fatal(err)
	}
	out := r.alloc(4, "out")
	for name, want := range map[string]uint32{"a": 5, "b": 7} {
		r.launch(name, d1(1), d1(1), Options{}, out)
		if got := download[uint32](r, out, 1)[0]; got != want {
			t.Errorf("%s: %d", name, got)
		}
	}
}

// TestInliningBound: what calls would make too large is refused at once, by the kernel's name.
func TestInliningBound(t *testing.T) {
	var src strings.Builder
	src.WriteString(".func f0() { ret; }\n")
	for i := range 60 {
		fmt.Fprintf(&src, ".func f%d() { call f%d; call f%d; ret; }\n", i+1, i, i)
	}
	src.WriteString(".visible .entry bomb() { call f60; ret; }\n")
	if _, err := load(t, src.String()); err == nil || !strings.Contains(err.Error(), "line 65: kernel bomb is not supported: it has more than 1048576 instructions") {
		t.Error(err)
	}
}
