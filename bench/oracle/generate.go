package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// scope is what expressions and statements have to do with: variables of each type, and what else can be read.
type scope struct {
	i, l, f, d []string
	words      []string
	arrays     bool   // of s
	leave      string // ends the function
}

// Phases see the words of a thread, functions their arguments.
var (
	inPhase = &scope{
		i: []string{"s.i0", "s.i1", "s.i2", "s.i3"}, l: []string{"s.l0", "s.l1"}, f: []string{"s.f0", "s.f1", "s.f2", "s.f3"}, d: []string{"s.d0", "s.d1"},
		words:  []string{"s.a[3]", "s.a[s.i1&7]", "(u32)s.h[s.i2&3]", "(u32)s.c[s.i0&3]", "in[s.i3%768u]", "table[s.i1&63]"},
		arrays: true, leave: "return",
	}
	inFunction = &scope{i: []string{"x.a"}, l: []string{"x.b"}, f: []string{"x.f"}, d: []string{"y"}, words: []string{"table[x.a&63]"}, leave: "return x"}
)

// generator writes one kernel at a time.
type generator struct {
	*rand.Rand
	*scope
	b      strings.Builder
	kernel int
	calls  bool // there is a function
	loops  int
	depth  int // of nested statements
}

// program is a file of n kernels, k0 to k<n-1>.
func program(seed uint64, n, depth int) string {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 3)), depth: depth}
	g.b.WriteString(prelude + helpers)
	g.b.WriteString("CONST u32 table[64] = {")
	for range 64 {
		fmt.Fprintf(&g.b, "%du, ", g.Uint32()>>g.IntN(32))
	}
	g.b.WriteString("};\n")
	for g.kernel = range n {
		if g.calls = g.IntN(3) == 0; g.calls {
			g.function()
		}
		phases := 1 + (1+g.IntN(5))/3 // mostly two
		for p := range phases {
			fmt.Fprintf(&g.b, "%s void k%d_%d(S &s, u32 t, const u32 *in) {\n", g.pick("F", "F", "F", "N"), g.kernel, p)
			g.statements(inPhase, 1+g.IntN(2))
			g.b.WriteString("}\n")
		}
		g.launch(phases)
	}
	return g.b.String()
}

// function is one that clang does not inline, of structures by value.
func (g *generator) function() {
	fmt.Fprintf(&g.b, "N R k%d_f(R x, u32 t) {\n\tdouble y = 0.5;\n", g.kernel)
	g.statements(inFunction, 1+g.IntN(2))
	g.b.WriteString("x.a += d2s(y);\nreturn x;\n}\n")
}

func (g *generator) statements(in *scope, n int) {
	g.scope = in
	for range n {
		g.statement(g.depth)
	}
}

// launch strings phases together. Between them threads give words to each other.
func (g *generator) launch(phases int) {
	var dev, host strings.Builder
	for p := range phases {
		if p > 0 {
			d, h := g.exchange()
			dev.WriteString(d)
			host.WriteString(h)
		}
		fmt.Fprintf(&dev, "\tk%d_%d(s, t, in);\n", g.kernel, p)
		fmt.Fprintf(&host, "\tfor (u32 t = 0; t < %d; t++) k%d_%d(all[t], t, in);\n", threads, g.kernel, p)
	}
	fmt.Fprintf(&g.b, `#ifdef __CUDA__
extern "C" __attribute__((global)) void k%d(const u32 *in, u32 *out) {
	__attribute__((shared)) static u32 sh[%d];
	__attribute__((shared)) static u64 sl[%d];
	u32 t = __nvvm_read_ptx_sreg_tid_x();
	S s;
	load(s, in + t * %d);
%s	store(s, out + t * %d);
}
#else
static void k%d(const u32 *in, u32 *out) {
	static u32 sh[%d];
	static u64 sl[%d];
	static S all[%d];
	for (u32 t = 0; t < %d; t++) load(all[t], in + t * %d);
%s	for (u32 t = 0; t < %d; t++) store(all[t], out + t * %d);
}
#endif
`, g.kernel, threads, threads, inWords, dev.String(), outWords, g.kernel, threads, threads, threads, threads, inWords, host.String(), threads, outWords)
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
	k := g.IntN(15)
	if depth == 0 && k >= 8 {
		k = g.IntN(8)
	}
	switch k {
	case 0, 1:
		fmt.Fprintf(&g.b, "%s = %s;\n", g.pick(g.i...), g.u32(g.size()))
	case 2:
		fmt.Fprintf(&g.b, "%s = %s;\n", g.pick(g.l...), g.u64(g.size()))
	case 3, 4:
		fmt.Fprintf(&g.b, "%s = %s;\n", g.pick(g.f...), g.f32(g.size()))
	case 5:
		fmt.Fprintf(&g.b, "%s = %s;\n", g.pick(g.d...), g.f64(g.size()))
	case 6, 7:
		g.memory()
	case 8, 9, 10:
		fmt.Fprintf(&g.b, "if (%s) ", g.condition())
		g.block(depth - 1)
		if g.IntN(2) == 0 {
			g.b.WriteString("else ")
			g.block(depth - 1)
		}
	case 11, 12:
		g.loop(depth)
	case 13:
		fmt.Fprintf(&g.b, "switch (%s & 7) {\n", g.u32(1))
		for i := range 2 + g.IntN(5) {
			fmt.Fprintf(&g.b, "case %d: ", i)
			g.block(depth - 1)
			g.b.WriteString(g.pick("break;\n", "break;\n", ""))
		}
		g.b.WriteString("}\n")
	case 14:
		fmt.Fprintf(&g.b, "if (%s) %s;\n", g.condition(), g.leave)
	}
}

