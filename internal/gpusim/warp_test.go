package gpusim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/gpusim/oracle"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/numbers"
)

// runWarp runs a body over one block with %x holding a random word of the lane and stores %d. It gives words and results.
func runWarp(t *testing.T, threads int, body string) (x []uint32, d []uint64) {
	t.Helper()
	r := newRig(t, wrap(".reg .b32 %x, %y, %z, %m, %r<9>; .reg .b64 %d; .reg .f32 %f<9>; .shared .align 16 .b8 s[4096];",
		"ld.global.u32 %x, [%in]; mov.u64 %d, 0;\n"+body+"\nst.global.u64 [%out], %d;"), true)
	in, rnd := make([]uint64, 4*threads), rand.New(rand.NewPCG(5, 6))
	for i := range threads {
		x = append(x, rnd.Uint32()>>(rnd.Uint32()%31))
		in[4*i] = uint64(x[i])
	}
	out := r.alloc(8*threads, "out")
	r.launch("k", d1(1), d1(threads), Options{Checks: AllChecks}, r.upload(in, "in"), out)
	return x, download[uint64](r, out, threads)
}

func TestWarpOperations(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       func(x []uint32, i int) uint64
	}{
		{"up", "shfl.sync.up.b32 %y|%p, %x, 3, 0, -1; selp.u32 %z, 1, 0, %p; mov.b64 %d, {%y, %z};", func(x []uint32, i int) uint64 {
			if i < 3 {
				return uint64(x[i])
			}
			return uint64(x[i-3]) | 1<<32
		}},
		{"down in parts of 8", "shfl.sync.down.b32 %y|%p, %x, 2, 0x181f, -1; selp.u32 %z, 1, 0, %p; mov.b64 %d, {%y, %z};", func(x []uint32, i int) uint64 {
			if i%8 > 5 {
				return uint64(x[i])
			}
			return uint64(x[i+2]) | 1<<32
		}},
		{"bfly", "shfl.sync.bfly.b32 %y, %x, 5, 31, -1; cvt.u64.u32 %d, %y;", func(x []uint32, i int) uint64 { return uint64(x[i^5]) }},
		{"idx", "and.b32 %z, %x, 31; shfl.sync.idx.b32 %y, %x, %z, 31, -1; cvt.u64.u32 %d, %y;", func(x []uint32, i int) uint64 { return uint64(x[x[i]&31]) }},
		{"ballot", "setp.gt.u32 %p, %x, 1000; vote.sync.ballot.b32 %y, %p, -1; cvt.u64.u32 %d, %y;", func(x []uint32, i int) uint64 {
			var r uint64
			for j, v := range x {
				r |= simt.Bit(v > 1000) << j
			}
			return r
		}},
		{"any and all", "setp.gt.u32 %p, %x, 1000; vote.sync.any.pred %q, %p, -1; selp.u32 %y, 1, 0, %q; vote.sync.all.pred %q, %p, -1; selp.u32 %z, 1, 0, %q; mov.b64 %d, {%y, %z};",
			func([]uint32, int) uint64 { return 1 }},
		{"match any", "and.b32 %z, %x, 3; match.any.sync.b32 %y, %z, -1; cvt.u64.u32 %d, %y;", func(x []uint32, i int) uint64 {
			var r uint64
			for j, v := range x {
				r |= simt.Bit(v&3 == x[i]&3) << j
			}
			return r
		}},
		{"match all", "match.all.sync.b32 %y|%p, 7, -1; cvt.u64.u32 %d, %y;", func([]uint32, int) uint64 { return math.MaxUint32 }},
		{"redux", "redux.sync.add.u32 %y, %x, -1; redux.sync.max.s32 %z, %x, -1; mov.b64 %d, {%y, %z};", func(x []uint32, _ int) uint64 {
			var s uint32
			m := int32(math.MinInt32)
			for _, v := range x {
				s += v
				m = max(m, int32(v))
			}
			return uint64(s) | uint64(uint32(m))<<32
		}},
		{"divergent meeting", "setp.lt.u32 %p, %lane, 10; mov.u32 %y, 5; @%p bra A; mov.u32 %y, 6; A: shfl.sync.idx.b32 %z, %y, 31, 31, -1; cvt.u64.u32 %d, %z;", func([]uint32, int) uint64 { return 6 }},
		{"half masks", "setp.lt.u32 %p, %lane, 16; @%p bra A; redux.sync.add.u32 %y, 1, 0xffff0000; bra B; A: redux.sync.add.u32 %y, 2, 0xffff; B: cvt.u64.u32 %d, %y;", func(_ []uint32, i int) uint64 {
			return map[bool]uint64{true: 32, false: 16}[i < 16]
		}},
		{"activemask", "setp.lt.u32 %p, %lane, 9; @%p bra A; bra B; A: activemask.b32 %y; cvt.u64.u32 %d, %y; B:", func(_ []uint32, i int) uint64 { return simt.Bit(i < 9) * 511 }},
		{"table", "ts: .branchtargets A, B, C; rem.u32 %y, %lane, 3; brx.idx %y, ts; A: mov.u64 %d, 10; bra E; B: mov.u64 %d, 20; bra E; C: mov.u64 %d, 30; E:",
			func(_ []uint32, i int) uint64 { return uint64(i%3+1) * 10 }},
		{"carry", "add.cc.u32 %y, %x, -5; addc.u32 %z, 1, 2; mov.b64 %d, {%y, %z};", func(x []uint32, i int) uint64 { return uint64(x[i]) + 0xfffffffb + 3<<32 }},
		{"matrix", "mul.lo.u32 %z, %lane, 16; mov.u32 %y, s; add.u32 %z, %y, %z; mul.lo.u32 %m, %lane, 0x10001; st.shared.v4.u32 [%z], {%m,%m,%m,%m}; bar.warp.sync -1;" +
			"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r0,%r1,%r2,%r3}, [%z]; mov.b64 %d, {%r0, %r3};", func(_ []uint32, i int) uint64 {
			q := uint64(i % 4)
			lo := 2*q | (2*q+1)<<16
			return lo | (lo+0x180018)<<32
		}},
		{"movmatrix", "mul.lo.u32 %y, %lane, 2; mul.lo.u32 %z, %y, 0x10001; add.u32 %z, %z, 0x10000; movmatrix.sync.aligned.m8n8.trans.b16 %y, %z; cvt.u64.u32 %d, %y;", func(_ []uint32, i int) uint64 {
			g, q := uint64(i/4), uint64(i%4)
			return 16*q + g | (16*q+8+g)<<16
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, d := runWarp(t, 32, c.body)
			for i, got := range d {
				if want := c.want(x, i); got != want {
					t.Fatalf("lane %d has %x, want %x", i, got, want)
				}
			}
		})
	}
}

