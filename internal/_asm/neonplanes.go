package main

import (
	"fmt"
	"slices"
	"strings"
)

// planesArm writes the loops of batch norm for NEON: those of planes, with other instructions.
//
// R0 to R7 are the streams, R8 is the struct, R9 the offset of a vector in rows and sums, R10 that in parameters, R11 masks
// R10, R12 is what is left of a row, R13 the offset in the second of two rows, R14 counts rows and R15 is between them. What
// is left of a row is done one element at a time.
func planesArm(f *file) { norms(f, neon) }

// scratchArm is a register that no loop uses.
const scratchArm = 31

// normLoopArm is normLoop, and with two normPairs.
func normLoopArm(f *file, name, doc string, rows, places []string, one, two func(n *norm)) {
	f.function(name+neon.name, doc, "a *normArgs", 8)
	n := &norm{file: f, s: neon, rows: rows, streams: map[string]string{}}
	f.loadsArm("a+0", "R8")
	for i, field := range slices.Concat(rows, places) {
		n.streams[field] = fmt.Sprintf("R%d", i)
		f.op("MOVD normArgs_%s(R8), R%d", field, i)
	}
	f.op("MOVD normArgs_each(R8), R11")
	f.op("MOVD normArgs_rows(R8), R14")
	f.op("MOVD normArgs_stride(R8), R15")
	if two != nil {
		f.loopArm("R14", 2, func() { n.rowArm(2, two) })
	}
	f.loopArm("R14", 1, func() { n.rowArm(1, one) })
	f.op("RET")
}

// rowArm is row.
func (n *norm) rowArm(rows int, body func(n *norm)) {
	n.op("MOVD normArgs_n(R8), R12")
	n.op("MOVD ZR, R9")
	n.op("MOVD ZR, R10")
	n.op("MOVD R15, R13")
	for _, elements := range []int{4, 1} {
		n.rest = elements == 1
		n.loopArm("R12", elements, func() {
			body(n)
			n.op("ADD $%d, R9", 4*elements)
			n.op("ADD $%d, R13", 4*elements)
			n.op("AND R11, R9, R10")
		})
	}
	n.rest = false
	for _, field := range n.rows {
		for range rows {
			n.op("ADD R15, %s", n.streams[field])
		}
	}
}

// moveArm loads or stores a vector of a stream, or an element.
func (n *norm) moveArm(field string, i int, store bool) {
	at := "R9"
	switch {
	case strings.Contains("mpqr", field):
		at = "R10"
	case n.second && slices.Contains(n.rows, field):
		at = "R13"
	}
	base := n.streams[field]
	switch {
	case n.rest && store:
		n.op("FMOVS F%d, (%s)(%s)", i, base, at)
	case n.rest:
		n.op("FMOVS (%s)(%s), F%d", base, at, i)
	default:
		n.indexed(store, i, base, at)
	}
}

// indexed loads or stores a vector at the sum of two registers.
func (f *file) indexed(store bool, r int, base, index string) {
	name, bits := "ldr", uint32(0x3ce06800)
	if store {
		name, bits = "str", 0x3ca06800
	}
	var b, i int
	fmt.Sscanf(base+" "+index, "R%d R%d", &b, &i)
	f.word(bits|uint32(i<<16|b<<5|r), fmt.Sprintf("%s q%d, [x%d, x%d]", name, r, b, i))
}

// threeArm is three.
func (n *norm) threeArm(op string, a, b, dst int) {
	switch op {
	case "VFMADD231PS":
		n.arm(fmla, dst, a, b)
	case "VFMADD213PS", "VFMSUB213PS": // dst = dst·b ± a
		move := copyOf
		if op == "VFMSUB213PS" {
			move = fneg
		}
		n.arm(move, scratchArm, a)
		n.arm(fmla, scratchArm, dst, b)
		n.arm(copyOf, dst, scratchArm)
	default:
		n.arm(neonOf(op), dst, b, a)
	}
}
