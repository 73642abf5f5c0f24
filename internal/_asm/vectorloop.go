package main

import (
	"fmt"
	"slices"
	"strings"
)

// vectorLoop is a function over vectors: a block of operations that is repeated for all elements, and for the rest of
// them under a mask.
type vectorLoop struct {
	name, doc string
	pointers  []string // parameters in their order, of float32; "*" before the name says float64, "~" 16 bits
	scalars   []string // float32 parameters; "*" before the name says float64
	unroll    int
	group     int // vectors that the body of the main loop takes together, if more than one
	ahead     int // bytes that loads of the main loop ask for ahead of themselves, if any
	totals    []total
	apart     bool // two totals are two results, ret and more, not one
	whole     bool // n is a number of whole vectors
	partial   bool // it returns how many elements it did
	mapping   bool // its parameters are those of a mapping, whether it uses them or not
	body      func(b *block)

	held []value // constants that keep registers
}

// total is what a loop sums up or finds, in registers over all turns.
type total struct {
	double bool // float64, else float32
	lowest bool // a maximum, else a sum
}

// Registers of addresses, in the order of pointers. AX is the offset in bytes of float32, CX the elements left, R10 the
// mask of AVX2 in memory.
var pointerRegisters = []string{"DI", "SI", "DX", "R8", "R9", "R11", "R12", "R13", "BX"}

func plain(name string) string   { return strings.TrimLeft(name, "*~") }
func isWide(name string) bool    { return name[0] == '*' }
func isNarrow(name string) bool  { return name[0] == '~' }
func (l *vectorLoop) vary() int  { return max(l.unroll, 1) }
func (s isa) top(i int) int      { return s.regs - 1 - i }
func (l *vectorLoop) sums() int  { return len(l.totals) * l.vary() }
func (l *vectorLoop) fixed() int { return len(l.scalars) + l.sums() }

// heldAt is the register of a held constant; scalars and totals are above.
func (l *vectorLoop) heldAt(s isa, i int) int { return s.top(l.fixed() + i) }

// scalar is a parameter by its name.
func (b *block) scalar(name string) value {
	for i, n := range b.loop.scalars {
		if plain(n) == name {
			return b.pinned(b.s.top(i))
		}
	}
	panic("no scalar " + name)
}

// total returns the register of a total; the turns of an unrolled loop have their own.
func (b *block) total(i int) int {
	copyOf := b.at / b.s.bytes % b.loop.vary()
	return b.s.top(len(b.loop.scalars) + i*b.loop.vary() + copyOf)
}

// address is where the block's vector lies for a pointer, of its lower or upper half.
func (b *block) address(name string, upper bool) string {
	i := slices.IndexFunc(b.loop.pointers, func(p string) bool { return plain(p) == name })
	r, at := pointerRegisters[i], b.at
	if !isWide(b.loop.pointers[i]) {
		return fmt.Sprintf("%d(%s)(AX*1)", at, r)
	}
	if at *= 2; upper {
		at += b.s.bytes
	}
	return fmt.Sprintf("%d(%s)(AX*2)", at, r)
}

// pairwise adds what f makes of each vector of the block, pair by pair.
func (b *block) pairwise(f func() value) value {
	var list []value
	first := b.at
	for i := range b.piece.vectors {
		b.at = first + i*b.s.bytes
		list = append(list, f())
	}
	b.at = first
	for ; len(list) > 1; list = list[:len(list)/2] {
		for i := range len(list) / 2 {
			list[i] = b.add(list[2*i], list[2*i+1])
		}
	}
	return list[0]
}

// later is the address of the line that a loop comes to later, if it asks for it: the processor by itself does not look
// beyond a page.
func (b *block) later(name string) string {
	if b.loop.ahead == 0 || b.at%64 != 0 || b.piece.rest {
		return ""
	}
	at := b.at
	defer func() { b.at = at }()
	b.at += b.loop.ahead
	return b.address(name, false)
}

