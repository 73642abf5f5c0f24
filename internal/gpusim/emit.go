package gpusim

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// op is a compiled instruction: it acts on the lanes in w.mask.
type op func(w *warp)

// bankID is a kind of register.
type bankID uint8

// The banks of a warp: registers of up to 32 bits, of 64 bits, and predicates (a mask of lanes each).
const (
	bank32 bankID = iota
	bank64
	bankPred
	banks int = 3
)

func bankOf(t ptx.Type) bankID {
	switch {
	case t == ptx.Pred:
		return bankPred
	case t.Bits() > 32:
		return bank64
	}
	return bank32
}

// slot is a register of a warp; bits is the width of what it holds.
type slot struct {
	bank bankID
	i    int32
	bits uint8
}

// special is a register that the hardware sets.
type special struct {
	slot    slot
	read    func(w *warp, lane uint32) uint64
	uniform bool // the same in all lanes
}

// site is an instruction as findings name it.
type site struct {
	in   *finst
	prog *Program
	id   uint32 // in code.sites
}

func (s *site) source() string {
	if s.in.loc == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d", s.prog.module.FileName(s.in.loc.File), s.in.loc.Line)
}

// place names the instruction; zero for none.
func (s *site) place() Place {
	if s == nil {
		return Place{}
	}
	return Place{s.in.Pos.Line, s.source(), s.in.Name()}
}

// emitter turns the instructions of a flat function into ops. It runs twice: a scan finds which registers each
// instruction uses and what is not supported, the second run knows the slots.
type emitter struct {
	f       *flat
	in      *finst
	site    *site
	v       variant
	bank    []bankID
	slots   []int32
	code    *code
	use     *usage
	term    *terminator // set by an instruction that ends a block
	pre     []op        // reads of clocks
	paramAt int         // offset of the address last compiled, where it is a constant in the kernel's parameters; else -1
	addr    slot        // of the address last compiled, and what is added to it
	addrOff uint64
	err     error

	engine *engine // for which forms in assembly are made; nil for none
	vector []inst  // the form of the instruction under way; empty without
	tileOf []slot  // A of the last mma
	tag    uint32  // of those that share it
	watch  op      // what checks and counts the access under way before the assembly carries it out
	review op      // the same, after it
	plain  op      // the instruction without poison
	polled map[*finst]bool
	access *access        // of the instruction under way, nil for none
	alias  map[int]*finst // registers that only ever hold what a constant slot does: what defines them

	consts32 map[uint32]int32
	consts64 map[uint64]int32
	specials map[string]slot
}

func newEmitter(f *flat, v variant) (*emitter, error) {
	e := &emitter{f: f, v: v, bank: make([]bankID, len(f.regs)), slots: make([]int32, len(f.regs)), code: &code{},
		consts32: map[uint32]int32{}, consts64: map[uint64]int32{}, specials: map[string]slot{}, alias: map[int]*finst{}}
	for i, r := range f.regs {
		e.bank[i], e.slots[i] = bankOf(r.Type), int32(i)
		if r.Vec > 0 || r.Type.Bits() > 64 {
			return nil, &unsupported{f.fn.Pos, "register " + r.Name, "vector registers and those of 128 bits"}
		}
	}
	return e, nil
}

// scan compiles without keeping the result and returns what each instruction uses.
func scan(f *flat) ([]usage, error) {
	e, err := newEmitter(f, variant{})
	if err != nil {
		return nil, err
	}
	use := make([]usage, len(f.code))
	for i := range f.code {
		e.use = &use[i]
		e.instruction(&f.code[i])
		if e.err != nil {
			return nil, e.err
		}
	}
	return use, nil
}

func (e *emitter) fail(format string, args ...any) {
	if e.err == nil {
		e.err = notSupported(e.in.Inst, format, args...)
	}
}

// instruction compiles one instruction; nil for one that only ends a block.
func (e *emitter) instruction(in *finst) op {
	e.in, e.term, e.pre, e.vector, e.plain, e.watch, e.review, e.access = in, nil, nil, e.vector[:0], nil, nil, nil, nil
	e.site = &site{in, e.f.prog, uint32(len(e.code.sites))}
	e.code.sites = append(e.code.sites, e.site)
	if e.use == nil {
		e.use = &usage{}
	}
	var run op
	emit, known := emitters[in.Op]
	switch {
	case known:
		run = emit(e)
	case hasForm(in.Op):
		run = e.arithmetic()
	default:
		e.fail(notSimulated)
	}
	if e.err != nil {
		return nil
	}
	if in.Guard != nil && e.term == nil {
		e.encodeGuard()
		run = e.guarded(run)
	}
	if len(e.pre) > 0 {
		e.vector = e.vector[:0]
	}
	e.plain = e.after(run)
	if e.v.poison {
		return e.after(e.poisoned(run))
	}
	return e.plain
}

