package compile

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/gpusim/arith"
	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/flow"
	"github.com/warpline-ml/warpline/internal/gpusim/lanes"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/ptx"
	"github.com/warpline-ml/warpline/internal/slab"
)

// emitter turns the instructions of a flat function into ops. It runs twice: a scan finds which registers each
// instruction uses and what is not supported, the second run knows the slots.
type emitter struct {
	f       *flow.Flat
	in      *flow.Inst
	site    *check.Site
	v       Variant
	bank    []simt.Bank
	slots   []int32
	code    *warp.Code
	use     *flow.Usage
	term    *warp.Terminator // set by an instruction that ends a block
	pre     []warp.Op        // reads of clocks
	paramAt int              // offset of the address last compiled, where it is a constant in the kernel's parameters; else -1
	addr    warp.Slot        // of the address last compiled, and what is added to it
	addrOff uint64
	touches []warp.Touch // of the instruction under way, for a debugger
	err     error

	engine *lanes.Engine // for which forms in assembly are made; nil for none
	vector []lanes.Inst  // the form of the instruction under way; empty without
	tileOf []warp.Slot   // A of the last mma
	tag    uint32        // of those that share it
	watch  warp.Op       // what checks and counts the access under way before the assembly carries it out
	review warp.Op       // the same, after it
	plain  warp.Op       // the instruction without poison
	polled map[*flow.Inst]bool
	parts  []part             // of the instruction under way, where it has any
	flying map[int]bool       // the registers of wgmma
	remote bool               // the access under way may be to another block's shared memory
	access *check.Access      // of the instruction under way, nil for none
	alias  map[int]*flow.Inst // registers that only ever hold what a constant slot does: what defines them

	consts32 map[uint32]int32
	consts64 map[uint64]int32
	specials map[string]warp.Slot

	sites   slab.Slab[check.Site]
	flows   slab.Slab[byteFlow]
	sources slab.Slab[int]
	needs   slab.Slab[uint8]
}

func newEmitter(f *flow.Flat, v Variant) (*emitter, error) {
	e := &emitter{f: f, v: v, bank: make([]simt.Bank, len(f.Regs)), slots: make([]int32, len(f.Regs)), code: &warp.Code{},
		consts32: map[uint32]int32{}, consts64: map[uint64]int32{}, specials: map[string]warp.Slot{}, alias: map[int]*flow.Inst{}}
	for i, r := range f.Regs {
		e.bank[i], e.slots[i] = simt.BankOf(r.Type), int32(i)
		if r.Vec > 0 || r.Type.Bits() > 64 {
			return nil, &simt.Unsupported{Pos: f.Fn.Pos, Inst: "register " + r.Name, Why: "vector registers and those of 128 bits"}
		}
	}
	return e, nil
}

// Scan compiles without keeping the result and returns what each instruction uses.
func Scan(f *flow.Flat) ([]flow.Usage, error) {
	e, err := newEmitter(f, Variant{})
	if err != nil {
		return nil, err
	}
	use := make([]flow.Usage, len(f.Code))
	for i := range f.Code {
		e.use = &use[i]
		e.instruction(&f.Code[i])
		if e.err != nil {
			return nil, e.err
		}
	}
	return use, nil
}

func (e *emitter) fail(format string, args ...any) {
	if e.err == nil {
		e.err = simt.NotSupported(e.in.Inst, format, args...)
	}
}

