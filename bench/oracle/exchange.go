package main

import (
	"fmt"
	"strconv"
	"strings"
)

// exchanger is how threads give words to each other. In the text for the device @@ is a barrier of the block; the host
// runs what lies between two @@ for all threads in turn. Where host is empty, the device's text serves both.
//
// @v is a word, @w another, @c a condition, @n 1 to 63, @l 1 to 31, @o an operator, @k a lane, @b a bit of a lane number,
// @M the lanes of a warp whose number differs from @k in that bit, @z and @Z the segment of a shuffle, of 4 to 32 lanes, as
// its size and as the instruction has it, @s a word's atomic operation, @S one of 64 bits.
type exchanger struct{ dev, host string }

var exchangers = []exchanger{
	{"sh[t] = @v; @@ s.i1 ^= sh[t ^ @n]; s.i3 += sh[(t + @n) % 64];", ""},
	{"sl[t] = s.l0 + @v; @@ s.l1 ^= sl[t ^ @n]; s.i3 += (u32)(sl[(t + @n) % 64] >> 32);", ""},
	{"((u16 *)sh)[t ^ @n] = (u16)@v; ((u16 *)sh)[64 + t] = (u16)(@w); @@ s.i1 ^= sh[(t + @n) % 64];", ""},
	{"for (u32 j = 0; j < 4; j++) ((unsigned char *)sh)[(t + j * @n) % 64 * 4 + j] = (unsigned char)(@v >> j); @@ s.i2 += sh[t];", ""},
	{"for (u32 j = 0; j < (@n & 3) + 1; j++) { sh[t] = @v ^ j; @@ s.i1 += sh[(t + @n) % 64]; @@ }",
		"} for (u32 j = 0; j < (@n & 3) + 1; j++) { EACH sh[t] = @v ^ j; @@ s.i1 += sh[(t + @n) % 64]; } } {"},
	{"sh[t] = @v; @@ for (u32 d = 32; d; d /= 2) { if (t < d) sh[t] @o= sh[t + d]; @@ } s.i2 ^= sh[0];",
		"sh[t] = @v; } for (u32 d = 32; d; d /= 2) for (u32 t = 0; t < d; t++) sh[t] @o= sh[t + d]; EACH s.i2 ^= sh[0];"},
	{"__nvvm_cp_async_ca_shared_global_4((__attribute__((address_space(3))) void *)&sh[t], (__attribute__((address_space(1))) const void *)(in + (@v) % 768)); __nvvm_cp_async_wait_all(); @@ s.i1 += sh[t ^ @n];",
		"sh[t] = in[(@v) % 768]; @@ s.i1 += sh[t ^ @n];"},

	{"s.i1 ^= __nvvm_shfl_sync_idx_i32(~0u, @v, @w, @Z + 31);", "sh[t] = @v; @@ s.i1 ^= sh[(t & ~(@z - 1)) | ((@w) & (@z - 1))];"},
	{"s.i1 ^= __nvvm_shfl_sync_bfly_i32(~0u, @v, @l, 31);", "sh[t] = @v; @@ s.i1 ^= sh[t ^ @l];"},
	{"s.i2 += __nvvm_shfl_sync_up_i32(~0u, @v, @l, @Z);", "sh[t] = @v; @@ s.i2 += sh[(t & (@z - 1)) >= @l ? t - @l : t];"},
	{"s.i2 += __nvvm_shfl_sync_down_i32(~0u, @v, @l, @Z + 31);", "sh[t] = @v; @@ s.i2 += sh[(t & (@z - 1)) + @l < @z ? t + @l : t];"},
	{"if ((t ^ @k) & @b) s.i1 ^= __nvvm_shfl_sync_bfly_i32(@M, @v, @l & ~@b, 31); else s.i2 += __nvvm_shfl_sync_bfly_i32(~@M, @v, 31 & ~@b, 31);",
		"sh[t] = @v; @@ if ((t ^ @k) & @b) s.i1 ^= sh[t ^ (@l & ~@b)]; else s.i2 += sh[t ^ (31 & ~@b)];"},
	{"for (u32 d = 16; d; d /= 2) s.i2 @o= __nvvm_shfl_sync_bfly_i32(~0u, s.i2, d, 31);",
		"} for (u32 d = 16; d; d /= 2) { EACH sh[t] = s.i2; @@ s.i2 @o= sh[t ^ d]; } } {"},

	{"s.i1 ^= __nvvm_vote_ballot_sync(~0u, @c);", "sh[t] = @c; @@ s.i1 ^= ballot(sh, t);"},
	{"if ((t ^ @k) & @b) s.i1 ^= __nvvm_vote_ballot_sync(@M, @c);", "sh[t] = @c; @@ if ((t ^ @k) & @b) s.i1 ^= ballot(sh, t) & @M;"},
	{"s.i1 += __nvvm_vote_any_sync(~0u, @c) * 2 + __nvvm_vote_all_sync(~0u, @c);", "sh[t] = @c; @@ s.i1 += (ballot(sh, t) != 0) * 2 + (ballot(sh, t) == ~0u);"},
	{"s.i1 += __nvvm_vote_uni_sync(~0u, @c);", "sh[t] = @c; @@ s.i1 += ballot(sh, t) + 1 < 2;"},
	{"s.i2 ^= __nvvm_match_any_sync_i32(~0u, (@v) & 3);", "sh[t] = (@v) & 3; @@ for (u32 j = 0; j < 32; j++) s.i2 ^= (u32)(sh[(t & 32) + j] == sh[t]) << j;"},
	{"s.i2 ^= __nvvm_redux_sync_@r(@v, ~0u);", "sh[t] = @v; @@ u32 y = sh[t & 32]; for (u32 j = 1; j < 32; j++) y = redux_@r(y, sh[(t & 32) + j]); s.i2 ^= y;"},
	{"s.i1 += __nvvm_bar0_popc(@c);", "sh[t] = @c; @@ for (u32 j = 0; j < 64; j++) s.i1 += sh[j];"},
	{"s.i1 += __nvvm_bar0_and(@c) + 2 * __nvvm_bar0_or(@c);", "sh[t] = @c; @@ s.i1 += (ballot(sh, 0) == ~0u && ballot(sh, 32) == ~0u) + 2 * (ballot(sh, 0) != 0 || ballot(sh, 32) != 0);"},

	{"sh[t] = @v; @@ __atomic_fetch_@s[(@w) & 63], @v, __ATOMIC_RELAXED); @@ s.i1 ^= sh[t];", ""},
	{"sh[t] = @v; @@ if (@c) __atomic_fetch_@s[(@w) % 5], @v, __ATOMIC_RELAXED); @@ s.i1 ^= sh[t];", ""},
	{"sl[t] = s.l1; @@ __atomic_fetch_@S[(@w) & 63], s.l0, __ATOMIC_RELAXED); @@ s.l1 += sl[t];", ""},
	{"out[t] = @v; @@ __atomic_fetch_@g[(@w) & 63], @v, __ATOMIC_RELAXED); @@ s.i1 += out[t]; @@", ""},
	{"sh[t] = @v; @@ { u32 old = 0, *p = &sh[(@w) & 63]; while (!__atomic_compare_exchange_n(p, &old, old * (@v | 1), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)); } @@ s.i1 ^= sh[t];", ""},
	{"sh[t] = @v; @@ __nvvm_atom_inc_gen_ui(&sh[(@w) & 63], @n); @@ s.i1 ^= sh[t];", "sh[t] = @v; @@ { u32 *p = &sh[(@w) & 63]; *p = *p >= @n ? 0 : *p + 1; } @@ s.i1 ^= sh[t];"},
	{"sh[t] = 0; @@ __nvvm_atom_add_gen_f((float *)&sh[(@w) & 63], (float)((@v) & 1023)); @@ s.f1 += ff(sh[t]);",
		"sh[t] = 0; @@ ((float *)sh)[(@w) & 63] += (float)((@v) & 1023); @@ s.f1 += ff(sh[t]);"},
}

