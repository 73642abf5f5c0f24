package main

import (
	"fmt"
	"math"
)

// draws writes random numbers by Philox4x32-10, four blocks at a time: sixteen numbers of float32. Words are the lower halves of
// 64 bits, where their products have room; upper halves are what they may be. The arithmetic of float64 is that of package rng's
// Go code, operation by operation and with nothing fused, so that both have the same bits.
func draws(f *file) {
	d := &drawer{file: f}
	d.fill("uniformAVX2", "writes 16·turns numbers, of the block at index on:\n\n\tmin(float32(lo+width*unit24(r)), last)", "lo, width float64, last float32", 52, d.uniform)
	d.fill("normalAVX2", "writes 16·turns numbers, of the block at index on:\n\n\tfloat32(mean + std*z)", "mean, std float64", 48, d.normal)
	d.table()
}

// drawer writes functions with constants, each four times 64 bits.
type drawer struct {
	*file
	constants []uint64
}

// bits is where the constant is.
func (d *drawer) bits(c uint64) string {
	for i, have := range d.constants {
		if have == c {
			return fmt.Sprintf("drawn<>+%d(SB)", 32*i)
		}
	}
	d.constants = append(d.constants, c)
	return d.bits(c)
}

// words is a constant of each word, number one of each float64.
func (d *drawer) words(c uint32) string   { return d.bits(uint64(c)<<32 | uint64(c)) }
func (d *drawer) number(c float64) string { return d.bits(math.Float64bits(c)) }

func (d *drawer) table() {
	for i, c := range d.constants {
		for j := range 4 {
			fmt.Fprintf(&d.asm, "DATA drawn<>+%d(SB)/8, $%#x\n", 32*i+8*j, c)
		}
	}
	fmt.Fprintf(&d.asm, "GLOBL drawn<>(SB), RODATA|NOPTR, $%d\n", 32*len(d.constants))
	for i := range 4 {
		fmt.Fprintf(&d.asm, "DATA drawnOrder<>+%d(SB)/8, $%d\n", 8*i, i)
	}
	fmt.Fprintf(&d.asm, "GLOBL drawnOrder<>(SB), RODATA|NOPTR, $32\n")
}

// fill writes a function: Y8 and Y9 are the key, Y10 and Y11 what words are multiplied by, Y15 the indices of blocks.
func (d *drawer) fill(name, doc, params string, size int, numbers func()) {
	d.function(name, doc, "dst *float32, key Key, index uint64, turns int, "+params, size)
	d.loads("dst+0", "DI", "key+8", "AX", "index+16", "BX", "turns+24", "CX")
	d.op("VMOVQ AX, X8")
	d.op("VPBROADCASTD X8, Y8")
	d.op("SHRQ $32, AX")
	d.op("VMOVQ AX, X9")
	d.op("VPBROADCASTD X9, Y9")
	d.op("VMOVDQU %s, Y10", d.words(0xd2511f53))
	d.op("VMOVDQU %s, Y11", d.words(0xcd9e8d57))
	d.op("VMOVQ BX, X15")
	d.op("VPBROADCASTQ X15, Y15")
	d.op("VPADDQ drawnOrder<>(SB), Y15, Y15")
	d.loop("CX", 1, func() {
		d.philox()
		numbers()
		d.weave()
		d.op("ADDQ $64, DI")
		d.op("VPADDQ %s, Y15, Y15", d.bits(4))
	})
	d.leave()
}

// philox leaves the words of four blocks in Y0 to Y3. Words and products change registers in each round, and begin where after ten
// the words are in these.
func (d *drawer) philox() {
	c, p, q := [4]int{5, 2, 4, 0}, 1, 3
	d.op("VMOVDQA Y15, Y%d", c[0])
	d.op("VPSRLQ $32, Y15, Y%d", c[1])
	d.op("VPXOR Y%d, Y%[1]d, Y%[1]d", c[2])
	d.op("VPXOR Y%d, Y%[1]d, Y%[1]d", c[3])
	d.op("VMOVDQA Y8, Y12")
	d.op("VMOVDQA Y9, Y13")
	for round := range 10 {
		if round > 0 {
			d.op("VPADDD %s, Y12, Y12", d.words(0x9e3779b9))
			d.op("VPADDD %s, Y13, Y13", d.words(0xbb67ae85))
		}
		d.op("VPMULUDQ Y10, Y%d, Y%d", c[0], p)
		d.op("VPMULUDQ Y11, Y%d, Y%d", c[2], q)
		d.op("VPXOR Y12, Y%d, Y%[1]d", c[1])
		d.op("VPXOR Y13, Y%d, Y%[1]d", c[3])
		d.op("VPSRLQ $32, Y%d, Y%d", q, c[0])
		d.op("VPSRLQ $32, Y%d, Y%d", p, c[2])
		d.op("VPXOR Y%d, Y%d, Y%[2]d", c[0], c[1])
		d.op("VPXOR Y%d, Y%d, Y%[2]d", c[2], c[3])
		c, p, q = [4]int{c[1], q, c[3], p}, c[0], c[2]
	}
	if c != [4]int{0, 1, 2, 3} {
		panic("the words are elsewhere")
	}
}