func TestBarriers(t *testing.T) {
	// A reduction over the block, and a hand-over from one warp to another by arrive and sync.
	_, d := runWarp(t, 96, "and.b32 %y, %lane, 1; setp.eq.u32 %p, %y, 1; bar.red.popc.u32 %z, 0, %p; cvt.u64.u32 %d, %z;")
	for i, v := range d {
		if v != 48 {
			t.Fatalf("thread %d counted %d", i, v)
		}
	}
	_, d = runWarp(t, 64, "setp.ge.u32 %p, %lane, 32; and.b32 %y, %lane, 31; shl.b32 %y, %y, 2; mov.u32 %z, s; add.u32 %z, %z, %y;"+
		"@%p bra C; st.shared.u32 [%z], %lane; bar.arrive 3, 64; bra E; C: bar.sync 3, 64; ld.shared.u32 %y, [%z]; cvt.u64.u32 %d, %y; E:")
	for i := range 32 {
		if d[32+i] != uint64(i) {
			t.Fatalf("thread %d got %d", 32+i, d[32+i])
		}
	}
}

func TestAtomics(t *testing.T) {
	for _, c := range []struct {
		inst string
		want uint64
	}{
		{"atom.shared.add.u32 %y, [s], 2;", 64 + 7}, {"red.shared.max.u32 [s], %lane;", 31}, {"red.shared.min.s32 [s], -4;", 0xfffffffc},
		{"atom.shared.inc.u32 %y, [s], 9;", 9}, {"atom.shared.dec.u32 %y, [s], 5;", 5}, {"red.shared.xor.b32 [s], %lane;", 7},
		{"atom.shared.cas.b32 %y, [s], 7, 100;", 100}, {"atom.shared.exch.b32 %y, [s], 3;", 3}, {"red.shared.or.b32 [s], 256;", 263},
		{"red.shared.and.b32 [s], 5;", 5}, {"red.shared.add.noftz.f16x2 [s], 0x3c003c00;", 0x50005000},
	} {
		start := 7
		if c.want == 0x50005000 {
			start = 0
		}
		if c.inst[:15] == "atom.shared.dec" {
			start, c.want = 0, 4 // 0 wraps to 5, then down; 32 steps of a cycle of 6
		}
		body := fmt.Sprintf("setp.eq.u32 %%p, %%lane, 0; @%%p st.shared.u32 [s], %d; bar.warp.sync -1; %s bar.warp.sync -1; ld.shared.u32 %%y, [s]; cvt.u64.u32 %%d, %%y;", start, c.inst)
		_, d := runWarp(t, 32, body)
		if c.inst[:15] == "atom.shared.inc" {
			c.want = (7+32)%10 - 0
		}
		if d[5] != c.want {
			t.Errorf("%s leaves %x, want %x", c.inst, d[5], c.want)
		}
	}
}