// size is the depth of an expression.
func (g *generator) size() int { return 1 + g.IntN(2) + g.IntN(5)/4 }

// memory is an assignment to an array, or a call, for which a structure is passed through memory.
func (g *generator) memory() {
	switch k := g.IntN(5); {
	case !g.arrays:
		fmt.Fprintf(&g.b, "%s ^= %s;\n", g.pick(g.i...), g.u32(2))
	case k < 2:
		fmt.Fprintf(&g.b, "s.a[%s & 7] %s %s;\n", g.u32(1), g.pick("=", "+=", "^="), g.u32(2))
	case k == 2 || !g.calls:
		fmt.Fprintf(&g.b, "s.%s[%s & 3] %s %s;\n", g.pick("h", "c"), g.u32(1), g.pick("=", "+=", "-="), g.u32(2))
	default:
		fmt.Fprintf(&g.b, "{ R r = k%d_f(R{(u32)%s, %s, %s}, t); %s = r.a; %s ^= r.b; %s = r.f; }\n", g.kernel, g.u32(1), g.u64(1), g.f32(1),
			g.pick(g.i...), g.pick(g.l...), g.pick(g.f...))
	}
}

// loop has a trip count that lanes differ in, and may be left early.
func (g *generator) loop(depth int) {
	g.loops++
	v := fmt.Sprintf("n%d", g.loops)
	post := "}\n"
	if g.IntN(3) == 0 {
		fmt.Fprintf(&g.b, "u32 %s = 0; do {\n", v)
		post = fmt.Sprintf("} while (++%s < (%s & 7) && %s);\n", v, g.u32(1), g.condition())
	} else {
		fmt.Fprintf(&g.b, "for (u32 %s = 0; %s < (%s & 7); %s++) {\n", v, v, g.u32(1), v)
	}
	g.block(depth - 1)
	switch g.IntN(4) {
	case 0:
		fmt.Fprintf(&g.b, "if (%s) break;\n", g.condition())
	case 1:
		fmt.Fprintf(&g.b, "if (%s) continue;\n", g.condition())
	}
	fmt.Fprintf(&g.b, "%s += %s;\n%s", g.pick(g.i...), v, post)
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
		return g.pick(g.pick(g.i...), g.pick(g.i...), g.pick(g.i...), "t", g.pick(g.words...), fmt.Sprintf("%du", g.Uint32()>>g.IntN(32)))
	}
	return g.fill(g.pick("($I+$I)", "($I-$I)", "($I*$I)", "($I&$I)", "($I|$I)", "($I^$I)", "(~$I)", "($I<<($I&31))", "($I>>($I&31))", "((u32)((int)$I>>($I&31)))",
		"($I/($I|1u))", "($I%($I|1u))", "sdiv($I,$I)", "srem($I,$I)", "($I<<$n)", "($I>>$n)", "($I*$I+$I)", "($c?$I:$I)", "($I<$I?$I:$I)", "((int)$I>(int)$I?$I:$I)",
		"(u32)__builtin_popcount($I)", "(u32)__builtin_clz($I|1u)", "(u32)__builtin_ctz($I|0x80000000u)", "__builtin_bitreverse32($I)",
		"__builtin_bswap32($I)", "__builtin_rotateleft32($I,$I)", "__builtin_rotateright32($I,$n)", "((u32)((u64)$I*$I>>32))",
		"((u32)((long long)(int)$I*(int)$I>>32))", "((u32)$L)", "((u32)($L>>32))", "((u32)(signed char)$I)", "((u32)(short)$I)", "((u32)(u16)$I)",
		"f2s($F)", "f2u($F)", "d2s($D)", "bf($F)", "(($I>>$n)&((1u<<$n)-1))", "($I<$I?$I-$I:$I-$I)", "((u16)$I*(u16)$I)", "((u32)((short)$I*(short)$I))",
		"(u32)__builtin_popcountll($L)", "(u32)__builtin_clzll($L|1)", "((u32)($L>>($I&63)))", "(u32)($F<$F)", "($I/1$nu)", "($I%2$nu)",
		"addo($I,$I)", "subo($I,$I)", "mulo($I,$I)", "PRMT($I,$I,$I)", "PRMT($I,$I,0x5410u)", "((u32)(((u64)$I<<32|$I)>>($I&31)))", "(u32)__builtin_ctzll($L|1ull<<63)"), depth)
}

