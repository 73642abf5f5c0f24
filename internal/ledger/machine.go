package ledger

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

func replaceOnce(s, old, new string) string { return strings.Replace(s, old, new, 1) }

// mma probes D = A·B + C with the same bits in every register of A, and of B; each of the cases is a block of 32
// threads' worth of output, one after the other in one warp. c has the bits of C, and d the number of its registers.
func mma(id, assumes, inst string, a, b, d int, dst string, cases [][3]uint32) *Probe {
	width := map[string]int{"f32": 4, "b32": 4, "f64": 8}[dst]
	var body strings.Builder
	list := func(name string, n int) string {
		r := make([]string, n)
		for i := range r {
			r[i] = fmt.Sprintf("%%%s%d", name, i)
		}
		return "{" + strings.Join(r, ", ") + "}"
	}
	body.WriteString("mul.wide.u32 %at, %id, " + fmt.Sprint(d*width) + ";\n\tadd.s64 %mine, %out, %at;\n")
	for k := range cases {
		for i := range a {
			fmt.Fprintf(&body, "\tld.global.b32 %%a%d, [%%in+%d];\n", i, 12*k)
		}
		for i := range b {
			fmt.Fprintf(&body, "\tld.global.b32 %%b%d, [%%in+%d];\n", i, 12*k+4)
		}
		for i := range d {
			fmt.Fprintf(&body, "\tld.global.b32 %%c%d, [%%in+%d];\n", i, 12*k+8)
		}
		fmt.Fprintf(&body, "\t%s %s, %s, %s, %s;\n", inst, list("d", d), list("a", a), list("b", b), list("c", d))
		for i := range d {
			fmt.Fprintf(&body, "\tst.global.b%d [%%mine+%d], %%d%d;\n", 8*width, i*width+32*k*d*width, i)
		}
	}
	var in []uint32
	for _, c := range cases {
		in = append(in, c[:]...)
	}
	regs := fmt.Sprintf(".reg .b32 %%a<%d>, %%b<%d>; .reg .%s %%c<%d>, %%d<%d>;", a, b, dst, d, d)
	return kernel(id, assumes, regs, body.String(), 32, words(in...), 32*d*width/4*len(cases))
}

func twice(h uint32) uint32 { return h | h<<16 }

func bits(x float32) uint32 { return math.Float32bits(x) }

