package gpusim

import (
	"strings"
	"testing"
)

// TestPoisonFlow: where values go that nobody wrote, and where they are used.
func TestPoisonFlow(t *testing.T) {
	const out = "; st.global.u32 [%out], %r0;"
	for _, c := range []struct {
		name, body string
		found      bool
	}{
		{"a guard that never holds", "setp.gt.u32 %p, %lane, 99; @%p mov.u32 %r9, 5; mov.u32 %r0, %r9" + out, true},
		{"a load under a guard that never holds", "setp.gt.u32 %p, %lane, 99; @%p ld.global.u32 %r0, [%in]" + out, true},
		{"a guard that holds for some", "setp.lt.u32 %p, %lane, 8; @%p mov.u32 %r9, 5; setp.eq.u32 %q, %r9, 5; mov.u32 %r0, 1; @%q bra E; E: st.global.u32 [%out], %r0;", true},
		{"a guard that holds for some before redux", "setp.lt.u32 %p, %lane, 8; @%p mov.u32 %r9, 5; redux.sync.add.u32 %r0, %r9, -1" + out, true},
		{"both guards", "setp.lt.u32 %p, %lane, 8; @%p mov.u32 %r0, 5; @!%p mov.u32 %r0, 6" + out, false},
		{"guarded use of a guarded value", "setp.lt.u32 %p, %lane, 8; @%p mov.u32 %r0, 5; @%p st.global.u32 [%out], %r0;", false},
		{"shuffle from the lane that wrote", "setp.eq.u32 %p, %lane, 0; @%p mov.u32 %r9, 5; shfl.sync.idx.b32 %r0, %r9, 0, 31, -1" + out, false},
		{"shuffle in place", "setp.eq.u32 %p, %lane, 0; @%p mov.u32 %r0, 5; shfl.sync.idx.b32 %r0, %r0, 0, 31, -1" + out, false},
		{"shuffle from another lane", "setp.eq.u32 %p, %lane, 0; @%p mov.u32 %r9, 5; shfl.sync.idx.b32 %r0, %r9, 1, 31, -1" + out, true},
		{"shuffle from a lane in a register", "setp.eq.u32 %p, %lane, 3; @%p mov.u32 %r9, 5; ld.global.u32 %r1, [%in]; add.u32 %r1, %r1, 3; shfl.sync.idx.b32 %r0, %r9, %r1, 31, -1" + out, false},
		{"shuffle by an undefined lane", "shfl.sync.idx.b32 %r0, %lane, %r9, 31, -1" + out, true},
		{"shuffle of a half", "mov.u16 %h1, 7; mov.b32 %r1, {%h1, %h9}; shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; mov.b32 {%h2, %h3}, %r2; st.global.u16 [%out], %h2;", false},
		{"shuffle of the other half", "mov.u16 %h1, 7; mov.b32 %r1, {%h1, %h9}; shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; mov.b32 {%h2, %h3}, %r2; st.global.u16 [%out], %h3;", true},
		{"local memory", "mov.u32 %r1, 1; st.local.u32 [l], %r1; ld.local.u32 %r0, [l]" + out, false},
		{"local memory never written", "ld.local.u32 %r0, [l+4]" + out, true},
		{"a copy by way of local memory", "st.local.u32 [l], %r9; ld.local.u32 %r8, [l]; st.local.u32 [l+4], %r8; ld.local.u32 %r7, [l+4];", false},
		{"use after that copy", "st.local.u32 [l], %r9; ld.local.u32 %r8, [l]; st.local.u32 [l+4], %r8; ld.local.u32 %r0, [l+4]" + out, true},
		{"half of a copied pair", "mov.u32 %r1, 1; st.local.u32 [l], %r1; ld.local.u64 %rd1, [l]; st.local.u64 [l+8], %rd1; ld.local.u32 %r0, [l+8]" + out, false},
		{"other half of a copied pair", "mov.u32 %r1, 1; st.local.u32 [l], %r1; ld.local.u64 %rd1, [l]; st.local.u64 [l+8], %rd1; ld.local.u32 %r0, [l+12]" + out, true},
		{"by generic addresses", "mov.u64 %rd1, l; cvta.local.u64 %rd1, %rd1; st.u32 [%rd1], %lane; ld.u32 %r0, [%rd1]" + out, false},
		{"by generic addresses, never written", "mov.u64 %rd1, l; cvta.local.u64 %rd1, %rd1; st.u32 [%rd1], %lane; ld.u32 %r0, [%rd1+4]" + out, true},
		{"generic copy", "mov.u64 %rd1, l; cvta.local.u64 %rd1, %rd1; st.u32 [%rd1], %r9;", false},
		{"generic store elsewhere", "mov.u64 %rd1, l; st.u32 [%out], %r9;", true},
		{"generic store of a structure with padding", "st.local.u8 [l], %lane; ld.local.u32 %r1, [l]; mov.u64 %rd1, l; st.u32 [%out], %r1;", false},
		{"generic store of padding alone", "st.local.u8 [l], %lane; ld.local.u64 %rd2, [l]; shr.u64 %rd2, %rd2, 32; mov.u64 %rd1, l; st.u64 [%out], %rd2;", true},
		{"the defined half of a pair of halves", "mov.f32 %f1, 0f3f800000; cvt.rn.f16x2.f32 %r1, %f9, %f1; mov.b32 {%h1, %h2}, %r1; st.global.u16 [%out], %h1;", false},
		{"the other half of it", "mov.f32 %f1, 0f3f800000; cvt.rn.f16x2.f32 %r1, %f9, %f1; mov.b32 {%h1, %h2}, %r1; st.global.u16 [%out], %h2;", true},
		{"the upper half of it", "mov.f32 %f1, 0f3f800000; cvt.rn.bf16x2.f32 %r1, %f1, %f9; shr.u32 %r1, %r1, 16; st.global.u16 [%out], %r1;", false},
		{"arithmetic of pairs", "mov.u16 %h1, 7; mov.b32 %r1, {%h1, %h9}; fma.rn.f16x2 %r2, %r1, %r1, %r1; min.f16x2 %r2, %r2, %r1; set.nan.f16x2.f16x2 %r3, %r2, %r2; or.b32 %r2, %r2, %r3; mov.b32 {%h2, %h3}, %r2; st.global.u16 [%out], %h2;", false},
		{"the other half of that", "mov.u16 %h1, 7; mov.b32 %r1, {%h1, %h9}; add.rn.bf16x2 %r2, %r1, %r1; mov.b32 {%h2, %h3}, %r2; st.global.u16 [%out], %h3;", true},
		{"bytes that are chosen", "mov.u16 %h1, 7; mov.b32 %r1, {%h1, %h9}; prmt.b32 %r0, %r1, 0, 0x4140" + out, false},
		{"bytes that are chosen, one undefined", "mov.u16 %h1, 7; mov.b32 %r1, {%h1, %h9}; prmt.b32 %r0, %r1, 0, 0x4240" + out, true},
		{"the sign of a byte", "mov.u16 %h1, 7; mov.b32 %r1, {%h1, %h9}; prmt.b32 %r0, %r1, 0, 0x44b0" + out, true},
		{"what a mask leaves", "mov.u16 %h1, 7; mov.b32 %r1, {%h1, %h9}; and.b32 %r0, %r1, 0x00001234" + out, false},
		{"what a mask does not leave", "mov.u16 %h1, 7; mov.b32 %r1, {%h1, %h9}; and.b32 %r0, %r1, 0x00010000" + out, true},
		{"what a table leaves", "mov.u16 %h1, 7; mov.b32 %r1, {%h1, %h9}; lop3.b32 %r0, %lane, 0x00008000, %r1, 0xf8" + out, false},
		{"what a table does not leave", "mov.u16 %h1, 7; mov.b32 %r1, {%h1, %h9}; lop3.b32 %r0, %lane, 0x80008000, %r1, 0xf8" + out, true},
		{"shifted out", "mov.u16 %h1, 7; mov.b32 %r1, {%h1, %h9}; shl.b32 %r0, %r1, 16" + out, false},
		{"shifted by less", "mov.u16 %h1, 7; mov.b32 %r1, {%h1, %h9}; shl.b32 %r0, %r1, 15" + out, true},
		{"shifted in by the sign", "mov.u16 %h1, 7; mov.b32 %r1, {%h9, %h1}; shr.s32 %r0, %r1, 16" + out, false},
		{"a carry out of what is defined", "mov.u16 %h1, 7; mov.b32 %r1, {%h1, %h9}; add.u32 %r1, %r1, 0x007f007f; st.global.u16 [%out], %r1;", false},
		{"a carry out of what is undefined", "mov.u16 %h1, 7; mov.b32 %r1, {%h9, %h1}; add.u32 %r1, %r1, 1; shr.u32 %r0, %r1, 16" + out, true},
		{"a narrower integer", "mov.u16 %h1, 7; mov.b32 %r1, {%h1, %h9}; cvt.u16.u32 %h2, %r1; st.global.u16 [%out], %h2;", false},
		{"a wider integer", "mov.u16 %h1, 7; mov.b32 %r1, {%h1, %h9}; cvt.s64.s32 %rd1, %r1; st.global.u64 [%out], %rd1;", true},
		{"a byte of a register", "mov.u16 %h1, 7; mov.b32 %r1, {%h1, %h9}; st.global.u8 [%out], %r1;", false},
		{"under a guard that nobody wrote", "mov.u16 %h1, 7; mov.b32 %r1, {%h1, %h9}; mov.u32 %r0, 0; @%q and.b32 %r0, %r1, 0xff" + out, true},
		{"a result that is never returned", "{ .param .b32 v; call (v), f, (); ld.param.b32 %r0, [v]; }" + out[1:], true},
	} {
		for _, o := range []Options{{}, {Seed: 3, Schedule: Independent}} {
			o.Checks = inBlock
			src := strings.Replace(wrap(".reg .b16 %h<10>; .reg .f32 %f<10>; .reg .b32 %r<10>; .reg .b64 %rd<3>; .local .align 8 .b8 l[32];", c.body),
				".visible .entry", ".func (.param .b32 r) f() { ret; }\n.visible .entry", 1)
			r := newRig(t, src, true)
			rep, err := r.try("k", d1(2), d1(32), o, r.upload(make([]uint64, 128), "in"), r.alloc(256, "out"))
			if err != nil || (len(rep.Findings) > 0) != c.found {
				t.Errorf("%s, %+v: findings %v, error %v", c.name, o, rep.Findings, err)
			}
			for _, f := range rep.Findings {
				if f.Check != Initcheck {
					t.Errorf("%s: %v", c.name, f)
				}
			}
		}
	}
}

// TestLocalMemoryOfBlocks: a block finds nothing of another in local memory.
func TestLocalMemoryOfBlocks(t *testing.T) {
	r := newRig(t, wrap(".reg .b32 %r<3>; .local .b32 l;", "mov.u32 %r1, %ctaid.x; ld.local.u32 %r2, [l]; st.local.u32 [l], 7; atom.global.add.u32 %r1, [%out], %r2;"), false)
	out := r.upload(make([]uint64, 32), "out")
	r.launch("k", d1(64), d1(32), Options{Cores: 2}, r.alloc(1024, "in"), out)
	for i, v := range download[uint64](r, out, 32) {
		if v != 0 {
			t.Errorf("thread %d: %d", i, v)
		}
	}
}
