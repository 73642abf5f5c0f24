package main

import (
	"fmt"
	"strings"
)

const tileDoc = `computes a tile of a product, of t.rows up to %d and t.vectors up to 2
vectors of %d columns; %s. A step of k reads
whole vectors of B; with byTable, for tiles of two, step l lies t.table[l] elements
from the start. With byRows the rows of A lie apart and their elements are adjacent; otherwise it is the
steps of k that lie apart. In place of

	for i := range t.rows {
		for j := range columns {
			s := float32(0)
			for l := range t.k {
				s = fma(a[i, l], b[l, j], s)
			}
			if t.flags&accumulate != 0 {
				s += c[i, j]
			}
			if t.flags&addBias != 0 {
				s += bias[j]
			}
			if t.flags&relu != 0 {
				s = max(0, s) // NaN stays NaN
			}
			c[i, j] = s
		}
	}

which Go compiles to one scalar sum at a time, all sums stay in vector
registers over all of k.`

const tileDoubleDoc = `is tile%s for float64, of up to %d rows and two vectors of %d columns, without
byRows and byTable.`

// tile writes the function that computes a tile, with code of its own for
// every height and width: the sums must be named registers.
func (f *file) tile(s isa) {
	columns := "those of C are masked by t.mask"
	if !s.masks {
		columns = "all columns are in use, and t.mask is not"
	}
	doc := fmt.Sprintf(tileDoc, s.height, s.lanes(), columns)
	switch {
	case s.pairs:
		doc = pairsDoc
	case s.double:
		doc = fmt.Sprintf(tileDoubleDoc, strings.TrimPrefix(s.name, "F64"), s.height, s.lanes())
	}
	f.function("tile"+s.name, doc, "t *tile", 8)
	f.op("MOVQ t+0(FP), SI")
	for _, field := range []struct{ name, register string }{
		{"k", "CX"}, {"a", "R8"}, {"as", "R13"}, {"b", "BX"}, {"bs", "DX"}, {"c", "DI"}, {"cs", "AX"}, {"rows", "R9"},
	} {
		f.op("MOVQ tile_%s(SI), %s", field.name, field.register)
	}
	switch {
	case s.masks && s.double:
		f.op("KMOVB tile_mask(SI), K1")
		f.op("KMOVB tile_mask+1(SI), K2")
	case s.masks:
		f.op("KMOVW tile_mask(SI), K1")
		f.op("KMOVW tile_mask+2(SI), K2")
	}
	var labels [3][]string
	for w := 1; w <= 2; w++ {
		for h := 1; h <= s.height; h++ {
			labels[w] = append(labels[w], fmt.Sprintf("%s_%dx%d", s.name, h, w*s.lanes()))
		}
	}
	wide := f.label("wide")
	f.op("CMPQ tile_vectors(SI), $2")
	f.op("JEQ %s", wide)
	f.choose("R9", 1, labels[1])
	f.mark(wide)
	f.choose("R9", 1, labels[2])
	for w := 1; w <= 2; w++ {
		for h := 1; h <= s.height; h++ {
			f.mark(labels[w][h-1])
			(&shape{file: f, s: s, h: h, w: w}).write()
		}
	}
}

// shape is a kernel for h rows and w vectors of columns.
type shape struct {
	*file
	s     isa
	h, w  int
	table bool // where a step of B lies is in the table at DX
	ahead bool // ask for steps of B, which lie apart: the processor would not look for the next in another page
}

// The sums have the first registers, B and A the last four. Row i alternates
// between two, so that its broadcast need not wait for the products before.
func (k *shape) sum(i, j int) int    { return i*k.w + j }
func (k *shape) vecB(j int) string   { return k.s.r(k.s.regs - 4 + j) }
func (k *shape) vecA(i int) string   { return k.s.r(k.s.regs - 2 + i%2) }
func (k *shape) acc(i, j int) string { return k.s.r(k.sum(i, j)) }