// load reads float32; beyond the end of a rest it gives 0.
func (b *block) load(name string) value {
	if b.s.arm() {
		return b.loadArm(name, false)
	}
	from, later := b.address(name, false), b.later(name)
	return b.add1(node{emit: func(o *operation) {
		switch {
		case !b.piece.rest:
			o.op("VMOVUPS %s, %s", from, o.s.r(o.dst))
		case b.s.masks:
			o.op("VMOVUPS.Z %s, K1, %s", from, o.s.r(o.dst))
		default:
			o.op("VMOVUPS (R10), %s", o.s.r(o.dst))
			o.op("VMASKMOVPS %s, %s, %s", from, o.s.r(o.dst), o.s.r(o.dst))
		}
		if later != "" {
			o.op("PREFETCHT0 %s", later)
		}
	}})
}

// store writes float32.
func (b *block) store(name string, x value) {
	if b.s.arm() {
		b.storeArm(name, false, x)
		return
	}
	to := b.address(name, false)
	b.add1(node{args: []value{x}, temps: 1, void: true, emit: func(o *operation) {
		switch {
		case !b.piece.rest:
			o.op("VMOVUPS %s, %s", o.s.r(o.regs[0]), to)
		case b.s.masks:
			o.op("VMOVUPS %s, K1, %s", o.s.r(o.regs[0]), to)
		default:
			o.op("VMOVUPS (R10), %s", o.s.r(o.temp[0]))
			o.op("VMASKMOVPS %s, %s, %s", o.s.r(o.regs[0]), o.s.r(o.temp[0]), to)
		}
	}})
}

// loadDouble reads float64, half a vector of float32.
func (b *block) loadDouble(name string, upper bool) value {
	if b.s.arm() {
		return b.loadArm(name, upper)
	}
	return b.add1(node{temps: 1, early: true, emit: func(o *operation) {
		from := b.address(name, upper)
		switch {
		case !b.piece.rest:
			o.op("VMOVUPD %s, %s", from, o.s.r(o.dst))
		case b.s.masks:
			o.op("VMOVUPD.Z %s, K%d, %s", from, 1+2*bool01(upper), o.s.r(o.dst))
		default:
			o.op("VPMOVSXDQ %d(R10), %s", 16*bool01(upper), o.s.r(o.temp[0]))
			o.op("VMASKMOVPD %s, %s, %s", from, o.s.r(o.temp[0]), o.s.r(o.dst))
		}
	}})
}

// storeDouble writes float64.
func (b *block) storeDouble(name string, upper bool, x value) {
	if b.s.arm() {
		b.storeArm(name, upper, x)
		return
	}
	b.add1(node{args: []value{x}, temps: 1, void: true, emit: func(o *operation) {
		to := b.address(name, upper)
		switch {
		case !b.piece.rest:
			o.op("VMOVUPD %s, %s", o.s.r(o.regs[0]), to)
		case b.s.masks:
			o.op("VMOVUPD %s, K%d, %s", o.s.r(o.regs[0]), 1+2*bool01(upper), to)
		default:
			o.op("VPMOVSXDQ %d(R10), %s", 16*bool01(upper), o.s.r(o.temp[0]))
			o.op("VMASKMOVPD %s, %s, %s", o.s.r(o.regs[0]), o.s.r(o.temp[0]), to)
		}
	}})
}

// inUse is x where there are elements, and 0 beyond the end of a rest.
func (b *block) inUse(x value) value {
	if !b.piece.rest {
		return x
	}
	if b.s.arm() {
		return b.inUseArm(one32, x, false)
	}
	return b.add1(node{args: []value{x}, temps: 1, emit: func(o *operation) {
		if o.s.masks {
			o.op("VMOVAPS.Z %s, K1, %s", o.s.r(o.regs[0]), o.s.r(o.dst))
		} else {
			o.op("VANDPS (R10), %s, %s", o.s.r(o.regs[0]), o.s.r(o.dst))
		}
	}})
}

// accumulate adds x to a total: name is the instruction, with x as its operand.
func (b *block) accumulate(i int, name string, x value) {
	if b.s.arm() {
		b.accumulateArm(i, neonOf(name), b.totalArm(i), x)
		return
	}
	t := b.total(i)
	b.add1(node{args: []value{x}, void: true, emit: func(o *operation) {
		o.op("%s %s, %s, %s", name, o.s.r(o.regs[0]), o.s.r(t), o.s.r(t))
	}})
}

