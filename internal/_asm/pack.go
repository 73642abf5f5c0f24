package main

import "fmt"

// copyLanes writes the packing of an operand whose lanes are adjacent. Go's
// copy does it without masks.
func (f *file) copyLanes() {
	f.function("copyLanesAVX512", `packs up to 32 lanes that are adjacent in memory. In place of

	for s := range k {
		for i := range width {
			dst[s*width+i] = 0
			if mask>>i&1 != 0 {
				dst[s*width+i] = src[s*step/4+i]
			}
		}
	}

it copies vectors without a call or a branch for each step. The width is 16
or 32 lanes; step is in bytes. It asks for steps ahead: each may lie in a page of
its own, where the processor would not look for the next.`,
		"dst, src unsafe.Pointer, k, step, width int, mask uint32", 44)
	f.loads("dst+0", "DI", "src+8", "R8", "k+16", "CX", "step+24", "R13")
	f.op("MOVL mask+40(FP), AX")
	f.op("KMOVW AX, K1")
	f.op("SHRL $16, AX")
	f.op("KMOVW AX, K2")
	f.op("LEAQ (R13)(R13*2), R12")
	f.op("MOVQ R13, R11")
	f.op("SHLQ $%d, R11", stepsAhead)
	f.op("ADDQ R8, R11")
	wide := f.label("wide")
	f.op("CMPQ width+32(FP), $32")
	f.op("JEQ %s", wide)
	f.copySteps(1)
	f.mark(wide)
	f.copySteps(2)
}

// Packing asks for what it reads so far ahead, since it reads what lies apart:
// so many steps, as a power of two, and so many bytes of a line.
const (
	stepsAhead = 4
	bytesAhead = 256
)

// prefetch writes the asking for memory that is packed soon.
func (f *file) prefetch() {
	f.function("prefetch", `asks for the lines of n bytes, 1 at least.`, "at unsafe.Pointer, n int", 16)
	f.loads("at+0", "R8", "n+8", "CX")
	more := f.label("more")
	f.mark(more)
	f.op("PREFETCHT0 (R8)")
	f.op("ADDQ $64, R8")
	f.op("SUBQ $64, CX")
	f.op("JGT %s", more)
	f.op("RET")
}

// gatherLanes writes the packing of an operand of which neither lanes nor
// steps are adjacent.
func (f *file) gatherLanes() {
	f.function("gatherLanesAVX512", `packs up to 16 lanes that are apart in memory. In place of

	for s := range k {
		for i := range 16 {
			dst[s*width/4+i] = 0
			if mask>>i&1 != 0 {
				dst[s*width/4+i] = src[s*step/4+i*lane/4]
			}
		}
	}

it gathers vectors. The distances lane, step and width are in bytes; 16 lanes are
less than 1<<31 bytes.`,
		"dst, src unsafe.Pointer, k, lane, step, width int, mask uint32", 52)
	f.loads("dst+0", "DI", "src+8", "R8", "k+16", "CX", "lane+24", "R9", "step+32", "R13", "width+40", "DX")
	f.op("MOVL mask+48(FP), AX")
	f.op("KMOVW AX, K1")
	f.op("VPBROADCASTD R9, Z2")
	f.op("VPMULLD ·laneNumbers(SB), Z2, Z2")
	f.loop("CX", 1, func() {
		f.op("KMOVW K1, K2")
		f.op("VPXORD Z0, Z0, Z0")
		f.op("VGATHERDPS (R8)(Z2*1), K2, Z0")
		f.op("VMOVUPS Z0, (DI)")
		f.op("ADDQ R13, R8")
		f.op("ADDQ DX, DI")
	})
	f.leave()
}

// copySteps copies w vectors in each of CX steps.
func (f *file) copySteps(w int) {
	for _, n := range []int{4, 1} {
		f.loop("CX", n, func() {
			for u := range n {
				for j := range w {
					if n == 4 {
						f.op("PREFETCHT0 %d(R11)%s", 64*j, strides[u])
					}
					f.op("VMOVUPS.Z %d(R8)%s, K%d, Z%d", 64*j, strides[u], j+1, j)
					f.op("VMOVUPS Z%d, %d(DI)", j, 64*(w*u+j))
				}
			}
			if n == 4 {
				f.op("LEAQ (R8)(R13*4), R8")
				f.op("LEAQ (R11)(R13*4), R11")
			} else {
				f.op("ADDQ R13, R8")
			}
			f.op("ADDQ $%d, DI", n*64*w)
		})
	}
	f.leave()
}

// strides address line i of four from a base, where R13 holds the distance
// between lines and R12 three times that.
var strides = []string{"", "(R13*1)", "(R13*2)", "(R12*1)"}

const transposeDoc = `packs up to %d lanes whose steps of k are adjacent in memory, and
k is a multiple of %d%s. In place of

	for s := range k {
		for i := range lanes {
			dst[s*width/%[4]d+i] = src[i*lane/%[4]d+s]
		}
	}

it transposes blocks in registers. It writes %[1]d lanes in each step, those beyond
lanes with anything. The distances lane and width are in bytes.`

