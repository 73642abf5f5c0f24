package main

import "fmt"

// maxPool writes a plane's max-pooling with a stride of 1 or 2 columns, 16 results at a time: of a window's taps the largest,
// the first of equals, and its place in the plane.
//
// What lies beside the plane is -∞ under a mask, which no tap is above; a window of -∞ has the place of its first element.
// Registers: SI the plane, DI and R8 where results and places go, R9 and R10 the rows and how many are left, R11 and R12 the
// columns and how many are left, R13 the masks of taps, BX what is left of a window's rows, CX and DX the address and the
// place of a tap, AX a count of taps; Z0 and Z4 are the largest and their places, K7 where there was a NaN.
func maxPool(f *file, stride int) {
	f.function(fmt.Sprintf("maxPool%dAVX512", stride), "pools a plane and reports a NaN, which leaves results wrong:\n\n"+
		"\tfor r in rows, for c in columns: y[r, c], places[r, c] = the largest of the window at (r, c)", "a *poolArgs", 8)
	f.op("MOVQ a+0(FP), R15")
	f.loads2("poolArgs_", "x", "SI", "y", "DI", "places", "R8", "rows", "R9", "oh", "R10")
	f.op("VPBROADCASTD poolInfinity<>(SB), Z29")
	f.op("VMOVDQU32 poolLanes<>(SB), Z31")
	if stride == 2 {
		f.op("VPADDD Z31, Z31, Z31")
		f.op("VMOVDQA32 Z31, Z30") // the even ones of two vectors
	}
	f.op("VPXORD Z28, Z28, Z28")
	f.op("KXORW K7, K7, K7")
	row, columns := f.label("row"), f.label("columns")
	f.mark(row)
	f.op("MOVQ poolArgs_columns(R15), R11")
	f.op("MOVQ poolArgs_blocks(R15), R12")
	f.mark(columns)
	f.poolBlock(stride)
	f.op("DECQ R12")
	f.op("JNE %s", columns)
	f.op("ADDQ $poolRow__size, R9")
	f.op("DECQ R10")
	f.op("JNE %s", row)
	f.op("KMOVW K7, AX")
	f.op("MOVQ AX, poolArgs_nan(R15)")
	f.leave()
}

// loads2 moves fields of the struct at R15.
func (f *file) loads2(prefix string, pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		f.op("MOVQ %s%s(R15), %s", prefix, pairs[i], pairs[i+1])
	}
}

// poolBlock pools 16 windows or what is left of a row.
func (f *file) poolBlock(stride int) {
	f.op("MOVQ poolRow_at(R9), DX")
	f.op("MOVQ poolColumns_at(R11), AX")
	f.comment("the place of each window's first element")
	f.op("VPBROADCASTD AX, Z4")
	f.op("VPADDD Z31, Z4, Z4")
	f.op("VPMAXSD Z28, Z4, Z4")
	f.op("VPBROADCASTD DX, Z3")
	f.op("VPADDD Z3, Z4, Z4")
	f.op("VMOVAPS Z29, Z0")
	f.op("ADDQ AX, DX")
	f.op("LEAQ (SI)(DX*4), CX")
	f.op("MOVQ poolRow_n(R9), BX")
	line, tap := f.label("line"), f.label("tap")
	f.mark(line)
	f.op("MOVQ poolColumns_masks(R11), R13")
	f.op("MOVQ poolArgs_kw(R15), AX")
	f.mark(tap)
	f.poolTap(stride)
	f.op("DECQ AX")
	f.op("JNE %s", tap)
	f.op("ADDQ poolArgs_next(R15), DX")
	f.op("MOVQ poolArgs_next(R15), AX")
	f.op("LEAQ (CX)(AX*4), CX")
	f.op("DECQ BX")
	f.op("JNE %s", line)
	f.poolStore()
}

