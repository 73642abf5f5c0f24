package main

import "fmt"

// gemmArm writes the kernels of matrix products for NEON.
func gemmArm(f *file) {
	for _, s := range []isa{neon, neon.doubles()} {
		f.tileArm(s)
		f.transposeArm(s)
	}
	for _, n := range []int{8, 1} {
		f.addRowsArm(n)
	}
	for _, n := range []int{4, 1} {
		f.dotRowsArm(n)
	}
	f.ceilingArm()
}

// Registers of a tile: R0 the struct, R1 the steps of k that are left, R2 A and R3 its distance, R4 B and R5 its distance,
// R6 C and R7 its distance, R8 the rows and R9 the flags; with byRows each row of A has a register of its own.
var rowsArm = []string{"R2", "R10", "R11", "R12", "R13", "R14", "R15", "R16", "R17", "R19", "R20", "R21"}

// tileArm writes tile for NEON.
func (f *file) tileArm(s isa) {
	doc := fmt.Sprintf(tileDoc, s.height, s.lanes(), "all columns are in use, and t.mask is not")
	if s.double {
		doc = fmt.Sprintf("is tileNEON for float64, of up to two vectors of %d columns.", s.lanes())
	}
	f.function("tile"+s.name, doc, "t *tile", 8)
	f.op("MOVD t+0(FP), R0")
	for i, field := range []string{"k", "a", "as", "b", "bs", "c", "cs", "rows", "flags"} {
		f.op("MOVD tile_%s(R0), R%d", field, i+1)
	}
	f.op("MOVD tile_vectors(R0), R10")
	var labels [3][]string
	for w := 1; w <= 2; w++ {
		for h := 1; h <= s.height; h++ {
			labels[w] = append(labels[w], fmt.Sprintf("%s_%dx%d", s.name, h, w*s.lanes()))
		}
	}
	wide := f.label("wide")
	f.op("CMP $2, R10")
	f.op("BEQ %s", wide)
	f.chooseArm("R8", 1, labels[1])
	f.mark(wide)
	f.chooseArm("R8", 1, labels[2])
	for w := 1; w <= 2; w++ {
		for h := 1; h <= s.height; h++ {
			f.mark(labels[w][h-1])
			(&shapeArm{f, s, h, w}).write()
		}
	}
}

// chooseArm is choose.
func (f *file) chooseArm(register string, first int, labels []string) {
	if len(labels) == 1 {
		f.op("B %s", labels[0])
		return
	}
	half := len(labels) / 2
	upper := f.label("from")
	f.op("CMP $%d, %s", first+half, register)
	f.op("BGE %s", upper)
	f.chooseArm(register, first, labels[:half])
	f.mark(upper)
	f.chooseArm(register, first+half, labels[half:])
}

// shapeArm is a kernel for h rows and w vectors of columns. The sums have the first 24 registers, B the next two, and A the
// last six: a product takes one lane of A's.
type shapeArm struct {
	*file
	s    isa
	h, w int
}

const (
	firstBArm = 24
	firstAArm = 26
)

func (k *shapeArm) sum(i, j int) int { return i*k.w + j }

// of is an instruction for the type of the elements.
func (k *shapeArm) of(op armOp) armOp {
	if k.s.double {
		return op.doubles()
	}
	return op
}

// each runs body for every sum.
func (k *shapeArm) each(body func(i, j int)) {
	for i := range k.h {
		for j := range k.w {
			body(i, j)
		}
	}
}

func (k *shapeArm) write() {
	k.each(func(i, j int) { k.clearArm(k.sum(i, j)) })
	byRows, end := k.label("rows"), k.label("end")
	k.op("TST $const_byRows, R9")
	k.op("BNE %s", byRows)
	k.panelLoop()
	k.op("B %s", end)
	k.mark(byRows)
	k.rowsLoop()
	k.mark(end)
	k.epilogue()
	k.op("RET")
}

// loadB loads a step of B.
func (k *shapeArm) loadB() {
	for j := range k.w {
		k.op("FMOVQ %d(R4), F%d", 16*j, firstBArm+j)
	}
	k.op("ADD R5, R4")
}