// TestMMA compares every shape and type with the product of the matrices, found through the documented layouts by its own
// formulas; integer and double forms exactly.
func TestMMA(t *testing.T) {
	for _, c := range []struct {
		name          string
		a, b, cd      int // registers
		m, k          int
		set, dst      string
		ra, rb, rc    func(l, i int) (int, int)
		per, perC     int
		value         func(v int) uint64
		result        func(bits uint64) float64
		width, widthC int
	}{
		{"m16n8k8.row.col.f32.tf32.tf32.f32", 4, 2, 4, 16, 8, "b32", "b32", func(l, i int) (int, int) { return l/4 + i%2*8, l%4 + i/2*4 },
			func(l, i int) (int, int) { return l%4 + i*4, l / 4 }, func(l, i int) (int, int) { return l/4 + i/2*8, l%4*2 + i%2 }, 1, 1,
			func(v int) uint64 { return uint64(math.Float32bits(float32(v))) }, func(b uint64) float64 { return float64(math.Float32frombits(uint32(b))) }, 32, 32},
		{"m16n8k16.row.col.f32.f16.f16.f32", 4, 2, 4, 16, 16, "b32", "b32", func(l, i int) (int, int) { return l/4 + i/2%2*8, l%4*2 + i%2 + i/4*8 },
			func(l, i int) (int, int) { return l%4*2 + i%2 + i/2*8, l / 4 }, func(l, i int) (int, int) { return l/4 + i/2*8, l%4*2 + i%2 }, 2, 1,
			func(v int) uint64 { return oracleHalf(v) }, func(b uint64) float64 { return float64(math.Float32frombits(uint32(b))) }, 16, 32},
		{"m16n8k16.row.col.f16.f16.f16.f16", 4, 2, 2, 16, 16, "b32", "b32", func(l, i int) (int, int) { return l/4 + i/2%2*8, l%4*2 + i%2 + i/4*8 },
			func(l, i int) (int, int) { return l%4*2 + i%2 + i/2*8, l / 4 }, func(l, i int) (int, int) { return l/4 + i/2*8, l%4*2 + i%2 }, 2, 2,
			func(v int) uint64 { return oracleHalf(v) }, halfValue, 16, 16},
		{"m16n8k8.row.col.f32.bf16.bf16.f32", 2, 1, 4, 16, 8, "b32", "b32", func(l, i int) (int, int) { return l/4 + i/2*8, l%4*2 + i%2 },
			func(l, i int) (int, int) { return l%4*2 + i, l / 4 }, func(l, i int) (int, int) { return l/4 + i/2*8, l%4*2 + i%2 }, 2, 1,
			func(v int) uint64 { return uint64(math.Float32bits(float32(v)) >> 16) }, func(b uint64) float64 { return float64(math.Float32frombits(uint32(b))) }, 16, 32},
		{"m16n8k32.row.col.s32.s8.s8.s32", 4, 2, 4, 16, 32, "b32", "b32", func(l, i int) (int, int) { return l/4 + i/4%2*8, l%4*4 + i%4 + i/8*16 },
			func(l, i int) (int, int) { return l%4*4 + i%4 + i/4*16, l / 4 }, func(l, i int) (int, int) { return l/4 + i/2*8, l%4*2 + i%2 }, 4, 1,
			func(v int) uint64 { return uint64(uint8(v)) }, func(b uint64) float64 { return float64(int32(b)) }, 8, 32},
		{"m8n8k4.row.col.f64.f64.f64.f64", 1, 1, 2, 8, 4, "b64", "b64", func(l, _ int) (int, int) { return l / 4, l % 4 },
			func(l, _ int) (int, int) { return l % 4, l / 4 }, func(l, i int) (int, int) { return l / 4, l%4*2 + i }, 1, 1,
			func(v int) uint64 { return math.Float64bits(float64(v)) }, math.Float64frombits, 64, 64},
	} {
		for _, numerics := range []Numerics{Float32, Exact, Truncating} {
			rnd := rand.New(rand.NewPCG(9, uint64(c.k)))
			var a, b [32][32]int
			for i := range a {
				for j := range a[i] {
					a[i][j], b[i][j] = rnd.IntN(7)-3, rnd.IntN(7)-3
				}
			}
			bytesOf := max(c.width, 32) / 8
			lane := (c.a + c.b) * bytesOf
			in := make([]byte, 32*lane)
			for l := range 32 {
				for i := range c.a * c.per {
					r, k := c.ra(l, i)
					numbers.Put(in[l*lane+i*c.width/8:], c.width/8, c.value(a[r][k]))
				}
				for i := range c.b * c.per {
					k, n := c.rb(l, i)
					numbers.Put(in[l*lane+c.a*bytesOf+i*c.width/8:], c.width/8, c.value(b[k][n]))
				}
			}
			n := max(c.widthC, 32) / 8
			regs, load, list := "", "", [3]string{}
			for i := range c.a + c.b {
				regs += fmt.Sprintf(".reg .%s %%i%d; ", c.set, i)
				load += fmt.Sprintf("ld.global.%s %%i%d, [%%in+%d]; ", c.set, i, i*bytesOf)
				list[min(i/c.a, 1)] += fmt.Sprintf(", %%i%d", i)
			}
			store := ""
			for i := range c.cd {
				regs += fmt.Sprintf(".reg .%s %%o%d; ", c.dst, i)
				load += fmt.Sprintf("mov.%s %%o%d, 0; ", c.dst, i)
				store += fmt.Sprintf("st.global.%s [%%out+%d], %%o%d; ", c.dst, i*n, i)
				list[2] += fmt.Sprintf(", %%o%d", i)
			}
			body := fmt.Sprintf("ld.param.u64 %%in, [in]; ld.param.u64 %%out, [out]; mul.wide.u32 %%at, %%lane, %d; add.s64 %%in, %%in, %%at; mul.wide.u32 %%at, %%lane, %d; add.s64 %%out, %%out, %%at; %s mma.sync.aligned.%s {%s}, {%s}, {%s}, {%s}; %s",
				lane, c.cd*n, load, c.name, list[2][2:], list[0][2:], list[1][2:], list[2][2:], store)
			r := newRig(t, wrap(regs, body), false)
			out := r.alloc(32*c.cd*n, "out")
			r.launch("k", d1(1), d1(32), Options{Numerics: numerics}, r.upload(in, "in"), out)
			got := download[byte](r, out, 32*c.cd*n)
			for l := range 32 {
				for i := range c.cd * c.perC {
					row, col := c.rc(l, i)
					want := 0
					for k := range c.k {
						want += a[row][k] * b[k][col]
					}
					if v := c.result(numbers.Get(got[l*c.cd*n+i*c.widthC/8:], c.widthC/8)); v != float64(want) {
						t.Fatalf("%s: (%d,%d) is %v, want %d", c.name, row, col, v, want)
					}
				}
			}
		}
	}
}

