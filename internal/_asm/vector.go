package main

import "fmt"

// lineAddress is the address of line i from R8, and from R9 four lines on.
func lineAddress(i, at int) string {
	return fmt.Sprintf("%d(%s)%s", at, []string{"R8", "R9"}[i/4], strides[i%4])
}

// piece is how much of a line a turn of a loop takes: some vectors, or one
// element of a rest.
type piece struct {
	*file
	s       isa
	vectors int
	rest    bool
}

// bytes is what the piece advances.
func (p piece) bytes() int {
	if p.rest && !p.s.masks {
		return 4
	}
	return p.vectors * p.s.bytes
}

// load moves vector j at an address to register i, zeroing what is not in use.
func (p piece) load(address string, i int) {
	switch {
	case p.s.masks:
		p.op("VMOVUPS.Z %s, K1, Z%d", address, i)
	case p.rest:
		p.op("VMOVSS %s, X%d", address, i)
	default:
		p.op("VMOVUPS %s, Y%d", address, i)
	}
}

// store is the reverse.
func (p piece) store(i int, address string) {
	switch {
	case p.s.masks:
		p.op("VMOVUPS Z%d, K1, %s", i, address)
	case p.rest:
		p.op("VMOVSS X%d, %s", i, address)
	default:
		p.op("VMOVUPS Y%d, %s", i, address)
	}
}

// multiply adds memory times register x to register sum. Without masks the
// rest goes through the last register, whose upper elements are zero then.
func (p piece) multiply(address string, x, sum int) {
	last := p.s.regs - 1
	switch {
	case p.s.masks:
		p.op("VFMADD231PS %s, Z%d, K1, Z%d", address, x, sum)
	case p.rest:
		p.op("VMOVSS %s, X%d", address, last)
		p.op("VFMADD231PS Y%d, Y%d, Y%d", last, x, sum)
	default:
		p.op("VFMADD231PS %s, Y%d, Y%d", address, x, sum)
	}
}

// along runs body over CX elements: some vectors at a time, one at a time, and
// then over the rest, under a mask or element by element.
func (f *file) along(s isa, vectors int, body func(p piece)) {
	if s.masks {
		f.op("MOVL $0xffff, AX")
		f.op("KMOVW AX, K1")
	}
	f.loop("CX", s.lanes()*vectors, func() { body(piece{f, s, vectors, false}) })
	f.loop("CX", s.lanes(), func() { body(piece{f, s, 1, false}) })
	if !s.masks {
		f.loop("CX", 1, func() { body(piece{f, s, 1, true}) })
		return
	}
	end := f.label("end")
	f.op("TESTQ CX, CX")
	f.op("JEQ %s", end)
	f.lowMask("AX")
	body(piece{f, s, 1, true})
	f.mark(end)
}

// lines loads the parameters that addRows and dotRows share.
func (f *file) lines() {
	f.loads("y+0", "DI", "b+8", "R8", "x+16", "BX", "n+24", "CX", "row+32", "R13")
	f.op("LEAQ (R13)(R13*2), R12")
	f.op("LEAQ (R8)(R13*4), R9")
}

const addRowsDoc = `adds %d scaled rows of b to y, in place of

	for j := range n {
		for i := range %d {
			y[j] = fma(x[i], b[i*row/4+j], y[j])
		}
	}

so that y is read and written once for all of them. The distance row is in
bytes.`

// addRows adds n rows of a matrix, scaled, to a vector.
func (f *file) addRows(s isa, n int) {
	f.function(fmt.Sprintf("addRows%d%s", n, s.name), fmt.Sprintf(addRowsDoc, n, n), "y, b, x unsafe.Pointer, n, row int", 40)
	f.lines()
	const vectors = 4
	scale := s.regs - 9 // the last register is multiply's
	for i := range n {
		f.op("VBROADCASTSS %d(BX), %s", 4*i, s.r(scale+i))
	}
	f.along(s, vectors, func(p piece) {
		for j := range p.vectors {
			p.load(fmt.Sprintf("%d(DI)", s.bytes*j), j)
		}
		for i := range n {
			for j := range p.vectors {
				p.multiply(lineAddress(i, s.bytes*j), scale+i, j)
			}
		}
		for j := range p.vectors {
			p.store(j, fmt.Sprintf("%d(DI)", s.bytes*j))
		}
		for _, r := range []string{"R8", "R9", "DI"} {
			f.op("ADDQ $%d, %s", p.bytes(), r)
		}
	})
	f.leave()
}

const dotRowsDoc = `multiplies %d rows of b with x, in place of

	for i := range %d {
		var sum [%d]float32
		for j := range n {
			sum[lane] = fma(x[j], b[i*row/4+j], sum[lane])
		}
		y[i] += sum[0] + ... // in pairs: the halves of what is left, again and again
	}

where lane goes around the sums. The distance row is in bytes.`

// dotRows multiplies n rows of a matrix with a vector. Four rows ask for the
// four after them: rows are short where memory is far.
func (f *file) dotRows(s isa, n int) {
	vectors := 4
	if !s.masks {
		vectors = 2
	}
	f.function(fmt.Sprintf("dotRows%d%s", n, s.name), fmt.Sprintf(dotRowsDoc, n, n, s.lanes()), "y, b, x unsafe.Pointer, n, row int", 40)
	f.lines()
	sum := func(i, j int) int { return i*vectors + j }
	for i := range n * vectors {
		f.zero(s, i)
	}
	x := n * vectors
	f.along(s, vectors, func(p piece) {
		for j := range p.vectors {
			p.load(fmt.Sprintf("%d(BX)", s.bytes*j), x+j)
		}
		for i := range n {
			for j := range p.vectors {
				p.multiply(lineAddress(i, s.bytes*j), x+j, sum(i, j))
				if n == 4 && !p.rest && s.bytes*j%64 == 0 {
					f.op("PREFETCHT0 %s", lineAddress(i+n, s.bytes*j))
				}
			}
		}
		for _, r := range []string{"R8", "R9", "BX"} {
			f.op("ADDQ $%d, %s", p.bytes(), r)
		}
	})
	for i := range n {
		for step := 1; step < vectors; step *= 2 {
			for j := 0; j < vectors; j += 2 * step {
				f.op("VADDPS %s, %s, %s", s.r(sum(i, j+step)), s.r(sum(i, j)), s.r(sum(i, j)))
			}
		}
		f.addLanes(s, sum(i, 0), sum(i, 1))
		f.op("VADDSS %d(DI), X%d, X%d", 4*i, sum(i, 0), sum(i, 0))
		f.op("VMOVSS X%d, %d(DI)", sum(i, 0), 4*i)
	}
	f.leave()
}

// addLanes adds up the lanes of register r, halves to halves; it uses register
// t.
func (f *file) addLanes(s isa, r, t int) {
	if s.masks {
		f.op("VEXTRACTF64X4 $1, Z%d, Y%d", r, t)
		f.op("VADDPS Y%d, Y%d, Y%d", t, r, r)
	}
	f.op("VEXTRACTF128 $1, Y%d, X%d", r, t)
	f.op("VADDPS X%d, X%d, X%d", t, r, r)
	f.op("VMOVHLPS X%d, X%d, X%d", r, r, t)
	f.op("VADDPS X%d, X%d, X%d", t, r, r)
	f.op("VMOVSHDUP X%d, X%d", r, t)
	f.op("VADDSS X%d, X%d, X%d", t, r, r)
}
