package main

import (
	"fmt"
	"strings"
)

// neon is the vector instruction set of ARM's 64-bit processors.
var neon = isa{name: "NEON", reg: "V", bytes: 16, regs: 32, height: 12}

// arm reports whether the set is ARM's.
func (s isa) arm() bool { return s.reg == neon.reg }

// armOp is an instruction of up to three registers: the destination, and two operands in ARM's order. Where Go's assembler
// has it, bits is 0 and text is Go's. What it lacks is written as a word: bits with the numbers of the registers, and text,
// ARM's own, beside it. The test has another assembler make the words of the texts.
type armOp struct {
	text string
	bits uint32
}

var (
	fadd   = armOp{"fadd v%d.4s, v%d.4s, v%d.4s", 0x4e20d400}
	fsub   = armOp{"fsub v%d.4s, v%d.4s, v%d.4s", 0x4ea0d400}
	fmul   = armOp{"fmul v%d.4s, v%d.4s, v%d.4s", 0x6e20dc00}
	fdiv   = armOp{"fdiv v%d.4s, v%d.4s, v%d.4s", 0x6e20fc00}
	fmax   = armOp{"fmax v%d.4s, v%d.4s, v%d.4s", 0x4e20f400}
	fmin   = armOp{"fmin v%d.4s, v%d.4s, v%d.4s", 0x4ea0f400}
	fcmeq  = armOp{"fcmeq v%d.4s, v%d.4s, v%d.4s", 0x4e20e400}
	fcmge  = armOp{"fcmge v%d.4s, v%d.4s, v%d.4s", 0x6e20e400}
	fcmgt  = armOp{"fcmgt v%d.4s, v%d.4s, v%d.4s", 0x6ea0e400}
	faddp  = armOp{"faddp v%d.4s, v%d.4s, v%d.4s", 0x6e20d400}
	bic    = armOp{"bic v%d.16b, v%d.16b, v%d.16b", 0x4e601c00}
	iadd   = armOp{"VADD V%[3]d.S4, V%[2]d.S4, V%[1]d.S4", 0}
	isub   = armOp{"VSUB V%[3]d.S4, V%[2]d.S4, V%[1]d.S4", 0}
	and    = armOp{"VAND V%[3]d.B16, V%[2]d.B16, V%[1]d.B16", 0}
	or     = armOp{"VORR V%[3]d.B16, V%[2]d.B16, V%[1]d.B16", 0}
	xor    = armOp{"VEOR V%[3]d.B16, V%[2]d.B16, V%[1]d.B16", 0}
	fmla   = armOp{"VFMLA V%[3]d.S4, V%[2]d.S4, V%[1]d.S4", 0}   // adds to the destination
	fmls   = armOp{"VFMLS V%[3]d.S4, V%[2]d.S4, V%[1]d.S4", 0}   // subtracts from it
	choice = armOp{"VBSL V%[3]d.B16, V%[2]d.B16, V%[1]d.B16", 0} // the second where the destination has ones, else the third

	fsqrt   = armOp{"fsqrt v%d.4s, v%d.4s", 0x6ea1f800}
	fneg    = armOp{"fneg v%d.4s, v%d.4s", 0x6ea0f800}
	frintn  = armOp{"frintn v%d.4s, v%d.4s", 0x4e218800}
	fcvtns  = armOp{"fcvtns v%d.4s, v%d.4s", 0x4e21a800}
	scvtf   = armOp{"scvtf v%d.4s, v%d.4s", 0x4e21d800}
	below0  = armOp{"fcmlt v%d.4s, v%d.4s, #0.0", 0x4ea0e800}
	upTo0   = armOp{"fcmle v%d.4s, v%d.4s, #0.0", 0x6ea0d800}
	widen   = armOp{"fcvtl v%d.2d, v%d.2s", 0x0e617800}
	widen2  = armOp{"fcvtl2 v%d.2d, v%d.4s", 0x4e617800}
	narrow  = armOp{"fcvtn v%d.2s, v%d.2d", 0x0e616800}
	narrow2 = armOp{"fcvtn2 v%d.4s, v%d.2d", 0x4e616800}
	fromF16 = armOp{"fcvtl v%d.4s, v%d.4h", 0x0e217800}
	toF16   = armOp{"fcvtn v%d.4h, v%d.4s", 0x0e216800}
	low16   = armOp{"xtn v%d.4h, v%d.4s", 0x0e612800}
	fmaxv   = armOp{"fmaxv s%d, v%d.4s", 0x6e30f800}
	faddpD  = armOp{"faddp d%d, v%d.2d", 0x7e70d800}
	uminv   = armOp{"uminv s%d, v%d.4s", 0x6eb1a800}
	copyOf  = armOp{"VMOV V%[2]d.B16, V%[1]d.B16", 0}
	one32   = armOp{"FMOVS F%[2]d, F%[1]d", 0} // lane 0, the others zero
	one64   = armOp{"FMOVD F%[2]d, F%[1]d", 0}
	each32  = armOp{"VDUP V%[2]d.S[0], V%[1]d.S4", 0}
	each64  = armOp{"VDUP V%[2]d.D[0], V%[1]d.D2", 0}
)

