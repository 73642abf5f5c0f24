package ptx

import (
	"iter"
	"slices"
)

// values are what a function has in those of its registers that carry nothing past a label: behind each label, an
// instruction writes such a register before any other does something with it. What it writes, to the next that writes the
// same register, is a value; which register it is in means nothing.
type values struct {
	number map[*Reg]int // of each operand that is such a register, the value
	last   []*Inst      // by the number of the value, the instruction that uses it last
}

// has reports whether an operand is a value.
func (v *values) has(r *Reg) bool { _, ok := v.number[r]; return ok }

// of are the operands of an instruction that are values.
func (v *values) of(in *Inst) iter.Seq[*Reg] {
	return func(yield func(*Reg) bool) {
		for o := range operands(in) {
			if r, ok := o.(*Reg); ok && v.has(r) && !yield(r) {
				return
			}
		}
	}
}

// Split gives each value a register of its own, where registers are shared as [Canonical] has them, so that who asks where
// something comes from is told of nothing else.
func (f *Func) Split() {
	v := f.values()
	ids := make([]int, len(v.last)) // by value; 0 for one that has none yet
	kept := map[int]bool{}          // registers that are some value's already
	for o := range f.operands() {
		r, ok := o.(*Reg)
		if !ok || !v.has(r) {
			continue
		}
		n := v.number[r]
		if ids[n] == 0 {
			ids[n] = r.ID + 1
			if kept[r.ID] {
				f.Regs = append(f.Regs, f.Regs[r.ID])
				ids[n] = len(f.Regs)
			}
			kept[r.ID] = true
		}
		r.ID = ids[n] - 1
	}
}

// values finds the values of a function, numbered as they are written.
func (f *Func) values() *values {
	v := &values{number: map[*Reg]int{}}
	carries := f.carries()
	current := make([]int, len(f.Regs))
	for in := range f.Insts() {
		written := in.written()
		for o := range operands(in) {
			r, ok := o.(*Reg)
			if !ok || carries[r.ID] || slices.Contains(written, r) {
				continue
			}
			v.number[r] = current[r.ID]
			v.last[current[r.ID]] = in
		}
		for _, r := range written {
			if !carries[r.ID] {
				current[r.ID] = len(v.last)
				v.number[r] = len(v.last)
				v.last = append(v.last, in)
			}
		}
	}
	return v
}

// carries tells, by ID, which registers may carry something past a label, or into the function and out of it.
func (f *Func) carries() []bool {
	carries := make([]bool, len(f.Regs))
	for _, id := range f.Formals {
		if id >= 0 {
			carries[id] = true
		}
	}
	section, named := 1, f.named()
	writtenIn := make([]int, len(f.Regs)) // the section that each was written in last
	for s := range f.stmts() {
		switch s := s.(type) {
		case *LabelDef:
			if named[s.ID] {
				section++
			}
		case *Inst:
			written := s.written()
			for o := range operands(s) {
				if r, ok := o.(*Reg); ok && writtenIn[r.ID] != section && !slices.Contains(written, r) {
					carries[r.ID] = true
				}
			}
			for _, r := range written {
				writtenIn[r.ID] = section
			}
		}
	}
	return carries
}

// writes are the opcodes that are known to write all of their first operand, and to read nothing of it.
var writes = func() map[string]bool {
	set := map[string]bool{}
	for _, op := range []string{
		"abs", "add", "and", "atom", "bfe", "bfi", "bfind", "brev", "clz", "cnot", "copysign", "cos", "cvt", "cvta", "div", "dp2a", "dp4a",
		"ex2", "fma", "fns", "ld", "ldmatrix", "ldu", "lg2", "lop3", "mad", "mad24", "match", "max", "min", "mma", "mov", "movmatrix", "mul", "mul24",
		"neg", "not", "or", "popc", "prmt", "rcp", "redux", "rem", "rsqrt", "sad", "selp", "set", "setp", "shf", "shfl", "shl", "shr", "sin", "slct",
		"sqrt", "sub", "tanh", "vote", "xor",
	} {
		set[op] = true
	}
	return set
}()

// written are the registers that an instruction writes for certain, and as a whole.
func (in *Inst) written() (regs []*Reg) {
	if in.Guard != nil || len(in.Args) == 0 || !writes[in.Op] {
		return nil
	}
	add := func(list ...Operand) {
		for _, o := range list {
			if r, ok := o.(*Reg); ok && r.Sel == "" {
				regs = append(regs, r)
			}
		}
	}
	switch o := in.Args[0].(type) {
	case *Reg:
		add(o)
	case *Vec:
		add(o.Elems...)
	case *Pair:
		add(o.A, o.B)
	}
	return regs
}
