package main

const pairsDoc = `is tileAVX512 for elements of A and B that are pairs of bfloat16,
the one with the lower index of k in the lower half, in place of

	s += low(a[i, l])*low(b[l, j]) + high(a[i, l])*high(b[l, j])

Values that are not normal count as zeros, as VDPBF16PS has it.`

const zipLanesDoc = `packs up to 32 lanes of bfloat16 that are adjacent in memory in pairs of
two steps of k. In place of

	for s := range k {
		for i := range width {
			dst[s*width+i] = 0
			if mask>>i&1 != 0 {
				dst[s*width+i] = uint32(src[s*step/2+i]) | uint32(src[(s*step+high)/2+i])<<16
			}
		}
	}

it widens vectors and joins them. The width is 16 or 32 lanes; step and high, from one
half of a pair to the other, are in bytes.`

// pairs writes the kernels of products of bfloat16.
func pairs(f *file) {
	s := avx512
	s.name, s.pairs = "Pairs", true
	f.tile(s)
	f.function("zipLanesAVX512", zipLanesDoc, "dst, src unsafe.Pointer, k, step, high, width int, mask uint32", 52)
	f.loads("dst+0", "DI", "src+8", "R8", "k+16", "CX", "step+24", "R13", "high+32", "R9")
	f.op("MOVL mask+48(FP), AX")
	f.op("KMOVW AX, K1")
	f.op("SHRL $16, AX")
	f.op("KMOVW AX, K2")
	f.op("ADDQ R8, R9")
	f.op("MOVQ R13, R11")
	f.op("SHLQ $%d, R11", stepsAhead)
	wide := f.label("wide")
	f.op("CMPQ width+40(FP), $32")
	f.op("JEQ %s", wide)
	f.zipSteps(1)
	f.mark(wide)
	f.zipSteps(2)
}

// zipSteps joins w vectors in each of CX steps.
func (f *file) zipSteps(w int) {
	f.loop("CX", 1, func() {
		for j := range w {
			f.op("VPMOVZXWD.Z %d(R8), K%d, Z0", 32*j, j+1)
			f.op("VPMOVZXWD.Z %d(R9), K%d, Z1", 32*j, j+1)
			f.op("VPSLLD $16, Z1, Z1")
			f.op("VPORD Z0, Z1, Z0")
			f.op("VMOVDQU32 Z0, %d(DI)", 64*j)
		}
		for _, r := range []string{"R8", "R9"} {
			f.op("PREFETCHT0 (%s)(R11*1)", r)
			f.op("ADDQ R13, %s", r)
		}
		f.op("ADDQ $%d, DI", 64*w)
	})
	f.leave()
}

// dot writes VDPBF16PS of two registers into a third, which Go's assembler lacks: EVEX.512.F3.0F38.W0 52 /r.
func (f *file) dot(a, b, sum int) {
	clear := func(r, bit int) int { return ^r >> bit & 1 }
	p1 := clear(sum, 3)<<7 | clear(a, 4)<<6 | clear(a, 3)<<5 | clear(sum, 4)<<4 | 2
	p2 := (^b&15)<<3 | 1<<2 | 2
	p3 := 2<<5 | clear(b, 4)<<3
	f.op("LONG $0x%02x%02x%02x62; WORD $0x%02x52 // VDPBF16PS Z%d, Z%d, Z%d", p3, p2, p1, 3<<6|sum&7<<3|a&7, a, b, sum)
}