// helpers are what the host has for instructions of a warp.
const helpers = `#ifndef __CUDA__
#define EACH for (u32 t = 0; t < 64; t++) { S &s = all[t];
static u32 ballot(const u32 *sh, u32 t) { u32 y = 0; for (u32 j = 0; j < 32; j++) y |= sh[(t & 32) + j] << j; return y; }
static u32 redux_add(u32 a, u32 b) { return a + b; }
static u32 redux_and(u32 a, u32 b) { return a & b; }
static u32 redux_or(u32 a, u32 b) { return a | b; }
static u32 redux_xor(u32 a, u32 b) { return a ^ b; }
static u32 redux_umin(u32 a, u32 b) { return a < b ? a : b; }
static u32 redux_umax(u32 a, u32 b) { return a > b ? a : b; }
static u32 redux_min(u32 a, u32 b) { return (int)a < (int)b ? a : b; }
static u32 redux_max(u32 a, u32 b) { return (int)a > (int)b ? a : b; }
#endif
`

// exchange draws an exchange and gives its text for the device and the host.
func (g *generator) exchange() (dev, host string) {
	g.scope = inPhase
	x := exchangers[g.IntN(len(exchangers))]
	size, k, bit, mask := 4<<g.IntN(4), g.IntN(32), 1<<g.IntN(5), uint32(0)
	for lane := range 32 {
		if (lane^k)&bit != 0 {
			mask |= 1 << lane
		}
	}
	atomic := func(at, signed string) string {
		if op := g.pick("add", "sub", "and", "or", "xor", "min", "max", ""); op != "" {
			return op + "(&" + at
		}
		return g.pick("min", "max") + "((" + signed + " *)&" + at
	}
	r := strings.NewReplacer("@v", g.pick("s.i0", "s.i2", "bf(s.f1)", "(u32)s.l0", "s.i3"), "@w", g.pick("s.i1", "s.i3", "(s.i0 + t)", "(u32)s.l1"),
		"@c", "(("+g.condition()+") != 0)", "@n", strconv.Itoa(1+g.IntN(threads-1)), "@l", strconv.Itoa(1+g.IntN(31)), "@o", g.pick("+", "^", "|", "&", "*"),
		"@k", strconv.Itoa(k), "@b", strconv.Itoa(bit), "@M", fmt.Sprintf("%#xu", mask), "@z", fmt.Sprintf("%du", size), "@Z", strconv.Itoa((32-size)<<8),
		"@s", atomic("sh", "int"), "@S", atomic("sl", "long long"), "@g", atomic("out", "int"),
		"@r", g.pick("add", "and", "or", "xor", "min", "max", "umin", "umax"))
	dev = r.Replace(x.dev)
	host = dev
	if x.host != "" {
		host = r.Replace(x.host)
	}
	if strings.Contains(dev, "@@") { // other exchanges may have been reading what this one writes
		dev = "@@ " + dev
	}
	return "\t" + strings.ReplaceAll(dev, "@@", "__syncthreads();") + "\n", "\tEACH " + strings.ReplaceAll(host, "@@", "} EACH") + " }\n"
}