// oracleHalf is a small integer as float16.
func oracleHalf(v int) uint64 {
	return map[int]uint64{0: 0, 1: 0x3c00, 2: 0x4000, 3: 0x4200, -1: 0xbc00, -2: 0xc000, -3: 0xc200}[v]
}

func halfValue(b uint64) float64 {
	v, _ := oracle.Formats["f16"].Value(b & 0xffff)
	f, _ := v.Float64()
	return f
}

// TestCounters compares with figures found by hand.
func TestCounters(t *testing.T) {
	count := func(threads int, body string) Counters {
		r := newRig(t, wrap(".reg .b32 %r<9>; .reg .b64 %a; .reg .f32 %f<5>; .shared .align 16 .b8 s[8192];", body), false)
		rep := r.launch("k", d1(1), d1(threads), Options{Counters: true}, r.upload(make([]uint64, 4*128), "in"), r.alloc(8*128, "out"))
		return rep.Counters
	}
	const prologue, exits = 7, 1 // instructions of wrap before and after the body; the implicit exit is not reached
	c := count(64, "add.u32 %r1, %lane, 1; setp.lt.u32 %p, %lane, 48; @%p bra A; add.u32 %r1, %r1, 1; A: add.f32 %f1, 0f3f800000, 0f3f800000;")
	if want := uint64(2*(prologue+3+1+exits) + 1); c.Instructions != want || c.Branches != 2 || c.Divergent != 1 || c.ByClass["float32"] != 2 ||
		c.LaneInstructions != 64*(prologue+3+1+exits)+16 {
		t.Errorf("instructions %+v, want %d", c, want)
	}
	for _, x := range []struct {
		name, body                            string
		sectors, requests, wavefronts, shared uint64
	}{
		{"contiguous", "mul.wide.u32 %a, %lane, 4; ld.param.u64 %in, [in]; add.s64 %a, %in, %a; ld.global.u32 %r1, [%a];", 4, 1, 0, 0},
		{"stride 32", "ld.global.u32 %r1, [%in];", 32, 1, 0, 0},
		{"vector", "ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%in];", 32, 1, 0, 0},
		{"one address", "ld.param.u64 %in, [in]; ld.global.u32 %r1, [%in];", 1, 1, 0, 0},
		{"banks 1", "shl.b32 %r1, %lane, 2; ld.shared.u32 %r2, [%r1];", 0, 0, 1, 1},
		{"banks 2", "shl.b32 %r1, %lane, 3; ld.shared.u32 %r2, [%r1];", 0, 0, 2, 1},
		{"banks 32", "shl.b32 %r1, %lane, 7; ld.shared.u32 %r2, [%r1];", 0, 0, 32, 1},
		{"banks 33", "mul.lo.u32 %r1, %lane, 132; ld.shared.u32 %r2, [%r1];", 0, 0, 1, 1},
		{"broadcast", "ld.shared.u32 %r2, [s+64];", 0, 0, 1, 1},
		{"shared v4", "shl.b32 %r1, %lane, 4; ld.shared.v4.u32 {%r1,%r2,%r3,%r4}, [%r1];", 0, 0, 4, 1},
	} {
		c := count(32, x.body)
		if c.GlobalSectors != x.sectors || c.GlobalRequests != x.requests || c.SharedWavefronts != x.wavefronts || c.SharedRequests != x.shared {
			t.Errorf("%s: %+v", x.name, c)
		}
	}
}

