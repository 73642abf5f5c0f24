package main

import (
	"fmt"
	"math"
	"slices"
)

// value is what an operation of a block made: an index of its nodes. Below 0 it is a constant of the file.
type value int

// node is an operation. emit writes it for the registers it was given.
type node struct {
	args  []value
	temps int  // registers that it needs on the way
	early bool // the result must not lie in a register of an operand
	fused *fused
	void  bool // it has no result
	emit  func(o *operation)
}

// operation is a node with registers.
type operation struct {
	*block
	dst  int
	regs []int // of operands, -1 for constants
	args []value
	temp []int
}

// block is the straight code that a loop repeats for one vector. Operations are written down in order, and get registers
// when the block is complete: a register is free after the last use of its value.
type block struct {
	*file
	loop  *vectorLoop
	s     isa
	piece piece
	at    int // bytes from the turn's first element, of float32
	nodes []node
	fixed map[value]int // values that keep a register over all turns
}

func (b *block) add1(n node) value {
	b.nodes = append(b.nodes, n)
	return value(len(b.nodes) - 1)
}

// constant is a float32 that every lane has.
func (b *block) constant(x float64) value { return b.bits(math.Float32bits(float32(x))) }

// bits is a constant by its bits.
func (b *block) bits(u uint32) value { return b.file.constantOf(uint64(u)<<32 | uint64(u)) }

// double is a float64 that every lane has.
func (b *block) double(x float64) value { return b.file.constantOf(math.Float64bits(x)) }

// source names an operand: a register, or a constant in memory, which AVX-512 repeats as it loads. suffix is what the
// instruction's name needs then.
func (o *operation) source(i int) (name, suffix string) {
	if o.regs[i] >= 0 {
		return o.s.r(o.regs[i]), ""
	}
	name = constantName(o.args[i])
	if o.s.masks {
		suffix = ".BCST"
	}
	return name, suffix
}

// fetch moves a constant to a register.
func (f *file) broadcast(s isa, v value, to int) {
	f.op("VBROADCASTSD %s, %s", constantName(v), s.r(to))
}

// binary is name(x, y): y may be a constant; so may x, at the price of a load.
func (b *block) binary(name string, x, y value) value {
	if b.s.arm() {
		return b.binaryArm(name, x, y)
	}
	return b.add1(node{args: []value{x, y}, temps: bool01(x < 0), emit: func(o *operation) {
		first := o.regs[0]
		if first < 0 {
			first = o.temp[0]
			o.broadcast(o.s, o.args[0], first)
		}
		src, suffix := o.source(1)
		o.op("%s%s %s, %s, %s", name, suffix, src, o.s.r(first), o.s.r(o.dst))
	}})
}

func bool01(b bool) int {
	if b {
		return 1
	}
	return 0
}

// commuting is binary where the operands may change places.
func (b *block) commuting(name string, x, y value) value {
	if x < 0 {
		x, y = y, x
	}
	return b.binary(name, x, y)
}

func (b *block) add(x, y value) value { return b.commuting("VADDPS", x, y) }
func (b *block) sub(x, y value) value { return b.binary("VSUBPS", x, y) }
func (b *block) mul(x, y value) value { return b.commuting("VMULPS", x, y) }
func (b *block) div(x, y value) value { return b.binary("VDIVPS", x, y) }
func (b *block) and(x, y value) value { return b.commuting("VANDPS", x, y) }
func (b *block) or(x, y value) value  { return b.commuting("VORPS", x, y) }
func (b *block) xor(x, y value) value { return b.commuting("VXORPS", x, y) }

// max and min give y where one of the two is NaN, or both are zeros.
func (b *block) max(x, y value) value { return b.binary("VMAXPS", x, y) }
func (b *block) min(x, y value) value { return b.binary("VMINPS", x, y) }