// after puts the reads of clocks before the instruction.
func (e *emitter) after(run op) op {
	if len(e.pre) == 0 || run == nil {
		return run
	}
	pre := e.pre
	return func(w *warp) {
		for _, p := range pre {
			p(w)
		}
		run(w)
	}
}

// guarded runs an op for the lanes whose predicate holds.
func (e *emitter) guarded(run op) op {
	p, neg := e.guard()
	e.use.partial = true
	if run == nil {
		return nil
	}
	return func(w *warp) {
		m := w.p[p]
		if neg {
			m = ^m
		}
		if m &= w.mask; m == 0 {
			return
		}
		all := w.mask
		w.mask = m
		run(w)
		w.mask = all
	}
}

func (e *emitter) guard() (p int32, neg bool) {
	s := e.reg(e.in.Guard.Reg)
	if s.bank != bankPred {
		e.fail("the guard is not a predicate")
	}
	return s.i, e.in.Guard.Neg
}

// reg is a register that is read.
func (e *emitter) reg(r *ptx.Reg) slot {
	id := e.in.fr.reg + r.ID
	if r.Sel != "" || id >= len(e.bank) {
		e.fail("register %s", r.Name)
		return slot{}
	}
	e.use.uses = append(e.use.uses, id)
	bits := uint8(e.f.regs[id].Type.Bits())
	if def := e.alias[id]; def != nil {
		return slot{e.bank[id], e.aliasSlot(def).i, bits}
	}
	return slot{e.bank[id], e.slots[id], bits}
}

// arg is operand i, nil past the end.
func (e *emitter) arg(i int) ptx.Operand {
	if i >= len(e.in.Args) {
		e.fail("wants more operands")
		return nil
	}
	return e.in.Args[i]
}

// arity checks the number of operands.
func (e *emitter) arity(lo, hi int) {
	if n := len(e.in.Args); n < lo || n > hi {
		e.fail("wants %d to %d operands and has %d", lo, hi, n)
	}
}

// dst is operand i as a destination of a type; "_" gives a slot that nobody reads.
func (e *emitter) dst(o ptx.Operand, t ptx.Type) slot {
	switch o := o.(type) {
	case *ptx.Reg:
		s := e.reg(o)
		if e.err != nil {
			return s
		}
		id := e.in.fr.reg + o.ID
		e.use.uses = e.use.uses[:len(e.use.uses)-1]
		e.use.defs = append(e.use.defs, id)
		if !e.fits(s, t) {
			e.fail("the destination %s is not of type .%s", o.Name, t)
		}
		return s
	case *ptx.Sink:
		return e.sink(bankOf(t), uint8(t.Bits()))
	}
	e.fail("the destination is not a register")
	return slot{}
}

// fits is whether a register can stand for a type. Conversions, loads and stores take wider ones as well.
func (e *emitter) fits(s slot, t ptx.Type) bool {
	switch e.in.Op {
	case "cvt", "ld", "ldu", "st":
		return (s.bank == bankPred) == (t == ptx.Pred) && s.bits >= uint8(t.Bits())
	}
	return s.bits == uint8(t.Bits())
}

// sink is a register of its own that nothing reads.
func (e *emitter) sink(b bankID, bits uint8) slot {
	key := fmt.Sprint("sink", b)
	s, ok := e.specials[key]
	if !ok {
		s = e.fresh(b)
		e.specials[key] = s
	}
	s.bits = bits
	return s
}

func (e *emitter) fresh(b bankID) slot {
	n := &e.code.slots[b]
	*n++
	return slot{b, int32(*n - 1), 64}
}

// src is an operand that is read as a type.
func (e *emitter) src(o ptx.Operand, t ptx.Type) slot {
	switch o := o.(type) {
	case *ptx.Reg:
		s := e.reg(o)
		if !e.fits(s, t) {
			e.fail("the operand %s is not of type .%s", o.Name, t)
		}
		return s
	case *ptx.Imm:
		return e.constant(immBits(o, t), t)
	case *ptx.Sym:
		p, ok := place{}, false
		if o.Var != nil {
			p, ok = e.f.find(o.Var, e.in.fr)
		}
		if !ok {
			e.fail("%s", e.f.prog.noAddress(o.Name))
			return slot{}
		}
		return e.constant(uint64(e.offset(p)+o.Off), t)
	case *ptx.Special:
		return e.special(o.Name, t)
	}
	e.fail("an operand of this kind")
	return slot{}
}

// offset is the address of a place within its space.
func (e *emitter) offset(p place) int64 {
	if p.dynamic {
		return e.f.dynamicStart()
	}
	return p.off
}

