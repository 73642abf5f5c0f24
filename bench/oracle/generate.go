package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// The shape of a generated kernel: one block of threads, each with its own words of input and output.
const (
	threads  = 64
	inWords  = 12
	outWords = 14
)

// prelude is what generated kernels are written in. The host sees one phase of all threads after the other, a block has
// barriers between them. NaN is made one before it is compared: its sign and payload differ between machines. Minimum and
// maximum get no NaN and no -0: which zero they give is open, and LLVM 19 drops the outer fabs of fabs(fmax(x, fabs(NaN))).
const prelude = `typedef unsigned int u32; typedef unsigned long long u64; typedef unsigned short u16;
struct S { u32 i0, i1, i2, i3, a[8]; u64 l0, l1; float f0, f1, f2, f3; double d0, d1; };
#ifdef __CUDA__
#define F static __attribute__((device)) inline
#define SQRTF __nvvm_sqrt_rn_f
#define SQRT __nvvm_sqrt_rn_d
#define FMAF __nvvm_fma_rn_f
#define FMA __nvvm_fma_rn_d
#else
#define F static inline
#define SQRTF __builtin_sqrtf
#define SQRT __builtin_sqrt
#define FMAF __builtin_fmaf
#define FMA __builtin_fma
#endif
F float ff(u32 b) { return __builtin_bit_cast(float, b); }
F double fd(u64 b) { return __builtin_bit_cast(double, b); }
F u32 bf(float f) { return f != f ? 0x7fffffffu : __builtin_bit_cast(u32, f); }
F u64 bd(double f) { return f != f ? 0x7fffffffffffffffull : __builtin_bit_cast(u64, f); }
F u32 sdiv(u32 a, u32 b) { return b + 1 < 2 ? a : (u32)((int)a / (int)b); }
F u32 srem(u32 a, u32 b) { return b + 1 < 2 ? a : (u32)((int)a % (int)b); }
F u64 sdivl(u64 a, u64 b) { return b + 1 < 2 ? a : (u64)((long long)a / (long long)b); }
F u32 f2s(float f) { return f > -2e9f && f < 2e9f ? (u32)(int)f : 77u; }
F u32 f2u(float f) { return f > -0.5f && f < 4e9f ? (u32)f : 78u; }
F u32 d2s(double f) { return f > -2e9 && f < 2e9 ? (u32)(int)f : 79u; }
F u64 d2l(double f) { return f > -9e18 && f < 9e18 ? (u64)(long long)f : 80u; }
F u64 f2l(float f) { return f > -0.5f && f < 1.8e19f ? (u64)f : 81u; }
F float nf(float f) { return f == f ? f + 0.0f : 1.5f; }
F double nd(double f) { return f == f ? f + 0.0 : 1.5; }
F float minf(float a, float b) { return __builtin_fminf(nf(a), nf(b)); }
F float maxf(float a, float b) { return __builtin_fmaxf(nf(a), nf(b)); }
F double mind(double a, double b) { return __builtin_fmin(nd(a), nd(b)); }
F double maxd(double a, double b) { return __builtin_fmax(nd(a), nd(b)); }
F void load(S &s, const u32 *p) {
	s.i0 = p[0]; s.i1 = p[1]; s.i2 = p[2]; s.i3 = p[3];
	s.l0 = p[4] | (u64)p[5] << 32; s.l1 = p[6] * (u64)p[7];
	s.f0 = ff(p[8]); s.f1 = ff(p[9]); s.f2 = (float)(int)p[0]; s.f3 = ff(p[8] ^ 0x80000000u) * 0.5f;
	s.d0 = fd(p[10] | (u64)p[11] << 32); s.d1 = (double)ff(p[9]);
	for (u32 k = 0; k < 8; k++) s.a[k] = p[k] * (k + 1);
}
F void store(const S &s, u32 *p) {
	u32 x = 0;
	for (u32 k = 0; k < 8; k++) x = x * 31 + s.a[k];
	p[0] = s.i0; p[1] = s.i1; p[2] = s.i2; p[3] = s.i3 ^ x;
	p[4] = (u32)s.l0; p[5] = (u32)(s.l0 >> 32); p[6] = (u32)s.l1; p[7] = (u32)(s.l1 >> 32);
	p[8] = bf(s.f0); p[9] = bf(s.f1); p[10] = bf(s.f2); p[11] = bf(s.f3);
	p[12] = (u32)bd(s.d0) ^ (u32)(bd(s.d1) >> 32); p[13] = (u32)(bd(s.d0) >> 32) ^ (u32)bd(s.d1);
}
`