// abs, sign and withSign take float32 apart and put them together.
func (b *block) abs(x value) value         { return b.and(x, b.bits(1<<31-1)) }
func (b *block) sign(x value) value        { return b.and(x, b.bits(1<<31)) }
func (b *block) withSign(x, s value) value { return b.or(x, b.sign(s)) }
func (b *block) unary(name string, x value) value {
	if b.s.arm() {
		return b.unaryArm(name, x)
	}
	return b.add1(node{args: []value{x}, emit: func(o *operation) {
		o.op("%s %s, %s", name, o.s.r(o.regs[0]), o.s.r(o.dst))
	}})
}

// shift moves the bits of int32 lanes.
func (b *block) shift(name string, by int, x value) value {
	return b.unary(fmt.Sprintf("%s $%d,", name, by), x)
}

// round is to the nearest integer, half to even.
func (b *block) round(x value) value {
	if b.s.masks {
		return b.unary("VRNDSCALEPS $8,", x)
	}
	return b.unary("VROUNDPS $8,", x)
}

// fused is x·y + z, or -x·y + z.
type fused struct{ name string }

func (b *block) fusedOf(name string, x, y, z value) value {
	if b.s.arm() {
		return b.fusedArm(name, x, y, z)
	}
	if x < 0 {
		x, y = y, x
	}
	return b.add1(node{args: []value{x, y, z}, temps: bool01(x < 0), fused: &fused{name}})
}

func (b *block) fma(x, y, z value) value   { return b.fusedOf("VFMADD%sPS", x, y, z) }
func (b *block) fnma(x, y, z value) value  { return b.fusedOf("VFNMADD%sPS", x, y, z) }
func (b *block) fms(x, y, z value) value   { return b.fusedOf("VFMSUB%sPS", x, y, z) }
func (b *block) fmaD(x, y, z value) value  { return b.fusedOf("VFMADD%sPD", x, y, z) }
func (b *block) fnmaD(x, y, z value) value { return b.fusedOf("VFNMADD%sPD", x, y, z) }

// emit writes a fused operation over the operand in dst: x or z, which is dead by now or was copied.
func (f *fused) emit(o *operation, over int) {
	name := func(order string) string { return fmt.Sprintf(f.name, order) }
	r := func(i int) string { return o.s.r(o.regs[i]) }
	switch {
	case over == 2: // z += x·y
		src, suffix := o.source(1)
		o.op("%s%s %s, %s, %s", name("231"), suffix, src, r(0), o.s.r(o.dst))
	case o.regs[1] < 0: // x = x·constant + z
		src, suffix := o.source(1)
		o.op("%s%s %s, %s, %s", name("132"), suffix, src, r(2), o.s.r(o.dst))
	case over == 0: // x = x·y + z
		src, suffix := o.source(2)
		o.op("%s%s %s, %s, %s", name("213"), suffix, src, r(1), o.s.r(o.dst))
	default: // y = y·x + z
		src, suffix := o.source(2)
		o.op("%s%s %s, %s, %s", name("213"), suffix, src, r(0), o.s.r(o.dst))
	}
}

// horner is the polynomial of x with these coefficients, the last of the highest power.
func (b *block) horner(x value, coefficients ...float64) value {
	last := len(coefficients) - 1
	sum := b.fma(x, b.constant(coefficients[last]), b.constant(coefficients[last-1]))
	for _, c := range slices.Backward(coefficients[:last-1]) {
		sum = b.fma(sum, x, b.constant(c))
	}
	return sum
}

// The predicates of comparisons; all but unordered are false for NaN.
const (
	equal     = 0
	less      = 1
	atMost    = 2
	unordered = 3
	above     = 14
	atLeast   = 13
)

