package main

import "fmt"

// orLeave jumps to Go if the condition holds. It must come before the handler writes anything.
func (f *file) orLeave(jump string) { f.op("%s %s", jump, f.exit()) }

// exit is the label of the handler's jump to Go.
func (f *file) exit() string {
	if f.leaving == "" {
		f.leaving = f.label("go")
	}
	return f.leaving
}

// space is how a memory operation finds its bytes: by an address of 4 or 8 bytes.
type space struct {
	suffix string
	bytes  int
}

var spaces = []space{{"32", 4}, {"64", 8}}

// offsets checks the addresses a+imm of the first regs·lanes lanes against region e: all must lie in it and be multiples
// of size. It leaves the offsets in registers 0, 1, …, and the region's start in R11; registers up to 9 are used.
func (f *file) offsets(l *level, s space, size, regs int) {
	f.fetch(opA, "BX", opE, "CX")
	f.op("ADDQ Frame_Regions(R9), CX")
	f.op("MOVLQSX %d(R8), AX", opImm)
	if s.bytes == 8 {
		f.op("SUBQ Region_Lo(CX), AX")
	}
	f.spread(l, "AX", s.bytes, 9)
	f.op("MOVQ Region_Data(CX), R11")
	per := 1
	if s.bytes == 8 {
		per = 2
	}
	add, or := map[int]string{4: "VPADDD", 8: "VPADDQ"}[s.bytes], "VPOR"
	if l.wide() {
		or = "VPORD"
	}
	for i := range regs * per {
		dst := i
		if per == 2 {
			dst = 7
		}
		f.op("%s %s, %s, %s", add, at(i*l.bytes, s.bytes, "BX"), l.r(9), l.r(dst))
		if i == 0 {
			f.op("VMOVUPS %s, %s", l.r(dst), l.r(8))
		} else {
			f.op("%s %s, %s, %s", or, l.r(dst), l.r(8), l.r(8))
		}
		if per == 2 {
			f.narrowInto(l, i)
		}
	}
	f.rejectBits(l, s, size)
	f.rejectBeyond(l, regs)
}

// spread broadcasts a general register of 4 or 8 bytes.
func (f *file) spread(l *level, from string, size, to int) {
	letter, move := "D", "VMOVD"
	if size == 8 {
		letter, move = "Q", "VMOVQ"
	}
	if l.wide() {
		f.op("VPBROADCAST%s %s, %s", letter, from, l.r(to))
		return
	}
	f.op("%s %s, X%d", move, from, to)
	f.op("VPBROADCAST%s X%d, %s", letter, to, l.r(to))
}

// narrowInto puts register 7, half the lanes as 64 bits, into half i%2 of register i/2, as 32 bits.
func (f *file) narrowInto(l *level, i int) {
	switch {
	case l.wide() && i%2 == 0:
		f.op("VPMOVQD Z7, Y%d", i/2)
	case l.wide():
		f.op("VPMOVQD Z7, Y7")
		f.op("VINSERTI64X4 $1, Y7, Z%d, Z%d", i/2, i/2)
	case i%2 == 0:
		f.op("VMOVUPS narrow<>(SB), Y6")
		f.op("VPERMD Y7, Y6, Y%d", i/2)
	default:
		f.op("VPERMD Y7, Y6, Y7")
		f.op("VINSERTI128 $1, X7, Y%d, Y%d", i/2, i/2)
	}
}

// rejectBits leaves if register 8, all offsets or-ed together, has bits that none may have.
func (f *file) rejectBits(l *level, s space, size int) {
	letter := map[int]string{4: "D", 8: "Q"}[s.bytes]
	f.op("VPBROADCAST%s wrong%dx%d<>(SB), %s", letter, s.bytes, size, l.r(7))
	if l.wide() {
		f.op("VPTESTM%s Z7, Z8, K1", letter)
		f.op("KORTESTW K1, K1")
		f.orLeave("JNE")
		return
	}
	f.op("VPTEST Y7, Y8")
	f.orLeave("JNE")
}

// rejectBeyond leaves if an offset is not below the region's limit.
func (f *file) rejectBeyond(l *level, regs int) {
	f.op("VPBROADCASTD Region_Limit(CX), %s", l.r(7))
	most := 0
	for i := 1; i < regs; i++ {
		f.op("VPMAXUD %s, %s, %s", l.r(i), l.r(most), l.r(8))
		most = 8
	}
	if l.wide() {
		f.op("VPCMPUD $5, Z7, Z%d, K1", most)
		f.op("KORTESTW K1, K1")
		f.orLeave("JNE")
		return
	}
	f.op("VPCMPGTD Y%d, Y7, Y7", most)
	f.op("VPMOVMSKB Y7, AX")
	f.op("CMPL AX, $-1")
	f.orLeave("JNE")
}