// unsigned makes words numbers: beside the upper half of 2⁵², a word is 2⁵² more than it is.
func (d *drawer) unsigned(r int, less float64) {
	d.op("VPBLENDD $0xAA, %s, Y%d, Y%[2]d", d.number(0x1p52), r)
	d.op("VSUBPD %s, Y%d, Y%[2]d", d.number(0x1p52+less), r)
}

// uniform makes the words of Y0 to Y3 numbers in X0 to X3.
func (d *drawer) uniform() {
	d.op("VBROADCASTSD lo+32(FP), Y4")
	d.op("VBROADCASTSD width+40(FP), Y5")
	d.op("VBROADCASTSS last+48(FP), X6")
	for r := range 4 {
		d.op("VPSRLD $8, Y%d, Y%[1]d", r)
		d.unsigned(r, 0)
		d.op("VMULPD %s, Y%d, Y%[2]d", d.number(0x1p-24), r)
		d.op("VMULPD Y5, Y%d, Y%[1]d", r)
		d.op("VADDPD Y4, Y%d, Y%[1]d", r)
		d.op("VCVTPD2PSY Y%d, X%[1]d", r)
		d.op("VMINPS X%d, X6, X%[1]d", r)
	}
}

// normal is uniform for normal numbers.
func (d *drawer) normal() {
	for r := 0; r < 4; r += 2 {
		d.radius(r)
		d.angle(r + 1)
		d.op("VBROADCASTSD mean+32(FP), Y4")
		d.op("VBROADCASTSD std+40(FP), Y5")
		for _, z := range []int{12, 7} { // cosine and sine
			d.op("VMULPD Y%d, Y%d, Y%[2]d", r, z)
			d.op("VMULPD Y5, Y%d, Y%[1]d", z)
			d.op("VADDPD Y4, Y%d, Y%[1]d", z)
			d.op("VCVTPD2PSY Y%d, X%[1]d", z)
		}
		d.op("VMOVAPS X12, X%d", r)
		d.op("VMOVAPS X7, X%d", r+1)
	}
}

// horner is the polynomial in a register of these coefficients, the highest last.
func (d *drawer) horner(x, to int, coefficients ...float64) {
	last := len(coefficients) - 1
	d.op("VMULPD %s, Y%d, Y%d", d.number(coefficients[last]), x, to)
	for i := last - 1; i >= 0; i-- {
		d.op("VADDPD %s, Y%d, Y%[2]d", d.number(coefficients[i]), to)
		if i > 0 {
			d.op("VMULPD Y%d, Y%d, Y%[2]d", x, to)
		}
	}
}