// choose is u where x compares with y so, else v. v must not be a constant.
func (b *block) choose(predicate int, x, y, u, v value) value {
	if b.s.arm() {
		return b.chooseArm(predicate, x, y, u, v)
	}
	return b.add1(node{args: []value{x, y, u, v}, temps: 1, early: true, emit: func(o *operation) {
		src, suffix := o.source(1)
		chosen, bcst := o.source(2)
		if o.s.masks {
			o.op("VCMPPS%s $%d, %s, %s, K2", suffix, predicate, src, o.s.r(o.regs[0]))
			o.op("VBLENDMPS%s %s, %s, K2, %s", bcst, chosen, o.s.r(o.regs[3]), o.s.r(o.dst))
			return
		}
		mask := o.s.r(o.temp[0])
		o.op("VCMPPS $%d, %s, %s, %s", predicate, src, o.s.r(o.regs[0]), mask)
		o.op("VBLENDVPS %s, %s, %s, %s", mask, chosen, o.s.r(o.regs[3]), o.s.r(o.dst))
	}})
}

// chooseSign is u where the top bit of m is set, else v.
func (b *block) chooseSign(m, u, v value) value {
	if b.s.arm() {
		return b.chooseSignArm(m, u, v)
	}
	return b.add1(node{args: []value{m, u, v}, emit: func(o *operation) {
		chosen, bcst := o.source(1)
		if o.s.masks {
			o.op("VPMOVD2M %s, K2", o.s.r(o.regs[0]))
			o.op("VBLENDMPS%s %s, %s, K2, %s", bcst, chosen, o.s.r(o.regs[2]), o.s.r(o.dst))
			return
		}
		o.op("VBLENDVPS %s, %s, %s, %s", o.s.r(o.regs[0]), chosen, o.s.r(o.regs[2]), o.s.r(o.dst))
	}})
}

// held is a constant that keeps a register over all turns: what an instruction takes only from there.
func (b *block) held(c value) value {
	for i, h := range b.loop.held {
		if h == c {
			return b.pinned(b.loop.heldAt(b.s, i))
		}
	}
	b.loop.held = append(b.loop.held, c)
	return b.pinned(b.loop.heldAt(b.s, len(b.loop.held)-1))
}

// pinned is a value that has a register of its own.
func (b *block) pinned(register int) value {
	v := b.add1(node{void: true, emit: func(*operation) {}})
	b.fixed[v] = register
	return v
}

// scale is x·2ⁿ for an integer n between -300 and 300, rounded once but, below AVX-512, for subnormal results.
func (b *block) scale(x, n value) value {
	if b.s.masks {
		return b.binary("VSCALEFPS", x, n)
	}
	i := b.unary("VCVTPS2DQ", n)
	half := b.shift("VPSRAD", 1, i) // 2ⁿ as two factors
	rest := b.binary("VPSUBD", i, half)
	return b.mul(b.mul(x, b.power(half)), b.power(rest))
}

// power is 2ⁱ of an int32 i between -126 and 127.
func (b *block) power(i value) value {
	return b.shift("VPSLLD", 23, b.commuting("VPADDD", i, b.bits(127)))
}

// half names the lower half of register i.
func (s isa) half(i int) string {
	if s.masks {
		return fmt.Sprintf("Y%d", i)
	}
	return fmt.Sprintf("X%d", i)
}

// upperHalf copies the upper half of a register to the lower of another.
func (o *operation) upperHalf(x, to int) {
	if o.s.masks {
		o.op("VEXTRACTF32X8 $1, %s, %s", o.s.r(x), o.s.half(to))
	} else {
		o.op("VEXTRACTF128 $1, %s, %s", o.s.r(x), o.s.half(to))
	}
}

// wide is x as float64: the lower and the upper half of its lanes.
func (b *block) wide(x value) (lo, hi value) {
	if b.s.arm() {
		return b.wideArm(x)
	}
	lo = b.add1(node{args: []value{x}, emit: func(o *operation) {
		o.op("VCVTPS2PD %s, %s", o.s.half(o.regs[0]), o.s.r(o.dst))
	}})
	hi = b.add1(node{args: []value{x}, emit: func(o *operation) {
		o.upperHalf(o.regs[0], o.dst)
		o.op("VCVTPS2PD %s, %s", o.s.half(o.dst), o.s.r(o.dst))
	}})
	return lo, hi
}

