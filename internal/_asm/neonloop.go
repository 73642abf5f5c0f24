package main

import (
	"fmt"
	"slices"
)

// Registers of NEON's loops, in the order of pointers, which advance with the loop. R6 counts the elements left, R7 those
// done where they are asked for, and R8 is where the constants are. A rest is done one element at a time, in lane 0 of
// vectors whose other lanes are zero.
var pointersArm = []string{"R0", "R1", "R2", "R3", "R4", "R5", "R10", "R11", "R12"}

// pointer returns the place of a parameter.
func (b *block) pointer(name string) int {
	return slices.IndexFunc(b.loop.pointers, func(p string) bool { return plain(p) == name })
}

// moveArm is the instruction that loads or stores so many bytes.
func moveArm(bytes int) string {
	return map[int]string{4: "FMOVS", 8: "FMOVD", 16: "FMOVQ"}[bytes]
}

// elementArm is the size of a pointer's elements.
func (l *vectorLoop) elementArm(i int) int {
	switch {
	case isWide(l.pointers[i]):
		return 8
	case isNarrow(l.pointers[i]):
		return 2
	}
	return 4
}

// atArm is an instruction that moves what the block has at a pointer, and its address; upper is the upper half of float64.
func (b *block) atArm(name string, upper bool) (instruction, address string) {
	i := b.pointer(name)
	size := b.loop.elementArm(i)
	bytes, at := min(16, 4*size), b.at/4*size
	if b.piece.rest {
		bytes = size
	}
	if upper {
		at += 16
	}
	return moveArm(bytes), fmt.Sprintf("%d(%s)", at, pointersArm[i])
}

// loadArm is load, and loadDouble; there is no upper half of a rest.
func (b *block) loadArm(name string, upper bool) value {
	instruction, from := b.atArm(name, upper)
	later := b.laterArm(name)
	return b.add1(node{emit: func(o *operation) {
		if upper && b.piece.rest {
			o.clearArm(o.dst)
			return
		}
		o.op("%s %s, F%d", instruction, from, o.dst)
		if later != "" {
			o.op("PRFM %s, PLDL1KEEP", later)
		}
	}})
}

// laterArm is later.
func (b *block) laterArm(name string) (address string) {
	if b.loop.ahead == 0 || b.at%64 != 0 || b.piece.rest {
		return ""
	}
	return fmt.Sprintf("%d(%s)", b.at+b.loop.ahead, pointersArm[b.pointer(name)])
}

// storeArm is store, and storeDouble.
func (b *block) storeArm(name string, upper bool, x value) {
	instruction, to := b.atArm(name, upper)
	b.add1(node{args: []value{x}, void: true, emit: func(o *operation) {
		if !upper || !b.piece.rest {
			o.op("%s F%d, %s", instruction, o.regs[0], to)
		}
	}})
}

// inUseArm is x where there are elements: lane 0 of a rest, by what copies that alone, and nothing of its upper half.
func (b *block) inUseArm(one armOp, x value, upper bool) value {
	return b.add1(node{args: []value{x}, emit: func(o *operation) {
		if upper {
			o.clearArm(o.dst)
		} else {
			o.arm(one, o.dst, o.regs[0])
		}
	}})
}

// accumulateArm is accumulate.
func (b *block) accumulateArm(i int, op armOp, x, y value) {
	t := b.total(i)
	b.add1(node{args: []value{x, y}, void: true, emit: func(o *operation) { o.arm(op, t, o.regs[0], o.regs[1]) }})
}

// totalArm is a total as an operand.
func (b *block) totalArm(i int) value { return b.pinned(b.total(i)) }

// accumulateMaxArm is accumulateMax.
func (b *block) accumulateMaxArm(i int, x value) {
	if b.piece.rest {
		lane := x
		x = b.add1(node{args: []value{lane}, emit: func(o *operation) { o.arm(each32, o.dst, o.regs[0]) }})
	}
	b.accumulateArm(i, fmax, b.totalArm(i), x)
}

// stopUnlessArm is stopUnless.
func (b *block) stopUnlessArm(x value, limit float64) {
	b.add1(node{args: []value{b.abs(x), b.held(b.constant(limit))}, temps: 1, void: true, emit: func(o *operation) {
		t := o.temp[0]
		o.arm(fcmgt, t, o.regs[1], o.regs[0])
		o.arm(uminv, t, t)
		o.op("FMOVS F%d, R9", t)
		o.op("CBZW R9, %s", o.leaving)
	}})
}

// loadNarrowArm is loadNarrow.
func (b *block) loadNarrowArm(name, from string) value {
	instruction, address := b.atArm(from, false)
	return b.add1(node{emit: func(o *operation) {
		o.op("%s %s, F%d", instruction, address, o.dst)
		o.arm(neonOf(name), o.dst, o.dst)
	}})
}

// storeNarrowArm is storeF16 and storeLow, by the instruction that halves the lanes.
func (b *block) storeNarrowArm(op armOp, name string, x value) {
	instruction, to := b.atArm(name, false)
	b.add1(node{args: []value{x}, temps: 1, void: true, emit: func(o *operation) {
		o.arm(op, o.temp[0], o.regs[0])
		o.op("%s F%d, %s", instruction, o.temp[0], to)
	}})
}

