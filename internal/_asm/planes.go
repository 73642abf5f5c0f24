package main

import (
	"fmt"
	"slices"
	"strings"
)

// planes writes what goes over planes of pictures: the loops of batch norm, over rows of neighbouring places, each place with
// parameters and sums of its own, max-pooling, Winograd's maps, and rows by even and odd columns. The loops take a struct normArgs; its fields are the streams of the comments.
func planes(f *file) {
	f.asm.WriteString("\nDATA rest<>+0(SB)/8, $-1\nDATA rest<>+8(SB)/8, $-1\nDATA rest<>+16(SB)/8, $-1\nDATA rest<>+24(SB)/8, $-1\n" +
		"DATA rest<>+32(SB)/8, $0\nDATA rest<>+40(SB)/8, $0\nDATA rest<>+48(SB)/8, $0\nDATA rest<>+56(SB)/8, $0\nGLOBL rest<>(SB), RODATA|NOPTR, $64\n" +
		"DATA poolInfinity<>+0(SB)/4, $0xff800000\nGLOBL poolInfinity<>(SB), RODATA|NOPTR, $4\n")
	for i := range 16 {
		fmt.Fprintf(&f.asm, "DATA poolLanes<>+%d(SB)/4, $%d\n", 4*i, i)
	}
	f.asm.WriteString("GLOBL poolLanes<>(SB), RODATA|NOPTR, $64\n")
	for i := range 16 {
		fmt.Fprintf(&f.asm, "DATA poolMix<>+%d(SB)/4, $%d\n", 4*i, i/2+i%2*16)
	}
	f.asm.WriteString("GLOBL poolMix<>(SB), RODATA|NOPTR, $64\n")
	norms(f, avx512)
	norms(f, avx2)
	maxPool(f, 1)
	maxPool(f, 2)
	maxPairs(f)
	winograd(f)
	interleave(f)
}

// norms writes the loops of batch norm for an instruction set.
func norms(f *file, s isa) {
	normSum(f, s)
	normDeviations(f, s)
	for _, residual := range []bool{false, true} {
		normApply(f, s, residual)
	}
	for _, masked := range []bool{false, true} {
		normGradSums(f, s, masked, false)
		normGradApply(f, s, masked)
	}
	normGradSums(f, s, true, true)
}

// Registers of a norm's loops: AX is the offset of a vector in rows and sums, BX that in parameters, CX what is left of a
// row, DX masks BX, R15 is the struct, whose rows count down. Where two rows go at once, R13 is the offset in the second.
// R14 is the offset in the row after these, and within a pair R15 that in the one after that: rows lie apart, and the
// processor by itself does not look so far ahead.
var streamRegisters = []string{"SI", "DI", "R8", "R9", "R10", "R11", "R12", "R13"}

// norm is one function of the family.
type norm struct {
	*file
	s       isa
	rows    []string
	streams map[string]string // register by field
	rest    bool              // the vector in hand is the rest of a row
	second  bool              // and lies in the second of two rows
}

// normLoop writes a function: rows are streams that advance with the row, others belong to a place. body is one vector's.
func normLoop(f *file, s isa, name, doc string, rows, places []string, body func(n *norm)) {
	if s.arm() {
		normLoopArm(f, name, doc, rows, places, body, nil)
		return
	}
	n := normHead(f, s, name, doc, rows, places)
	row, end := f.label("row"), f.label("end")
	f.op("CMPQ normArgs_rows(R15), $0")
	f.op("JLE %s", end)
	f.mark(row)
	n.row(1, body)
	f.op("DECQ normArgs_rows(R15)")
	f.op("JNE %s", row)
	f.mark(end)
	f.leave()
}