func tensor() []*Probe {
	const (
		one, tiny, half = 0x3f80, 0x3380, 0x3f00 // bfloat16: 1, 2^-24, 0.5
		hone, hsub      = 0x3c00, 0x0001         // float16: 1, 2^-24
	)
	bf := [][3]uint32{
		{twice(one), twice(tiny), bits(1)},       // 16 products of 2^-24 beside 1
		{twice(one), twice(tiny), bits(1 << 24)}, // far below the accumulator
		{twice(one), twice(one), bits(1 << 25)},  // the sum needs a bit more than the accumulator has
		{twice(one), one | 0xbf80<<16, bits(1e-30)},
		{0x7f00 | one<<16, 0x7f00 | one<<16, bits(1)}, // products beyond the range
		{twice(0x7f80), twice(one), bits(1)},
		{twice(0x7fc1), twice(one), bits(1)},
		{twice(one), twice(half), 0x7fc12345},
		{twice(1), twice(one), 0},                             // subnormal operands
		{twice(0x2000), twice(0x1f00), 0},                     // subnormal result
		{twice(0x2000), twice(0x1f00), 1},                     // beside a subnormal accumulator
		{0x4b80 | 0xcb80<<16, one | one<<16, bits(0.3333333)}, // 2^24 - 2^24 + 1/3
		{twice(0x8000), twice(one), 1 << 31},                  // zeros of negative sign
	}
	f16 := [][3]uint32{
		{twice(hone), twice(hsub), bits(1)}, {twice(hsub), twice(hsub), 0}, {twice(0x7bff), twice(0x7bff), bits(-1e9)},
		{twice(0x7c00), twice(0), 0}, {twice(0x7d01), twice(hone), 0}, {twice(hone), hone | 0xbc00<<16, bits(1e-30)},
	}
	h16 := [][3]uint32{
		{twice(hone), twice(hone), twice(0x6400)}, {twice(hone), twice(0x1000), twice(hone)}, {twice(0x7bff), twice(hone), twice(0x7bff)},
		{twice(hsub), twice(hone), twice(1)}, {twice(0x7d01), twice(hone), 0},
	}
	tf := [][3]uint32{
		{bits(1), bits(0x1p-24), bits(1)}, {0x3f801fff, 0x3f801fff, 0}, {0x3f801000, bits(1), 0}, {1 << 13, bits(1), 0}, {1, bits(1), 0},
		{bits(1), 0x7fc00001, 0}, {bits(1), 0x7f800000, 0}, {bits(3e38), bits(2), bits(-1e38)},
	}
	s8 := [][3]uint32{{0x7f7f7f7f, 0x7f7f7f7f, 0x7fffffff}, {0x80808080, 0x7f7f7f7f, 0x80000000}, {0x01ff01ff, 0x01010101, 5}}
	return []*Probe{
		mma("mma-bf16", "mma of bf16 adds exact products in the order of k, each sum rounded to nearest; its NaN is 0x7fffffff",
			"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 4, 2, 4, "f32", bf),
		mma("mma-bf16-k8", "the m16n8k8 shape sums like m16n8k16", "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", 2, 1, 4, "f32", bf),
		mma("mma-f16", "mma of f16 into f32 takes subnormals as they are and sums like that of bf16", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 4, 2, 4, "f32", f16),
		mma("mma-f16-f16", "mma of f16 into f16 rounds once to f16; its NaN is 0x7fff", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", 4, 2, 2, "b32", h16),
		mma("mma-tf32", "mma of tf32 ignores the lower 13 bits of its operands, keeps subnormals and sums like that of bf16",
			"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 4, 2, 4, "f32", tf),
		mma("mma-s8", "mma of s8 wraps around", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 4, 2, 4, "b32", s8),
		mma("mma-s8-satfinite", "mma of s8 with .satfinite clamps the final sum", "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32", 4, 2, 4, "b32", s8),
	}
}

func memory() []*Probe {
	at := "mov.u32 %r1, s; shl.b32 %r2, %id, 2; add.u32 %r3, %r1, %r2;"
	scatter := words(bits(1), bits(0x1p-24), bits(0x1.8p-24), bits(-1), bits(3), bits(0x1p-25), bits(1e20), bits(-1e20))
	return []*Probe{
		kernel("atom-order", "the lanes of a warp carry out an atomic one after the other, from the lowest", ".reg .b32 %r<4>;",
			"atom.global.exch.b32 %r1, [%out], %id; mul.wide.u32 %at, %id, 4; add.s64 %at, %out, %at; st.global.u32 [%at+4], %r1;", 32, nil, 33),
		kernel("atom-add-f32-order", "sums of atom.add.f32 are rounded to nearest after each lane, from the lowest", ".reg .f32 %f<3>;",
			"and.b32 %id, %id, 7; mul.wide.u32 %at, %id, 4; add.s64 %at, %in, %at; ld.global.f32 %f1, [%at]; red.global.add.f32 [%out], %f1;", 32, scatter, 1),
		kernel("atom-add-f32-subnormal", "atom.add.f32 on global memory flushes subnormal operands and results", ".reg .f32 %f<3>;",
			"mul.wide.u32 %at, %id, 4; add.s64 %at, %in, %at; ld.global.f32 %f1, [%at]; ld.global.f32 %f2, [%at+8]; add.s64 %at, %out, 0; "+
				"setp.eq.u32 %p, %id, 0; @%p st.global.f32 [%out], %f1; @!%p st.global.f32 [%out+4], %f1; @%p red.global.add.f32 [%out], %f2; @!%p red.global.add.f32 [%out+4], %f2;",
			2, words(1, 0x00800000, 2, 0x80000001), 2),
		kernel("atom-add-f32-shared", "atom.add.f32 on shared memory keeps subnormals", ".reg .f32 %f<3>; .shared .f32 s[1];",
			"mov.b32 %f1, 0x00000001; mov.b32 %f2, 0x00000002; st.shared.f32 [s], %f1; atom.shared.add.f32 %f1, [s], %f2; ld.shared.f32 %f1, [s]; st.global.f32 [%out], %f1;", 1, nil, 1),
		kernel("atom-add-f16x2", "atom.add.noftz.f16x2 keeps subnormals and rounds each half", ".reg .b32 %r<4>;",
			"mov.b32 %r1, 0x3c000001; red.global.add.noftz.f16x2 [%out], %r1;", 7, nil, 1),
		kernel("atom-inc-dec", "inc goes to 0 at the bound and above, dec to the bound at 0 and above it", ".reg .b32 %r<4>;",
			"mov.u32 %r1, 7; st.global.u32 [%out], 9; atom.global.inc.u32 %r2, [%out], 5; atom.global.inc.u32 %r2, [%out], 5; st.global.u32 [%out+4], 9; "+
				"atom.global.dec.u32 %r2, [%out+4], 5; atom.global.dec.u32 %r2, [%out+4], 5; atom.global.dec.u32 %r2, [%out+8], 5;", 1, nil, 3),
		kernel("store-conflict", "of lanes that store to one address at once the highest stays", "", "st.global.u32 [%out], %id;", 32, nil, 1),
		kernel("nc-after-store", "ld.global.nc sees a store of the same thread before it", ".reg .b32 %r<3>;",
			"ld.global.nc.u32 %r1, [%out]; st.global.u32 [%out], 5; ld.global.nc.u32 %r2, [%out]; st.global.u32 [%out+4], %r2;", 1, nil, 2),
		kernel("shared-start", "the first variable in shared memory has address 0", ".reg .b32 %r<3>; .shared .b32 s[8];",
			"mov.u32 %r1, s; st.global.u32 [%out], %r1;", 1, nil, 1),
		kernel("shared-initial", "shared memory is zero when a block starts", ".reg .b32 %r<4>; .shared .b32 s[64];", at+"ld.shared.u32 %r1, [%r3]; mul.wide.u32 %at, %id, 4; add.s64 %at, %out, %at; st.global.u32 [%at], %r1;", 64, nil, 64),
		kernel("local-initial", "local memory is zero when a thread starts", ".reg .b32 %r<3>; .local .b32 l[8];", "and.b32 %r1, %id, 7; shl.b32 %r1, %r1, 2; mov.u32 %r2, l; add.u32 %r1, %r1, %r2; ld.local.u32 %r2, [%r1]; st.global.u32 [%mine], %r2;", 8, nil, 16),
		kernel("async-zero-fill", "cp.async with fewer source bytes fills with zeros", ".reg .b32 %r<5>; .shared .align 16 .b8 s[64];",
			"mov.u32 %r1, s; st.shared.u32 [s+12], -1; cp.async.ca.shared.global [%r1], [%in], 16, 6; cp.async.wait_all; ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [s]; "+
				"st.global.v4.u32 [%out], {%r1, %r2, %r3, %r4};", 1, words(0x11111111, 0x22222222, 0x33333333, 0x44444444), 4),
		kernel("ldmatrix-trans", "ldmatrix.trans gives lane l elements (2(l%4), l/4) and (2(l%4)+1, l/4)", ".reg .b32 %r<6>; .shared .align 16 .b16 s[64];",
			at+"shl.b32 %r4, %id, 1; add.u32 %r5, %r4, 1; shl.b32 %r5, %r5, 16; or.b32 %r4, %r4, %r5; st.shared.u32 [%r3], %r4; bar.warp.sync -1; "+
				"and.b32 %r2, %id, 7; shl.b32 %r2, %r2, 4; add.u32 %r3, %r1, %r2; ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r4}, [%r3]; st.global.u32 [%mine], %r4;", 32, nil, 64),
		kernel("movmatrix", "movmatrix.trans gives lane l elements (2(l%4), l/4) and (2(l%4)+1, l/4)", ".reg .b32 %r<6>;",
			"shl.b32 %r4, %id, 1; add.u32 %r5, %r4, 1; shl.b32 %r5, %r5, 16; or.b32 %r4, %r4, %r5; movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r4; st.global.u32 [%mine], %r1;", 32, nil, 64).target("7.8", "80"),
	}
}

func warps() []*Probe {
	one := "st.global.u32 [%mine], %r1;"
	clock := kernel("clock-monotonic", "clock64 rises from one read to the next of a thread", ".reg .b64 %x<3>;",
		"mov.u64 %x0, %clock64; mov.u64 %x1, %clock64; mov.u64 %x2, %clock64; st.global.u64 [%out], %x0; st.global.u64 [%out+8], %x1; st.global.u64 [%out+16], %x2;", 1, nil, 6)
	clock.Judge = rising
	warp := kernel("warpid-order", "%warpid is the thread's number by 32", ".reg .b32 %r<3>;", "mov.u32 %r1, %warpid; "+one, 128, nil, 256)
	partial := "setp.lt.u32 %p, %id, 16; @!%p bra E;\n\t"
	return []*Probe{
		clock, warp,
		kernel("laneid", "%laneid is the thread's number modulo 32, and the masks follow from it", ".reg .b32 %r<7>;",
			"mov.u32 %r1, %laneid; mov.u32 %r2, %lanemask_lt; add.u32 %r1, %r1, %r2; mov.u32 %r2, %lanemask_ge; mov.u32 %r3, %lanemask_eq; xor.b32 %r2, %r2, %r3; st.global.v2.u32 [%mine], {%r1, %r2};", 64, nil, 128),
		kernel("shfl-up-range", "a shuffle whose source is out of range gives the own value and a false predicate", ".reg .b32 %r<3>;",
			"shfl.sync.up.b32 %r1|%p, %id, 5, 0, -1; selp.b32 %r2, 1, 0, %p; st.global.v2.u32 [%mine], {%r1, %r2};", 32, nil, 64),
		kernel("shfl-idx-wide", "shfl.idx takes five bits of the lane", ".reg .b32 %r<3>;",
			"add.u32 %r2, %id, 37; shfl.sync.idx.b32 %r1, %id, %r2, 31, -1; "+one, 32, nil, 64),
		kernel("shfl-segment", "the upper bits of c cut the warp into segments", ".reg .b32 %r<3>;",
			"shfl.sync.down.b32 %r1|%p, %id, 3, 0x181f, -1; selp.b32 %r2, 1, 0, %p; st.global.v2.u32 [%mine], {%r1, %r2};", 32, nil, 64),
		kernel("shfl-inactive", "a shuffle from a lane that takes no part gives what its register holds", ".reg .b32 %r<3>;",
			"add.u32 %r2, %id, 100; mov.u32 %r1, 0; "+partial+"xor.b32 %id, %id, 16; shfl.sync.idx.b32 %r1, %r2, %id, 31, 0xffff;\nE: "+one, 32, nil, 64),
		kernel("vote-exited", "lanes that have exited are no part of a vote, even if the mask names them", ".reg .b32 %r<3>;",
			"setp.ge.u32 %p, %id, 20; @%p exit; setp.ne.u32 %q, %id, 3; vote.sync.ballot.b32 %r1, %q, -1; "+one, 32, nil, 64),
		kernel("vote-uni", "vote.uni holds when all agree, .all only when it is true everywhere", ".reg .b32 %r<3>;",
			"setp.gt.u32 %p, %id, 50; vote.sync.uni.pred %q, %p, -1; selp.b32 %r1, 1, 0, %q; vote.sync.all.pred %q, !%p, -1; selp.b32 %r2, 2, 0, %q; add.u32 %r1, %r1, %r2; "+one, 32, nil, 64),
		kernel("activemask-branch", "activemask inside a branch is the lanes that took it", ".reg .b32 %r<3>;", "mov.u32 %r1, 0; "+partial+"activemask.b32 %r1;\nE: "+one, 32, nil, 64),
		kernel("activemask-after", "lanes that parted have met again after the branch", ".reg .b32 %r<3>;",
			"mov.u32 %r2, 0; "+partial+"add.u32 %r2, %id, 1;\nE: activemask.b32 %r1; st.global.v2.u32 [%mine], {%r1, %r2};", 32, nil, 64),
		kernel("match-any", "match.any gives the lanes with the own value", ".reg .b32 %r<3>;", "and.b32 %r2, %id, 5; match.any.sync.b32 %r1, %r2, -1; "+one, 32, nil, 64),
		kernel("match-all", "match.all gives 0 and a false predicate when a lane differs", ".reg .b32 %r<3>;",
			"shr.u32 %r2, %id, 5; match.all.sync.b32 %r1|%p, %r2, -1; selp.b32 %r2, 1, 0, %p; st.global.v2.u32 [%mine], {%r1, %r2};", 64, nil, 128),
		kernel("redux-s32", "redux.min.s32 and .max.u32 compare as their types say", ".reg .b32 %r<4>;",
			"sub.u32 %r3, %id, 9; redux.sync.min.s32 %r1, %r3, -1; redux.sync.max.u32 %r2, %r3, -1; st.global.v2.u32 [%mine], {%r1, %r2};", 32, nil, 64),
		kernel("bar-red", "bar.red.popc counts the threads of the block whose predicate holds", ".reg .b32 %r<3>;", "and.b32 %r2, %id, 3; setp.eq.u32 %p, %r2, 1; bar.red.popc.u32 %r1, 0, %p; "+one, 96, nil, 192),
		kernel("guarded-cc", "a guarded add.cc leaves the carry of lanes that do not run it", ".reg .b32 %r<3>;",
			"mov.u32 %r1, -1; add.cc.u32 %r2, %r1, 1; setp.gt.u32 %p, %id, 1; @%p add.cc.u32 %r2, 0, 0; addc.u32 %r1, 0, 0; "+one, 4, nil, 8),
	}
}

// rising accepts three 64-bit numbers that do not fall, the last above the first.
func rising(out []uint32) error {
	if len(out) != 6 {
		return fmt.Errorf("%d words", len(out))
	}
	var t []uint64
	for i := 0; i < 6; i += 2 {
		t = append(t, uint64(out[i])|uint64(out[i+1])<<32)
	}
	if !slices.IsSorted(t) || t[0] == t[2] {
		return errors.New("the clock does not rise")
	}
	return nil
}