// each runs body for every sum.
func (k *shape) each(body func(i, j int)) {
	for i := range k.h {
		for j := range k.w {
			body(i, j)
		}
	}
}

func (k *shape) write() {
	k.prefetch()
	k.each(func(i, j int) { k.zero(k.s, k.sum(i, j)) })
	end := k.label("end")
	if !k.s.pairs && !k.s.double && k.w == 2 {
		byTable := k.label("table")
		k.op("TESTQ $const_byTable, tile_flags(SI)")
		k.op("JNE %s", byTable)
		k.loops(end)
		k.mark(byTable)
		k.op("MOVQ tile_table(SI), DX")
		k.table = true
	}
	k.loops(end)
	k.mark(end)
	k.epilogue()
	k.leave()
}

// loops writes the loops over k for both forms of A, of float64 for panels
// alone; they go on at end.
func (k *shape) loops(end string) {
	if k.s.double {
		k.panelLoop()
		return
	}
	byRows := k.label("rows")
	k.op("TESTQ $const_byRows, tile_flags(SI)")
	k.op("JNE %s", byRows)
	k.panelLoop()
	k.op("JMP %s", end)
	k.mark(byRows)
	if !k.s.masks && k.w == 2 {
		packed := k.label("packed")
		k.op("CMPQ DX, $%d", k.w*k.s.bytes)
		k.op("JEQ %s", packed)
		k.ahead = true
		k.rowsLoop()
		k.op("JMP %s", end)
		k.mark(packed)
		k.ahead = false
	}
	k.rowsLoop()
	k.op("JMP %s", end)
}

// prefetch asks for a tile of C that is long enough to arrive in time.
func (k *shape) prefetch() {
	short := k.label("short")
	k.op("CMPQ CX, $128")
	k.op("JLT %s", short)
	k.op("MOVQ DI, R9")
	for i := range k.h {
		for at := 0; at < k.w*k.s.bytes; at += 64 {
			k.op("PREFETCHT0 %d(R9)", at)
		}
		if i+1 < k.h {
			k.op("ADDQ AX, R9")
		}
	}
	k.mark(short)
}

// unroll is the number of steps of k in a turn of the loop: more of them won
// nothing when it was measured.
const unroll = 2

// panelLoop reads element (i, l) of A at R8+i*size+l*R13: a packed panel, or a
// matrix that is stored transposed.
func (k *shape) panelLoop() {
	for _, n := range []int{unroll, 1} {
		k.loop("CX", n, func() {
			for range n {
				k.step(func(i int) string { return fmt.Sprintf("%d(R8)", k.s.size()*i) })
				k.op("ADDQ R13, R8")
			}
		})
	}
}

// rowBases hold the addresses of rows 0, 3, 6, 9 and 12; the two rows after
// each are reached with the distance as an index.
var rowBases = []string{"R8", "R9", "R10", "R11", "R12"}

// rowsLoop reads element (i, l) of A at R8+i*R13+4l: a matrix as it lies.
func (k *shape) rowsLoop() {
	for i := 3; i < k.h; i += 3 {
		k.op("LEAQ (%s)(R13*2), %s", rowBases[i/3-1], rowBases[i/3])
		k.op("ADDQ R13, %s", rowBases[i/3])
	}
	for _, n := range []int{unroll, 1} {
		k.loop("CX", n, func() {
			for u := range n {
				k.step(func(i int) string {
					return fmt.Sprintf("%d(%s)%s", 4*u, rowBases[i/3], []string{"", "(R13*1)", "(R13*2)"}[i%3])
				})
			}
			for i := 0; i < k.h; i += 3 {
				k.op("ADDQ $%d, %s", 4*n, rowBases[i/3])
			}
		})
	}
}