// normPairs is normLoop for sums, which are loaded and stored once for two rows: two is the body for both.
func normPairs(f *file, s isa, name, doc string, rows, places []string, one, two func(n *norm)) {
	if s.arm() {
		normLoopArm(f, name, doc, rows, places, one, two)
		return
	}
	n := normHead(f, s, name, doc, rows, places)
	pair, last, end := f.label("pair"), f.label("last"), f.label("end")
	f.mark(pair)
	f.op("CMPQ normArgs_rows(R15), $2")
	f.op("JLT %s", last)
	n.row(2, two)
	f.op("SUBQ $2, normArgs_rows(R15)")
	f.op("JMP %s", pair)
	f.mark(last)
	f.op("CMPQ normArgs_rows(R15), $0")
	f.op("JLE %s", end)
	n.row(1, one)
	f.mark(end)
	f.leave()
}

// normHead begins a function and loads its streams.
func normHead(f *file, s isa, name, doc string, rows, places []string) *norm {
	f.function(name+s.name, doc, "a *normArgs", 8)
	n := &norm{file: f, s: s, rows: rows, streams: map[string]string{}}
	f.loads("a+0", "R15")
	for i, field := range append(append([]string(nil), rows...), places...) {
		n.streams[field] = streamRegisters[i]
		f.op("MOVQ normArgs_%s(R15), %s", field, streamRegisters[i])
	}
	f.op("MOVQ normArgs_each(R15), DX")
	n.prepareRest()
	return n
}

// row goes over one row, or two at once, and on to the next.
func (n *norm) row(rows int, body func(n *norm)) {
	top, whole, next := n.label("vector"), n.label("whole"), n.label("next")
	n.op("MOVQ normArgs_n(R15), CX")
	n.op("XORL AX, AX")
	n.op("XORL BX, BX")
	n.op("MOVQ normArgs_stride(R15), R14")
	if rows == 2 {
		n.op("MOVQ R14, R13")
		n.op("ADDQ R13, R14")
		n.op("LEAQ (R14)(R13*1), R15")
	}
	n.op("JMP %s", whole)
	n.op("PCALIGN $32")
	n.mark(top)
	body(n)
	n.op("ADDQ $%d, AX", n.s.bytes)
	n.op("ADDQ $%d, R14", n.s.bytes)
	if rows == 2 {
		n.op("ADDQ $%d, R13", n.s.bytes)
		n.op("ADDQ $%d, R15", n.s.bytes)
	}
	n.op("MOVQ AX, BX")
	n.op("ANDQ DX, BX")
	n.mark(whole)
	n.op("SUBQ $%d, CX", n.s.lanes())
	n.op("JGE %s", top)
	n.op("ADDQ $%d, CX", n.s.lanes())
	n.op("JEQ %s", next)
	n.rest = true
	body(n)
	n.rest = false
	n.mark(next)
	if rows == 2 {
		n.loads("a+0", "R15")
	}
	for _, field := range n.rows {
		for range rows {
			n.op("ADDQ normArgs_stride(R15), %s", n.streams[field])
		}
	}
}

// prepareRest makes the mask of the rest of a row: K1, or Y15.
func (n *norm) prepareRest() {
	n.op("MOVQ normArgs_n(R15), CX")
	n.op("ANDQ $%d, CX", n.s.lanes()-1)
	if n.s.masks {
		n.op("MOVL $1, AX")
		n.op("SHLL CX, AX")
		n.op("DECL AX")
		n.op("KMOVW AX, K1")
		return
	}
	n.op("LEAQ rest<>+32(SB), AX")
	n.op("SHLQ $2, CX")
	n.op("SUBQ CX, AX")
	n.op("VMOVUPS (AX), Y15")
}

// address is where a stream's vector lies.
func (n *norm) address(field string) string {
	if strings.Contains("mpqr", field) { // parameters
		return "(" + n.streams[field] + ")(BX*1)"
	}
	if n.second && slices.Contains(n.rows, field) {
		return "(" + n.streams[field] + ")(R13*1)"
	}
	return "(" + n.streams[field] + ")(AX*1)"
}