// TestDeterminism: reports and bits do not depend on cores; findings neither.
func TestDeterminism(t *testing.T) {
	mutant, _ := mutate(t, source(t), "scan", "bar.sync \t0;", "", 2)
	var first string
	for cores := 1; cores <= 4; cores++ {
		r := newRig(t, mutant, true)
		rep, err := r.try("scan", d1(6), d1(256), Options{Checks: AllChecks, Seed: 11, Cores: cores, Counters: true}, r.upload(make([]uint32, 6*256), "x"), r.alloc(6*1024, "y"))
		if err != nil {
			t.Fatal(err)
		}
		if s := fmt.Sprint(rep); cores == 1 {
			first = s
		} else if s != first {
			t.Fatalf("on %d cores\n%s\non one\n%s", cores, s, first)
		}
	}
}

// TestParameterByAddress reads a structure that a function gets by value through its address, as .param, as LLVM writes it.
func TestParameterByAddress(t *testing.T) {
	r := newRig(t, strings.Replace(wrap(".reg .b64 %x, %d; .param .align 8 .b8 p[16]; .param .b64 q;",
		"ld.global.u64 %x, [%in]; st.param.b64 [p], %at; st.param.b64 [p+8], %x; call (q), f, (p); ld.param.b64 %d, [q]; st.global.u64 [%out], %d;"),
		".visible", ".func (.param .b64 r) f(.param .align 8 .b8 s[16])\n{\n.reg .b64 %a, %v;\nmov.b64 %a, s; ld.param.u64 %v, [%a+8]; st.param.b64 [r], %v;\nret;\n}\n.visible", 1), true)
	in := make([]uint64, 4*32)
	for i := range in {
		in[i] = uint64(i * i)
	}
	out := r.alloc(8*32, "out")
	r.launch("k", d1(1), d1(32), Options{Checks: AllChecks}, r.upload(in, "in"), out)
	for i, got := range download[uint64](r, out, 32) {
		if got != in[4*i] {
			t.Errorf("lane %d has %d, expected %d", i, got, in[4*i])
		}
	}
}