// neonOps are the instructions for what blocks and norms name as AVX2 does: a name, and what it has before its registers.
var neonOps = map[string]armOp{
	"VADDPS": fadd, "VSUBPS": fsub, "VMULPS": fmul, "VDIVPS": fdiv, "VMAXPS": fmax,
	"VADDPD": fadd.doubles(), "VSUBPD": fsub.doubles(), "VMULPD": fmul.doubles(),
	"VANDPS": and, "VORPS": or, "VXORPS": xor, "VPADDD": iadd, "VPSUBD": isub,
	"VFMADD%sPS": fmla, "VFNMADD%sPS": fmls, "VFMSUB%sPS": fmla, "VFMADD%sPD": fmla.doubles(), "VFNMADD%sPD": fmls.doubles(),
	"VSQRTPS": fsqrt, "VROUNDPS $8,": frintn, "VROUNDPD $8,": frintn.doubles(), "VCVTPS2DQ": fcvtns, "VCVTDQ2PS": scvtf,
	"VCVTPH2PS": fromF16, "VPMOVZXWD": {"VUXTL V%[2]d.H4, V%[1]d.S4", 0},
}

// doubles is the same on float64.
func (op armOp) doubles() armOp {
	if op.bits == 0 {
		return armOp{strings.ReplaceAll(op.text, ".S4", ".D2"), 0}
	}
	return armOp{strings.ReplaceAll(op.text, ".4s", ".2d"), op.bits | 1<<22}
}

// neonOf is the instruction of a name; shifts have their distance in it.
func neonOf(name string) armOp {
	if op, ok := neonOps[name]; ok {
		return op
	}
	var by int
	shift, _, _ := strings.Cut(name, " ")
	if _, err := fmt.Sscanf(name, shift+" $%d,", &by); err == nil {
		switch shift {
		case "VPSRLD":
			return armOp{fmt.Sprintf("VUSHR $%d, V%%[2]d.S4, V%%[1]d.S4", by), 0}
		case "VPSLLD":
			return armOp{fmt.Sprintf("VSHL $%d, V%%[2]d.S4, V%%[1]d.S4", by), 0}
		case "VPSRAD":
			return sshr(by)
		}
	}
	panic("no instruction of NEON is known for " + name)
}

// sshr moves int32 lanes to the right, keeping signs.
func sshr(by int) armOp {
	return armOp{fmt.Sprintf("sshr v%%d.4s, v%%d.4s, #%d", by), 0x4f000400 | uint32(64-by)<<16}
}

// arm writes an instruction: of the destination and one or two operands.
func (f *file) arm(op armOp, registers ...int) {
	args := make([]any, len(registers))
	for i, r := range registers {
		args[i] = r
	}
	text := fmt.Sprintf(op.text, args...)
	if op.bits == 0 {
		f.op("%s", text)
		return
	}
	bits := op.bits
	for i, r := range registers {
		bits |= uint32(r) << [3]int{0, 5, 16}[i]
	}
	f.word(bits, text)
}

// word writes an instruction that Go's assembler lacks.
func (f *file) word(bits uint32, text string) { f.op("WORD $0x%08x // %s", bits, text) }

// addLane adds the product of a vector and of a lane of another to sums.
func (f *file) addLane(s isa, sum, vector, other, lane int) {
	if s.double {
		f.word(0x4fc01000|uint32(other<<16|lane<<11|vector<<5|sum), fmt.Sprintf("fmla v%d.2d, v%d.2d, v%d.d[%d]", sum, vector, other, lane))
		return
	}
	f.word(0x4f801000|uint32(lane&1<<21|other<<16|lane>>1<<11|vector<<5|sum), fmt.Sprintf("fmla v%d.4s, v%d.4s, v%d.s[%d]", sum, vector, other, lane))
}

// clearArm clears a register.
func (f *file) clearArm(r int) { f.arm(xor, r, r, r) }

// loadsArm moves parameters of one word into registers; each pair is "name+offset" and the register.
func (f *file) loadsArm(pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		f.op("MOVD %s(FP), %s", pairs[i], pairs[i+1])
	}
}

// loopArm is loop.
func (f *file) loopArm(counter string, step int, body func()) {
	top, end := f.label("loop"), f.label("done")
	f.op("SUBS $%d, %s, %s", step, counter, counter)
	f.op("BLT %s", end)
	f.op("PCALIGN $16")
	f.mark(top)
	body()
	f.op("SUBS $%d, %s, %s", step, counter, counter)
	f.op("BGE %s", top)
	f.mark(end)
	f.op("ADD $%d, %s", step, counter)
}