// shape branches by how the offsets in register h lie: one after the other, step bytes apart, all the same, or else.
// The first offset is in AX.
func (f *file) shape(l *level, h, step int, row, one, other func()) {
	notRow, notOne, end := f.label("apart"), f.label("spread"), f.label("have")
	f.op("VMOVD X%d, AX", h)
	f.op("VPBROADCASTD X%d, %s", h, l.r(4))
	f.op("VPSUBD %s, %s, %s", l.r(4), l.r(h), l.r(5))
	f.op("VMOVUPS by%d<>(SB), %s", step, l.r(6))
	f.equal(l, 5, 6, notRow)
	row()
	f.op("JMP %s", end)
	f.mark(notRow)
	if one != nil {
		f.equal(l, h, 4, notOne)
		one()
		f.op("JMP %s", end)
		f.mark(notOne)
	}
	other()
	f.mark(end)
}

// equal jumps if two registers differ.
func (f *file) equal(l *level, a, b int, differ string) {
	if l.wide() {
		f.op("VPCMPD $4, Z%d, Z%d, K1", a, b)
		f.op("KORTESTW K1, K1")
		f.op("JNE %s", differ)
		return
	}
	f.op("VPXOR Y%d, Y%d, Y7", a, b)
	f.op("VPTEST Y7, Y7")
	f.op("JNE %s", differ)
}

// memory lists loads, stores and what else looks at addresses.
func memory() []handler {
	var all []handler
	for _, s := range spaces {
		all = append(all, load32(s, 1), load32(s, 2), load128(s), load64(s), load16(s),
			store32(s), store64(s), storeParts(s, 2), storeParts(s, 4), store16(s))
	}
	return all
}

// places are the fields of the destinations, or the values, of a vector access.
var places = []int{opD, opB, opC, opX}

func (l *level) vectors() int { return 128 / l.bytes }

// load32 loads n words for each lane.
func load32(s space, n int) handler {
	return handler{fmt.Sprintf("load%dx%s", n, s.suffix), 8, "d, b = words at a + imm", func(f *file, l *level) bool {
		f.offsets(l, s, 4*n, l.vectors())
		for h := range l.vectors() {
			out := func(j, reg int) {
				f.op("MOVL %d(R8), DX", places[j])
				f.op("VMOVUPS %s, %s", l.r(reg), at(h*l.bytes, 4, "DX"))
			}
			f.shape(l, h, 4*n, func() { f.rowOf(l, n, out) }, func() {
				for j := range n {
					f.op("VPBROADCASTD %d(R11)(AX*1), %s", 4*j, l.r(8))
					out(j, 8)
				}
			}, func() {
				for j := range n {
					f.gather(l, "VPGATHERDD", 4*j, h, 8)
					out(j, 8)
				}
			})
		}
		return true
	}}
}

// rowOf loads n words for each lane that lie in a row.
func (f *file) rowOf(l *level, n int, out func(j, reg int)) {
	f.op("VMOVUPS (R11)(AX*1), %s", l.r(8))
	if n == 1 {
		out(0, 8)
		return
	}
	f.op("VMOVUPS %d(R11)(AX*1), %s", l.bytes, l.r(9))
	for j := range 2 {
		if l.wide() {
			f.op("VMOVUPS of2x%d<>(SB), Z4", j)
			f.op("VPERMI2D Z9, Z8, Z4")
		} else {
			f.op("VSHUFPS $%d, Y9, Y8, Y4", []int{0x88, 0xdd}[j])
			f.op("VPERMQ $0xd8, Y4, Y4")
		}
		out(j, 4)
	}
}

// gather loads the elements at the offsets in register h; all lanes of the level for words, those of h for 64 bits.
func (f *file) gather(l *level, op string, offset, h, to int) {
	index := l.r(h)
	if op == "VPGATHERDQ" {
		index = map[bool]string{true: "Y", false: "X"}[l.wide()] + fmt.Sprint(h)
	}
	if l.wide() {
		f.op("KXNORW K1, K1, K1")
		f.op("VPXORD Z%d, Z%d, Z%d", to, to, to)
		f.op("%s %d(R11)(%s*1), K1, Z%d", op, offset, index, to)
		return
	}
	f.op("VPCMPEQD Y7, Y7, Y7")
	f.op("%s Y7, %d(R11)(%s*1), Y%d", op, offset, index, to)
}