// accumulateProduct adds x·y to a total of float64.
func (b *block) accumulateProduct(i int, x, y value) {
	if b.s.arm() {
		b.accumulateArm(i, fmla.doubles(), x, y)
		return
	}
	t := b.total(i)
	b.add1(node{args: []value{x, y}, void: true, emit: func(o *operation) {
		o.op("VFMADD231PD %s, %s, %s", o.s.r(o.regs[0]), o.s.r(o.regs[1]), o.s.r(t))
	}})
}

// accumulateMax is accumulate for a maximum: beyond the end of a rest nothing counts. It keeps x's NaN, and loses it to
// the next number.
func (b *block) accumulateMax(i int, x value) {
	if b.s.arm() {
		b.accumulateMaxArm(i, x)
		return
	}
	t := b.total(i)
	b.add1(node{args: []value{x}, temps: 2, void: true, emit: func(o *operation) {
		x := o.s.r(o.regs[0])
		if b.piece.rest && b.s.masks {
			o.op("VMAXPS %s, %s, K1, %s", x, o.s.r(t), o.s.r(t))
			return
		}
		if b.piece.rest {
			mask, full := o.s.r(o.temp[0]), o.s.r(o.temp[1])
			o.op("VMOVUPS (R10), %s", mask)
			o.op("VBLENDVPS %s, %s, %s, %s", mask, x, o.s.r(t), full)
			x = full
		}
		o.op("VMAXPS %s, %s, %s", x, o.s.r(t), o.s.r(t))
	}})
}

// stopUnless leaves the loop before this vector if |x| < limit does not hold for all lanes.
func (b *block) stopUnless(x value, limit float64) {
	if b.s.arm() {
		b.stopUnlessArm(x, limit)
		return
	}
	b.add1(node{args: []value{b.abs(x), b.held(b.constant(limit))}, temps: 1, void: true, emit: func(o *operation) {
		const notLess = 5
		if o.s.masks {
			o.op("VCMPPS $%d, %s, %s, K2", notLess, o.s.r(o.regs[1]), o.s.r(o.regs[0]))
			o.op("KORTESTW K2, K2")
		} else {
			t := o.s.r(o.temp[0])
			o.op("VCMPPS $%d, %s, %s, %s", notLess, o.s.r(o.regs[1]), o.s.r(o.regs[0]), t)
			o.op("VMOVMSKPS %s, R11", t)
			o.op("TESTL R11, R11")
		}
		o.op("JNE %s", o.leaving)
	}})
}

// vectorLoop writes the function for an instruction set.
func (f *file) vectorLoop(s isa, l vectorLoop) {
	if s.arm() {
		f.vectorLoopArm(l)
		return
	}
	l.plan(f, s)
	l.begin(f, s)
	f.leaving = f.label("leave")
	turn := func(vectors int, rest bool) {
		for i := range vectors {
			b := l.block(f, s, i*s.bytes, rest)
			b.write(l.free(s))
		}
	}
	advance := func(vectors int) { f.op("ADDQ $%d, AX", vectors*s.bytes) }
	if n := l.group; n > 1 {
		f.loop("CX", n*s.lanes(), func() {
			b := l.blockOf(f, s, n)
			b.write(l.free(s))
			advance(n)
		})
	}
	if n := l.vary(); n > 1 {
		f.loop("CX", n*s.lanes(), func() { turn(n, false); advance(n) })
	}
	f.loop("CX", s.lanes(), func() { turn(1, false); advance(1) })
	if !l.whole {
		l.rest(f, s, func() { turn(1, true) })
	}
	if l.partial {
		f.mark(f.leaving)
		f.op("SHRQ $2, AX")
		f.op("MOVQ AX, ret+%d(FP)", l.size())
	}
	l.end(f, s)
	f.leave()
}