// poolTap compares an element of each window with the largest so far.
func (f *file) poolTap(stride int) {
	f.op("KMOVW (R13), K1")
	f.op("VMOVAPS Z29, Z1")
	f.op("VMOVUPS (CX), K1, Z1")
	if stride == 2 {
		f.op("KMOVW 2(R13), K2")
		f.op("VMOVAPS Z29, Z2")
		f.op("VMOVUPS 64(CX), K2, Z2")
		f.op("VPERMT2PS Z2, Z30, Z1")
	}
	f.op("VCMPPS $3, Z1, Z1, K3") // unordered
	f.op("KORW K3, K7, K7")
	f.op("VCMPPS $0x1E, Z0, Z1, K3") // greater
	f.op("VMOVAPS Z1, K3, Z0")
	f.op("VPBROADCASTD DX, Z3")
	f.op("VPADDD Z31, Z3, K3, Z4")
	f.op("ADDQ $4, R13")
	f.op("ADDQ $4, CX")
	f.op("INCQ DX")
}

// poolStore stores a block's results and places.
func (f *file) poolStore() {
	f.op("MOVQ poolColumns_use(R11), AX")
	f.op("KMOVW AX, K1")
	f.op("VMOVUPS Z0, K1, (DI)")
	f.op("VPMOVSXDQ Y4, Z5")
	f.op("VMOVDQU64 Z5, K1, (R8)")
	f.op("VEXTRACTI64X4 $1, Z4, Y5")
	f.op("VPMOVSXDQ Y5, Z5")
	f.op("KSHIFTRW $8, K1, K1")
	f.op("VMOVDQU64 Z5, K1, 64(R8)")
	f.op("MOVQ poolColumns_n(R11), AX")
	f.op("LEAQ (DI)(AX*4), DI")
	f.op("LEAQ (R8)(AX*8), R8")
	f.op("ADDQ $poolColumns__size, R11")
}

// maxPairs writes max-pooling by windows of 2×2 side by side, and its gradient, 16 windows at a time. The last 16 of a row are
// done again for what is left. Rows of fewer are stored with what lies beside, which the next rows overwrite: stores under masks
// take as long as fifty others where that was measured, so only the last rows have them.
//
// Registers: SI the picture, DI what belongs to windows and R8 their places; R9 the windows that are left of a row, R10 the rows
// that are left, R11 the bytes of a row of the picture and R12 what its windows leave over of two rows, DX the place of the first
// window's first element; K1 and K2 the elements and K3 the windows in use, K7 what is wrong; Z28 to Z30 are what the places of
// a window's other elements have more, and Z31 where windows begin.
func maxPairs(f *file) {
	f.pairs("maxPairs", "pools windows of 2×2 side by side and reports a NaN, which leaves results wrong:\n\n"+
		"\tfor r in rows, for c in columns: y[r, c], places[r, c] = the largest of x[2r:2r+2, 2c:2c+2]", f.largestOfPairs)
	f.pairs("maxPairsGrad", "gives each element of a window of 2×2 side by side the gradient of the result if its place is there, else 0, and "+
		"reports a place beside its window:\n\n\tfor r in rows, for c in columns, for i, j < 2: x[2r+i, 2c+j] = y[r, c] if places[r, c] is there, else 0", f.pairsOfGrad)
}

// mask is how an instruction takes a mask, if it does.
func mask(masked bool, k string) string {
	if masked {
		return k + ", "
	}
	return ""
}