// vectorLoopArm is vectorLoop for NEON.
func (f *file) vectorLoopArm(l vectorLoop) {
	s := neon
	l.plan(f, s)
	l.declare(f, s)
	l.beginArm(f)
	f.leaving = f.label("leave")
	turns := func(vectors, elements int, blocks ...func(i int) *block) {
		f.loopArm("R6", elements, func() {
			for _, block := range blocks {
				for i := range vectors {
					b := block(i)
					b.write(l.free(s))
				}
			}
			l.advanceArm(f, elements)
		})
	}
	single := func(i int) *block { return l.block(f, s, i*s.bytes, false) }
	if n := l.group; n > 1 {
		turns(1, n*s.lanes(), func(int) *block { return l.blockOf(f, s, n) })
	}
	if n := l.vary(); n > 1 {
		turns(n, n*s.lanes(), single)
	}
	turns(1, s.lanes(), single)
	if !l.whole {
		turns(1, 1, func(int) *block { return l.block(f, s, 0, true) })
	}
	if l.partial {
		f.mark(f.leaving)
		f.op("MOVD R7, ret+%d(FP)", l.size())
	}
	l.end(f, s)
	f.op("RET")
}

// advanceArm moves on by some elements.
func (l *vectorLoop) advanceArm(f *file, elements int) {
	for i := range l.pointers {
		f.op("ADD $%d, %s", elements*l.elementArm(i), pointersArm[i])
	}
	if l.partial {
		f.op("ADD $%d, R7", elements)
	}
}

// beginArm loads what keeps registers.
func (l *vectorLoop) beginArm(f *file) {
	s := neon
	l.parametersArm(f)
	f.op("MOVD $constants<>(SB), R8")
	for i, c := range l.held {
		f.constantArm(c, l.heldAt(s, i))
	}
	for i, t := range l.totals {
		for j := range l.vary() {
			r := s.top(len(l.scalars) + i*l.vary() + j)
			if t.lowest {
				f.constantArm(f.constantOf(0xff800000ff800000), r)
			} else {
				f.clearArm(r)
			}
		}
	}
	if l.partial {
		f.op("MOVD ZR, R7")
	}
}

func (l *vectorLoop) parametersArm(f *file) {
	at := 0
	for i, p := range l.pointers {
		f.op("MOVD %s+%d(FP), %s", plain(p), at, pointersArm[i])
		at += 8
	}
	if l.mapping {
		at = 24
	}
	f.op("MOVD n+%d(FP), R6", at)
	at += 8
	for i, p := range l.scalars {
		r := neon.top(i)
		if isWide(p) {
			at = (at + 7) &^ 7
			f.op("FMOVD %s+%d(FP), F%d", plain(p), at, r)
			f.arm(each64, r, r)
			at += 8
		} else {
			f.op("FMOVS %s+%d(FP), F%d", plain(p), at, r)
			f.arm(each32, r, r)
			at += 4
		}
	}
}

// joinArm is join.
func (l *vectorLoop) joinArm(f *file, from, to int, result string, at int) {
	op, move, t := fadd, "FMOVS", l.totals[from]
	switch {
	case t.lowest:
		op = fmax
	case t.double:
		op, move = fadd.doubles(), "FMOVD"
	}
	var regs []int
	for i := from * l.vary(); i < to*l.vary(); i++ {
		regs = append(regs, neon.top(len(l.scalars)+i))
	}
	for ; len(regs) > 1; regs = regs[:(len(regs)+1)/2] {
		half := (len(regs) + 1) / 2
		for i := range len(regs) / 2 {
			f.arm(op, regs[i], regs[i], regs[half+i])
		}
	}
	switch r := regs[0]; {
	case t.lowest:
		f.arm(fmaxv, 0, r)
	case t.double:
		f.arm(faddpD, 0, r)
	default:
		f.arm(faddp, 0, r, r)
		f.arm(faddp, 0, 0, 0)
	}
	f.op("%s F0, %s+%d(FP)", move, result, at)
}

// constantsOfArm writes the data of the file's constants, each repeated to a vector.
func (f *file) constantsOfArm() {
	f.asm.WriteByte('\n')
	for i, c := range f.pool {
		for j := range 2 {
			fmt.Fprintf(&f.asm, "DATA constants<>+%d(SB)/8, $%#x\n", 16*i+8*j, c)
		}
	}
	fmt.Fprintf(&f.asm, "GLOBL constants<>(SB), RODATA|NOPTR, $%d\n", 16*len(f.pool))
}

// vectorsArm writes the loops of vectors for NEON, and their tables: mappings are in the order of their constants.
func vectorsArm(f *file) {
	for _, m := range mappings {
		f.vectorLoop(neon, m.loop())
	}
	for _, l := range rowLoops {
		f.vectorLoop(neon, l)
	}
	f.constantsOfArm()
	f.stubs.WriteString("\nvar mappingsNEON = [...]mappingLoop{\n")
	for _, m := range mappings {
		fmt.Fprintf(&f.stubs, "%sNEON,\n", m.name)
	}
	f.stubs.WriteString("}\n\nvar vectorsNEON = vectorKernels{\n")
	for _, l := range rowLoops {
		fmt.Fprintf(&f.stubs, "%s: %sNEON,\n", l.name, l.name)
	}
	f.stubs.WriteString("}\n")
}