// step is one step of k. The loads of B have no masks: on Zen 4 those cost
// slots of the multipliers.
func (k *shape) step(elementA func(i int) string) {
	index := ""
	if k.table {
		k.op("MOVQ (DX), R15")
		index = "(R15*4)"
	}
	for j := range k.w {
		k.op("VMOVUPS %d(BX)%s, %s", j*k.s.bytes, index, k.vecB(j))
	}
	if k.ahead && !k.table {
		k.op("PREFETCHT0 (BX)(DX*8)")
	}
	for i := range k.h {
		k.op("%s %s, %s", k.s.of("VBROADCASTS"), elementA(i), k.vecA(i))
		for j := range k.w {
			k.multiply(i, j)
		}
	}
	if k.table {
		k.op("ADDQ $8, DX")
	} else {
		k.op("ADDQ DX, BX")
	}
}

// multiply adds a product to a sum.
func (k shape) multiply(i, j int) {
	if k.s.pairs {
		k.dot(k.s.regs-2+i%2, k.s.regs-4+j, k.sum(i, j))
		return
	}
	k.op("%s %s, %s, %s", k.s.of("VFMADD231P"), k.vecA(i), k.vecB(j), k.acc(i, j))
}

// epilogue finishes the sums and stores them. The registers of A and B are
// free here.
func (k *shape) epilogue() {
	k.when("accumulate", func() {
		k.op("MOVQ DI, R9")
		k.overC("R9", func(i, j int, c string) { k.masked(k.s.of("VADDP"), c+", "+k.acc(i, j), k.acc(i, j), j) })
	})
	k.when("addBias", func() {
		k.op("MOVQ tile_bias(SI), R9")
		load := k.s.of("VMOVUP")
		if k.s.masks {
			load += ".Z"
		}
		for j := range k.w {
			k.masked(load, fmt.Sprintf("%d(R9)", j*k.s.bytes), k.vecB(j), j)
		}
		k.each(func(i, j int) { k.op("%s %s, %s, %s", k.s.of("VADDP"), k.vecB(j), k.acc(i, j), k.acc(i, j)) })
	})
	k.when("relu", func() {
		k.comment("max(0, x) with x last, so that NaN passes through")
		k.zero(k.s, k.s.regs-2)
		k.each(func(i, j int) { k.op("%s %s, %s, %s", k.s.of("VMAXP"), k.acc(i, j), k.vecA(0), k.acc(i, j)) })
	})
	k.overC("DI", func(i, j int, c string) { k.masked(k.s.of("VMOVUP"), k.acc(i, j), c, j) })
}

// overC runs body for every vector of C, row by row from the register.
func (k *shape) overC(register string, body func(i, j int, c string)) {
	k.each(func(i, j int) {
		body(i, j, fmt.Sprintf("%d(%s)", j*k.s.bytes, register))
		if j == k.w-1 && i < k.h-1 {
			k.op("ADDQ AX, %s", register)
		}
	})
}

// masked writes an instruction on vector j of a row: on the columns in use, if
// there are masks.
func (k *shape) masked(op, from, to string, j int) {
	if !k.s.masks {
		k.op("%s %s, %s", op, from, to)
		return
	}
	k.op("%s %s, K%d, %s", op, from, j+1, to)
}

const ceilingDoc = "multiplies and adds in registers, in place of\n\n\tfor range n {\n\t\tfor i := range %d {\n\t\t\tsum[i] = fma(x, y, sum[i])\n\t\t}\n\t}"

// ceiling writes a loop of multiply-adds on registers alone: the rate that no
// kernel can pass.
func (f *file) ceiling(s isa) {
	sums := 3 * s.regs / 4
	f.function("ceiling"+s.name, fmt.Sprintf(ceilingDoc, sums*s.lanes()), "n int", 8)
	f.op("MOVQ n+0(FP), CX")
	for i := range sums + 2 {
		f.zero(s, i)
	}
	f.loop("CX", 1, func() {
		for i := range sums {
			f.op("VFMADD231PS %s, %s, %s", s.r(sums), s.r(sums+1), s.r(i))
		}
	})
	f.leave()
}