// instruction compiles one instruction; nil for one that only ends a block.
func (e *emitter) instruction(in *flow.Inst) warp.Op {
	e.in, e.term, e.pre, e.vector, e.plain, e.watch, e.review, e.access, e.remote = in, nil, nil, e.vector[:0], nil, nil, nil, nil, false
	e.parts, e.touches = nil, nil
	e.site = e.sites.New()
	*e.site = check.Site{Inst: in.Inst, Loc: in.Loc, Module: e.f.Prog.Ptx, Id: uint32(len(e.code.Sites))}
	e.code.Sites = append(e.code.Sites, e.site)
	if e.use == nil {
		e.use = &flow.Usage{}
	}
	var run warp.Op
	emit, known := emitters[in.Op]
	switch {
	case known:
		run = emit(e)
	case arith.HasForm(in.Op):
		run = e.arithmetic()
	default:
		e.fail(arith.NotSimulated)
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
	run = e.watchRegisters(run)
	e.plain = e.after(run)
	if e.v.Poison {
		return e.after(e.poisoned(run))
	}
	return e.plain
}

// after puts the reads of clocks before the instruction.
func (e *emitter) after(run warp.Op) warp.Op {
	if len(e.pre) == 0 || run == nil {
		return run
	}
	pre := e.pre
	return func(w *warp.Warp) {
		for _, p := range pre {
			p(w)
		}
		run(w)
	}
}

// guarded runs an op for the lanes whose predicate holds.
func (e *emitter) guarded(run warp.Op) warp.Op {
	p, neg := e.guard()
	e.use.Partial = true
	if run == nil {
		return nil
	}
	return func(w *warp.Warp) {
		m := w.Preds[p]
		if neg {
			m = ^m
		}
		if m &= w.Mask; m == 0 {
			return
		}
		all := w.Mask
		w.Mask = m
		run(w)
		w.Mask = all
	}
}

func (e *emitter) guard() (p int32, neg bool) {
	s := e.reg(e.in.Guard.Reg)
	if s.Bank != simt.BankPred {
		e.fail("the guard is not a predicate")
	}
	return s.I, e.in.Guard.Neg
}

// reg is a register that is read.
func (e *emitter) reg(r *ptx.Reg) warp.Slot {
	id := e.in.Frame.Reg + r.ID
	if r.Sel != "" || id >= len(e.bank) {
		e.fail("register %s", r.Name)
		return warp.Slot{}
	}
	e.use.Uses = append(e.use.Uses, id)
	bits := uint8(e.f.Regs[id].Type.Bits())
	if def := e.alias[id]; def != nil {
		return warp.Slot{Bank: e.bank[id], I: e.aliasSlot(def).I, Bits: bits}
	}
	return warp.Slot{Bank: e.bank[id], I: e.slots[id], Bits: bits}
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
func (e *emitter) dst(o ptx.Operand, t ptx.Type) warp.Slot {
	switch o := o.(type) {
	case *ptx.Reg:
		s := e.reg(o)
		if e.err != nil {
			return s
		}
		id := e.in.Frame.Reg + o.ID
		e.use.Uses = e.use.Uses[:len(e.use.Uses)-1]
		e.use.Defs = append(e.use.Defs, id)
		if !e.fits(s, t) {
			e.fail("the destination %s is not of type .%s", o.Name, t)
		}
		return s
	case *ptx.Sink:
		return e.sink(simt.BankOf(t), uint8(t.Bits()))
	}
	e.fail("the destination is not a register")
	return warp.Slot{}
}

// fits is whether a register can stand for a type. Conversions, loads and stores take wider ones as well.
func (e *emitter) fits(s warp.Slot, t ptx.Type) bool {
	switch e.in.Op {
	case "cvt", "ld", "ldu", "st":
		return (s.Bank == simt.BankPred) == (t == ptx.Pred) && s.Bits >= uint8(t.Bits())
	}
	return s.Bits == uint8(t.Bits())
}

// sink is a register of its own that nothing reads.
func (e *emitter) sink(b simt.Bank, bits uint8) warp.Slot {
	key := fmt.Sprint("sink", b)
	s, ok := e.specials[key]
	if !ok {
		s = e.fresh(b)
		e.specials[key] = s
	}
	s.Bits = bits
	return s
}

func (e *emitter) fresh(b simt.Bank) warp.Slot {
	n := &e.code.Slots[b]
	*n++
	return warp.Slot{Bank: b, I: int32(*n - 1), Bits: 64}
}

// src is an operand that is read as a type.
func (e *emitter) src(o ptx.Operand, t ptx.Type) warp.Slot {
	switch o := o.(type) {
	case *ptx.Reg:
		s := e.reg(o)
		if !e.fits(s, t) {
			e.fail("the operand %s is not of type .%s", o.Name, t)
		}
		return s
	case *ptx.Imm:
		return e.constant(arith.ImmBits(o, t), t)
	case *ptx.Sym:
		p, ok := flow.Home{}, false
		if o.Var != nil {
			p, ok = e.f.Find(o.Var, e.in.Frame)
		}
		if !ok {
			e.fail("%s", e.f.Prog.NoAddress(o.Name))
			return warp.Slot{}
		}
		return e.constant(uint64(e.offset(p)+o.Off), t)
	case *ptx.Special:
		return e.special(o.Name, t)
	}
	e.fail("an operand of this kind")
	return warp.Slot{}
}

// offset is the address of a place within its space.
func (e *emitter) offset(p flow.Home) int64 {
	if p.Dynamic {
		return e.f.DynamicStart()
	}
	return p.Off
}

// constant is a slot that holds the same bits in all lanes.
func (e *emitter) constant(bits uint64, t ptx.Type) warp.Slot {
	if t == ptx.Pred {
		i := e.fresh(simt.BankPred).I
		e.code.ConstPred = append(e.code.ConstPred, warp.Constant{I: i, Bits: uint64(simt.Full) * simt.Bit(bits != 0)})
		return warp.Slot{Bank: simt.BankPred, I: i, Bits: 1}
	}
	if t.Bits() > 32 {
		i, ok := e.consts64[bits]
		if !ok {
			i = e.fresh(simt.Bank64).I
			e.consts64[bits] = i
			e.code.Const64 = append(e.code.Const64, warp.Constant{I: i, Bits: bits})
		}
		return warp.Slot{Bank: simt.Bank64, I: i, Bits: 64}
	}
	bits &= 1<<t.Bits() - 1
	i, ok := e.consts32[uint32(bits)]
	if !ok {
		i = e.fresh(simt.Bank32).I
		e.consts32[uint32(bits)] = i
		e.code.Const32 = append(e.code.Const32, warp.Constant{I: i, Bits: bits})
	}
	return warp.Slot{Bank: simt.Bank32, I: i, Bits: 32}
}

// special is a special register as a slot; clocks are read anew before the instruction.
func (e *emitter) special(name string, t ptx.Type) warp.Slot {
	def, ok := specialRegs[name]
	if !ok {
		e.fail("special register %%%s", name)
		return warp.Slot{}
	}
	b := simt.Bank32
	switch def.bits {
	case 64:
		b = simt.Bank64
	case 1:
		b = simt.BankPred
	}
	s, ok := e.specials[name]
	if !ok {
		s = e.fresh(b)
		s.Bits = def.bits
		e.specials[name] = s
		list := &e.code.Specials
		switch def.when {
		case perWarp:
			list = &e.code.Fixed
		case perLaunch:
			list = &e.code.Launched
		}
		if def.when != always {
			*list = append(*list, warp.Special{Slot: s, Read: def.read, Uniform: def.uniform})
		}
	}
	if def.when == always {
		e.pre = append(e.pre, func(w *warp.Warp) { w.SetSpecial(warp.Special{Slot: s, Read: def.read, Uniform: def.uniform}) })
	}
	return s
}

// pred is a predicate operand, which may be negated.
func (e *emitter) pred(o ptx.Operand) (i int32, neg bool) {
	if n, ok := o.(*ptx.Not); ok {
		i, neg = e.pred(n.X)
		return i, !neg
	}
	return e.src(o, ptx.Pred).I, false
}

// arithmetic compiles an instruction of the table of forms.
func (e *emitter) arithmetic() warp.Op {
	fm, err := arith.FormOf(e.in.Inst)
	if err != nil {
		if e.err == nil {
			e.err = err
		}
		return nil
	}
	e.arity(1+len(fm.Src), 1+len(fm.Src))
	if e.err != nil {
		return nil
	}
	if fm.Dst == ptx.Pred {
		return e.predLogic()
	}
	var s [4]warp.Slot
	for i, t := range fm.Src {
		s[i] = e.src(e.in.Args[1+i], t)
	}
	for i := len(fm.Src); i < 4; i++ {
		s[i] = s[0]
	}
	d := e.dst(e.in.Args[0], fm.Dst)
	if e.err != nil {
		return nil
	}
	e.encodePlain(d, s[:len(fm.Src)])
	if fast := e.fast(d, s, len(fm.Src)); fast != nil {
		return fast
	}
	return generic(d, s, fm.F)
}

// generic calls a lane function for each active lane.
func generic(d warp.Slot, s [4]warp.Slot, f arith.Lane) warp.Op {
	if d.Bank == simt.Bank64 {
		return func(w *warp.Warp) {
			a, b, c, x := w.Wide(s[0], 0), w.Wide(s[1], 1), w.Wide(s[2], 2), w.Wide(s[3], 3)
			out := &w.R64[d.I]
			for m := w.Mask; m != 0; m &= m - 1 {
				i := simt.Lowest(m)
				out[i] = f(a[i], b[i], c[i], x[i])
			}
		}
	}
	keep := uint32(1<<d.Bits - 1)
	return func(w *warp.Warp) {
		a, b, c, x := w.Wide(s[0], 0), w.Wide(s[1], 1), w.Wide(s[2], 2), w.Wide(s[3], 3)
		out := &w.R32[d.I]
		for m := w.Mask; m != 0; m &= m - 1 {
			i := simt.Lowest(m)
			out[i] = uint32(f(a[i], b[i], c[i], x[i])) & keep
		}
	}
}

// predLogic is and, or, xor, not of predicates: one operation on masks.
func (e *emitter) predLogic() warp.Op {
	a, na := e.pred(e.in.Args[1])
	b, nb := a, na
	if len(e.in.Args) == 3 {
		b, nb = e.pred(e.in.Args[2])
	}
	d := e.dst(e.in.Args[0], ptx.Pred).I
	if e.in.Op == "cnot" {
		e.fail("cnot of a predicate")
	}
	f := maskLogic[e.in.Op]
	e.encodeLogic(d, a, b, na, nb)
	return func(w *warp.Warp) { w.SetPred(d, f(w.Pred(a, na), w.Pred(b, nb))) }
}

var maskLogic = map[string]func(a, b uint32) uint32{
	"and": func(a, b uint32) uint32 { return a & b }, "or": func(a, b uint32) uint32 { return a | b },
	"xor": func(a, b uint32) uint32 { return a ^ b }, "not": func(a, _ uint32) uint32 { return ^a },
}