// panelLoop reads element (i, l) of A at R2+size·i+l*R3: a packed panel, or a matrix that is stored transposed, beyond whose
// rows nothing may be read.
func (k *shapeArm) panelLoop() {
	for _, n := range []int{unroll, 1} {
		k.loopArm("R1", n, func() {
			for range n {
				k.loadB()
				k.panelStep()
				k.op("ADD R3, R2")
			}
		})
	}
}

// multiply adds to the sums of row i the products with a lane of register a.
func (k *shapeArm) multiply(i, a, lane int) {
	for j := range k.w {
		k.addLane(k.s, k.sum(i, j), firstBArm+j, a, lane)
	}
}

// panelStep loads the rows of a step, a vector at a time and what is left by halves, and multiplies.
func (k *shapeArm) panelStep() {
	register := firstAArm
	for i := 0; i < k.h; {
		n := k.s.lanes()
		for i+n > k.h {
			n /= 2
		}
		k.op("%s %d(R2), F%d", moveArm(k.s.size()*n), k.s.size()*i, register)
		for lane := range n {
			k.multiply(i+lane, register, lane)
		}
		i += n
		register++
	}
}

// rowsLoop reads element (i, l) of A at R2+i*R3+size·l: a matrix as it lies.
func (k *shapeArm) rowsLoop() {
	for i := 1; i < k.h; i++ {
		k.op("ADD R3, %s, %s", rowsArm[i-1], rowsArm[i])
	}
	for _, n := range []int{unroll, 1} {
		k.loopArm("R1", n, func() {
			for u := range n {
				k.loadB()
				for i := range k.h {
					a := firstAArm + i%6
					k.op("%s %d(%s), F%d", moveArm(k.s.size()), k.s.size()*u, rowsArm[i], a)
					k.multiply(i, a, 0)
				}
			}
			for i := range k.h {
				k.op("ADD $%d, %s", k.s.size()*n, rowsArm[i])
			}
		})
	}
}

// when runs body if the flag is set.
func (k *shapeArm) when(flag string, body func()) {
	skip := k.label("no" + flag)
	k.op("TST $const_%s, R9", flag)
	k.op("BEQ %s", skip)
	body()
	k.mark(skip)
}

// epilogue finishes the sums and stores them. The registers of A and B are free here.
func (k *shapeArm) epilogue() {
	k.when("accumulate", func() {
		k.op("MOVD R6, R10")
		k.overC("R10", func(i, j int, c string) {
			k.op("FMOVQ %s, F%d", c, firstAArm+j)
			k.arm(k.of(fadd), k.sum(i, j), k.sum(i, j), firstAArm+j)
		})
	})
	k.when("addBias", func() {
		k.op("MOVD tile_bias(R0), R10")
		for j := range k.w {
			k.op("FMOVQ %d(R10), F%d", 16*j, firstBArm+j)
		}
		k.each(func(i, j int) { k.arm(k.of(fadd), k.sum(i, j), k.sum(i, j), firstBArm+j) })
	})
	k.when("relu", func() {
		k.comment("what is below 0 loses its bits, so that NaN and -0 stay")
		k.each(func(i, j int) {
			k.arm(k.of(below0), firstAArm+j, k.sum(i, j))
			k.arm(bic, k.sum(i, j), k.sum(i, j), firstAArm+j)
		})
	})
	k.overC("R6", func(i, j int, c string) { k.op("FMOVQ F%d, %s", k.sum(i, j), c) })
}

// overC runs body for every vector of C, row by row from the register.
func (k *shapeArm) overC(register string, body func(i, j int, c string)) {
	k.each(func(i, j int) {
		body(i, j, fmt.Sprintf("%d(%s)", 16*j, register))
		if j == k.w-1 && i < k.h-1 {
			k.op("ADD R7, %s", register)
		}
	})
}

// ceilingArm is ceiling for NEON.
func (f *file) ceilingArm() {
	sums := 3 * neon.regs / 4
	f.function("ceilingNEON", fmt.Sprintf(ceilingDoc, sums*neon.lanes()), "n int", 8)
	f.op("MOVD n+0(FP), R0")
	for i := range sums + 2 {
		f.clearArm(i)
	}
	f.loopArm("R0", 1, func() {
		for i := range sums {
			f.arm(fmla, i, sums, sums+1)
		}
	})
	f.op("RET")
}
