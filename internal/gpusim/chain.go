package gpusim

import (
	"math/bits"
	"slices"
	"unsafe"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// chain is a run of blocks that a whole warp goes through without a choice: they follow each other in the code, and what
// ends them waits for no lane but those that are here. Each block starts a chain; those of its successors are tails of it.
type chain struct {
	start  int   // in prog
	ends   bool  // with this block
	last   int   // block
	blocks int   // how many
	n      int64 // instructions
	need   []int // registers that must have been written, for poison
	defs   []int // registers that are written
}

// inChain is whether a chain carries out the terminator too: all lanes are there, so nobody is waited for.
func (t *terminator) inChain() bool { return t.kind == termSync && t.all }

// step is an instruction of a chain in Go.
type step struct {
	run   op  // nil at the end of a chain
	words int // of prog, with the review that it makes needless
	block int
}

// append adds the instruction just compiled to the program.
func (e *emitter) append(block int) {
	run := e.plain
	if t := e.term; t != nil {
		if run = nil; t.inChain() {
			run = t.run
		}
	}
	if run == nil || e.err != nil {
		return
	}
	c := e.code
	n := len(e.vector)
	if n == 0 {
		n = 1
		e.vector = append(e.vector, inst{uint32(lanesLeave)})
	}
	if e.v.watched && e.watch != nil && e.vector[0][0] != uint32(lanesLeave) {
		c.prog, c.steps = append(c.prog, inst{uint32(lanesLeave)}), append(c.steps, step{e.watch, 1, block})
		run = seen(run)
	}
	review := e.review
	if !e.v.watched || e.vector[0][0] == uint32(lanesLeave) {
		review = nil
	}
	c.prog = append(c.prog, e.vector...)
	c.steps = append(c.steps, step{run, n + int(b2u(review != nil)), block})
	for i := range n - 1 {
		s := step{block: block}
		if i == 0 && e.vector[0][0] == uint32(lanesGuard) {
			s.run, s.words = run, n-1 // the guard holds in all lanes
		}
		c.steps = append(c.steps, s)
	}
	if review != nil {
		c.prog, c.steps = append(c.prog, inst{uint32(lanesLeave)}), append(c.steps, step{review, 1, block})
	}
}

// maxChain bounds the blocks of a chain, and so what their tails keep.
const maxChain = 64

// chains joins blocks. A chain is not continued around reads of a clock, which shows what has been executed.
func (e *emitter) chains(g *graph, use []usage) {
	c := e.code
	if e.err != nil {
		return
	}
	length := 0
	for b := range c.blocks {
		if length++; length == maxChain || !c.continues(b) {
			c.blocks[b].chain.ends = true
			length = 0
		}
	}
	e.closeChains()
	for b := len(c.blocks) - 1; b >= 0; b-- {
		x := &c.blocks[b]
		if e.v.independent || x.local {
			x.chain = chain{}
			continue
		}
		x.chain.last, x.chain.blocks, x.chain.n = b, 1, x.n
		if e.v.poison {
			x.chain.follow(use[g.blocks[b].start:g.blocks[b].end])
		}
		if !x.chain.ends {
			x.chain.prepend(&c.blocks[b+1].chain)
		}
	}
	e.linkBranches()
}

// prepend makes a chain of one block go on with another chain.
func (c *chain) prepend(next *chain) {
	c.last, c.blocks, c.n = next.last, c.blocks+next.blocks, c.n+next.n
	here := map[int]bool{}
	for _, r := range c.defs {
		here[r] = true
	}
	for _, r := range next.need {
		if !here[r] {
			c.need = append(c.need, r)
		}
	}
	for _, r := range next.defs {
		if !here[r] {
			c.defs = append(c.defs, r)
		}
	}
	slices.Sort(c.need)
	c.need = slices.Compact(c.need)
}

// continues is whether the chain of a block may go on to the next block.
func (c *code) continues(b int) bool {
	t := &c.blocks[b].term
	return b+1 < len(c.blocks) && (t.kind == termNext || t.inChain()) && !c.blocks[b].clock && !c.blocks[b+1].clock && !c.blocks[b].local && !c.blocks[b+1].local
}

// closeChains puts an end behind each block after which a chain stops.
func (e *emitter) closeChains() {
	c := e.code
	prog, steps := c.prog, c.steps
	c.prog, c.steps = nil, nil
	for b := range c.blocks {
		end := len(prog)
		if b+1 < len(c.blocks) {
			end = c.blocks[b+1].chain.start
		}
		x := &c.blocks[b].chain
		from := x.start
		x.start = len(c.prog)
		c.prog, c.steps = append(c.prog, prog[from:end]...), append(c.steps, steps[from:end]...)
		if x.ends {
			end := e.encodeBranch(b)
			c.prog = append(c.prog, end...)
			c.steps = append(c.steps, slices.Repeat([]step{{block: b}}, len(end))...)
		}
	}
}

// encodeBranch is what stands at the end of the chain that ends with a block: where all lanes are sure to go one way, the
// assembly goes on there by itself. With poison, the chain there may not be begun by all.
func (e *emitter) encodeBranch(b int) []inst {
	t := &e.code.blocks[b].term
	jump := inst{uint32(lanesBranch)}
	switch {
	case e.engine == nil || e.v.poison || e.v.independent || t.kind != termBranch && t.kind != termJump:
		return []inst{{uint32(lanesLeave)}}
	case t.kind == termJump:
		jump[0] = uint32(lanesJump)
	default:
		jump[atD], jump[atA] = slot{bankPred, t.p, 1}.offset(), mask(t.neg)
	}
	return []inst{jump, {}}
}

// linkBranches tells the branches about the chains that they go to.
func (e *emitter) linkBranches() {
	c := e.code
	for i := range c.prog {
		if op := lanesOp(c.prog[i][0]); op != lanesBranch && op != lanesJump || c.steps[i].run != nil {
			continue
		}
		x := &c.blocks[c.steps[i].block]
		for half, to := range []int{x.targets[0], x.next} {
			if to < len(c.blocks) {
				ch := &c.blocks[to].chain
				h := &c.prog[i+half]
				h[atBlocks], h[atStart], h[atBlock], h[atSteps] = uint32(ch.blocks), uint32(ch.start)*uint32(unsafe.Sizeof(inst{})), uint32(to), uint32(ch.n)
			}
		}
	}
}

// follow lists what instructions in a row need and write. One under a predicate leaves what was there.
func (c *chain) follow(use []usage) {
	needed, written := map[int]bool{}, map[int]bool{}
	for _, u := range use {
		need := u.uses
		if u.partial {
			need = append(need[:len(need):len(need)], u.defs...)
		}
		for _, r := range need {
			if !needed[r] && !written[r] {
				needed[r] = true
				c.need = append(c.need, r)
			}
		}
		for _, r := range u.defs {
			if !written[r] {
				written[r] = true
				c.defs = append(c.defs, r)
			}
		}
	}
}

// defined is whether all that a chain reads has been written by all lanes.
func (w *warp) defined(c *chain) bool {
	var bad uint32
	for _, r := range c.need {
		bad |= w.undef[r]
	}
	return bad == 0
}

// runChain runs the blocks of a chain for the whole warp, and of those that the assembly goes on to. It returns the last
// block, how many of left there remain, and whether the kernel goes on.
func (w *warp) runChain(b, left int) (last, remaining int, ok bool) {
	c, k := w.cta, w.code
	x := &k.blocks[b].chain
	c.chains[b]++
	c.steps += x.n
	w.mask = full
	left -= x.blocks
	if k.engine != nil {
		if b, left, ok = w.runEngine(b, left); !ok {
			return b, left, false
		}
		x = &k.blocks[b].chain
	} else {
		for i := x.start; ; i++ {
			s := &k.steps[i]
			if s.run == nil {
				break
			}
			if s.run(w); c.fault != nil {
				return b, left, c.broken(b, s.block)
			}
		}
	}
	for _, r := range x.defs {
		w.undef[r] = 0
	}
	return x.last, left, true
}

func (w *warp) runEngine(b, left int) (at, remaining int, ok bool) {
	c, k := w.cta, w.code
	f := c.worker.frame
	f.r, f.q, f.p = address(unsafe.SliceData(w.r)), address(unsafe.SliceData(w.q)), address(unsafe.SliceData(w.p))
	f.async, f.chains, f.tag = address(&w.async), address(&c.chains[0]), 0
	f.prog, f.block, f.left, f.steps, f.jumps = address(&k.prog[0]), int64(b), int64(left), 0, 0
	ok = true
	for i := k.blocks[b].chain.start; ; {
		k.engine.run(f, &k.prog[i])
		i = int((f.pc - f.prog) / unsafe.Sizeof(inst{}))
		s := &k.steps[i]
		if s.run == nil {
			break
		}
		if s.run(w); c.fault != nil {
			ok = c.broken(int(f.block), s.block)
			break
		}
		i += s.words
	}
	c.steps += f.steps
	c.branches += uint64(f.jumps)
	return int(f.block), int(f.left), ok
}

// broken corrects the counts of a chain that began at block b and faulted in another.
func (c *cta) broken(b, at int) bool {
	c.chains[b]--
	for i := b; i <= at; i++ {
		c.execs[i]++
		c.lanes[i] += warpSize
	}
	return false
}

// spread turns the counts of chains into those of blocks.
func (t *tally) spread(k *code) {
	for b, n := range t.chains {
		for i := b; n > 0 && i <= k.blocks[b].chain.last; i++ {
			t.execs[i] += n
			t.lanes[i] += warpSize * n
		}
	}
}

// tally counts what was executed: by block, how often and by how many lanes, and by block how often its chain.
type tally struct {
	execs, lanes, chains []uint64
	branches, divergent  uint64
	mem                  memoryCounts
}

func newTally(k *code) tally {
	n := len(k.blocks)
	all := make([]uint64, 3*n)
	return tally{execs: all[:n:n], lanes: all[n : 2*n : 2*n], chains: all[2*n:]}
}

func (t *tally) reset() {
	clear(t.execs)
	clear(t.lanes)
	clear(t.chains)
	t.branches, t.divergent, t.mem = 0, 0, memoryCounts{}
}

func (t *tally) add(o *tally) {
	for i := range o.execs {
		t.execs[i] += o.execs[i]
		t.lanes[i] += o.lanes[i]
		t.chains[i] += o.chains[i]
	}
	t.branches += o.branches
	t.divergent += o.divergent
	t.mem.add(o.mem)
}

// findAliases finds the registers that are written once, with a constant, a parameter of the kernel or a special
// register: they need no slot of their own, and what writes them does not run. A read before that write would be of a
// register that nobody wrote.
func (e *emitter) findAliases(use []usage) {
	writes := make([]int, len(e.bank))
	for i := range use {
		for _, r := range use[i].defs {
			writes[r]++
		}
	}
	for changed := true; changed; {
		changed = false
		for i := range e.f.code {
			in := &e.f.code[i]
			if len(use[i].defs) != 1 || in.Guard != nil || writes[use[i].defs[0]] != 1 || e.alias[use[i].defs[0]] != nil {
				continue
			}
			if e.in = in; e.copiesConstant(in) {
				e.alias[use[i].defs[0]] = in
				changed = true
			}
		}
	}
}

// copiesConstant is whether an instruction gives a register what a slot holds that nothing writes.
func (e *emitter) copiesConstant(in *finst) bool {
	d, ok := in.Args[0].(*ptx.Reg)
	if !ok || in.Op != "mov" && in.Op != "cvta" && in.Op != "ld" {
		return false
	}
	size := e.f.regs[in.fr.reg+d.ID].Type.Bits()
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
		return (in.Op == "mov" || in.Op == "cvta" && window(in.Space()) == 0) && e.alias[in.fr.reg+s.ID] != nil
	case *ptx.Addr:
		_, ok := e.paramAddress(in, s)
		return ok
	}
	return false
}

