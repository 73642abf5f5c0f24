package main

const pairsDoc = `is tileAVX512 for elements of A and B that are pairs of bfloat16,
the one with the lower index of k in the lower half, in place of

	s += low(a[i, l])*low(b[l, j]) + high(a[i, l])*high(b[l, j])

Values that are not normal count as zeros, as VDPBF16PS has it.`

const pairRowsDoc = `joins two rows of bfloat16 to one of pairs. n is a multiple of 16, in place of

	for i := range n {
		dst[i] = uint32(low[i]) | uint32(high[i])<<16
	}`

// pairs writes the kernels of products of bfloat16.
func pairs(f *file) {
	s := avx512
	s.name, s.pairs = "Pairs", true
	f.tile(s)
	f.function("pairRowsAVX512", pairRowsDoc, "dst *float32, low, high *uint16, n int", 32)
	f.loads("dst+0", "DI", "low+8", "SI", "high+16", "DX", "n+24", "CX")
	f.loop("CX", 16, func() {
		f.op("VPMOVZXWD (SI), Z0")
		f.op("VPMOVZXWD (DX), Z1")
		f.op("VPSLLD $16, Z1, Z1")
		f.op("VPORD Z0, Z1, Z0")
		f.op("VMOVDQU32 Z0, (DI)")
		f.op("ADDQ $32, SI")
		f.op("ADDQ $32, DX")
		f.op("ADDQ $64, DI")
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
