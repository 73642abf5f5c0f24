package main

import (
	"fmt"
	"strings"
)

// The family "lanes" is an interpreter of whole-warp operations for package internal/gpusim/lanes: each operation is a handler, a
// function that ends in a jump to the handler of the next instruction. An instruction is eight words of 32 bits: the
// number of its handler, then operands, which are offsets in bytes into the warp's registers.
//
// While it runs, R8 points to the instruction, R9 to the frame, R10 to the table of handlers; SI, DI and R12 to the
// registers of 32 and of 64 bits and to the predicates. AX, BX, CX, DX, R11, R13 and R15 are free, as are the vector
// registers but for the highest, which holds the quiet NaN that PTX gives.

// level is a vector instruction set.
type level struct {
	name  string
	reg   string
	bytes int
	nan   string
}

var levels = []*level{{"512", "Z", 64, "Z31"}, {"256", "Y", 32, "Y15"}}

func (l *level) wide() bool { return l.bytes == 64 }

// r is vector register i.
func (l *level) r(i int) string { return fmt.Sprintf("%s%d", l.reg, i) }

// handler is an operation; write returns false where the level has no form of it, and gpusim's Go code serves.
type handler struct {
	name  string
	words int // of the instruction; 0 for one that goes elsewhere
	doc   string
	write func(f *file, l *level) bool
}

// operand is the place in an instruction of the offset of an operand.
const (
	opD   = 4
	opA   = 8
	opB   = 12
	opC   = 16
	opE   = 20
	opX   = 24
	opImm = 28
)

