package main

import "fmt"

// copies lists cp.async. A copy that is under way is a record in the frame: the offsets in shared memory, then 16 bytes
// for each lane. The frame counts groups; the copies of finished groups are written by the wait.
func copies() []handler {
	all := []handler{
		{"commit", 8, "ends a group of copies", func(f *file, l *level) bool {
			f.op("MOVQ Frame_Async(R9), R15")
			f.op("CMPQ AsyncState_room(R15), $0")
			f.orLeave("JEQ")
			f.op("INCQ AsyncState_Group(R15)")
			return true
		}},
		{"wait", 8, "writes the copies of all but the newest imm groups", wait},
	}
	for _, s := range spaces {
		all = append(all, copyAsync(s))
	}
	return all
}

// copyAsync reads 16 bytes per lane at the 64-bit address b + imm of region x, for the place a + c (a number) of region e.
func copyAsync(s space) handler {
	return handler{"copy" + s.suffix, 16, "copies 16 bytes from global to shared memory", func(f *file, l *level) bool {
		f.op("MOVQ Frame_Async(R9), R15")
		f.op("MOVQ AsyncState_room(R15), R13")
		f.op("CMPQ R13, AsyncState_Copies(R15)")
		f.orLeave("JLE")
		f.offsets(l, s, 16, l.vectors())
		f.op("MOVQ AsyncState_Copies(R15), R13")
		f.op("IMULQ $AsyncCopy__size, R13")
		f.op("ADDQ AsyncState_pending(R15), R13")
		for h := range l.vectors() {
			f.op("VMOVUPS %s, AsyncCopy_At+%d(R13)", l.r(h), h*l.bytes)
		}
		f.op("ADDQ $32, R8")
		back := f.label("source")
		f.copySource(l, back)
		f.op("MOVQ AsyncState_Group(R15), AX")
		f.op("MOVQ AX, AsyncCopy_Group(R13)")
		f.op("MOVL $-1, AsyncCopy_Lanes(R13)")
		f.op("MOVL $16, AsyncCopy_Size(R13)")
		f.op("MOVL $0, AsyncCopy_Landed(R13)")
		f.op("INCQ AsyncState_Copies(R15)")
		f.op("SUBQ $32, R8")
		return true
	}}
}

// copySource reads the source, whose address is that of the second half of the instruction. Should it be bad, the whole
// instruction is done in Go.
func (f *file) copySource(l *level, back string) {
	outer := f.leaving
	f.leaving = back
	f.offsets(l, spaces[1], 16, l.vectors())
	f.spill(l, l.vectors())
	single, done := f.label("single"), f.label("copied")
	f.quads(l, single)
	f.stride()
	for i := range 8 {
		f.op("MOVL Frame_Off+%d(R9), AX", 16*i)
		f.op("PREFETCHT0 (CX)(AX*1)")
		f.move64(l, i, "(R11)(AX*1)", fmt.Sprintf("AsyncCopy_Data+%d(R13)", 64*i))
	}
	f.op("JMP %s", done)
	f.mark(single)
	for i := range 32 {
		f.op("MOVL Frame_Off+%d(R9), AX", 4*i)
		f.op("VMOVUPS (R11)(AX*1), X%d", i%8)
		f.op("VMOVUPS X%d, AsyncCopy_Data+%d(R13)", i%8, 16*i)
	}
	f.mark(done)
	f.leaving = outer
	over := f.label("read")
	f.op("JMP %s", over)
	f.mark(back)
	f.op("SUBQ $32, R8")
	f.op("JMP %s", f.exit())
	f.mark(over)
}

// stride points CX to where the copy after next at this place of the list will likely read: loops advance evenly, and the
// place was last used a turn ago.
func (f *file) stride() {
	f.op("MOVL Frame_Off(R9), AX")
	f.op("LEAQ (R11)(AX*1), BX")
	f.op("MOVQ BX, CX")
	f.op("SUBQ AsyncCopy_first(R13), CX")
	f.op("MOVQ BX, AsyncCopy_first(R13)")
	f.op("ADDQ R11, CX")
}