// generator writes one kernel at a time.
type generator struct {
	*rand.Rand
	b     strings.Builder
	loops int
	depth int // of nested statements
}

// program is a file of n kernels, k0 to k<n-1>.
func program(seed uint64, n, depth int) string {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 3)), depth: depth}
	g.b.WriteString(prelude)
	for i := range n {
		phases := 1 + g.IntN(3)
		for p := range phases {
			fmt.Fprintf(&g.b, "F void k%d_%d(S &s, u32 t) {\n", i, p)
			for range 2 + g.IntN(4) {
				g.statement(g.depth)
			}
			g.b.WriteString("}\n")
		}
		g.kernel(i, phases)
	}
	return g.b.String()
}

// kernel strings phases together. Between them each thread gives a word to another.
func (g *generator) kernel(i, phases int) {
	var dev, host strings.Builder
	for p := range phases {
		if p > 0 {
			v, to := g.pick("s.i0", "s.i2", "bf(s.f1)", "(u32)s.l0"), 1+g.IntN(threads-1)
			fmt.Fprintf(&dev, "\t__syncthreads(); sh[t] = %s; __syncthreads(); s.i1 ^= sh[t ^ %d]; s.i3 += sh[(t + %d) %% %d];\n", v, to, to, threads)
			fmt.Fprintf(&host, "\tfor (u32 t = 0; t < %d; t++) { S &s = all[t]; sh[t] = %s; }\n", threads, v)
			fmt.Fprintf(&host, "\tfor (u32 t = 0; t < %d; t++) { S &s = all[t]; s.i1 ^= sh[t ^ %d]; s.i3 += sh[(t + %d) %% %d]; }\n", threads, to, to, threads)
		}
		fmt.Fprintf(&dev, "\tk%d_%d(s, t);\n", i, p)
		fmt.Fprintf(&host, "\tfor (u32 t = 0; t < %d; t++) k%d_%d(all[t], t);\n", threads, i, p)
	}
	fmt.Fprintf(&g.b, `#ifdef __CUDA__
extern "C" __attribute__((global)) void k%d(const u32 *in, u32 *out) {
	__attribute__((shared)) static u32 sh[%d];
	u32 t = __nvvm_read_ptx_sreg_tid_x();
	S s;
	load(s, in + t * %d);
%s	store(s, out + t * %d);
}
#else
static void k%d(const u32 *in, u32 *out) {
	static u32 sh[%d];
	static S all[%d];
	for (u32 t = 0; t < %d; t++) load(all[t], in + t * %d);
%s	for (u32 t = 0; t < %d; t++) store(all[t], out + t * %d);
}
#endif
`, i, threads, inWords, dev.String(), outWords, i, threads, threads, threads, inWords, host.String(), threads, outWords)
}

// driver is the main program of the host: for each set of inputs that it reads it writes the outputs of all kernels.
func driver(n int) string {
	var b strings.Builder
	b.WriteString("#ifndef __CUDA__\n#include <cstdio>\nint main() {\n\tstatic u32 in[")
	fmt.Fprintf(&b, "%d], out[%d];\n\twhile (fread(in, 1, sizeof in, stdin) == sizeof in) {\n", threads*inWords, threads*outWords)
	for i := range n {
		fmt.Fprintf(&b, "\tk%d(in, out); fwrite(out, 1, sizeof out, stdout);\n", i)
	}
	b.WriteString("\t}\n\treturn 0;\n}\n#endif\n")
	return b.String()
}

func (g *generator) pick(s ...string) string { return s[g.IntN(len(s))] }

func (g *generator) block(depth int) {
	g.b.WriteString("{\n")
	for range 1 + g.IntN(3) {
		g.statement(depth)
	}
	g.b.WriteString("}\n")
}