func (n *norm) load(field string, i int) {
	if n.s.arm() {
		n.moveArm(field, i, false)
		return
	}
	switch at := n.address(field); {
	case !n.rest:
		n.op("VMOVUPS %s, %s", at, n.s.r(i))
		n.ask(field)
	case n.s.masks:
		n.op("VMOVUPS.Z %s, K1, %s", at, n.s.r(i))
	default:
		n.op("VMASKMOVPS %s, Y15, %s", at, n.s.r(i))
	}
}

// ask has the memory bring what the stream is in a later row.
func (n *norm) ask(field string) {
	if slices.Contains(n.rows, field) {
		n.op("PREFETCHT0 (%s)(%s*1)", n.streams[field], []string{"R14", "R15"}[bool01(n.second)])
	}
}

func (n *norm) store(i int, field string) {
	if n.s.arm() {
		n.moveArm(field, i, true)
		return
	}
	switch at := n.address(field); {
	case !n.rest:
		n.op("VMOVUPS %s, %s", n.s.r(i), at)
		n.ask(field)
	case n.s.masks:
		n.op("VMOVUPS %s, K1, %s", n.s.r(i), at)
	default:
		n.op("VMASKMOVPS %s, Y15, %s", n.s.r(i), at)
	}
}

// three writes an instruction of three registers, in Go's order.
func (n *norm) three(op string, a, b, dst int) {
	if n.s.arm() {
		n.threeArm(op, a, b, dst)
		return
	}
	n.op("%s %s, %s, %s", op, n.s.r(a), n.s.r(b), n.s.r(dst))
}

// add adds register i to a sum, by way of another.
func (n *norm) add(i int, field string, by int) {
	n.load(field, by)
	n.three("VADDPS", i, by, by)
	n.store(by, field)
}

// behind loads g to register i, but 0 where relu's result is not above 0, by way of i+1 and i+2.
func (n *norm) behind(masked bool, i int) {
	n.load("g", i)
	if !masked {
		return
	}
	n.load("result", i+1)
	if n.s.arm() {
		n.arm(upTo0, i+1, i+1)
		n.arm(bic, i, i, i+1)
		return
	}
	n.three("VXORPS", i+2, i+2, i+2)
	const notLessOrEqual = 0x16
	if n.s.masks {
		n.op("VCMPPS $%d, %s, %s, K2", notLessOrEqual, n.s.r(i+2), n.s.r(i+1))
		n.op("VMOVUPS.Z %s, K2, %s", n.s.r(i), n.s.r(i))
		return
	}
	n.op("VCMPPS $%d, %s, %s, %s", notLessOrEqual, n.s.r(i+2), n.s.r(i+1), n.s.r(i+1))
	n.three("VANDPS", i+1, i, i)
}

// floor loads the least result to register i.
func (n *norm) floor(i int) {
	if n.s.arm() {
		n.op("FMOVS normArgs_floor(R8), F%d", i)
		n.arm(each32, i, i)
		return
	}
	n.op("VBROADCASTSS normArgs_floor(R15), %s", n.s.r(i))
}

// inSecond runs body for the second of two rows.
func (n *norm) inSecond(body func()) {
	n.second = true
	body()
	n.second = false
}

func normSum(f *file, s isa) {
	normLoop(f, s, "normSum", "adds up rows:\n\n\tsum[j] += x[j]", []string{"x"}, []string{"sum"}, func(n *norm) {
		n.load("x", 0)
		n.add(0, "sum", 1)
	})
}

func normDeviations(f *file, s isa) {
	distance := func(n *norm, i int) {
		n.load("x", i)
		n.three("VSUBPS", 4, i, i)
	}
	normPairs(f, s, "normDeviations", "adds up distances from m and their squares:\n\n\td := x[j] - m[j]\n\tsum[j] += d\n\tmore[j] += d * d",
		[]string{"x"}, []string{"sum", "more", "m"}, func(n *norm) {
			n.load("m", 4)
			distance(n, 0)
			n.add(0, "sum", 1)
			n.load("more", 1)
			n.three("VFMADD231PS", 0, 0, 1)
			n.store(1, "more")
		}, func(n *norm) {
			n.load("m", 4)
			distance(n, 0)
			n.inSecond(func() { distance(n, 2) })
			n.three("VADDPS", 2, 0, 3)
			n.add(3, "sum", 1)
			n.load("more", 1)
			n.three("VFMADD231PS", 0, 0, 1)
			n.three("VFMADD231PS", 2, 2, 1)
			n.store(1, "more")
		})
}

