package main

// packPatches writes the packing of what taps see.
func (f *file) packPatches() {
	f.function("packPatchesAVX512", `packs vectors of 16 lanes for each of p.rows channels: for each of p.taps
taps two of them, each of whose lanes sees one of p.runs runs of adjacent memory, or
nothing. In place of

	for i := range p.rows {
		for t := range p.taps {
			for lane := range 32 {
				v := float32(0)
				for _, r := range p.table[(2*t+lane/16)*p.runs:][:p.runs] {
					if r.mask>>(lane%16)&1 != 0 {
						v = src[i*p.srcRow/4+r.at/4+lane%16]
					}
				}
				dst[i*p.dstRow/4+t*p.dstTap/4+lane] = v
			}
		}
	}

it merges vectors under masks, which read nothing where they are zero.
Distances are in bytes.`, "p *packing", 8)
	f.op("MOVQ p+0(FP), SI")
	f.op("MOVQ packing_dst(SI), R8")
	f.op("MOVQ packing_src(SI), BX")
	f.op("MOVQ packing_rows(SI), CX")
	f.op("MOVQ packing_srcRow(SI), R13")
	f.op("LEAQ (BX)(R13*4), R12")
	labels := make([]string, maxRuns+1)
	for i := range labels {
		labels[i] = f.label("runs")
	}
	f.op("MOVQ packing_runs(SI), AX")
	f.choose("AX", 1, labels)
	for i, l := range labels {
		f.mark(l)
		f.packChannels(i + 1)
	}
}

const maxRuns = 4 // with code of their own; for more there is a loop

// packChannels packs CX channels with n runs in each vector; R8, BX and R12 are where they are packed, where they come
// from, and what comes in four turns.
func (f *file) packChannels(n int) {
	f.loop("CX", 1, func() {
		tap := f.label("tap")
		f.op("MOVQ packing_table(SI), R9")
		f.op("MOVQ packing_taps(SI), DX")
		f.op("MOVQ R8, DI")
		f.mark(tap)
		for v := range 2 {
			if n > maxRuns {
				f.mergeMany(v)
				continue
			}
			for i := range n {
				f.mergeRun(v, 16*(n*v+i), i == 0)
			}
		}
		if n <= maxRuns {
			f.op("ADDQ $%d, R9", 2*n*16)
		}
		f.op("VMOVUPS Z0, (DI)")
		f.op("VMOVUPS Z1, 64(DI)")
		f.op("ADDQ packing_dstTap(SI), DI")
		f.op("DECQ DX")
		f.op("JNE %s", tap)
		f.op("ADDQ packing_dstRow(SI), R8")
		f.op("ADDQ R13, BX")
		f.op("ADDQ R13, R12")
	})
	f.leave()
}

// mergeRun merges the run whose row of the table is so far from R9 into vector v.
func (f *file) mergeRun(v, at int, first bool) {
	f.op("MOVQ %d(R9), R10", at)
	f.op("KMOVW %d(R9), K1", at+8)
	if first {
		f.op("PREFETCHT0 (R12)(R10*1)")
		f.op("VMOVUPS.Z (BX)(R10*1), K1, Z%d", v)
		return
	}
	f.op("VMOVUPS (BX)(R10*1), K1, Z%d", v)
}

// mergeMany merges all runs of vector v.
func (f *file) mergeMany(v int) {
	next := f.label("run")
	f.op("MOVQ packing_runs(SI), AX")
	f.mergeRun(v, 0, true)
	f.op("ADDQ $16, R9")
	f.op("DECQ AX")
	f.mark(next)
	f.mergeRun(v, 0, false)
	f.op("ADDQ $16, R9")
	f.op("DECQ AX")
	f.op("JNE %s", next)
}

// packTaps writes the packing of weights for the gradient by the input, whose lanes are far apart.
func (f *file) packTaps() {
	s := avx512
	f.function("packTapsAVX512", `packs up to 16 lanes in each of n groups of k steps, at most 16, that are
adjacent in memory. In place of

	for g := range n {
		for s := range k {
			for i := range lanes {
				dst[(g*k+s)*16+i] = src[g*group/4+i*lane/4+s]
			}
		}
	}

it transposes blocks in registers, and asks for those to come. It writes 16 lanes in
each step, those beyond lanes with anything. The distances lane and group are in bytes.`,
		"dst, src unsafe.Pointer, lanes, k, lane, group, n int", 56)
	f.loads("dst+0", "DI", "src+8", "R8", "lanes+16", "AX", "k+24", "CX", "lane+32", "R13", "n+48", "SI")
	f.op("LEAQ (R13)(R13*2), R12")
	f.op("MOVL $64, DX")
	f.op("MOVL $0xffff, BX")
	f.op("KMOVW BX, K1")
	full, next, end := f.label("full"), f.label("next"), f.label("end")
	f.op("CMPQ CX, $16")
	f.op("JGE %s", full)
	f.lowMask("BX")
	f.mark(full)
	bases := []string{"R8", "R9", "R10", "R11"}
	f.op("TESTQ SI, SI")
	f.op("JEQ %s", end)
	f.mark(next)
	f.ahead()
	for i := 1; i < len(bases); i++ {
		f.op("LEAQ (%s)(R13*4), %s", bases[i-1], bases[i])
	}
	f.loadLines(s, bases)
	stored := f.label("stored")
	f.storeSteps(s, f.exchanges(s), stored)
	f.mark(stored)
	f.op("ADDQ group+40(FP), R8")
	f.op("DECQ SI")
	f.op("JNE %s", next)
	f.mark(end)
	f.leave()
}

// ahead asks for what AX lanes of R13 bytes hold some groups from now. It leaves R9 to R11 to others.
func (f *file) ahead() {
	top := f.label("ahead")
	f.op("MOVQ group+40(FP), R9")
	f.op("LEAQ (R8)(R9*4), R9")
	f.op("MOVQ AX, R10")
	f.op("IMULQ R13, R10")
	f.mark(top)
	f.op("PREFETCHT0 (R9)")
	f.op("ADDQ $64, R9")
	f.op("SUBQ $64, R10")
	f.op("JG %s", top)
}