// constant is a slot that holds the same bits in all lanes.
func (e *emitter) constant(bits uint64, t ptx.Type) slot {
	if t == ptx.Pred {
		i := e.fresh(bankPred).i
		e.code.constPred = append(e.code.constPred, constant{i, uint64(full) * b2u(bits != 0)})
		return slot{bankPred, i, 1}
	}
	if t.Bits() > 32 {
		i, ok := e.consts64[bits]
		if !ok {
			i = e.fresh(bank64).i
			e.consts64[bits] = i
			e.code.const64 = append(e.code.const64, constant{i, bits})
		}
		return slot{bank64, i, 64}
	}
	bits &= 1<<t.Bits() - 1
	i, ok := e.consts32[uint32(bits)]
	if !ok {
		i = e.fresh(bank32).i
		e.consts32[uint32(bits)] = i
		e.code.const32 = append(e.code.const32, constant{i, bits})
	}
	return slot{bank32, i, 32}
}

// special is a special register as a slot; clocks are read anew before the instruction.
func (e *emitter) special(name string, t ptx.Type) slot {
	def, ok := specialRegs[name]
	if !ok {
		e.fail("special register %%%s", name)
		return slot{}
	}
	b := bank32
	if def.bits == 64 {
		b = bank64
	}
	s, ok := e.specials[name]
	if !ok {
		s = e.fresh(b)
		s.bits = def.bits
		e.specials[name] = s
		list := &e.code.specials
		switch def.when {
		case perWarp:
			list = &e.code.fixed
		case perLaunch:
			list = &e.code.launched
		}
		if def.when != always {
			*list = append(*list, special{s, def.read, def.uniform})
		}
	}
	if def.when == always {
		e.pre = append(e.pre, func(w *warp) { w.setSpecial(special{s, def.read, def.uniform}) })
	}
	return s
}

// pred is a predicate operand, which may be negated.
func (e *emitter) pred(o ptx.Operand) (i int32, neg bool) {
	if n, ok := o.(*ptx.Not); ok {
		i, neg = e.pred(n.X)
		return i, !neg
	}
	return e.src(o, ptx.Pred).i, false
}

// arithmetic compiles an instruction of the table of forms.
func (e *emitter) arithmetic() op {
	fm, err := formOf(e.in.Inst)
	if err != nil {
		if e.err == nil {
			e.err = err
		}
		return nil
	}
	e.arity(1+len(fm.src), 1+len(fm.src))
	if e.err != nil {
		return nil
	}
	if fm.dst == ptx.Pred {
		return e.predLogic()
	}
	var s [4]slot
	for i, t := range fm.src {
		s[i] = e.src(e.in.Args[1+i], t)
	}
	for i := len(fm.src); i < 4; i++ {
		s[i] = s[0]
	}
	d := e.dst(e.in.Args[0], fm.dst)
	if e.err != nil {
		return nil
	}
	e.encodePlain(d, s[:len(fm.src)])
	if fast := e.fast(d, s, len(fm.src)); fast != nil {
		return fast
	}
	return generic(d, s, fm.f)
}

// generic calls a lane function for each active lane.
func generic(d slot, s [4]slot, f lane) op {
	if d.bank == bank64 {
		return func(w *warp) {
			a, b, c, x := w.wide(s[0], 0), w.wide(s[1], 1), w.wide(s[2], 2), w.wide(s[3], 3)
			out := &w.q[d.i]
			for m := w.mask; m != 0; m &= m - 1 {
				i := lowest(m)
				out[i] = f(a[i], b[i], c[i], x[i])
			}
		}
	}
	keep := uint32(1<<d.bits - 1)
	return func(w *warp) {
		a, b, c, x := w.wide(s[0], 0), w.wide(s[1], 1), w.wide(s[2], 2), w.wide(s[3], 3)
		out := &w.r[d.i]
		for m := w.mask; m != 0; m &= m - 1 {
			i := lowest(m)
			out[i] = uint32(f(a[i], b[i], c[i], x[i])) & keep
		}
	}
}

// predLogic is and, or, xor, not of predicates: one operation on masks.
func (e *emitter) predLogic() op {
	a, na := e.pred(e.in.Args[1])
	b, nb := a, na
	if len(e.in.Args) == 3 {
		b, nb = e.pred(e.in.Args[2])
	}
	d := e.dst(e.in.Args[0], ptx.Pred).i
	if e.in.Op == "cnot" {
		e.fail("cnot of a predicate")
	}
	f := maskLogic[e.in.Op]
	e.encodeLogic(d, a, b, na, nb)
	return func(w *warp) { w.setPred(d, f(w.pred(a, na), w.pred(b, nb))) }
}

var maskLogic = map[string]func(a, b uint32) uint32{
	"and": func(a, b uint32) uint32 { return a & b }, "or": func(a, b uint32) uint32 { return a | b },
	"xor": func(a, b uint32) uint32 { return a ^ b }, "not": func(a, _ uint32) uint32 { return ^a },
}
