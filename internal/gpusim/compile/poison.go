package compile

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/flow"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// poisoned follows registers that nobody wrote: a result is undefined in the lanes where an operand is. That such a
// value is used as an address, a predicate of a branch or the data of a store is a finding. The data of a store to local
// memory is not, nor is what a shuffle passes on: compilers leave undefined what a variable holds on a path that never
// reads it.
func (e *emitter) poisoned(run warp.Op) warp.Op {
	u := *e.use
	s, in := e.site, e.in
	if e.term != nil {
		e.poisonedTerm(u)
	}
	if e.term != nil || run == nil {
		return run
	}
	sensitive := e.in.Op == "ld" || e.in.Op == "st" || e.in.Op == "atom" || e.in.Op == "red" || e.in.Op == "cp"
	chooses := e.in.Op == "selp"
	local := e.localMove()
	if local != nil && local.store {
		u.Uses = e.addressUses()
	}
	active, bytes := e.mayAct(), e.byteFlow()
	values, address, size := e.stored()
	vector, register, unpack := packs(in.Inst)
	return func(w *warp.Warp) {
		var bad uint32
		for _, r := range u.Uses {
			bad |= w.Undef[r]
		}
		all, mask := w.Mask, active(w)
		if values != nil && bad&mask != 0 {
			bad = w.UndefAny(address) | w.UndefLow(values, size)
		}
		if chooses {
			bad = chosenUndef(w, u.Uses, in)
		}
		if sensitive && bad&mask != 0 {
			w.NoteUndef(s, bad&mask)
			bad = 0
		}
		run(w)
		w.Mask = mask
		if bytes != nil && bad&mask != 0 {
			bytes.follow(w)
			w.Mask = all
			return
		}
		for _, r := range u.Defs {
			w.Undef[r] = w.Undef[r]&^mask | bad&mask
		}
		switch {
		case vector != nil && register != nil:
			markMov(w, in, vector, register, unpack)
		case len(w.UndefBytes) > 0:
			w.SetWhole(u.Defs, mask, bad)
		}
		if local != nil && w.LocalUndef != nil && w.CTA.Fault == nil {
			local.follow(w, s)
		}
		if in.Op == "call" && len(in.Passed) == printfArgs {
			w.Answered(int(in.Passed[0].Off), 4)
		}
		w.Mask = all
	}
}

// mayAct is the lanes that an instruction acts in, or may act in because nobody wrote its guard.
func (e *emitter) mayAct() func(w *warp.Warp) uint32 {
	if e.in.Guard == nil {
		return func(w *warp.Warp) uint32 { return w.Mask }
	}
	p, neg := e.guard()
	g := e.in.GuardReg()
	return func(w *warp.Warp) uint32 { return w.Mask & (w.Pred(p, neg) | w.Undef[g]) }
}

// stored are the registers of values that a store writes, so many bytes of each, and those of its address and guard; nil
// for another instruction.
func (e *emitter) stored() (values, address []int, size int) {
	if e.in.Op != "st" || len(e.in.Args) < 2 {
		return nil, nil, 0
	}
	list := []ptx.Operand{e.in.Args[1]}
	if v, ok := e.in.Args[1].(*ptx.Vec); ok {
		list = v.Elems
	}
	for _, o := range list {
		if r, ok := o.(*ptx.Reg); ok {
			values = append(values, e.in.Frame.Reg+r.ID)
		}
	}
	return values, e.addressUses(), e.in.Type().Size()
}

// addressUses are the registers of the address and of the guard.
func (e *emitter) addressUses() (uses []int) {
	regs := []ptx.Operand{e.in.Args[0]}
	if a, ok := e.in.Args[0].(*ptx.Addr); ok {
		regs[0] = a.Base
	}
	if e.in.Guard != nil {
		regs = append(regs, e.in.Guard.Reg)
	}
	for _, o := range regs {
		if r, ok := o.(*ptx.Reg); ok {
			uses = append(uses, e.in.Frame.Reg+r.ID)
		}
	}
	return uses
}

// chosenUndef is the poison of selp: that of the operand taken, and of the predicate.
func chosenUndef(w *warp.Warp, uses []int, in *flow.Inst) uint32 {
	var all uint32
	for _, r := range uses {
		all |= w.Undef[r]
	}
	p, ok := in.Args[3].(*ptx.Reg)
	if all == 0 || !ok {
		return all
	}
	undef := func(o ptx.Operand) uint32 {
		if r, ok := o.(*ptx.Reg); ok {
			return w.Undef[in.Frame.Reg+r.ID]
		}
		return 0
	}
	pick := w.Preds[w.Code.PredSlot[in.Frame.Reg+p.ID]]
	return undef(p) | undef(in.Args[1])&pick | undef(in.Args[2])&^pick
}

// poisonedTerm checks what a terminator reads and marks what it writes as written; what a shuffle passes on is followed
// when it runs.
func (e *emitter) poisonedTerm(u flow.Usage) {
	s := e.site
	if e.in.Op == "shfl" {
		without := func(list []int, r int) []int {
			i := slices.Index(list, r)
			if i < 0 {
				return list
			}
			return slices.Delete(slices.Clone(list), i, i+1)
		}
		from, to := e.shuffled()
		u.Uses, u.Defs = without(u.Uses, from), without(u.Defs, to)
	}
	adds := func(*warp.Warp) uint32 { return 0 }
	if e.in.Op == "wgmma" && len(e.in.Args) > 3 { // reads D only where scale-d holds
		d := e.regIDs(e.in.Args[0])
		u.Uses = slices.DeleteFunc(slices.Clone(u.Uses), func(r int) bool { return slices.Contains(d, r) })
		if p, neg := e.pred(e.in.Args[3]); e.err == nil {
			adds = func(w *warp.Warp) uint32 { return w.UndefAny(d) & w.Pred(p, neg) }
		}
	}
	e.term.Poison = func(w *warp.Warp) {
		bad := adds(w)
		for _, r := range u.Uses {
			bad |= w.Undef[r]
		}
		if bad&w.Mask != 0 {
			w.CTA.Note(w, s, bad&w.Mask, check.Initcheck, "a register that was never written is used")
		}
		for _, r := range u.Defs {
			w.Undef[r] &^= w.Mask
		}
	}
}