func (f *file) largestOfPairs(masked bool) {
	for i, at := range []string{"(SI)", "(SI)(R11*1)"} {
		f.op("VMOVUPS.Z %s, K1, Z%d", at, 4+4*i)
		f.op("VMOVUPS.Z 64%s, K2, Z%d", at, 5+4*i)
		f.op("VMOVAPS Z%d, Z%d", 4+4*i, 6+4*i)
		f.op("VPERMT2PS Z%d, Z26, Z%d", 5+4*i, 4+4*i) // the even ones
		f.op("VPERMT2PS Z%d, Z27, Z%d", 5+4*i, 6+4*i) // the odd ones
		f.op("VCMPPS $3, Z%d, Z%d, K4", 4+4*i, 6+4*i) // unordered
		f.op("KORW K4, K7, K7")
	}
	f.op("VMOVAPS Z0, Z1")
	for i, from := range []int{6, 8, 10} {
		f.op("VCMPPS $0x1E, Z4, Z%d, K4", from) // greater
		f.op("VMOVAPS Z%d, K4, Z4", from)
		f.op("VPADDD Z%d, Z0, K4, Z1", 28+i)
	}
	f.op("VMOVUPS Z4, %s(DI)", mask(masked, "K3"))
	f.op("VPMOVSXDQ Y1, Z2")
	f.op("VMOVDQU64 Z2, %s(R8)", mask(masked, "K3"))
	f.op("VEXTRACTI64X4 $1, Z1, Y1")
	f.op("VPMOVSXDQ Y1, Z2")
	f.op("KSHIFTRW $8, K3, K4")
	f.op("VMOVDQU64 Z2, %s64(R8)", mask(masked, "K4"))
}

func (f *file) pairsOfGrad(masked bool) {
	f.op("KSHIFTRW $8, K3, K4")
	f.op("VMOVDQU64.Z (R8), K3, Z1")
	f.op("VMOVDQU64.Z 64(R8), K4, Z2")
	f.op("VPMOVUSQD Z1, Y1")
	f.op("VPMOVUSQD Z2, Y2")
	f.op("VINSERTI64X4 $1, Y2, Z1, Z1")
	f.op("VMOVUPS.Z (DI), K3, Z3")
	f.op("VMOVDQA32 Z0, Z2")
	f.op("KXNORW K4, K4, K4")
	for i := range 4 {
		if i > 0 {
			f.op("VPADDD Z%d, Z0, Z2", 27+i)
		}
		f.op("VPCMPEQD Z2, Z1, K5")
		f.op("VMOVAPS.Z Z3, K5, Z%d", 4+i)
		f.op("KANDNW K4, K5, K4")
	}
	f.op("KANDW K3, K4, K4")
	f.op("KORW K4, K7, K7")
	for i, at := range []string{"(SI)", "(SI)(R11*1)"} {
		f.op("VMOVAPS Z%d, Z1", 4+2*i)
		f.op("VPERMT2PS Z%d, Z24, Z1", 5+2*i)
		f.op("VPERMT2PS Z%d, Z25, Z%d", 5+2*i, 4+2*i)
		f.op("VMOVUPS Z1, %s%s", mask(masked, "K1"), at)
		f.op("VMOVUPS Z%d, %s64%s", 4+2*i, mask(masked, "K2"), at)
	}
}

// pairs writes a function that goes over windows of 2×2, 16 at a time: body is for those whose first elements have the places Z0.
func (f *file) pairs(name, doc string, body func(masked bool)) {
	f.function(name+"AVX512", doc, "a *poolArgs", 8)
	f.op("MOVQ a+0(FP), R15")
	f.loads2("poolArgs_", "x", "SI", "y", "DI", "places", "R8", "oh", "R10", "w", "R11", "ow", "R9")
	f.pairConstants()
	f.op("XORL DX, DX")
	f.op("KXORW K7, K7, K7")
	f.op("MOVQ $-1, AX")
	f.op("KMOVW AX, K1")
	f.op("KMOVW AX, K2")
	f.op("KMOVW AX, K3")
	narrow, end := f.label("narrow"), f.label("end")
	f.op("CMPQ R9, $16")
	f.op("JLT %s", narrow)
	f.widePairs(body, end)
	f.mark(narrow)
	f.op("BZHIQ R9, AX, BX")
	f.op("KMOVW BX, K3")
	f.op("LEAQ (R9)(R9*1), CX")
	f.op("BZHIQ CX, AX, BX")
	f.op("KMOVW BX, K1")
	f.op("SHRQ $16, BX")
	f.op("KMOVW BX, K2")
	f.narrowPairs(body, end)
	f.mark(end)
	f.op("KMOVW K7, AX")
	f.op("MOVQ AX, poolArgs_nan(R15)")
	f.leave()
}