func normApply(f *file, s isa, residual bool) {
	name, doc := "normApply", "normalises:\n\n\ty[j] = max((x[j]-m[j])*p[j]+q[j], a.floor)"
	rows := []string{"x", "y"}
	if residual {
		name, doc, rows = "normApplyAdd", "normalises and adds:\n\n\ty[j] = max((x[j]-m[j])*p[j]+q[j]+r[j], a.floor)", append(rows, "other")
	}
	normLoop(f, s, name, doc, rows, []string{"m", "p", "q"}, func(n *norm) {
		n.load("x", 0)
		n.load("m", 1)
		n.three("VSUBPS", 1, 0, 0)
		n.load("p", 1)
		n.load("q", 2)
		n.three("VFMADD213PS", 2, 1, 0)
		if residual {
			n.load("other", 1)
			n.three("VADDPS", 1, 0, 0)
		}
		n.floor(1)
		n.three("VMAXPS", 0, 1, 0) // NaN stays
		n.store(0, "y")
	})
}

func normGradSums(f *file, s isa, masked, keep bool) {
	name, doc := "normGradSums", "adds up a gradient and its products with distances from m:\n\n\tsum[j] += g[j]\n\tmore[j] += g[j] * (x[j] - m[j])"
	rows := []string{"x", "g"}
	if masked {
		name, doc, rows = "normGradSumsMasked", doc+"\n\nbut a g[j] counts as 0 where result[j] <= 0", append(rows, "result")
	}
	if keep {
		name, doc, rows = "normGradSumsKept", doc+", and is stored in other[j]", append(rows, "other")
	}
	// part leaves g in register i and the distance in the next.
	part := func(n *norm, i int) {
		n.behind(masked, i)
		if keep {
			n.store(i, "other")
		}
		n.load("x", i+1)
		n.three("VSUBPS", 6, i+1, i+1)
	}
	normPairs(f, s, name, doc, rows, []string{"sum", "more", "m"}, func(n *norm) {
		n.load("m", 6)
		part(n, 0)
		n.add(0, "sum", 2)
		n.load("more", 2)
		n.three("VFMADD231PS", 1, 0, 2)
		n.store(2, "more")
	}, func(n *norm) {
		n.load("m", 6)
		part(n, 0)
		n.inSecond(func() { part(n, 3) })
		n.three("VADDPS", 3, 0, 5)
		n.add(5, "sum", 2)
		n.load("more", 2)
		n.three("VFMADD231PS", 1, 0, 2)
		n.three("VFMADD231PS", 4, 3, 2)
		n.store(2, "more")
	})
}

func normGradApply(f *file, s isa, masked bool) {
	name, doc := "normGradApply", "is the gradient of x:\n\n\ty[j] = p[j]*g[j] - (q[j]*(x[j]-m[j]) + r[j])"
	rows := []string{"x", "g", "y"}
	if masked {
		name, doc, rows = "normGradApplyMasked", doc+"\n\nbut a g[j] counts as 0 where result[j] <= 0", append(rows, "result")
	}
	normLoop(f, s, name, doc, rows, []string{"m", "p", "q", "r"}, func(n *norm) {
		n.behind(masked, 0)
		n.load("x", 1)
		n.load("m", 2)
		n.three("VSUBPS", 2, 1, 1)
		n.load("q", 2)
		n.load("r", 3)
		n.three("VFMADD213PS", 3, 2, 1)
		n.load("p", 2)
		n.three("VFMSUB213PS", 1, 2, 0)
		n.store(0, "y")
	})
}