func lanes(f *file) {
	var all []handler
	all = append(all, handler{"leave", 8, "returns to Go at this instruction", func(f *file, _ *level) bool {
		f.op("MOVQ R8, Frame_Pc(R9)")
		f.leave()
		return true
	}})
	all = append(all, branches()...)
	all = append(all, arithmetic()...)
	all = append(all, comparisons()...)
	all = append(all, moves()...)
	all = append(all, memory()...)
	all = append(all, copies()...)
	all = append(all, matrices()...)
	f.constants()
	fmt.Fprintf(&f.plain, "// The operations of the assembly.\nconst (\n")
	for i, h := range all {
		eq := ""
		if i == 0 {
			eq = " Op = iota"
		}
		fmt.Fprintf(&f.plain, "\t%s%s // %s\n", title(h.name), eq, h.doc)
	}
	fmt.Fprintf(&f.plain, "\tNumOps\n)\n")
	for _, l := range levels {
		f.enter(l)
		has := make([]bool, len(all))
		for i, h := range all {
			has[i] = f.handler(l, h)
		}
		f.table(l, all, has)
	}
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// enter writes the function that Go calls.
func (f *file) enter(l *level) {
	f.function("lanes"+l.name, "runs instructions from pc on until one must be done in Go, whose address it leaves in the frame.", "f *Frame, pc *Inst", 16)
	f.loads("f+0", "R9", "pc+8", "R8")
	f.op("MOVQ Frame_R(R9), SI")
	f.op("MOVQ Frame_Q(R9), DI")
	f.op("MOVQ Frame_P(R9), R12")
	f.op("LEAQ table%s<>(SB), R10", l.name)
	f.op("VBROADCASTSS nan32<>(SB), %s", l.nan)
	f.dispatch()
}

func (f *file) dispatch() {
	f.op("MOVL (R8), AX")
	f.op("MOVQ (R10)(AX*8), AX")
	f.op("JMP AX")
}

// next ends a handler.
func (f *file) next(words int) {
	if words > 0 {
		f.op("ADDQ $%d, R8", 4*words)
	}
	f.dispatch()
}

func (f *file) handler(l *level, h handler) bool {
	mark := f.asm.Len()
	f.leaving = ""
	fmt.Fprintf(&f.asm, "\nTEXT %s%s<>(SB), NOSPLIT, $0-0\n", h.name, l.name)
	if !h.write(f, l) {
		f.asm.Truncate(mark)
		return false
	}
	if h.name != "leave" {
		f.next(h.words)
	}
	if f.leaving != "" {
		f.mark(f.leaving)
		f.op("JMP leave%s<>(SB)", l.name)
	}
	return true
}

// branches lists the jumps to other chains. Both parts of the instruction have the same fields; the first is for the
// branch that is taken.
func branches() []handler {
	return []handler{
		{"branch", 0, "goes on where p[d]^a of all lanes says, a part of the instruction for each way", func(f *file, _ *level) bool {
			one := f.label("one")
			f.fetch(opD, "BX")
			f.op("MOVL (R12)(BX*1), AX")
			f.op("XORL %d(R8), AX", opA)
			f.op("MOVQ R8, R15")
			f.op("CMPL AX, $-1")
			f.op("JEQ %s", one)
			f.op("TESTL AX, AX")
			f.orLeave("JNE")
			f.op("ADDQ $32, R15")
			f.mark(one)
			f.jump()
			f.op("INCQ Frame_Jumps(R9)")
			return true
		}},
		{"guard", 8, "skips b bytes if p[d]^a holds in no lane", func(f *file, _ *level) bool {
			all := f.label("all")
			f.fetch(opD, "BX")
			f.op("MOVL (R12)(BX*1), AX")
			f.op("XORL %d(R8), AX", opA)
			f.op("CMPL AX, $-1")
			f.op("JEQ %s", all)
			f.op("TESTL AX, AX")
			f.orLeave("JNE")
			f.op("MOVL %d(R8), AX", opB)
			f.op("LEAQ -32(R8)(AX*1), R8")
			f.mark(all)
			return true
		}},
		{"jump", 0, "goes on elsewhere", func(f *file, _ *level) bool {
			f.op("MOVQ R8, R15")
			f.jump()
			return true
		}},
	}
}

// jump begins the chain that the part of the instruction at R15 names, unless others are to have a turn.
func (f *file) jump() {
	f.op("MOVQ Frame_Left(R9), DX")
	f.op("TESTQ DX, DX")
	f.orLeave("JLE")
	f.op("MOVL %d(R15), AX", opC-4)
	f.op("SUBQ AX, DX")
	f.op("MOVQ DX, Frame_Left(R9)")
	f.op("MOVL %d(R15), AX", opX)
	f.op("ADDQ AX, Frame_Steps(R9)")
	f.op("MOVL %d(R15), BX", opE)
	f.op("MOVQ BX, Frame_Block(R9)")
	f.op("MOVQ Frame_Chains(R9), CX")
	f.op("INCQ (CX)(BX*8)")
	f.op("MOVL $0, Frame_Tag(R9)")
	f.op("MOVL %d(R15), R8", opC)
	f.op("ADDQ Frame_Prog(R9), R8")
}

// table writes the addresses of the handlers, and for Go which of them there are.
func (f *file) table(l *level, all []handler, has []bool) {
	f.asm.WriteByte('\n')
	fmt.Fprintf(&f.stubs, "\n// has%s are the operations that lanes%s has.\nvar has%s = [NumOps]bool{", l.name, l.name, l.name)
	for i, h := range all {
		name := h.name
		if !has[i] {
			name = all[0].name
		} else {
			fmt.Fprintf(&f.stubs, "%s: true,", title(h.name))
		}
		fmt.Fprintf(&f.asm, "DATA table%s<>+%d(SB)/8, $%s%s<>(SB)\n", l.name, 8*i, name, l.name)
	}
	fmt.Fprintf(&f.stubs, "}\n")
	fmt.Fprintf(&f.asm, "GLOBL table%s<>(SB), RODATA, $%d\n", l.name, 8*len(all))
}

// data32 writes a read-only vector of words.
func (f *file) data32(name string, words []uint32) {
	f.asm.WriteByte('\n')
	for i, w := range words {
		fmt.Fprintf(&f.asm, "DATA %s<>+%d(SB)/4, $%d\n", name, 4*i, w)
	}
	fmt.Fprintf(&f.asm, "GLOBL %s<>(SB), RODATA|NOPTR, $%d\n", name, 4*len(words))
}

// vector is n words by a rule.
func vector(n int, f func(i int) int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(f(i))
	}
	return out
}