// shuffled are the registers that a shuffle reads from other lanes and writes, -1 for what is none.
func (e *emitter) shuffled() (from, to int) {
	id := func(o ptx.Operand) int {
		if r, ok := o.(*ptx.Reg); ok {
			return e.in.Frame.Reg + r.ID
		}
		return -1
	}
	d := e.in.Args[0]
	if pair, ok := d.(*ptx.Pair); ok {
		d = pair.A
	}
	return id(e.in.Args[1]), id(d)
}

// packs returns the vector of a mov that packs or unpacks one, and the register on the other side.
func packs(in *ptx.Inst) (v *ptx.Vec, r *ptx.Reg, unpack bool) {
	if in.Op != "mov" || len(in.Args) != 2 {
		return nil, nil, false
	}
	if v, ok := in.Args[1].(*ptx.Vec); ok {
		r, _ := in.Args[0].(*ptx.Reg)
		return v, r, false
	}
	v, _ = in.Args[0].(*ptx.Vec)
	r, _ = in.Args[1].(*ptx.Reg)
	return v, r, true
}

// markMov gives the results of a mov of a vector the poison of their own bytes.
func markMov(w *warp.Warp, in *flow.Inst, v *ptx.Vec, r *ptx.Reg, unpack bool) {
	width := in.Inst.Type().Size() / len(v.Elems)
	reg := func(o ptx.Operand) (int, bool) {
		x, ok := o.(*ptx.Reg)
		if !ok {
			return 0, false
		}
		return in.Frame.Reg + x.ID, true
	}
	whole := in.Frame.Reg + r.ID
	for i, o := range v.Elems {
		part, ok := reg(o)
		switch {
		case unpack && ok:
			w.Undef[part] = w.Undef[part]&^w.Mask | w.UndefIn(whole, i*width, width)&w.Mask
			w.MoveBytes(part, 0, whole, i*width, width)
		case !unpack && ok:
			w.MoveBytes(whole, i*width, part, 0, width)
		case !unpack:
			w.SetBytes(whole, i*width, width, 0)
		}
	}
}

// localMove is a load or a store that may be one of local memory, which has poison of its own: a byte for each byte.
type localMove struct {
	store, generic, signed bool
	size                   int
	regs                   []int // -1 for what is no register
}

// mayBeLocal is whether the instruction under way accesses local memory, or may.
func (e *emitter) mayBeLocal() bool {
	a := e.access
	return a != nil && (a.Space == ptx.Local || a.Space == ptx.Generic && e.f.Locals > 0) || e.in.Op == "call" && e.f.Locals > 0
}

// localMove describes the instruction under way, nil if it is none.
func (e *emitter) localMove() *localMove {
	if !e.mayBeLocal() || e.in.Op != "ld" && e.in.Op != "st" {
		return nil
	}
	t := e.in.Type()
	m := &localMove{store: e.in.Op == "st", generic: e.access.Space == ptx.Generic, signed: t == ptx.S8 || t == ptx.S16 || t == ptx.S32, size: t.Size()}
	o := e.in.Args[simt.Bit(m.store)]
	list := []ptx.Operand{o}
	if v, ok := o.(*ptx.Vec); ok {
		list = v.Elems
	}
	for _, o := range list {
		id := -1
		if r, ok := o.(*ptx.Reg); ok {
			id = e.in.Frame.Reg + r.ID
		}
		m.regs = append(m.regs, id)
	}
	return m
}

// follow moves poison as the instruction has moved data. The addresses are in w.Addr still.
func (m *localMove) follow(w *warp.Warp, s *check.Site) {
	for lanes := w.Mask; lanes != 0; lanes &= lanes - 1 {
		i := simt.Lowest(lanes)
		at := w.Addr[i]
		if m.generic {
			if memory.SpaceAt(at) != ptx.Local {
				m.elsewhere(w, s, i)
				continue
			}
			at -= memory.Window(ptx.Local)
		}
		undef := w.LocalUndef[i*w.Code.Local+int(at):]
		for j, r := range m.regs {
			if m.store {
				w.StoreUndef(undef[j*m.size:][:m.size], r, i)
			} else if r >= 0 {
				w.LoadUndef(undef[j*m.size:][:m.size], r, i, m.signed)
			}
		}
	}
}

// elsewhere is for a lane that has stored to other memory after all. A value of which some bytes are defined is a structure
// with padding, as compilers copy it in words when they do not optimise.
func (m *localMove) elsewhere(w *warp.Warp, s *check.Site, lane int) {
	for _, r := range m.regs {
		if m.store && r >= 0 && w.Undef[r]>>lane&1 == 1 && m.allUndef(w, r, lane) {
			w.NoteUndef(s, 1<<lane)
			return
		}
	}
}

// allUndef is whether no byte that the lane stores of an undefined register is defined.
func (m *localMove) allUndef(w *warp.Warp, r, lane int) bool {
	for b := range m.size {
		if w.UndefIn(r, b, 1)>>lane&1 == 0 {
			return false
		}
	}
	return true
}
