package main

// interleave writes the parting of a row by even and odd places, and the reverse, eight pairs at a time and then four.
func interleave(f *file) {
	f.parts("apartPairsAVX2", "takes n pairs apart:\n\n\tfor i := range n {\n\t\teven[i], odd[i] = row[2*i], row[2*i+1]\n\t}", func(r string, bytes int) {
		f.op("VMOVUPS (DX), %s0", r)
		f.op("VMOVUPS %d(DX), %s1", bytes, r)
		f.op("VSHUFPS $0x88, %s1, %[1]s0, %[1]s2", r)
		f.op("VSHUFPS $0xDD, %s1, %[1]s0, %[1]s3", r)
		if bytes == 32 { // halves of registers are shuffled apart
			f.op("VPERMPD $0xD8, Y2, Y2")
			f.op("VPERMPD $0xD8, Y3, Y3")
		}
		f.op("VMOVUPS %s2, (DI)", r)
		f.op("VMOVUPS %s3, (SI)", r)
	}, func() {
		f.op("MOVL (DX), R8")
		f.op("MOVL 4(DX), R9")
		f.op("MOVL R8, (DI)")
		f.op("MOVL R9, (SI)")
	})
	f.parts("weavePairsAVX2", "is the reverse of apartPairsAVX2.", func(r string, bytes int) {
		f.op("VMOVUPS (DI), %s0", r)
		f.op("VMOVUPS (SI), %s1", r)
		f.op("VUNPCKLPS %s1, %[1]s0, %[1]s2", r)
		f.op("VUNPCKHPS %s1, %[1]s0, %[1]s3", r)
		low, high := 2, 3
		if bytes == 32 {
			f.op("VPERM2F128 $0x20, Y3, Y2, Y4")
			f.op("VPERM2F128 $0x31, Y3, Y2, Y5")
			low, high = 4, 5
		}
		f.op("VMOVUPS %s%d, (DX)", r, low)
		f.op("VMOVUPS %s%d, %d(DX)", r, high, bytes)
	}, func() {
		f.op("MOVL (DI), R8")
		f.op("MOVL (SI), R9")
		f.op("MOVL R8, (DX)")
		f.op("MOVL R9, 4(DX)")
	})
}

// parts writes a function over pairs: DI and SI are where the even and the odd ones are, and DX where both are.
func (f *file) parts(name, doc string, vector func(register string, bytes int), pair func()) {
	f.function(name, doc, "even, odd, row unsafe.Pointer, n int", 32)
	f.loads("even+0", "DI", "odd+8", "SI", "row+16", "DX", "n+24", "CX")
	forward := func(n int) {
		f.op("ADDQ $%d, DI", 4*n)
		f.op("ADDQ $%d, SI", 4*n)
		f.op("ADDQ $%d, DX", 8*n)
	}
	f.loop("CX", 8, func() {
		vector("Y", 32)
		forward(8)
	})
	f.loop("CX", 4, func() {
		vector("X", 16)
		forward(4)
	})
	f.loop("CX", 1, func() {
		pair()
		forward(1)
	})
	f.leave()
}
