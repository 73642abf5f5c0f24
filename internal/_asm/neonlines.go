package main

import "fmt"

// pieceArm is piece for NEON: some vectors, or one element, in lane 0 of vectors whose other lanes are zero.
type pieceArm struct {
	vectors int
	bytes   int // of a vector
}

// alongArm is along: R3 counts the elements.
func (f *file) alongArm(vectors int, body func(p pieceArm)) {
	for _, p := range []pieceArm{{vectors, 16}, {1, 16}, {1, 4}} {
		f.loopArm("R3", p.vectors*p.bytes/4, func() { body(p) })
	}
}

// linesArm loads the parameters that addRows and dotRows share: R0 y, R1 b and, after it, its lines from R5 on, R2 x, R3 n.
func (f *file) linesArm(n int) {
	f.loadsArm("y+0", "R0", "b+8", "R5", "x+16", "R2", "n+24", "R3", "row+32", "R4")
	for i := 1; i < n; i++ {
		f.op("ADD R4, R%d, R%d", 4+i, 5+i)
	}
}

// advanceLines moves the lines on.
func (f *file) advanceLines(n int, p pieceArm, more string) {
	for i := range n {
		f.op("ADD $%d, R%d", p.vectors*p.bytes, 5+i)
	}
	f.op("ADD $%d, %s", p.vectors*p.bytes, more)
}

// addRowsArm is addRows for NEON.
func (f *file) addRowsArm(n int) {
	f.function(fmt.Sprintf("addRows%dNEON", n), fmt.Sprintf(addRowsDoc, n, n), "y, b, x unsafe.Pointer, n, row int", 40)
	f.linesArm(n)
	const vectors, scale, row = 4, 24, 16
	for i := range (n + 3) / 4 {
		f.op("%s %d(R2), F%d", moveArm(4*min(n, 4)), 16*i, scale+i)
	}
	f.alongArm(vectors, func(p pieceArm) {
		move := moveArm(p.bytes)
		for j := range p.vectors {
			f.op("%s %d(R0), F%d", move, 16*j, j)
		}
		for i := range n {
			for j := range p.vectors {
				f.op("%s %d(R%d), F%d", move, 16*j, 5+i, row+j)
				f.addLane(neon, j, row+j, scale+i/4, i%4)
			}
		}
		for j := range p.vectors {
			f.op("%s F%d, %d(R0)", move, j, 16*j)
		}
		f.advanceLines(n, p, "R0")
	})
	f.op("RET")
}

// dotRowsArm is dotRows for NEON.
func (f *file) dotRowsArm(n int) {
	const vectors, x, row = 4, 16, 20
	f.function(fmt.Sprintf("dotRows%dNEON", n), fmt.Sprintf(dotRowsDoc, n, n, neon.lanes()), "y, b, x unsafe.Pointer, n, row int", 40)
	f.linesArm(n)
	for i := range n * vectors {
		f.clearArm(i)
	}
	f.alongArm(vectors, func(p pieceArm) {
		move := moveArm(p.bytes)
		for j := range p.vectors {
			f.op("%s %d(R2), F%d", move, 16*j, x+j)
		}
		for i := range n {
			for j := range p.vectors {
				f.op("%s %d(R%d), F%d", move, 16*j, 5+i, row+j)
				f.arm(fmla, vectors*i+j, x+j, row+j)
			}
		}
		f.advanceLines(n, p, "R2")
	})
	for i := range n {
		sum := vectors * i
		for step := 1; step < vectors; step *= 2 {
			for j := 0; j < vectors; j += 2 * step {
				f.arm(fadd, sum+j, sum+j, sum+j+step)
			}
		}
		f.arm(faddp, sum, sum, sum)
		f.arm(faddp, sum, sum, sum)
		f.op("FMOVS %d(R0), F%d", 4*i, x)
		f.op("FADDS F%d, F%d", x, sum)
		f.op("FMOVS F%d, %d(R0)", sum, 4*i)
	}
	f.op("RET")
}

// transposeArm is transpose for NEON: blocks of 4×4, or of 2×2 float64.
func (f *file) transposeArm(s isa) {
	n := s.lanes()
	f.function("transpose"+s.name, fmt.Sprintf(transposeDoc, n, stepsMultiple(s), stepsNote(s), s.size()), "dst, src unsafe.Pointer, lanes, k, lane, width int", 48)
	f.loadsArm("dst+0", "R0", "src+8", "R6", "lanes+16", "R2", "k+24", "R3", "lane+32", "R4", "width+40", "R5")
	for i := 1; i < n; i++ {
		f.op("ADD R4, R%d, R%d", 5+i, 6+i)
	}
	f.loopArm("R3", n, func() {
		loaded := f.label("loaded")
		for i := range n {
			if i > 0 {
				f.op("CMP $%d, R2", i)
				f.op("BLE %s", loaded)
			}
			f.op("FMOVQ.P 16(R%d), F%d", 6+i, i)
		}
		f.mark(loaded)
		first := 0 // of the lines whose elements are exchanged, in pairs
		if !s.double {
			first = 4
			for i := 0; i < n; i += 2 { // of lines i and i+1 the even and the odd elements
				f.op("VTRN1 V%d.S4, V%d.S4, V%d.S4", i+1, i, first+i/2)
				f.op("VTRN2 V%d.S4, V%d.S4, V%d.S4", i+1, i, first+2+i/2)
			}
		}
		for i := range n {
			pair := first + i%(n/2)*2
			f.op("VTRN%d V%d.D2, V%d.D2, V8.D2", 1+2*i/n, pair+1, pair)
			f.op("FMOVQ F8, (R0)")
			f.op("ADD R5, R0")
		}
	})
	f.op("RET")
}