// rest does what is left, fewer elements than a vector has.
func (l *vectorLoop) rest(f *file, s isa, turn func()) {
	end := f.label("end")
	f.op("TESTQ CX, CX")
	f.op("JEQ %s", end)
	l.mask(f, s)
	turn()
	if l.partial {
		f.op("LEAQ (AX)(CX*4), AX")
	}
	f.mark(end)
}

// plan finds the constants that the body holds.
func (l *vectorLoop) plan(f *file, s isa) {
	for before := -1; before != len(l.held); {
		before = len(l.held)
		l.block(f, s, 0, false)
	}
}

// blockOf is a block of several vectors.
func (l *vectorLoop) blockOf(f *file, s isa, vectors int) *block {
	b := &block{file: f, loop: l, s: s, piece: piece{f, s, vectors, false}, fixed: map[value]int{}}
	l.body(b)
	return b
}

func (l *vectorLoop) block(f *file, s isa, at int, rest bool) *block {
	b := &block{file: f, loop: l, s: s, piece: piece{f, s, 1, rest}, at: at, fixed: map[value]int{}}
	l.body(b)
	return b
}

// free are the registers of a turn.
func (l *vectorLoop) free(s isa) (list []int) {
	for i := range s.regs - l.fixed() - len(l.held) {
		list = append(list, i)
	}
	return list
}

// size is how many bytes the parameters take, before results.
func (l *vectorLoop) size() int {
	if l.mapping {
		return 40
	}
	n := 8*len(l.pointers) + 8
	for _, s := range l.scalars {
		if isWide(s) {
			n = (n+7)&^7 + 8
		} else {
			n += 4
		}
	}
	if l.result() != "" {
		n = (n + 7) &^ 7
	}
	return n
}

// declare writes the head of the function.
func (l *vectorLoop) declare(f *file, s isa) {
	var params []string
	for _, p := range l.pointers {
		kind := "*float32"
		switch {
		case isWide(p):
			kind = "*float64"
		case isNarrow(p):
			kind = "*uint16"
		}
		params = append(params, plain(p)+" "+kind)
	}
	params = append(params, "n int")
	for _, p := range l.scalars {
		kind := " float32"
		if isWide(p) {
			kind = " float64"
		}
		params = append(params, plain(p)+kind)
	}
	list, size := strings.Join(params, ", "), l.size()
	if l.mapping {
		list = "dst, x, y *float32, n int, p, q float32"
	}
	switch result := l.result(); {
	case l.apart:
		list += ") (ret, more " + result
		size += 2 * l.resultBytes()
	case result != "":
		list += ") (ret " + result
		size += l.resultBytes()
	}
	f.function(l.name+s.name, l.doc, list, size)
}

// begin writes the head of the function and loads what keeps registers.
func (l *vectorLoop) begin(f *file, s isa) {
	l.declare(f, s)
	l.parameters(f, s)
	for i, c := range l.held {
		f.broadcast(s, c, l.heldAt(s, i))
	}
	for i, t := range l.totals {
		for j := range l.vary() {
			r := s.top(len(l.scalars) + i*l.vary() + j)
			if t.lowest {
				f.broadcast(s, f.constantOf(0xff800000ff800000), r)
			} else {
				f.zero(s, r)
			}
		}
	}
	f.op("XORL AX, AX")
}

func (l *vectorLoop) parameters(f *file, s isa) {
	at := 0
	if l.mapping {
		for i, p := range []string{"dst", "x", "y"}[:len(l.pointers)] {
			f.op("MOVQ %s+%d(FP), %s", p, 8*i, pointerRegisters[i])
		}
		f.op("MOVQ n+24(FP), CX")
		for i, p := range l.scalars {
			f.op("VBROADCASTSS %s+%d(FP), %s", p, map[string]int{"p": 32, "q": 36}[p], s.r(s.top(i)))
		}
		return
	}
	for i, p := range l.pointers {
		f.op("MOVQ %s+%d(FP), %s", plain(p), at, pointerRegisters[i])
		at += 8
	}
	f.op("MOVQ n+%d(FP), CX", at)
	at += 8
	for i, p := range l.scalars {
		if isWide(p) {
			at = (at + 7) &^ 7
			f.op("VBROADCASTSD %s+%d(FP), %s", plain(p), at, s.r(s.top(i)))
			at += 8
		} else {
			f.op("VBROADCASTSS %s+%d(FP), %s", plain(p), at, s.r(s.top(i)))
			at += 4
		}
	}
}