// radius makes words √(-2·ln u) of u = (word + ½)/2³²: package rng's logUnit.
func (d *drawer) radius(r int) {
	d.unsigned(r, 0)
	d.op("VADDPD %s, Y%d, Y%[2]d", d.number(0.5), r)
	d.op("VMULPD %s, Y%d, Y%[2]d", d.number(0x1p-32), r)
	const root = 0x3fe6a09e667f3bcd // √½
	d.op("VPADDQ %s, Y%d, Y4", d.bits(0x3ff0000000000000-root), r)
	d.op("VPSRLQ $52, Y4, Y5")
	d.op("VPOR %s, Y5, Y5", d.number(0x1p52))
	d.op("VSUBPD %s, Y5, Y5", d.number(0x1p52+1023)) // k
	d.op("VPAND %s, Y4, Y4", d.bits(1<<52-1))
	d.op("VPADDQ %s, Y4, Y4", d.bits(root))
	d.op("VSUBPD %s, Y4, Y4", d.number(1)) // f
	d.op("VADDPD %s, Y4, Y6", d.number(2))
	d.op("VDIVPD Y6, Y4, Y6")  // s
	d.op("VMULPD Y6, Y6, Y7")  // s²
	d.op("VMULPD Y7, Y7, Y12") // s⁴
	d.horner(12, 13, 6.666666666666735130e-01, 2.857142874366239149e-01, 1.818357216161805012e-01, 1.479819860511658591e-01)
	d.op("VMULPD Y7, Y13, Y13") // t1
	d.horner(12, 14, 3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01)
	d.op("VMULPD Y12, Y14, Y14") // t2
	d.op("VMULPD Y4, Y4, Y7")
	d.op("VMULPD %s, Y7, Y7", d.number(0.5)) // half
	d.op("VADDPD Y13, Y7, Y13")
	d.op("VADDPD Y14, Y13, Y13")
	d.op("VMULPD Y13, Y6, Y6")
	d.op("VMULPD %s, Y5, Y12", d.number(1.90821492927058770002e-10))
	d.op("VADDPD Y12, Y6, Y6")
	d.op("VSUBPD Y6, Y7, Y7")
	d.op("VSUBPD Y4, Y7, Y7")
	d.op("VMULPD %s, Y5, Y5", d.number(6.93147180369123816490e-01))
	d.op("VSUBPD Y7, Y5, Y5")
	d.op("VMULPD %s, Y5, Y5", d.number(-2))
	d.op("VSQRTPD Y5, Y%d", r)
}

// angle leaves the sine of word/2³² turns in Y7 and the cosine in Y12: package rng's sincosTurn.
func (d *drawer) angle(r int) {
	d.op("VPADDD %s, Y%d, Y4", d.words(1<<29), r)
	d.op("VPSRLD $30, Y4, Y4") // the nearest quarter turn
	d.op("VPSLLD $30, Y4, Y5")
	d.op("VPSUBD Y5, Y%d, Y5", r)
	d.op("VPXOR %s, Y5, Y5", d.words(1<<31))
	d.unsigned(5, 0x1p31)
	d.op("VMULPD %s, Y5, Y5", d.number(2*math.Pi*0x1p-32)) // x
	d.op("VMULPD Y5, Y5, Y6")                              // z
	d.horner(6, 7, -1.66666666666666307295e-1, 8.33333333332211858878e-3, -1.98412698295895385996e-4, 2.75573136213857245213e-6, -2.50507477628578072866e-8, 1.58962301576546568060e-10)
	d.horner(6, 12, 4.16666666666665929218e-2, -1.38888888888730564116e-3, 2.48015872888517045348e-5, -2.75573141792967388112e-7, 2.08757008419747316778e-9, -1.13585365213876817300e-11)
	d.op("VMULPD Y6, Y5, Y13")
	d.op("VMULPD Y7, Y13, Y13")
	d.op("VADDPD Y13, Y5, Y5") // sine of the rest
	d.op("VMULPD %s, Y6, Y7", d.number(0.5))
	d.op("VMOVUPD %s, Y13", d.number(1))
	d.op("VSUBPD Y7, Y13, Y13")
	d.op("VMULPD Y6, Y6, Y6")
	d.op("VMULPD Y12, Y6, Y6")
	d.op("VADDPD Y6, Y13, Y13") // and its cosine
	d.op("VPSLLQ $63, Y4, Y6")
	d.op("VBLENDVPD Y6, Y13, Y5, Y7")
	d.op("VBLENDVPD Y6, Y5, Y13, Y12")
	d.op("VXORPD Y6, Y12, Y12")
	d.op("VPSRLQ $1, Y4, Y4")
	d.op("VPSLLQ $63, Y4, Y4")
	d.op("VXORPD Y4, Y7, Y7")
	d.op("VXORPD Y4, Y12, Y12")
}

// weave stores the numbers of X0 to X3, a block's one behind the other.
func (d *drawer) weave() {
	d.op("VUNPCKLPS X1, X0, X4")
	d.op("VUNPCKHPS X1, X0, X5")
	d.op("VUNPCKLPS X3, X2, X6")
	d.op("VUNPCKHPS X3, X2, X7")
	for i, half := range []string{"VMOVLHPS X6, X4, X0", "VMOVHLPS X4, X6, X0", "VMOVLHPS X7, X5, X0", "VMOVHLPS X5, X7, X0"} {
		d.op("%s", half)
		d.op("VMOVUPS X0, %d(DI)", 16*i)
	}
}