func (g *generator) statement(depth int) {
	k := g.IntN(12)
	if depth == 0 && k >= 7 {
		k = g.IntN(7)
	}
	switch k {
	case 0, 1:
		fmt.Fprintf(&g.b, "%s = %s;\n", g.pick("s.i0", "s.i1", "s.i2", "s.i3"), g.u32(3))
	case 2:
		fmt.Fprintf(&g.b, "%s = %s;\n", g.pick("s.l0", "s.l1"), g.u64(3))
	case 3, 4:
		fmt.Fprintf(&g.b, "%s = %s;\n", g.pick("s.f0", "s.f1", "s.f2", "s.f3"), g.f32(3))
	case 5:
		fmt.Fprintf(&g.b, "%s = %s;\n", g.pick("s.d0", "s.d1"), g.f64(3))
	case 6:
		fmt.Fprintf(&g.b, "s.a[%s & 7] %s %s;\n", g.u32(1), g.pick("=", "+=", "^="), g.u32(2))
	case 7, 8, 9:
		fmt.Fprintf(&g.b, "if (%s) ", g.condition())
		g.block(depth - 1)
		if g.IntN(2) == 0 {
			g.b.WriteString("else ")
			g.block(depth - 1)
		}
	case 10:
		g.loop(depth)
	case 11:
		fmt.Fprintf(&g.b, "switch (%s & 7) {\n", g.u32(1))
		for i := range 2 + g.IntN(5) {
			fmt.Fprintf(&g.b, "case %d: ", i)
			g.block(depth - 1)
			g.b.WriteString(g.pick("break;\n", "break;\n", ""))
		}
		g.b.WriteString("}\n")
	}
}

// loop has a trip count that lanes differ in, and may be left early.
func (g *generator) loop(depth int) {
	g.loops++
	v := fmt.Sprintf("k%d", g.loops)
	fmt.Fprintf(&g.b, "for (u32 %s = 0; %s < (%s & 7); %s++) {\n", v, v, g.u32(1), v)
	g.block(depth - 1)
	switch g.IntN(4) {
	case 0:
		fmt.Fprintf(&g.b, "if (%s) break;\n", g.condition())
	case 1:
		fmt.Fprintf(&g.b, "if (%s) continue;\n", g.condition())
	}
	fmt.Fprintf(&g.b, "s.i%d += %s;\n}\n", g.IntN(4), v)
}

func (g *generator) condition() string {
	rel := g.pick("<", "<=", ">", ">=", "==", "!=")
	switch g.IntN(6) {
	case 0:
		return fmt.Sprintf("%s %s %s", g.u32(1), rel, g.u32(1))
	case 1:
		return fmt.Sprintf("(int)%s %s (int)%s", g.u32(1), rel, g.u32(1))
	case 2:
		return fmt.Sprintf("%s %s %s", g.f32(1), rel, g.f32(1))
	case 3:
		return fmt.Sprintf("%s %s %s", g.f64(1), rel, g.f64(1))
	case 4:
		return fmt.Sprintf("(long long)%s %s (long long)%s", g.u64(1), rel, g.u64(1))
	}
	return fmt.Sprintf("(%s ^ t) & %d", g.u32(1), 1<<g.IntN(6))
}

// fill replaces $I, $L, $F and $D by expressions of that type, $c by a condition and $n by a small number.
func (g *generator) fill(pattern string, depth int) string {
	parts := strings.Split(pattern, "$")
	for i, p := range parts[1:] {
		x := ""
		switch p[0] {
		case 'I':
			x = g.u32(depth - 1)
		case 'L':
			x = g.u64(depth - 1)
		case 'F':
			x = g.f32(depth - 1)
		case 'D':
			x = g.f64(depth - 1)
		case 'c':
			x = "(" + g.condition() + ")"
		case 'n':
			x = strconv.Itoa(g.IntN(32))
		}
		parts[i+1] = x + p[1:]
	}
	return strings.Join(parts, "")
}