func (f *file) constants() {
	f.data32("nan32", []uint32{0x7fffffff})
	f.data32("sign32", []uint32{0x80000000})
	f.data32("abs32", []uint32{0x7fffffff})
	f.data32("high16", []uint32{0xffff0000})
	f.data32("low13", []uint32{0xffffe000})
	f.data32("low16", []uint32{0xffff})
	f.data32("bits32", vector(32, func(i int) int { return 1 << i }))
	f.data32("narrow", []uint32{0, 2, 4, 6, 0, 2, 4, 6})
	for _, n := range []int{2, 4, 8, 16} {
		f.data32(fmt.Sprintf("by%d", n), vector(16, func(i int) int { return n * i }))
	}
	f.data32("quads", vector(16, func(i int) int { return i % 4 * 16 }))
	for j := range 4 {
		f.data32(fmt.Sprintf("of4x%d", j), vector(16, func(i int) int { return (4*i + j) & 31 }))
	}
	for j := range 2 {
		f.data32(fmt.Sprintf("of2x%d", j), vector(16, func(i int) int { return 2*i + j }))
	}
	for _, size := range []uint32{2, 4, 8, 16} {
		f.data32(fmt.Sprintf("wrong4x%d", size), []uint32{0x80000000 | (size - 1)})
		f.data32(fmt.Sprintf("wrong8x%d", size), []uint32{0x80000000 | (size - 1), 0xffffffff})
	}
	f.floatConstants()
	f.matrixConstants()
}

// pieces runs body for each register that a bank's 32 values of size bytes take.
func (l *level) pieces(size int, body func(i, at int)) {
	for i := range 32 * size / l.bytes {
		body(i, i*l.bytes)
	}
}

// fetch loads the offsets of operands into registers.
func (f *file) fetch(pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		f.op("MOVL %d(R8), %s", pairs[i], pairs[i+1])
	}
}

// bank is the register that points to a bank of registers of size bytes.
func bank(size int) string {
	if size == 8 {
		return "DI"
	}
	return "SI"
}

// at addresses a part of an operand.
func at(offset int, size int, reg string) string {
	return fmt.Sprintf("%d(%s)(%s*1)", offset, bank(size), reg)
}

// simple is a handler of one instruction over 2 operands of a size: d = a op b.
func simple(name, doc string, size int, op512, op256 string) handler {
	return handler{name, 8, doc, func(f *file, l *level) bool {
		op := op512
		if !l.wide() {
			op = op256
		}
		if op == "" {
			return false
		}
		f.fetch(opD, "DX", opA, "BX", opB, "CX")
		l.pieces(size, func(i, o int) {
			f.op("VMOVUPS %s, %s", at(o, size, "BX"), l.r(i))
			f.op("%s %s, %s, %s", op, at(o, size, "CX"), l.r(i), l.r(i))
		})
		l.pieces(size, func(i, o int) { f.op("VMOVUPS %s, %s", l.r(i), at(o, size, "DX")) })
		return true
	}}
}

// canonical replaces every NaN in register r by PTX's; k is a mask register and t a vector register to use.
func (f *file) canonical(l *level, r, k, t int) {
	if l.wide() {
		f.op("VCMPPS $3, %s, %s, K%d", l.r(r), l.r(r), k)
		f.op("VMOVAPS %s, K%d, %s", l.nan, k, l.r(r))
		return
	}
	f.op("VCMPPS $3, %s, %s, %s", l.r(r), l.r(r), l.r(t))
	f.op("VBLENDVPS %s, %s, %s, %s", l.r(t), l.nan, l.r(r), l.r(r))
}