func (g *generator) u64(depth int) string {
	if depth <= 0 {
		return g.pick(g.pick(g.l...), g.pick(g.l...), "(u64)"+g.pick(g.i...), "(u64)(long long)(int)"+g.pick(g.i...), fmt.Sprintf("%dull", g.Uint64()>>g.IntN(64)))
	}
	return g.fill(g.pick("($L+$L)", "($L-$L)", "($L*$L)", "($L&$L)", "($L|$L)", "($L^$L)", "(~$L)", "($L<<($I&63))", "($L>>($I&63))", "((u64)((long long)$L>>($I&63)))",
		"($L/($L|1))", "($L%($L|1))", "sdivl($L,$L)", "((u64)$I*$I)", "((u64)((long long)(int)$I*(int)$I))", "((u64)$I*$I+$L)", "($c?$L:$L)", "($L<$L?$L:$L)",
		"((long long)$L>(long long)$L?$L:$L)", "__builtin_bitreverse64($L)", "__builtin_bswap64($L)", "__builtin_rotateleft64($L,$I)", "d2l($D)", "f2l($F)",
		"bd($D)", "((u64)$I<<32|$I)", "((u64)((unsigned __int128)$L*$L>>64))",
		"addol($L,$L)", "mulol($L,$L)", "wide($L,$L,$L,$I)", "widel($L,$L,$I)"), depth)
}

func (g *generator) f32(depth int) string {
	if depth <= 0 {
		return g.pick(g.pick(g.f...), g.pick(g.f...), g.pick(g.f...), "1.0f", "0.5f", "(-3.25f)", fmt.Sprintf("%#xp%df", 1+g.Uint32()>>8, g.IntN(60)-50))
	}
	return g.fill(g.pick("($F+$F)", "($F-$F)", "($F*$F)", "($F/$F)", "($F*$F+$F)", "FMAF($F,$F,$F)", "FMAF(-$F,$F,$F)", "(-$F)", "__builtin_fabsf($F)",
		"SQRTF(__builtin_fabsf($F))", "SQRTF($F)", "minf($F,$F)", "maxf($F,$F)", "__builtin_floorf($F)", "__builtin_ceilf($F)", "__builtin_truncf($F)",
		"__builtin_rintf($F)", "((float)(int)$I)", "((float)$I)", "((float)$L)", "((float)(long long)$L)", "((float)$D)", "($c?$F:$F)", "($F<$F?$F:$F)",
		"((float)(_Float16)$F)", "(1.0f/$F)", "((float)(short)$I)", "((float)(unsigned char)$I)", "ff($I)", "($F-$F*$F)",
		"addh($F,$F)", "mulh($F,$F)", "__builtin_copysignf($F,nf($F))", "__builtin_roundf($F)"), depth)
}

func (g *generator) f64(depth int) string {
	if depth <= 0 {
		return g.pick(g.pick(g.d...), g.pick(g.d...), "1.0", "(-0.1)", "(double)"+g.pick(g.f...), fmt.Sprintf("%#xp%d", 1+g.Uint64()>>12, g.IntN(90)-80))
	}
	return g.fill(g.pick("($D+$D)", "($D-$D)", "($D*$D)", "($D/$D)", "FMA($D,$D,$D)", "($D*$D+$D)", "(-$D)", "__builtin_fabs($D)", "SQRT($D)", "mind($D,$D)", "maxd($D,$D)",
		"__builtin_floor($D)", "__builtin_ceil($D)", "__builtin_trunc($D)", "__builtin_rint($D)", "((double)(int)$I)", "((double)$I)", "((double)$L)",
		"((double)(long long)$L)", "((double)$F)", "($c?$D:$D)", "fd($L)",
		"__builtin_copysign($D,nd($D))", "__builtin_round($D)"), depth)
}