func (g *generator) u32(depth int) string {
	if depth <= 0 {
		return g.pick("s.i0", "s.i1", "s.i2", "s.i3", "t", "s.a[3]", fmt.Sprintf("%du", g.Uint32()>>g.IntN(32)), "s.a[s.i1&7]")
	}
	return g.fill(g.pick("($I+$I)", "($I-$I)", "($I*$I)", "($I&$I)", "($I|$I)", "($I^$I)", "(~$I)", "($I<<($I&31))", "($I>>($I&31))", "((u32)((int)$I>>($I&31)))",
		"($I/($I|1u))", "($I%($I|1u))", "sdiv($I,$I)", "srem($I,$I)", "($I<<$n)", "($I>>$n)", "($I*$I+$I)", "($c?$I:$I)", "($I<$I?$I:$I)", "((int)$I>(int)$I?$I:$I)",
		"(u32)__builtin_popcount($I)", "(u32)__builtin_clz($I|1u)", "(u32)__builtin_ctz($I|0x80000000u)", "__builtin_bitreverse32($I)",
		"__builtin_bswap32($I)", "__builtin_rotateleft32($I,$I)", "__builtin_rotateright32($I,$n)", "((u32)((u64)$I*$I>>32))",
		"((u32)((long long)(int)$I*(int)$I>>32))", "((u32)$L)", "((u32)($L>>32))", "((u32)(signed char)$I)", "((u32)(short)$I)", "((u32)(u16)$I)",
		"f2s($F)", "f2u($F)", "d2s($D)", "bf($F)", "(($I>>$n)&((1u<<$n)-1))", "($I<$I?$I-$I:$I-$I)", "((u16)$I*(u16)$I)", "((u32)((short)$I*(short)$I))",
		"(u32)__builtin_popcountll($L)", "(u32)__builtin_clzll($L|1)", "((u32)($L>>($I&63)))", "(u32)($F<$F)", "($I/1$nu)", "($I%2$nu)"), depth)
}

func (g *generator) u64(depth int) string {
	if depth <= 0 {
		return g.pick("s.l0", "s.l1", "(u64)s.i0", "(u64)(long long)(int)s.i1", fmt.Sprintf("%dull", g.Uint64()>>g.IntN(64)))
	}
	return g.fill(g.pick("($L+$L)", "($L-$L)", "($L*$L)", "($L&$L)", "($L|$L)", "($L^$L)", "(~$L)", "($L<<($I&63))", "($L>>($I&63))", "((u64)((long long)$L>>($I&63)))",
		"($L/($L|1))", "($L%($L|1))", "sdivl($L,$L)", "((u64)$I*$I)", "((u64)((long long)(int)$I*(int)$I))", "((u64)$I*$I+$L)", "($c?$L:$L)", "($L<$L?$L:$L)",
		"((long long)$L>(long long)$L?$L:$L)", "__builtin_bitreverse64($L)", "__builtin_bswap64($L)", "__builtin_rotateleft64($L,$I)", "d2l($D)", "f2l($F)",
		"bd($D)", "((u64)$I<<32|$I)", "((u64)((unsigned __int128)$L*$L>>64))"), depth)
}

func (g *generator) f32(depth int) string {
	if depth <= 0 {
		return g.pick("s.f0", "s.f1", "s.f2", "s.f3", "1.0f", "0.5f", "(-3.25f)", fmt.Sprintf("%#xp%df", 1+g.Uint32()>>8, g.IntN(60)-50))
	}
	return g.fill(g.pick("($F+$F)", "($F-$F)", "($F*$F)", "($F/$F)", "($F*$F+$F)", "FMAF($F,$F,$F)", "FMAF(-$F,$F,$F)", "(-$F)", "__builtin_fabsf($F)",
		"SQRTF(__builtin_fabsf($F))", "SQRTF($F)", "minf($F,$F)", "maxf($F,$F)", "__builtin_floorf($F)", "__builtin_ceilf($F)", "__builtin_truncf($F)",
		"__builtin_rintf($F)", "((float)(int)$I)", "((float)$I)", "((float)$L)", "((float)(long long)$L)", "((float)$D)", "($c?$F:$F)", "($F<$F?$F:$F)",
		"((float)(_Float16)$F)", "(1.0f/$F)", "((float)(short)$I)", "((float)(unsigned char)$I)", "ff($I)", "($F-$F*$F)"), depth)
}

func (g *generator) f64(depth int) string {
	if depth <= 0 {
		return g.pick("s.d0", "s.d1", "1.0", "(-0.1)", "(double)s.f0", fmt.Sprintf("%#xp%d", 1+g.Uint64()>>12, g.IntN(90)-80))
	}
	return g.fill(g.pick("($D+$D)", "($D-$D)", "($D*$D)", "($D/$D)", "FMA($D,$D,$D)", "($D*$D+$D)", "(-$D)", "__builtin_fabs($D)", "SQRT($D)", "mind($D,$D)", "maxd($D,$D)",
		"__builtin_floor($D)", "__builtin_ceil($D)", "__builtin_trunc($D)", "__builtin_rint($D)", "((double)(int)$I)", "((double)$I)", "((double)$L)",
		"((double)(long long)$L)", "((double)$F)", "($c?$D:$D)", "fd($L)"), depth)
}
