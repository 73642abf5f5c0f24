package compile

import (
	"slices"
	"unsafe"

	"github.com/warpline-ml/warpline/internal/gpusim/flow"
	"github.com/warpline-ml/warpline/internal/gpusim/lanes"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// append adds the instruction just compiled to the program.
func (e *emitter) append(block int) {
	run := e.plain
	if t := e.term; t != nil {
		if run = nil; t.InChain() {
			run = t.Run
		}
	}
	if run == nil || e.err != nil {
		return
	}
	c := e.code
	for _, p := range e.parts {
		x := p.vector
		if len(x) == 0 {
			x = []lanes.Inst{{uint32(lanes.Leave)}}
		}
		c.Prog = append(c.Prog, x...)
		c.Steps = append(c.Steps, warp.Step{Run: p.run, Words: len(x), Block: block})
		c.Steps = append(c.Steps, slices.Repeat([]warp.Step{{Block: block}}, len(x)-1)...)
	}
	if len(e.parts) > 0 {
		return
	}
	n := len(e.vector)
	if n == 0 {
		n = 1
		e.vector = append(e.vector, lanes.Inst{uint32(lanes.Leave)})
	}
	if e.looked() && e.watch != nil && e.vector[0][0] != uint32(lanes.Leave) {
		c.Prog, c.Steps = append(c.Prog, lanes.Inst{uint32(lanes.Leave)}), append(c.Steps, warp.Step{Run: e.watch, Words: 1, Block: block})
		run = seen(run)
	}
	review := e.review
	if !e.looked() || e.vector[0][0] == uint32(lanes.Leave) {
		review = nil
	}
	c.Prog = append(c.Prog, e.vector...)
	c.Steps = append(c.Steps, warp.Step{Run: run, Words: n + int(simt.Bit(review != nil)), Block: block})
	for i := range n - 1 {
		s := warp.Step{Block: block}
		if i == 0 && e.vector[0][0] == uint32(lanes.Guard) {
			s.Run, s.Words = run, n-1 // the guard holds in all lanes
		}
		c.Steps = append(c.Steps, s)
	}
	if review != nil {
		c.Prog, c.Steps = append(c.Prog, lanes.Inst{uint32(lanes.Leave)}), append(c.Steps, warp.Step{Run: review, Words: 1, Block: block})
	}
}

// looked is whether the access under way is looked at in Go.
func (e *emitter) looked() bool {
	return e.v.Watched || e.v.Global && (e.access == nil || e.access.Space != ptx.Shared || e.access.Strong)
}

// MaxChain bounds the blocks of a chain, and so what their tails keep.
const MaxChain = 64

// chains joins blocks. A chain is not continued around reads of a clock, which shows what has been executed.
func (e *emitter) chains(g *flow.Graph, use []flow.Usage) {
	c := e.code
	if e.err != nil {
		return
	}
	length := 0
	for b := range c.Blocks {
		if length++; length == MaxChain || !chainContinues(c, b) {
			c.Blocks[b].Chain.Ends = true
			length = 0
		}
	}
	e.closeChains()
	for b := len(c.Blocks) - 1; b >= 0; b-- {
		x := &c.Blocks[b]
		if e.v.Independent || e.v.Debugged || x.Local {
			x.Chain = warp.Chain{}
			continue
		}
		x.Chain.Last, x.Chain.Blocks, x.Chain.N = b, 1, x.N
		if e.v.Poison {
			followUses(&x.Chain, use[g.Blocks[b].Start:g.Blocks[b].End])
		}
		if !x.Chain.Ends {
			prependChain(&x.Chain, &c.Blocks[b+1].Chain)
		}
	}
	e.linkBranches()
}

// prependChain makes a chain of one block go on with another chain.
func prependChain(c *warp.Chain, next *warp.Chain) {
	c.Last, c.Blocks, c.N = next.Last, c.Blocks+next.Blocks, c.N+next.N
	here := map[int]bool{}
	for _, r := range c.Defs {
		here[r] = true
	}
	for _, r := range next.Need {
		if !here[r] {
			c.Need = append(c.Need, r)
		}
	}
	for _, r := range next.Defs {
		if !here[r] {
			c.Defs = append(c.Defs, r)
		}
	}
	slices.Sort(c.Need)
	c.Need = slices.Compact(c.Need)
}

// chainContinues is whether the chain of a block may go on to the next block.
func chainContinues(c *warp.Code, b int) bool {
	t := &c.Blocks[b].Term
	return b+1 < len(c.Blocks) && (t.Kind == warp.TermNext || t.InChain()) && !c.Blocks[b].Clock && !c.Blocks[b+1].Clock && !c.Blocks[b].Local && !c.Blocks[b+1].Local
}

// closeChains puts an end behind each block after which a chain stops.
func (e *emitter) closeChains() {
	c := e.code
	prog, steps := c.Prog, c.Steps
	c.Prog, c.Steps = nil, nil
	for b := range c.Blocks {
		end := len(prog)
		if b+1 < len(c.Blocks) {
			end = c.Blocks[b+1].Chain.Start
		}
		x := &c.Blocks[b].Chain
		from := x.Start
		x.Start = len(c.Prog)
		c.Prog, c.Steps = append(c.Prog, prog[from:end]...), append(c.Steps, steps[from:end]...)
		if x.Ends {
			end := e.encodeBranch(b)
			c.Prog = append(c.Prog, end...)
			c.Steps = append(c.Steps, slices.Repeat([]warp.Step{{Block: b}}, len(end))...)
		}
	}
}

// encodeBranch is what stands at the end of the chain that ends with a block: where all lanes are sure to go one way, the
// assembly goes on there by itself. With poison, the chain there may not be begun by all.
func (e *emitter) encodeBranch(b int) []lanes.Inst {
	t := &e.code.Blocks[b].Term
	jump := lanes.Inst{uint32(lanes.Branch)}
	switch {
	case e.engine == nil || e.v.Poison || e.v.Independent || t.Kind != warp.TermBranch && t.Kind != warp.TermJump:
		return []lanes.Inst{{uint32(lanes.Leave)}}
	case t.Kind == warp.TermJump:
		jump[0] = uint32(lanes.Jump)
	default:
		jump[lanes.AtD], jump[lanes.AtA] = warp.Slot{Bank: simt.BankPred, I: t.P, Bits: 1}.Offset(), mask(t.Neg)
	}
	return []lanes.Inst{jump, {}}
}

// linkBranches tells the branches about the chains that they go to.
func (e *emitter) linkBranches() {
	c := e.code
	for i := range c.Prog {
		if op := lanes.Op(c.Prog[i][0]); op != lanes.Branch && op != lanes.Jump || c.Steps[i].Run != nil {
			continue
		}
		x := &c.Blocks[c.Steps[i].Block]
		for half, to := range []int{x.Targets[0], x.Next} {
			if to < len(c.Blocks) {
				ch := &c.Blocks[to].Chain
				h := &c.Prog[i+half]
				h[lanes.AtBlocks], h[lanes.AtStart], h[lanes.AtBlock], h[lanes.AtSteps] = uint32(ch.Blocks), uint32(ch.Start)*uint32(unsafe.Sizeof(lanes.Inst{})), uint32(to), uint32(ch.N)
			}
		}
	}
}

// followUses lists what instructions in a row need and write. One under a predicate leaves what was there.
func followUses(c *warp.Chain, use []flow.Usage) {
	needed, written := map[int]bool{}, map[int]bool{}
	for _, u := range use {
		need := u.Uses
		if u.Partial {
			need = append(need[:len(need):len(need)], u.Defs...)
		}
		for _, r := range need {
			if !needed[r] && !written[r] {
				needed[r] = true
				c.Need = append(c.Need, r)
			}
		}
		for _, r := range u.Defs {
			if !written[r] {
				written[r] = true
				c.Defs = append(c.Defs, r)
			}
		}
	}
}

// findAliases finds the registers that are written once, with a constant, a parameter of the kernel or a special
// register: they need no slot of their own, and what writes them does not run. A read before that write would be of a
// register that nobody wrote.
func (e *emitter) findAliases(use []flow.Usage) {
	writes := make([]int, len(e.bank))
	for i := range use {
		for _, r := range use[i].Defs {
			writes[r]++
		}
	}
	for changed := true; changed; {
		changed = false
		for i := range e.f.Code {
			in := &e.f.Code[i]
			if len(use[i].Defs) != 1 || in.Guard != nil || writes[use[i].Defs[0]] != 1 || e.alias[use[i].Defs[0]] != nil {
				continue
			}
			if e.in = in; e.copiesConstant(in) {
				e.alias[use[i].Defs[0]] = in
				changed = true
			}
		}
	}
}

// copiesConstant is whether an instruction gives a register what a slot holds that nothing writes.
func (e *emitter) copiesConstant(in *flow.Inst) bool {
	d, ok := in.Args[0].(*ptx.Reg)
	if !ok || in.Op != "mov" && in.Op != "cvta" && in.Op != "ld" {
		return false
	}
	size := e.f.Regs[in.Frame.Reg+d.ID].Type.Bits()
	if size != 32 && size != 64 || in.Type().Bits() != size {
		return false
	}
	switch s := in.Args[1].(type) {
	case *ptx.Imm, *ptx.Sym:
		return in.Op == "mov"
	case *ptx.Special:
		def, ok := specialRegs[s.Name]
		return in.Op == "mov" && ok && def.when != always && int(def.bits) == size
	case *ptx.Reg:
		return (in.Op == "mov" || in.Op == "cvta" && memory.Window(in.Space()) == 0) && e.alias[in.Frame.Reg+s.ID] != nil
	case *ptx.Addr:
		_, ok := e.paramAddress(in, s)
		return ok
	}
	return false
}

// paramAddress is the offset of a parameter of the kernel that a load reads.
func (e *emitter) paramAddress(in *flow.Inst, a *ptx.Addr) (int, bool) {
	sym, ok := a.Base.(*ptx.Sym)
	if !ok || in.Op != "ld" || in.Space() != ptx.Param || in.VecLen() != 1 || sym.Var == nil || len(a.Rest) > 0 {
		return 0, false
	}
	p, ok := e.f.Find(sym.Var, in.Frame)
	at := p.Off + sym.Off + a.Off
	return int(at), ok && p.Space == ptx.Param && at >= 0 && at+int64(in.Type().Size()) <= e.f.Params && at%int64(in.Type().Size()) == 0
}

// aliasSlot is the slot whose content the instruction gives a register.
func (e *emitter) aliasSlot(def *flow.Inst) warp.Slot {
	in, use := e.in, e.use
	defer func() { e.in, e.use = in, use }()
	e.in, e.use = def, &flow.Usage{}
	if a, ok := def.Args[1].(*ptx.Addr); ok {
		at, _ := e.paramAddress(def, a)
		return e.paramSlot(at, def.Type(), simt.BankOf(def.Type()), uint8(def.Type().Bits()))
	}
	return e.src(def.Args[1], def.Type())
}

// aliasedBy is whether an instruction only writes a register that needs no slot.
func (e *emitter) aliasedBy(i int) bool {
	in := &e.f.Code[i]
	if len(in.Args) == 0 || e.alias == nil {
		return false
	}
	d, ok := in.Args[0].(*ptx.Reg)
	return ok && e.alias[in.Frame.Reg+d.ID] == in
}