// load64 loads 64 bits.
func load64(s space) handler {
	return handler{"loadLong" + s.suffix, 8, "d = 64 bits at a + imm", func(f *file, l *level) bool {
		f.offsets(l, s, 8, l.vectors())
		f.fetch(opD, "DX")
		for h := range l.vectors() {
			out := func(j, reg int) { f.op("VMOVUPS %s, %s", l.r(reg), at((2*h+j)*l.bytes, 8, "DX")) }
			f.shape(l, h, 8, func() {
				for j := range 2 {
					f.op("VMOVUPS %d(R11)(AX*1), %s", j*l.bytes, l.r(8))
					out(j, 8)
				}
			}, func() {
				f.op("VPBROADCASTQ (R11)(AX*1), %s", l.r(8))
				out(0, 8)
				out(1, 8)
			}, func() {
				f.gather(l, "VPGATHERDQ", 0, h, 8)
				out(0, 8)
				if l.wide() {
					f.op("VEXTRACTI64X4 $1, Z%d, Y%d", h, h)
				} else {
					f.op("VEXTRACTI128 $1, Y%d, X%d", h, h)
				}
				f.gather(l, "VPGATHERDQ", 0, h, 8)
				out(1, 8)
			})
		}
		return true
	}}
}

// spill stores the offsets where single lanes can be read.
func (f *file) spill(l *level, regs int) {
	for h := range regs {
		f.op("VMOVUPS %s, Frame_Off+%d(R9)", l.r(h), h*l.bytes)
	}
}

// offsetOf gets the spilled offset of lane i, in AX or BX: for an even lane with that of the next, as loads of a part of
// what was just stored as a vector are slow.
func (f *file) offsetOf(i int) string {
	if i%2 == 1 {
		f.op("SHRQ $32, AX")
		return "AX"
	}
	f.op("MOVQ Frame_Off+%d(R9), AX", 4*i)
	f.op("MOVL AX, BX")
	return "BX"
}

// eachLane runs body for every lane, with the offset in AX; R13 counts the lanes.
func (f *file) eachLane(body func()) {
	top := f.label("lane")
	f.op("XORL R13, R13")
	f.mark(top)
	for range 4 {
		f.op("MOVL Frame_Off(R9)(R13*4), AX")
		body()
		f.op("INCL R13")
	}
	f.op("CMPL R13, $32")
	f.op("JLT %s", top)
}

// load16 loads 16 bits into a word.
func load16(s space) handler {
	return handler{"loadHalf" + s.suffix, 8, "d = 16 bits at a + imm", func(f *file, l *level) bool {
		f.offsets(l, s, 2, l.vectors())
		f.fetch(opD, "DX")
		f.spill(l, l.vectors())
		f.op("ADDQ SI, DX")
		for h := range l.vectors() {
			f.shape(l, h, 2, func() {
				f.op("VPMOVZXWD (R11)(AX*1), %s", l.r(8))
				f.op("VMOVUPS %s, %d(DX)", l.r(8), h*l.bytes)
			}, nil, func() {
				for i := h * l.bytes / 4; i < (h+1)*l.bytes/4; i++ {
					f.op("MOVL Frame_Off+%d(R9), AX", 4*i)
					f.op("MOVWLZX (R11)(AX*1), AX")
					f.op("MOVL AX, %d(DX)", 4*i)
				}
			})
		}
		return true
	}}
}

// loadQuads is the 16 bytes of 4 lanes, lane 4b+t in part b of register to+t.
func (f *file) loadQuads(l *level, h, to int) {
	for t := range 4 {
		for b := range l.bytes / 16 {
			f.op("MOVL Frame_Off+%d(R9), AX", h*l.bytes+4*(4*b+t))
			switch {
			case b == 0:
				f.op("VMOVUPS (R11)(AX*1), X%d", to+t)
			case l.wide():
				f.op("VINSERTI32X4 $%d, (R11)(AX*1), Z%d, Z%d", b, to+t, to+t)
			default:
				f.op("VINSERTI128 $1, (R11)(AX*1), Y%d, Y%d", to+t, to+t)
			}
		}
	}
}

// transpose4 turns 4 registers, each part of 16 bytes by itself, from lanes of 4 words to words of 4 lanes, or back.
func (f *file) transpose4(l *level, a, t int) {
	r := l.r
	f.op("VPUNPCKLDQ %s, %s, %s", r(a+1), r(a), r(t))
	f.op("VPUNPCKHDQ %s, %s, %s", r(a+1), r(a), r(t+1))
	f.op("VPUNPCKLDQ %s, %s, %s", r(a+3), r(a+2), r(t+2))
	f.op("VPUNPCKHDQ %s, %s, %s", r(a+3), r(a+2), r(t+3))
	f.op("VPUNPCKLQDQ %s, %s, %s", r(t+2), r(t), r(a))
	f.op("VPUNPCKHQDQ %s, %s, %s", r(t+2), r(t), r(a+1))
	f.op("VPUNPCKLQDQ %s, %s, %s", r(t+3), r(t+1), r(a+2))
	f.op("VPUNPCKHQDQ %s, %s, %s", r(t+3), r(t+1), r(a+3))
}