// narrow is the reverse.
func (b *block) narrow(lo, hi value) value {
	if b.s.arm() {
		return b.narrowArm(lo, hi)
	}
	return b.add1(node{args: []value{lo, hi}, temps: 1, early: true, emit: func(o *operation) {
		t := o.temp[0]
		if o.s.masks {
			o.op("VCVTPD2PS Z%d, Y%d", o.regs[1], t)
			o.op("VCVTPD2PS Z%d, Y%d", o.regs[0], o.dst)
			o.op("VINSERTF32X8 $1, Y%d, Z%d, Z%d", t, o.dst, o.dst)
			return
		}
		o.op("VCVTPD2PSY Y%d, X%d", o.regs[1], t)
		o.op("VCVTPD2PSY Y%d, X%d", o.regs[0], o.dst)
		o.op("VINSERTF128 $1, X%d, Y%d, Y%d", t, o.dst, o.dst)
	}})
}

// write gives the nodes registers and writes them.
func (b *block) write(free []int) {
	last := map[value]int{}
	for i, n := range b.nodes {
		for _, a := range n.args {
			last[a] = i
		}
	}
	at := map[value]int{}
	for v, r := range b.fixed {
		at[v] = r
	}
	take := func() int {
		if len(free) == 0 {
			panic(fmt.Sprintf("%s%s: no register is free", b.loop.name, b.s.name))
		}
		slices.Sort(free)
		r := free[0]
		free = free[1:]
		return r
	}
	for i, n := range b.nodes {
		v := value(i)
		if _, ok := b.fixed[v]; ok {
			continue
		}
		o := &operation{block: b, args: n.args}
		var dying []int
		for j, a := range n.args {
			r := -1
			if a >= 0 {
				r = at[a]
				_, fixed := b.fixed[a]
				if !fixed && last[a] == i && !slices.Contains(n.args[:j], a) {
					dying = append(dying, r)
				}
			}
			o.regs = append(o.regs, r)
		}
		for range n.temps {
			o.temp = append(o.temp, take())
		}
		switch {
		case n.fused != nil:
			dying = b.placeFused(o, n, dying, take)
		case n.void:
			n.emit(o)
		default:
			if n.early {
				o.dst = take()
			} else {
				free = append(free, dying...)
				dying = nil
				o.dst = take()
			}
			n.emit(o)
		}
		free = append(append(free, dying...), o.temp...)
		if !n.void {
			if at[v] = o.dst; last[v] == 0 {
				free = append(free, o.dst) // nobody uses it
			}
		}
	}
}

// placeFused chooses the operand that a fused operation overwrites, and returns which of the dying registers stay so.
func (b *block) placeFused(o *operation, n node, dying []int, take func() int) []int {
	if b.s.arm() {
		return b.placeFusedArm(o, n, dying, take)
	}
	over := -1
	candidates := []int{2, 0, 1}
	switch {
	case n.args[1] < 0 && n.args[2] < 0:
		candidates = nil
	case n.args[1] < 0:
		candidates = []int{2, 0}
	}
	for _, c := range candidates {
		if o.regs[c] >= 0 && slices.Contains(dying, o.regs[c]) && !sharedOperand(o.regs, c) {
			over = c
			break
		}
	}
	if over >= 0 {
		o.dst = o.regs[over]
		dying = slices.DeleteFunc(slices.Clone(dying), func(r int) bool { return r == o.dst })
	} else {
		o.dst = take()
		over = 2
		if n.args[2] < 0 {
			o.broadcast(o.s, n.args[2], o.dst)
		} else {
			o.op("VMOVAPS %s, %s", o.s.r(o.regs[2]), o.s.r(o.dst))
		}
	}
	n.fused.emit(o, over)
	return dying
}

// sharedOperand reports whether register i is another operand, too.
func sharedOperand(regs []int, i int) bool {
	for j, r := range regs {
		if j != i && r == regs[i] {
			return true
		}
	}
	return false
}
