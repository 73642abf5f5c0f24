package main

import (
	"fmt"
	"math"
)

// extreme is min or max of float32: a NaN loses against a number, and -0 is below +0. The instruction gives its second
// operand for zeros and NaN, so both orders are taken: join makes +0 or -0 of two zeros.
func extreme(name, op, join string) handler {
	return handler{name, 8, "d = " + name + "(a, b)", func(f *file, l *level) bool {
		f.fetch(opD, "DX", opA, "BX", opB, "CX")
		l.pieces(4, func(_, o int) {
			f.op("VMOVUPS %s, %s", at(o, 4, "BX"), l.r(0))
			f.op("VMOVUPS %s, %s", at(o, 4, "CX"), l.r(1))
			f.op("%s %s, %s, %s", op, l.r(1), l.r(0), l.r(2))
			f.op("%s %s, %s, %s", op, l.r(0), l.r(1), l.r(3))
			f.op("%s %s, %s, %s", join, l.r(3), l.r(2), l.r(2))
			if l.wide() {
				f.op("VCMPPS $3, Z0, Z0, K1")
				f.op("VCMPPS $3, Z1, Z1, K2")
				f.op("VMOVAPS Z1, K1, Z2")
				f.op("VMOVAPS Z0, K2, Z2")
				f.op("KANDW K1, K2, K1")
				f.op("VMOVAPS Z31, K1, Z2")
			} else {
				f.op("VCMPPS $3, Y0, Y0, Y4")
				f.op("VCMPPS $3, Y1, Y1, Y5")
				f.op("VBLENDVPS Y4, Y1, Y2, Y2")
				f.op("VBLENDVPS Y5, Y0, Y2, Y2")
				f.op("VANDPS Y4, Y5, Y4")
				f.op("VBLENDVPS Y4, Y15, Y2, Y2")
			}
			f.op("VMOVUPS %s, %s", l.r(2), at(o, 4, "DX"))
		})
		return true
	}}
}

// pairBF16 rounds two float32 to bfloat16, a into the upper half.
func pairBF16() handler {
	return handler{"pairBF16", 8, "d = a and b as bfloat16", func(f *file, l *level) bool {
		f.fetch(opD, "DX", opA, "BX", opB, "CX")
		f.op("VPBROADCASTD low15<>(SB), %s", l.r(8))
		f.op("VPSRLD $14, %s, %s", l.r(8), l.r(9)) // one
		f.op("VPBROADCASTD high16<>(SB), %s", l.r(10))
		f.op("VPSLLD $16, %s, %s", l.r(8), l.r(11)) // the upper half of NaN
		and, or := "VPAND", "VPOR"
		if l.wide() {
			and, or = "VPANDD", "VPORD"
		}
		l.pieces(4, func(_, o int) {
			for i, from := range []string{"BX", "CX"} {
				f.op("VMOVUPS %s, %s", at(o, 4, from), l.r(i))
				f.op("VPSRLD $16, %s, %s", l.r(i), l.r(2))
				f.op("%s %s, %s, %s", and, l.r(9), l.r(2), l.r(2))
				f.op("VPADDD %s, %s, %s", l.r(8), l.r(2), l.r(2))
				f.op("VPADDD %s, %s, %s", l.r(i), l.r(2), l.r(2))
				f.op("%s %s, %s, %s", and, l.r(10), l.r(2), l.r(2))
				if l.wide() {
					f.op("VCMPPS $3, Z%d, Z%d, K1", i, i)
					f.op("VMOVAPS Z11, K1, Z2")
				} else {
					f.op("VCMPPS $3, Y%d, Y%d, Y3", i, i)
					f.op("VBLENDVPS Y3, Y11, Y2, Y2")
				}
				f.op("VMOVUPS %s, %s", l.r(2), l.r(i))
			}
			f.op("VPSRLD $16, %s, %s", l.r(1), l.r(1))
			f.op("%s %s, %s, %s", or, l.r(1), l.r(0), l.r(0))
			f.op("VMOVUPS %s, %s", l.r(0), at(o, 4, "DX"))
		})
		return true
	}}
}