// load128 loads 4 words.
func load128(s space) handler {
	return handler{"load4x" + s.suffix, 8, "d, b, c, x = words at a + imm", func(f *file, l *level) bool {
		f.offsets(l, s, 16, l.vectors())
		f.spill(l, l.vectors())
		for h := range l.vectors() {
			f.loadQuads(l, h, 0)
			f.transpose4(l, 0, 4)
			for j := range 4 {
				f.op("MOVL %d(R8), DX", places[j])
				f.op("VMOVUPS %s, %s", l.r(j), at(h*l.bytes, 4, "DX"))
			}
		}
		return true
	}}
}

// storeParts stores 2 or 4 words.
func storeParts(s space, n int) handler {
	return handler{fmt.Sprintf("store%dx%s", n, s.suffix), 8, "words at a + imm = d, b, c, x", func(f *file, l *level) bool {
		f.offsets(l, s, 4*n, l.vectors())
		f.spill(l, l.vectors())
		for h := range l.vectors() {
			for j := range n {
				f.op("MOVL %d(R8), DX", places[j])
				f.op("VMOVUPS %s, %s", at(h*l.bytes, 4, "DX"), l.r(j))
			}
			if n == 4 {
				f.transpose4(l, 0, 4)
			} else {
				f.op("VPUNPCKHDQ %s, %s, %s", l.r(1), l.r(0), l.r(2))
				f.op("VPUNPCKLDQ %s, %s, %s", l.r(1), l.r(0), l.r(0))
			}
			for b := range l.bytes / 16 {
				for t := range 4 {
					f.op("MOVL Frame_Off+%d(R9), AX", h*l.bytes+4*(4*b+t))
					if n == 4 {
						f.part(l, t, b, "(R11)(AX*1)")
						continue
					}
					if t%2 == 0 {
						f.part(l, t, b, "X8") // registers 0 and 2 hold pairs of lanes
						f.op("VMOVQ X8, (R11)(AX*1)")
					} else {
						f.op("VMOVHPS X8, (R11)(AX*1)")
					}
				}
			}
		}
		return true
	}}
}

// part moves 16 bytes of a register.
func (f *file) part(l *level, r, b int, to string) {
	if l.wide() {
		f.op("VEXTRACTI32X4 $%d, Z%d, %s", b, r, to)
		return
	}
	f.op("VEXTRACTI128 $%d, Y%d, %s", b, r, to)
}

// store32 stores a word.
func store32(s space) handler {
	return handler{"store1x" + s.suffix, 8, "word at a + imm = d", func(f *file, l *level) bool {
		f.offsets(l, s, 4, l.vectors())
		f.fetch(opD, "DX")
		f.op("ADDQ SI, DX")
		f.spill(l, l.vectors())
		for h := range l.vectors() {
			f.shape(l, h, 4, func() {
				f.op("VMOVUPS %d(DX), %s", h*l.bytes, l.r(8))
				f.op("VMOVUPS %s, (R11)(AX*1)", l.r(8))
			}, nil, func() {
				for i := h * l.bytes / 4; i < (h+1)*l.bytes/4; i++ {
					off := f.offsetOf(i)
					f.op("MOVL %d(DX), CX", 4*i)
					f.op("MOVL CX, (R11)(%s*1)", off)
				}
			})
		}
		return true
	}}
}

func store64(s space) handler {
	return handler{"storeLong" + s.suffix, 8, "64 bits at a + imm = d", func(f *file, l *level) bool {
		f.offsets(l, s, 8, l.vectors())
		f.fetch(opD, "DX")
		f.op("ADDQ DI, DX")
		f.spill(l, l.vectors())
		f.eachLane(func() {
			f.op("MOVQ (DX)(R13*8), BX")
			f.op("MOVQ BX, (R11)(AX*1)")
		})
		return true
	}}
}

func store16(s space) handler {
	return handler{"storeHalf" + s.suffix, 8, "16 bits at a + imm = d", func(f *file, l *level) bool {
		f.offsets(l, s, 2, l.vectors())
		f.fetch(opD, "DX")
		f.op("ADDQ SI, DX")
		f.spill(l, l.vectors())
		f.eachLane(func() {
			f.op("MOVL (DX)(R13*4), BX")
			f.op("MOVW BX, (R11)(AX*1)")
		})
		return true
	}}
}