func (f *file) pairConstants() {
	f.op("VMOVDQU32 poolLanes<>(SB), Z31")
	f.op("VPADDD Z31, Z31, Z31")
	f.op("MOVL $1, AX")
	f.op("VPBROADCASTD AX, Z28")
	f.op("VPBROADCASTD R11, Z29")
	f.op("VPADDD Z28, Z29, Z30")
	f.op("VMOVDQA32 Z31, Z26")
	f.op("VPADDD Z28, Z26, Z27")
	f.op("VMOVDQU32 poolMix<>(SB), Z24")
	f.op("MOVL $8, AX")
	f.op("VPBROADCASTD AX, Z25")
	f.op("VPADDD Z25, Z24, Z25")
	f.op("MOVQ R11, R12")
	f.op("SUBQ R9, R12")
	f.op("SHLQ $3, R12")
	f.op("SHLQ $2, R11")
}

// forward goes on by some windows.
func (f *file) forward(register string, more int) {
	f.op("LEAQ %d(SI)(%s*8), SI", 8*more, register)
	f.op("LEAQ %d(DI)(%s*4), DI", 4*more, register)
	f.op("LEAQ %d(R8)(%s*8), R8", 8*more, register)
	f.op("LEAQ %d(DX)(%s*2), DX", 2*more, register)
}

// pairsAhead places the next windows, and asks for what comes later: a processor does not foresee rows in pairs.
func (f *file) pairsAhead() {
	const ahead = 512
	for i := range 4 {
		f.op("PREFETCHT0 %d(SI)", 4*ahead+64*i)
	}
	f.op("PREFETCHT0 %d(DI)", ahead)
	f.op("PREFETCHT0 %d(R8)", 2*ahead)
	f.op("PREFETCHT0 %d(R8)", 2*ahead+64)
	f.op("VPBROADCASTD DX, Z0")
	f.op("VPADDD Z31, Z0, Z0")
}

// nextRow goes on from behind a row's windows, or to the end.
func (f *file) nextRow(row, end string) {
	f.op("ADDQ R12, SI")
	f.op("MOVQ R12, BX")
	f.op("SHRQ $2, BX")
	f.op("ADDQ BX, DX")
	f.op("DECQ R10")
	f.op("JNE %s", row)
	f.op("JMP %s", end)
}

// widePairs is for rows of 16 windows and more.
func (f *file) widePairs(body func(masked bool), end string) {
	row, block, next := f.label("row"), f.label("block"), f.label("next")
	f.mark(row)
	f.op("MOVQ poolArgs_ow(R15), R9")
	f.mark(block)
	f.pairsAhead()
	body(false)
	f.op("SUBQ $16, R9")
	f.op("XORL BX, BX")
	f.op("CMPQ R9, $16")
	f.op("CMOVQLT R9, BX")
	f.op("TESTQ R9, R9")
	f.op("JEQ %s", next)
	last := f.label("last")
	f.op("TESTQ BX, BX")
	f.op("JNE %s", last)
	f.forward("BX", 16)
	f.op("JMP %s", block)
	f.mark(last)
	f.forward("BX", 0)
	f.op("MOVQ $16, R9")
	f.op("JMP %s", block)
	f.mark(next)
	f.forward("R9", 16)
	f.nextRow(row, end)
}

// narrowPairs is for rows of R9 windows, fewer.
func (f *file) narrowPairs(body func(masked bool), end string) {
	row, short, done := f.label("row"), f.label("short"), f.label("done")
	f.mark(row)
	f.pairsAhead()
	f.op("MOVQ R10, CX")
	f.op("IMULQ R9, CX")
	f.op("CMPQ CX, $32")
	f.op("JLT %s", short)
	body(false)
	f.op("JMP %s", done)
	f.mark(short)
	body(true)
	f.mark(done)
	f.forward("R9", 0)
	f.nextRow(row, end)
}
