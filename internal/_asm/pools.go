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
