package main

import "slices"

// What the operations of a block are for NEON. An instruction takes no operand from memory, and a fused one adds to its
// destination: constants are loaded to registers on the way.

// constantsArm counts the constants among operands, for each of which an operation needs a register.
func constantsArm(args ...value) (n int) {
	for _, a := range args {
		n += bool01(a < 0)
	}
	return n
}

// register is where operand i is: a constant is loaded to one of the operation's registers.
func (o *operation) register(i int) int {
	if o.regs[i] >= 0 {
		return o.regs[i]
	}
	t := o.temp[constantsArm(o.args[:i]...)]
	o.constantArm(o.args[i], t)
	return t
}

// constantArm loads a constant.
func (f *file) constantArm(v value, to int) { f.op("FMOVQ %d(R8), F%d", 16*(-1-int(v)), to) }

// binaryArm is binary.
func (b *block) binaryArm(name string, x, y value) value {
	switch name {
	case "VMAXPS":
		return b.extremeArm(fmax, above, x, y)
	case "VMINPS":
		return b.extremeArm(fmin, less, x, y)
	}
	return b.add1(node{args: []value{x, y}, temps: constantsArm(x, y), emit: func(o *operation) {
		o.arm(neonOf(name), o.dst, o.register(0), o.register(1))
	}})
}

// extremeArm is max or min. The instruction keeps a NaN of either operand and has -0 below 0, so that it does where the
// first is a constant of another value.
func (b *block) extremeArm(op armOp, predicate int, x, y value) value {
	if !b.plainConstant(x) {
		return b.chooseArm(predicate, x, y, x, y)
	}
	return b.add1(node{args: []value{x, y}, temps: constantsArm(x, y), emit: func(o *operation) {
		o.arm(op, o.dst, o.register(0), o.register(1))
	}})
}

// plainConstant reports whether a value is a constant, held or not, that is not zero.
func (b *block) plainConstant(v value) bool {
	if r, ok := b.fixed[v]; ok {
		for i, h := range b.loop.held {
			if r == b.loop.heldAt(b.s, i) {
				v = h
			}
		}
	}
	return v < 0 && b.pool[-1-v] != 0
}

// unaryArm is unary.
func (b *block) unaryArm(name string, x value) value {
	return b.add1(node{args: []value{x}, temps: constantsArm(x), emit: func(o *operation) { o.arm(neonOf(name), o.dst, o.register(0)) }})
}

// fusedArm is fusedOf: z is where the result goes.
func (b *block) fusedArm(name string, x, y, z value) value {
	return b.add1(node{args: []value{x, y, z}, temps: constantsArm(x, y), fused: &fused{name}})
}

// placeFusedArm is placeFused: over z, which is dead by now or is copied.
func (b *block) placeFusedArm(o *operation, n node, dying []int, take func() int) []int {
	z := o.regs[2]
	if z >= 0 && slices.Contains(dying, z) && !sharedOperand(o.regs, 2) {
		o.dst = z
		dying = slices.DeleteFunc(slices.Clone(dying), func(r int) bool { return r == z })
	} else if o.dst = take(); z < 0 {
		o.constantArm(n.args[2], o.dst)
	} else {
		o.arm(copyOf, o.dst, z)
	}
	if n.fused.name == "VFMSUB%sPS" {
		o.arm(fneg, o.dst, o.dst)
	}
	o.arm(neonOf(n.fused.name), o.dst, o.register(0), o.register(1))
	return dying
}

// chooseArm is choose. Of unordered it asks the reverse.
func (b *block) chooseArm(predicate int, x, y, u, v value) value {
	if predicate == unordered {
		u, v = v, u
	}
	constants := constantsArm(x, y, u, v)
	return b.add1(node{args: []value{x, y, u, v}, temps: constants + 1, early: true, emit: func(o *operation) {
		o.compareArm(predicate, o.register(0), o.register(1), o.temp[constants])
		o.arm(choice, o.dst, o.register(2), o.register(3))
	}})
}

// compareArm compares lanes of x with those of y, by way of a register: the destination's are all ones where it holds,
// but of unordered where it does not.
func (o *operation) compareArm(predicate, x, y, by int) {
	switch predicate {
	case equal:
		o.arm(fcmeq, o.dst, x, y)
	case less:
		o.arm(fcmgt, o.dst, y, x)
	case atMost:
		o.arm(fcmge, o.dst, y, x)
	case above:
		o.arm(fcmgt, o.dst, x, y)
	case atLeast:
		o.arm(fcmge, o.dst, x, y)
	case unordered:
		o.arm(fcmeq, o.dst, x, x)
		if x != y {
			o.arm(fcmeq, by, y, y)
			o.arm(and, o.dst, o.dst, by)
		}
	}
}

// chooseSignArm is chooseSign.
func (b *block) chooseSignArm(m, u, v value) value {
	return b.add1(node{args: []value{m, u, v}, temps: constantsArm(m, u, v), early: true, emit: func(o *operation) {
		o.arm(sshr(31), o.dst, o.register(0))
		o.arm(choice, o.dst, o.register(1), o.register(2))
	}})
}

// wideArm is wide.
func (b *block) wideArm(x value) (lo, hi value) {
	part := func(op armOp) value {
		return b.add1(node{args: []value{x}, emit: func(o *operation) { o.arm(op, o.dst, o.regs[0]) }})
	}
	return part(widen), part(widen2)
}

// narrowArm is narrow.
func (b *block) narrowArm(lo, hi value) value {
	return b.add1(node{args: []value{lo, hi}, early: true, emit: func(o *operation) {
		o.arm(narrow, o.dst, o.regs[0])
		o.arm(narrow2, o.dst, o.regs[1])
	}})
}