// quads jumps unless in each four lanes the offsets, in registers 0, 1, …, are 16 bytes apart.
func (f *file) quads(l *level, apart string) {
	f.op("VMOVUPS quads<>(SB), %s", l.r(6))
	for h := range l.vectors() {
		f.op("VPSHUFD $0, %s, %s", l.r(h), l.r(4))
		f.op("VPSUBD %s, %s, %s", l.r(4), l.r(h), l.r(5))
		f.equal(l, 5, 6, apart)
	}
}

// move64 copies 64 bytes; i makes the registers differ from those of the moves before.
func (f *file) move64(l *level, i int, from, to string) {
	if l.wide() {
		f.op("VMOVUPS %s, Z%d", from, i)
		f.op("VMOVUPS Z%d, %s", i, to)
		return
	}
	second := func(place string) string {
		if place[0] == '(' {
			return "32" + place
		}
		return "32+" + place
	}
	f.op("VMOVUPS %s, Y%d", from, i)
	f.op("VMOVUPS Y%d, %s", i, to)
	f.op("VMOVUPS %s, Y%d", second(from), i)
	f.op("VMOVUPS Y%d, %s", i, second(to))
}

// wait writes finished copies to shared memory, oldest first, and moves the others down.
func wait(f *file, l *level) bool {
	f.op("MOVQ Frame_Async(R9), R15")
	f.op("CMPQ AsyncState_room(R15), $0")
	f.orLeave("JEQ")
	top, done, keep := f.label("copy"), f.label("done"), f.label("kept")
	f.op("MOVQ AsyncState_Group(R15), DX")
	f.op("MOVLQSX %d(R8), AX", opImm)
	f.op("SUBQ AX, DX")
	f.op("MOVQ AsyncState_pending(R15), R13")
	f.op("MOVQ Frame_Shared(R9), R11")
	f.op("MOVQ AsyncState_Copies(R15), CX")
	f.op("XORL BX, BX")
	f.mark(top)
	f.op("CMPQ BX, CX")
	f.op("JGE %s", done)
	f.op("CMPQ AsyncCopy_Group(R13), DX")
	f.op("JGE %s", done)
	single, written := f.label("single"), f.label("written")
	for h := range l.vectors() {
		f.op("VMOVUPS AsyncCopy_At+%d(R13), %s", h*l.bytes, l.r(h))
	}
	f.quads(l, single)
	for i := range 8 {
		f.op("MOVL AsyncCopy_At+%d(R13), AX", 16*i)
		f.move64(l, i, fmt.Sprintf("AsyncCopy_Data+%d(R13)", 64*i), "(R11)(AX*1)")
	}
	f.op("JMP %s", written)
	f.mark(single)
	for i := range 32 {
		f.op("MOVL AsyncCopy_At+%d(R13), AX", 4*i)
		f.op("VMOVUPS AsyncCopy_Data+%d(R13), X%d", 16*i, i%8)
		f.op("VMOVUPS X%d, (R11)(AX*1)", i%8)
	}
	f.mark(written)
	f.op("ADDQ $AsyncCopy__size, R13")
	f.op("INCQ BX")
	f.op("JMP %s", top)
	f.mark(done)
	f.op("SUBQ BX, CX")
	f.op("MOVQ CX, AsyncState_Copies(R15)")
	f.op("TESTQ BX, BX")
	f.op("JEQ %s", keep)
	f.op("MOVQ AsyncState_pending(R15), BX")
	move := f.label("down")
	f.op("IMULQ $AsyncCopy__size, CX")
	f.op("ADDQ CX, BX") // the new end
	f.op("ADDQ CX, R13")
	f.op("NEGQ CX")
	f.mark(move)
	f.op("JEQ %s", keep)
	f.op("VMOVUPS (R13)(CX*1), %s", l.r(0))
	f.op("VMOVUPS %s, (BX)(CX*1)", l.r(0))
	f.op("ADDQ $%d, CX", l.bytes)
	f.op("JMP %s", move)
	f.mark(keep)
	return true
}