// transpose packs an operand whose steps of k are adjacent in memory, in
// square blocks that are transposed in registers.
func (f *file) transpose(s isa) {
	n := s.lanes()
	f.function("transpose"+s.name, fmt.Sprintf(transposeDoc, n, stepsMultiple(s), stepsNote(s), s.size()),
		"dst, src unsafe.Pointer, lanes, k, lane, width int", 48)
	f.loads("dst+0", "DI", "src+8", "R8", "lanes+16", "AX", "k+24", "CX", "lane+32", "R13", "width+40", "DX")
	f.op("LEAQ (R13)(R13*2), R12")
	bases := []string{"R8", "R9", "R10", "R11"}[:n/4]
	for i := 1; i < len(bases); i++ {
		f.op("LEAQ (%s)(R13*4), %s", bases[i-1], bases[i])
	}
	if s.masks {
		f.op("MOVL $0xffff, BX")
		f.op("KMOVW BX, K1")
	}
	next, end := f.label("next"), f.label("end")
	f.mark(next)
	f.maskSteps(s, end)
	f.loadLines(s, bases)
	f.storeSteps(s, f.exchanges(s), end)
	for _, r := range bases {
		f.op("ADDQ $%d, %s", s.bytes, r)
	}
	f.op("SUBQ $%d, CX", n)
	f.op("JMP %s", next)
	f.mark(end)
	f.leave()
}

// With masks, transpose takes any number of steps.
func stepsMultiple(s isa) int {
	if s.masks {
		return 1
	}
	return s.lanes()
}

func stepsNote(s isa) string {
	if s.masks {
		return ", any number"
	}
	return ""
}

// maskSteps jumps to end when no step is left, and masks the loads to the
// steps that are.
func (f *file) maskSteps(s isa, end string) {
	full := f.label("full")
	f.op("CMPQ CX, $%d", s.lanes())
	f.op("JGE %s", full)
	if s.masks {
		f.op("TESTQ CX, CX")
		f.op("JEQ %s", end)
		f.lowMask("BX")
	} else {
		f.op("JMP %s", end)
	}
	f.mark(full)
}

// lowMask sets the low CX bits of K1, fewer than 16, by way of a register.
func (f *file) lowMask(by string) {
	f.op("MOVL $1, %s", by)
	f.op("SHLL CX, %s", by)
	f.op("DECL %s", by)
	f.op("KMOVW %s, K1", by)
}

// loadLines loads a vector of each lane in use.
func (f *file) loadLines(s isa, bases []string) {
	loaded := f.label("loaded")
	for i := range s.lanes() {
		if i > 0 {
			f.op("CMPQ AX, $%d", i)
			f.op("JLE %s", loaded)
		}
		if s.masks {
			f.op("%s.Z (%s)%s, K1, Z%d", s.of("VMOVUP"), bases[i/4], strides[i%4], i)
		} else {
			f.op("VMOVUPS (%s)%s, Y%d", bases[i/4], strides[i%4], i)
		}
		f.op("PREFETCHT0 %d(%s)%s", bytesAhead, bases[i/4], strides[i%4])
	}
	f.mark(loaded)
}

// exchanges transposes the first registers, between pairs of them: after each
// round, registers x and y of a pair hold the even and the odd parts of what
// they held. It returns the register that holds each step of k.
func (f *file) exchanges(s isa) []int {
	n := s.lanes()
	type round struct{ even, odd string }
	rounds := []round{{"VUNPCKLPS ", "VUNPCKHPS "}, {"VUNPCKLPD ", "VUNPCKHPD "}}
	if s.double {
		rounds = rounds[1:]
	}
	if s.masks {
		shuffle := round{"VSHUFF32X4 $0x88, ", "VSHUFF32X4 $0xdd, "}
		rounds = append(rounds, shuffle, shuffle)
	} else {
		rounds = append(rounds, round{"VPERM2F128 $0x20, ", "VPERM2F128 $0x31, "})
	}
	from, to := 0, n
	for r, round := range rounds {
		for i := range n {
			if distance := 1 << r; i&distance == 0 {
				x, y := from+i, from+i+distance
				f.op("%s%s, %s, %s", round.even, s.r(y), s.r(x), s.r(to+i))
				f.op("%s%s, %s, %s", round.odd, s.r(y), s.r(x), s.r(to+i+distance))
			}
		}
		from, to = to, from
	}
	registers := make([]int, n)
	for j := range registers {
		registers[j] = from + j
		if !s.double {
			registers[j] = from + (j&^3 | j&1<<1 | j&2>>1) // unpacking twice swaps the two low bits
		}
	}
	return registers
}

// storeSteps stores the vectors of the steps that are left, n at most.
func (f *file) storeSteps(s isa, registers []int, end string) {
	for j, r := range registers {
		if j > 0 && s.masks {
			f.op("CMPQ CX, $%d", j)
			f.op("JLE %s", end)
		}
		f.op("VMOVUPS %s, (DI)", s.r(r))
		f.op("ADDQ DX, DI")
	}
}
