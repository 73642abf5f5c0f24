package main

import "fmt"

// compare is a handler that sets a predicate: p[d] = a op b, bitwise negated by imm.
func compare(name, doc string, size int, write func(f *file, l *level, i, o int) bool) handler {
	return handler{name, 8, doc, func(f *file, l *level) bool {
		f.fetch(opD, "DX", opA, "BX", opB, "CX")
		f.op("XORL R11, R11")
		ok := true
		l.pieces(size, func(i, o int) {
			ok = ok && write(f, l, i, o) // leaves the bits of the piece in AX
			if i > 0 {
				f.op("SHLL $%d, AX", i*l.bytes/size)
			}
			f.op("ORL AX, R11")
		})
		f.op("XORL %d(R8), R11", opImm)
		f.op("MOVL R11, (R12)(DX*1)")
		return ok
	}}
}

// bitsOf moves the mask in K1, or in the signs of a register, to AX.
func (f *file) bitsOf(l *level, size, r int) {
	switch {
	case l.wide() && size == 4:
		f.op("KMOVW K1, AX")
	case l.wide():
		f.op("KMOVB K1, AX")
	case size == 4:
		f.op("VMOVMSKPS %s, AX", l.r(r))
	default:
		f.op("VMOVMSKPD %s, AX", l.r(r))
	}
}

// compareInt compares integers; AVX2 has "greater" for signed ones and "equal" only. less is a < b, otherwise a = b.
func compareInt(name string, size int, less, signed bool) handler {
	suffix := map[int]string{4: "D", 8: "Q"}[size]
	op, imm := "VPCMP", 0
	if !signed {
		op = "VPCMPU"
	}
	if less {
		imm = 1
	}
	return compare(name, "p[d] = a "+map[bool]string{true: "<", false: "="}[less]+" b", size, func(f *file, l *level, i, o int) bool {
		f.op("VMOVUPS %s, %s", at(o, size, "BX"), l.r(0))
		switch {
		case l.wide():
			f.op("%s%s $%d, %s, %s, K1", op, suffix, imm, at(o, size, "CX"), l.r(0))
		case !less:
			f.op("VPCMPEQ%s %s, %s, %s", suffix, at(o, size, "CX"), l.r(0), l.r(0))
		default:
			f.op("VMOVUPS %s, %s", at(o, size, "CX"), l.r(1))
			if !signed {
				if size == 8 {
					return false
				}
				f.op("VPBROADCASTD sign32<>(SB), %s", l.r(2))
				f.op("VPXOR %s, %s, %s", l.r(2), l.r(0), l.r(0))
				f.op("VPXOR %s, %s, %s", l.r(2), l.r(1), l.r(1))
			}
			f.op("VPCMPGT%s %s, %s, %s", suffix, l.r(0), l.r(1), l.r(0))
		}
		f.bitsOf(l, size, 0)
		return true
	})
}

func compareFloat(name string, imm int) handler {
	return compare(name, "p[d] = a op b, relation "+fmt.Sprint(imm)+" of VCMPPS", 4, func(f *file, l *level, i, o int) bool {
		f.op("VMOVUPS %s, %s", at(o, 4, "BX"), l.r(0))
		if l.wide() {
			f.op("VCMPPS $%d, %s, %s, K1", imm, at(o, 4, "CX"), l.r(0))
		} else {
			f.op("VCMPPS $%d, %s, %s, %s", imm, at(o, 4, "CX"), l.r(0), l.r(0))
		}
		f.bitsOf(l, 4, 0)
		return true
	})
}

func comparisons() []handler {
	return []handler{
		compareInt("eq32", 4, false, true), compareInt("ltS32", 4, true, true), compareInt("ltU32", 4, true, false),
		compareInt("eq64", 8, false, true), compareInt("ltS64", 8, true, true), compareInt("ltU64", 8, true, false),
		compareFloat("eqF", 0), compareFloat("ltF", 0x11), compareFloat("leF", 0x12), compareFloat("unordF", 3),
		compareFloat("equF", 8),
		predicateLogic("andP", "ANDL"), predicateLogic("orP", "ORL"), predicateLogic("xorP", "XORL"),
	}
}

// predicateLogic combines two predicates, each negated by a word of the instruction.
func predicateLogic(name, op string) handler {
	return handler{name, 8, "p[d] = (p[a]^x) op (p[b]^imm)", func(f *file, _ *level) bool {
		f.fetch(opD, "DX", opA, "BX", opB, "CX")
		f.op("MOVL (R12)(BX*1), AX")
		f.op("XORL %d(R8), AX", opX)
		f.op("MOVL (R12)(CX*1), BX")
		f.op("XORL %d(R8), BX", opImm)
		f.op("%s BX, AX", op)
		f.op("MOVL AX, (R12)(DX*1)")
		return true
	}}
}