// float is simple with NaN made PTX's.
func float(name, op string) handler {
	return handler{name, 8, "d = " + op + "(a, b), NaN canonical", func(f *file, l *level) bool {
		f.fetch(opD, "DX", opA, "BX", opB, "CX")
		l.pieces(4, func(i, o int) {
			f.op("VMOVUPS %s, %s", at(o, 4, "BX"), l.r(i))
			f.op("%s %s, %s, %s", op, at(o, 4, "CX"), l.r(i), l.r(i))
			f.canonical(l, i, i+1, i+4)
			f.op("VMOVUPS %s, %s", l.r(i), at(o, 4, "DX"))
		})
		return true
	}}
}

// arithmetic lists the operations on numbers.
func arithmetic() []handler {
	all := []handler{
		simple("add32", "d = a + b", 4, "VPADDD", "VPADDD"), simple("sub32", "d = a - b", 4, "VPSUBD", "VPSUBD"),
		simple("mul32", "d = a · b", 4, "VPMULLD", "VPMULLD"),
		simple("and32", "d = a & b", 4, "VPANDD", "VPAND"), simple("or32", "d = a | b", 4, "VPORD", "VPOR"),
		simple("xor32", "d = a ^ b", 4, "VPXORD", "VPXOR"),
		simple("shl32", "d = a << b", 4, "VPSLLVD", "VPSLLVD"), simple("shr32", "d = a >> b", 4, "VPSRLVD", "VPSRLVD"),
		simple("sar32", "d = a >> b, signed", 4, "VPSRAVD", "VPSRAVD"),
		simple("minS32", "d = min(a, b)", 4, "VPMINSD", "VPMINSD"), simple("maxS32", "d = max(a, b)", 4, "VPMAXSD", "VPMAXSD"),
		simple("minU32", "d = min(a, b)", 4, "VPMINUD", "VPMINUD"), simple("maxU32", "d = max(a, b)", 4, "VPMAXUD", "VPMAXUD"),
		simple("add64", "d = a + b", 8, "VPADDQ", "VPADDQ"), simple("sub64", "d = a - b", 8, "VPSUBQ", "VPSUBQ"),
		simple("and64", "d = a & b", 8, "VPANDQ", "VPAND"), simple("or64", "d = a | b", 8, "VPORQ", "VPOR"),
		simple("mul64", "d = a · b", 8, "VPMULLQ", ""),
		float("addF", "VADDPS"), float("subF", "VSUBPS"), float("mulF", "VMULPS"), float("divF", "VDIVPS"),
	}
	return append(all, mad32(), fmaF(), wide("mulWideS", "VPMOVSXDQ", "VPMULDQ", false), wide("mulWideU", "VPMOVZXDQ", "VPMULUDQ", false),
		wide("madWideS", "VPMOVSXDQ", "VPMULDQ", true), wide("madWideU", "VPMOVZXDQ", "VPMULUDQ", true),
		shift64("shl64", "VPSLLVQ", true), shift64("shr64", "VPSRLVQ", true), shift64("sar64", "VPSRAVQ", false), sqrtF(),
		signBit("negF", "sign32", "VPXORD", "VPXOR"), signBit("absF", "abs32", "VPANDD", "VPAND"),
		extreme("maxF", "VMAXPS", "VANDPS"), extreme("minF", "VMINPS", "VORPS"), pairBF16(), exp2F())
}

func mad32() handler {
	return handler{"mad32", 8, "d = a · b + c", func(f *file, l *level) bool {
		f.fetch(opD, "DX", opA, "BX", opB, "CX", opC, "R11")
		l.pieces(4, func(i, o int) {
			f.op("VMOVUPS %s, %s", at(o, 4, "BX"), l.r(i))
			f.op("VPMULLD %s, %s, %s", at(o, 4, "CX"), l.r(i), l.r(i))
			f.op("VPADDD %s, %s, %s", at(o, 4, "R11"), l.r(i), l.r(i))
			f.op("VMOVUPS %s, %s", l.r(i), at(o, 4, "DX"))
		})
		return true
	}}
}