// paramAddress is the offset of a parameter of the kernel that a load reads.
func (e *emitter) paramAddress(in *finst, a *ptx.Addr) (int, bool) {
	sym, ok := a.Base.(*ptx.Sym)
	if !ok || in.Op != "ld" || in.Space() != ptx.Param || in.VecLen() != 1 || sym.Var == nil || len(a.Rest) > 0 {
		return 0, false
	}
	p, ok := e.f.find(sym.Var, in.fr)
	at := p.off + sym.Off + a.Off
	return int(at), ok && p.space == ptx.Param && at >= 0 && at+int64(in.Type().Size()) <= e.f.params && at%int64(in.Type().Size()) == 0
}

// aliasSlot is the slot whose content the instruction gives a register.
func (e *emitter) aliasSlot(def *finst) slot {
	in, use := e.in, e.use
	defer func() { e.in, e.use = in, use }()
	e.in, e.use = def, &usage{}
	if a, ok := def.Args[1].(*ptx.Addr); ok {
		at, _ := e.paramAddress(def, a)
		return e.paramSlot(at, def.Type(), bankOf(def.Type()), uint8(def.Type().Bits()))
	}
	return e.src(def.Args[1], def.Type())
}

// aliasedBy is whether an instruction only writes a register that needs no slot.
func (e *emitter) aliasedBy(i int) bool {
	in := &e.f.code[i]
	if len(in.Args) == 0 || e.alias == nil {
		return false
	}
	d, ok := in.Args[0].(*ptx.Reg)
	return ok && e.alias[in.fr.reg+d.ID] == in
}

// remember lets the assembly use an allocation for an instruction.
func (wk *worker) remember(a *access, al *allocation) {
	if a.region < sharedRegions || len(al.data) < a.size || len(al.data) > 1<<31-1 {
		return
	}
	wk.regions[a.region] = region{lo: al.lo, limit: uint64(len(al.data) - a.size + 1), data: unsafe.Pointer(&al.data[0]), alloc: al}
}

func address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// bind makes the assembly access the shared memory of a block.
func (wk *worker) bind(c *cta) {
	wk.bound = c
	shared := unsafe.SliceData(c.shared)
	wk.frame.regions, wk.frame.shared = address(unsafe.SliceData(wk.regions)), address(shared)
	for i := range sharedRegions {
		wk.regions[i] = region{limit: uint64(max(len(c.shared)-1<<i+1, 0)), data: unsafe.Pointer(shared)}
	}
}

func lanesOf(mask uint32) uint64 { return uint64(bits.OnesCount32(mask)) }