// moves lists copies, conversions and selections.
func moves() []handler {
	return []handler{
		move("mov32", 4), move("mov64", 8),
		convert("sext64", "VPMOVSXDQ"), convert("zext64", "VPMOVZXDQ"), truncate(),
		unary("cvtS32F", "VCVTDQ2PS", "VCVTDQ2PS"), unary("cvtU32F", "VCVTUDQ2PS", ""),
		blend("sel32", 4), blend("sel64", 8),
	}
}

func move(name string, size int) handler {
	return handler{name, 8, "d = a", func(f *file, l *level) bool {
		f.fetch(opD, "DX", opA, "BX")
		l.pieces(size, func(i, o int) { f.op("VMOVUPS %s, %s", at(o, size, "BX"), l.r(i)) })
		l.pieces(size, func(i, o int) { f.op("VMOVUPS %s, %s", l.r(i), at(o, size, "DX")) })
		return true
	}}
}

func unary(name, op512, op256 string) handler {
	return handler{name, 8, "d = " + op512 + "(a)", func(f *file, l *level) bool {
		op := op256
		if l.wide() {
			op = op512
		}
		if op == "" {
			return false
		}
		f.fetch(opD, "DX", opA, "BX")
		l.pieces(4, func(i, o int) {
			f.op("%s %s, %s", op, at(o, 4, "BX"), l.r(i))
			f.op("VMOVUPS %s, %s", l.r(i), at(o, 4, "DX"))
		})
		return true
	}}
}

func convert(name, op string) handler {
	return handler{name, 8, "d = a extended to 64 bits", func(f *file, l *level) bool {
		f.fetch(opD, "DX", opA, "BX")
		l.pieces(8, func(i, o int) {
			f.op("%s %s, %s", op, at(o/2, 4, "BX"), l.r(i))
			f.op("VMOVUPS %s, %s", l.r(i), at(o, 8, "DX"))
		})
		return true
	}}
}

func truncate() handler {
	return handler{"trunc32", 8, "d = the low 32 bits of a", func(f *file, l *level) bool {
		f.fetch(opD, "DX", opA, "BX")
		if l.wide() {
			l.pieces(8, func(i, o int) {
				f.op("VMOVUPS %s, Z%d", at(o, 8, "BX"), i)
				f.op("VPMOVQD Z%d, %s", i, at(o/2, 4, "DX"))
			})
			return true
		}
		f.op("VMOVUPS narrow<>(SB), Y8")
		l.pieces(8, func(i, o int) {
			f.op("VPERMD %s, Y8, Y%d", at(o, 8, "BX"), i)
			f.op("VMOVUPS X%d, %s", i, at(o/2, 4, "DX"))
		})
		return true
	}}
}

// blend is selp: a where the predicate c, negated by imm, holds, b elsewhere.
func blend(name string, size int) handler {
	return handler{name, 8, "d = p[c]^imm ? a : b", func(f *file, l *level) bool {
		f.fetch(opD, "DX", opA, "BX", opB, "CX", opC, "R11")
		f.op("MOVL (R12)(R11*1), AX")
		f.op("XORL %d(R8), AX", opImm)
		if !l.wide() {
			f.op("VMOVD AX, X4")
			f.op("VPBROADCASTD X4, Y4")
		}
		lanes := l.bytes / size
		l.pieces(size, func(i, o int) {
			if l.wide() {
				f.op("KMOVW AX, K1")
				f.op("SHRL $%d, AX", lanes)
				f.op("VMOVUPS %s, Z0", at(o, size, "CX"))
				if size == 4 {
					f.op("VMOVUPS %s, K1, Z0", at(o, size, "BX"))
				} else {
					f.op("VMOVUPD %s, K1, Z0", at(o, size, "BX"))
				}
				f.op("VMOVUPS Z0, %s", at(o, size, "DX"))
				return
			}
			if size == 4 {
				f.op("VMOVDQU bits32<>+%d(SB), Y1", 4*lanes*i)
			} else {
				f.op("VPMOVZXDQ bits32<>+%d(SB), Y1", 4*lanes*i)
			}
			suffix := map[int]string{4: "D", 8: "Q"}[size]
			f.op("VPAND Y1, Y4, Y2")
			f.op("VPCMPEQ%s Y1, Y2, Y2", suffix)
			f.op("VMOVUPS %s, Y0", at(o, size, "CX"))
			f.op("VMOVUPS %s, Y3", at(o, size, "BX"))
			f.op("VPBLENDVB Y2, Y3, Y0, Y0")
			f.op("VMOVUPS Y0, %s", at(o, size, "DX"))
		})
		return true
	}}
}