// result is the type of what the function returns.
func (l *vectorLoop) result() string {
	switch {
	case l.partial:
		return "int"
	case len(l.totals) == 0:
		return ""
	case l.totals[0].double:
		return "float64"
	}
	return "float32"
}

func (l *vectorLoop) resultBytes() int { return 8 - 4*bool01(l.result() == "float32") }

// mask prepares the rest of CX elements, fewer than a vector has.
func (l *vectorLoop) mask(f *file, s isa) {
	if s.masks {
		f.lowMask("R10")
		if slices.ContainsFunc(slices.Concat(l.pointers, l.scalars), isWide) {
			f.op("KSHIFTRW $8, K1, K3")
		}
		return
	}
	f.op("LEAQ restMask<>+32(SB), R10")
	f.op("SHLQ $2, CX")
	f.op("SUBQ CX, R10")
	f.op("SHRQ $2, CX")
}

// end adds up the lanes of the totals and returns them.
func (l *vectorLoop) end(f *file, s isa) {
	n := len(l.totals)
	if l.apart {
		l.join(f, s, 0, 1, "ret", l.size())
		l.join(f, s, 1, 2, "more", l.size()+l.resultBytes())
	} else if n > 0 {
		l.join(f, s, 0, n, "ret", l.size())
	}
}

// join adds up totals from to to, all their lanes, and stores a result.
func (l *vectorLoop) join(f *file, s isa, from, to int, result string, at int) {
	if s.arm() {
		l.joinArm(f, from, to, result, at)
		return
	}
	t := l.totals[from]
	name, double := "VADDPS", t.double
	switch {
	case t.lowest:
		name = "VMAXPS"
	case double:
		name = "VADDPD"
	}
	var regs []int
	for i := from; i < to; i++ {
		for j := range l.vary() {
			regs = append(regs, s.top(len(l.scalars)+i*l.vary()+j))
		}
	}
	for ; len(regs) > 1; regs = regs[:(len(regs)+1)/2] {
		half := (len(regs) + 1) / 2
		for i := range len(regs) / 2 {
			f.op("%s %s, %s, %s", name, s.r(regs[half+i]), s.r(regs[i]), s.r(regs[i]))
		}
	}
	f.joinLanes(s, name, double, regs[0])
	move := "VMOVSS"
	if double {
		move = "VMOVSD"
	}
	f.op("%s X0, %s+%d(FP)", move, result, at)
}

// joinLanes folds the lanes of a register into lane 0 of register 0.
func (f *file) joinLanes(s isa, name string, double bool, r int) {
	f.op("VMOVAPS %s, %s", s.r(r), s.r(0))
	if s.masks {
		f.op("VEXTRACTF64X4 $1, Z0, Y1")
		f.op("%s Y1, Y0, Y0", name)
	}
	f.op("VEXTRACTF128 $1, Y0, X1")
	f.op("%s X1, X0, X0", name)
	f.op("VPERMILPS $0x4e, X0, X1")
	f.op("%s X1, X0, X0", name)
	if !double {
		f.op("VPERMILPS $0xb1, X0, X1")
		f.op("%s X1, X0, X0", name)
	}
}

// constants of a file are repeated to 32 bytes: AVX2 takes them whole.
func (f *file) constantOf(bits uint64) value {
	i := slices.Index(f.pool, bits)
	if i < 0 {
		i = len(f.pool)
		f.pool = append(f.pool, bits)
	}
	return value(-1 - i)
}

func constantName(v value) string { return fmt.Sprintf("constants<>+%d(SB)", 32*(-1-int(v))) }