// exp2Terms are those of exp2 in package arith: 1/10!, 1/9!, … 1/0!.
var exp2Terms = []float64{1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1, 1}

func (f *file) data64(name string, v float64) {
	b := math.Float64bits(v)
	f.data32(name, []uint32{uint32(b), uint32(b >> 32)})
}

func (f *file) floatConstants() {
	f.data32("low15", []uint32{0x7fff})
	f.data64("ln2", math.Ln2)
	f.data64("least", -1000)
	f.data64("most", 1000)
	f.data32("bias64", []uint32{1023, 0})
	for i, v := range exp2Terms {
		f.data64(fmt.Sprintf("term%d", i), v)
	}
}

// exp2F is 2^a by the series that exp2 of package arith sums in float64; beyond ±1000 the result is 0 or infinite anyway.
func exp2F() handler {
	return handler{"exp2F", 8, "d = 2^a, NaN canonical", func(f *file, l *level) bool {
		f.fetch(opD, "DX", opA, "BX")
		half := "Y" // of 4-byte values
		round := "VROUNDPD"
		if !l.wide() {
			half = "X"
		} else {
			round = "VRNDSCALEPD"
		}
		for i, name := range []string{"least", "most", "ln2"} {
			f.op("VBROADCASTSD %s<>(SB), %s", name, l.r(9+i))
		}
		l.pieces(8, func(_, o int) {
			f.op("VCVTPS2PD %s, %s", at(o/2, 4, "BX"), l.r(0))
			f.op("VMAXPD %s, %s, %s", l.r(9), l.r(0), l.r(0))
			f.op("VMINPD %s, %s, %s", l.r(10), l.r(0), l.r(0))
			f.op("%s $0, %s, %s", round, l.r(0), l.r(1))
			f.op("VSUBPD %s, %s, %s", l.r(1), l.r(0), l.r(0))
			f.op("VMULPD %s, %s, %s", l.r(11), l.r(0), l.r(0))
			f.op("VBROADCASTSD term0<>(SB), %s", l.r(2))
			for i := 1; i < len(exp2Terms); i++ {
				f.op("VBROADCASTSD term%d<>(SB), %s", i, l.r(3))
				f.op("VMULPD %s, %s, %s", l.r(0), l.r(2), l.r(2))
				f.op("VADDPD %s, %s, %s", l.r(3), l.r(2), l.r(2))
			}
			if l.wide() {
				f.op("VCVTPD2DQ Z1, Y1")
			} else {
				f.op("VCVTPD2DQY Y1, X1")
			}
			f.op("VPMOVSXDQ %s1, %s", half, l.r(1))
			f.op("VPBROADCASTQ bias64<>(SB), %s", l.r(3))
			f.op("VPADDQ %s, %s, %s", l.r(3), l.r(1), l.r(1))
			f.op("VPSLLQ $52, %s, %s", l.r(1), l.r(1))
			f.op("VMULPD %s, %s, %s", l.r(1), l.r(2), l.r(2))
			if l.wide() {
				f.op("VCVTPD2PS Z2, Y2")
				f.op("VMOVUPS %s, Y4", at(o/2, 4, "BX"))
				f.op("VCMPPS $3, Y4, Y4, K1")
				f.op("VMOVAPS Y31, K1, Y2")
			} else {
				f.op("VCVTPD2PSY Y2, X2")
				f.op("VMOVUPS %s, X4", at(o/2, 4, "BX"))
				f.op("VCMPPS $3, X4, X4, X5")
				f.op("VBLENDVPS X5, X15, X2, X2")
			}
			f.op("VMOVUPS %s2, %s", half, at(o/2, 4, "DX"))
		})
		return true
	}}
}