func fmaF() handler {
	return handler{"fmaF", 8, "d = a · b + c rounded once, NaN canonical", func(f *file, l *level) bool {
		f.fetch(opD, "DX", opA, "BX", opB, "CX", opC, "R11")
		l.pieces(4, func(i, o int) {
			f.op("VMOVUPS %s, %s", at(o, 4, "BX"), l.r(i+4))
			f.op("VMOVUPS %s, %s", at(o, 4, "R11"), l.r(i))
			f.op("VFMADD231PS %s, %s, %s", at(o, 4, "CX"), l.r(i+4), l.r(i))
			f.canonical(l, i, i+1, i+4)
			f.op("VMOVUPS %s, %s", l.r(i), at(o, 4, "DX"))
		})
		return true
	}}
}

func sqrtF() handler {
	return handler{"sqrtF", 8, "d = √a, NaN canonical", func(f *file, l *level) bool {
		f.fetch(opD, "DX", opA, "BX")
		l.pieces(4, func(i, o int) {
			f.op("VSQRTPS %s, %s", at(o, 4, "BX"), l.r(i))
			f.canonical(l, i, i+1, i+4)
			f.op("VMOVUPS %s, %s", l.r(i), at(o, 4, "DX"))
		})
		return true
	}}
}

// signBit combines a with a constant.
func signBit(name, constant, op512, op256 string) handler {
	return handler{name, 8, "d = a with another sign", func(f *file, l *level) bool {
		op := op256
		if l.wide() {
			op = op512
		}
		f.fetch(opD, "DX", opA, "BX")
		f.op("VBROADCASTSS %s<>(SB), %s", constant, l.r(5))
		l.pieces(4, func(i, o int) {
			f.op("%s %s, %s, %s", op, at(o, 4, "BX"), l.r(5), l.r(i))
			f.op("VMOVUPS %s, %s", l.r(i), at(o, 4, "DX"))
		})
		return true
	}}
}

// wide multiplies 32 bits to 64 and may add 64.
func wide(name, extend, mul string, add bool) handler {
	doc := "d = a · b of 64 bits"
	if add {
		doc += " + c"
	}
	return handler{name, 8, doc, func(f *file, l *level) bool {
		f.fetch(opD, "DX", opA, "BX", opB, "CX")
		if add {
			f.fetch(opC, "R11")
		}
		l.pieces(8, func(i, o int) {
			f.op("%s %s, %s", extend, at(o/2, 4, "BX"), l.r(0))
			f.op("%s %s, %s", extend, at(o/2, 4, "CX"), l.r(1))
			f.op("%s %s, %s, %s", mul, l.r(1), l.r(0), l.r(0))
			if add {
				f.op("VPADDQ %s, %s, %s", at(o, 8, "R11"), l.r(0), l.r(0))
			}
			// The destination may share memory with nothing that is still to be read: banks differ, c is read in place.
			f.op("VMOVUPS %s, %s", l.r(0), at(o, 8, "DX"))
		})
		return true
	}}
}

// shift64 shifts 64 bits by a count of 32.
func shift64(name, op string, narrow bool) handler {
	return handler{name, 8, "d = a shifted by b", func(f *file, l *level) bool {
		if !narrow && !l.wide() {
			return false
		}
		f.fetch(opD, "DX", opA, "BX", opB, "CX")
		l.pieces(8, func(i, o int) {
			f.op("VPMOVZXDQ %s, %s", at(o/2, 4, "CX"), l.r(1))
			f.op("VMOVUPS %s, %s", at(o, 8, "BX"), l.r(0))
			f.op("%s %s, %s, %s", op, l.r(1), l.r(0), l.r(0))
			f.op("VMOVUPS %s, %s", l.r(0), at(o, 8, "DX"))
		})
		return true
	}}
}