// writeConstants writes the data of the file's constants and the mask of rests for AVX2.
func (f *file) writeConstants() {
	f.asm.WriteByte('\n')
	for i, c := range f.pool {
		for j := range 4 {
			fmt.Fprintf(&f.asm, "DATA constants<>+%d(SB)/8, $%#x\n", 32*i+8*j, c)
		}
	}
	fmt.Fprintf(&f.asm, "GLOBL constants<>(SB), RODATA|NOPTR, $%d\n\n", 32*len(f.pool))
	for j := range 8 {
		bits := ^uint64(0)
		if j >= 4 {
			bits = 0
		}
		fmt.Fprintf(&f.asm, "DATA restMask<>+%d(SB)/8, $%#x\n", 8*j, bits)
	}
	f.asm.WriteString("GLOBL restMask<>(SB), RODATA|NOPTR, $64\n")
}

// inUseDouble is inUse for a half in float64.
func (b *block) inUseDouble(x value, upper bool) value {
	if !b.piece.rest {
		return x
	}
	if b.s.arm() {
		return b.inUseArm(one64, x, upper)
	}
	return b.add1(node{args: []value{x}, temps: 1, emit: func(o *operation) {
		if o.s.masks {
			o.op("VMOVAPD.Z %s, K%d, %s", o.s.r(o.regs[0]), 1+2*bool01(upper), o.s.r(o.dst))
			return
		}
		o.op("VPMOVSXDQ %d(R10), %s", 16*bool01(upper), o.s.r(o.temp[0]))
		o.op("VANDPD %s, %s, %s", o.s.r(o.temp[0]), o.s.r(o.regs[0]), o.s.r(o.dst))
	}})
}

// narrowAddress is where a vector of 16-bit elements lies.
func (o *operation) narrowAddress(name string) string {
	i := slices.IndexFunc(o.loop.pointers, func(p string) bool { return plain(p) == name })
	o.op("MOVQ AX, BX")
	o.op("SHRQ $1, BX")
	return fmt.Sprintf("%d(%s)(BX*1)", o.at/2, pointerRegisters[i])
}

// loadNarrow reads 16-bit elements: VPMOVZXWD keeps their bits, VCVTPH2PS converts f16.
func (b *block) loadNarrow(instruction, name string) value {
	if b.s.arm() {
		return b.loadNarrowArm(instruction, name)
	}
	return b.add1(node{emit: func(o *operation) {
		from := o.narrowAddress(name)
		o.op("%s %s, %s", instruction, from, o.s.r(o.dst))
	}})
}

// storeF16 rounds to the nearest f16, half to even.
func (b *block) storeF16(name string, x value) {
	if b.s.arm() {
		b.storeNarrowArm(toF16, name, x)
		return
	}
	b.add1(node{args: []value{x}, void: true, emit: func(o *operation) {
		to := o.narrowAddress(name)
		o.op("VCVTPS2PH $0, %s, %s", o.s.r(o.regs[0]), to)
	}})
}

// storeLow writes the lower 16 bits of lanes that have no others.
func (b *block) storeLow(name string, x value) {
	if b.s.arm() {
		b.storeNarrowArm(low16, name, x)
		return
	}
	b.add1(node{args: []value{x}, temps: 1, void: true, emit: func(o *operation) {
		to := o.narrowAddress(name)
		if o.s.masks {
			o.op("VPMOVDW %s, %s", o.s.r(o.regs[0]), to)
			return
		}
		o.op("VEXTRACTI128 $1, Y%d, X%d", o.regs[0], o.temp[0])
		o.op("VPACKUSDW X%d, X%d, X%d", o.temp[0], o.regs[0], o.temp[0])
		o.op("VMOVDQU X%d, %s", o.temp[0], to)
	}})
}

// toBF16 rounds to the nearest bf16, half to even; NaN keeps what fits of it and is quiet.
func (b *block) toBF16(x value) value {
	last := b.and(b.shift("VPSRLD", 16, x), b.bits(1))
	y := b.shift("VPSRLD", 16, b.commuting("VPADDD", b.commuting("VPADDD", x, b.bits(0x7fff)), last))
	quiet := b.or(b.shift("VPSRLD", 16, x), b.bits(0x40))
	return b.choose(unordered, x, x, quiet, y)
}
