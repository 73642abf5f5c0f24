package gpusim

import (
	"slices"
	"sync"

	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// variant is how a kernel is compiled.
type variant struct {
	poison      bool // follow registers that nobody wrote
	independent bool // blocks end at memory operations, where lanes may part
	watched     bool // every access to memory is looked at in Go: it is checked or counted
	modelled    bool // tensor cores are not those of the assembly
	level       cpufeat.Level
}

// constant is a slot and the bits it holds.
type constant struct {
	i    int32
	bits uint64
}

// code is a compiled kernel.
type code struct {
	kernel    *Kernel
	blocks    []basic
	slots     [banks]int
	const32   []constant
	const64   []constant
	constPred []constant
	fixed     []special // set once for each warp
	launched  []special // set anew for each launch
	specials  []special // set anew for each block of the grid
	engine    *engine   // nil without assembly
	prog      []inst    // the code of all blocks, for the engine
	steps     []step    // by instruction of prog: the same in Go
	regions   int
	regs      int       // virtual registers, for poison
	dynamic   int       // offset of dynamic shared memory
	talks     bool      // has atomics, fences or strong accesses: other threads may wait for it, or it for them
	signals   bool      // has atomics or strong accesses that may be to shared memory
	async     bool      // has cp.async
	nc        bool      // has ld.global.nc
	accesses  []*access // by access.id
	sites     []*site   // by site.id
	pressure  int
	mu        sync.Mutex
	idle      []*cta // left by launches
	workers   []*worker
	predSlot  map[int]int32 // of predicate registers, for poison
}

// basic is a basic block. The terminator decides what comes next; block len(blocks) is the exit.
type basic struct {
	ops     []op
	term    terminator
	next    int
	targets []int
	ipdom   int
	n       int64 // instructions
	classes [numClasses]uint32
	memory  bool
	writes  bool  // memory, or has other effects
	reads   bool  // memory that other blocks may write
	local   bool  // may access local memory, whose poison chains do not follow
	clock   bool  // reads a clock
	chain   chain // the blocks that follow without a choice
}

type termKind uint8

const (
	termNext   termKind = iota
	termJump            // to targets[0]
	termBranch          // to targets[0] where the predicate holds, else to next
	termIndex           // to targets[index]
	termExit
	termSync // wait for lanes of the warp, then run
	termBar  // wait for warps of the block
)

// terminator ends a basic block.
type terminator struct {
	kind   termKind
	p      int32 // the predicate of a branch or exit, -1 without
	neg    bool
	index  slot
	mask   slot // of the lanes to wait for, by lane
	whole  bool // waits for all lanes that have not exited instead
	run    op
	warp   bool // bar.warp.sync: meets its like anywhere in the code
	all    bool // needs all lanes of the warp, and runs at once where they are here
	bar    *barOp
	site   *site
	poison op // checks what it reads; nil without
}

// class is a kind of instruction, for counting.
type class uint8

const (
	classOther class = iota
	classFloat32
	classFloat64
	classHalf
	classInteger
	classConvert
	classMove
	classSpecial
	classLoad
	classStore
	classAtomic
	classCopy
	classShuffle
	classTensor
	classSync
	classControl
	numClasses
)

var classNames = [numClasses]string{"other", "float32", "float64", "half", "integer", "convert", "move", "special function", "load", "store",
	"atomic", "async copy", "shuffle", "tensor", "sync", "control"}

var classOf = map[string]class{"mov": classMove, "cvta": classMove, "selp": classMove, "slct": classMove, "cvt": classConvert,
	"ex2": classSpecial, "lg2": classSpecial, "sin": classSpecial, "cos": classSpecial, "tanh": classSpecial, "rsqrt": classSpecial,
	"ld": classLoad, "ldu": classLoad, "ldmatrix": classLoad, "st": classStore, "atom": classAtomic, "red": classAtomic, "cp": classCopy,
	"shfl": classShuffle, "vote": classShuffle, "match": classShuffle, "redux": classShuffle, "movmatrix": classShuffle, "mma": classTensor,
	"bar": classSync, "mbarrier": classSync, "wmma": classTensor, "barrier": classSync, "membar": classSync, "fence": classSync,
	"bra": classControl, "brx": classControl, "exit": classControl, "trap": classControl, "call": classControl}

// classify counts arithmetic by type and the rest by opcode.
func classify(in *ptx.Inst) class {
	if c, ok := classOf[in.Op]; ok {
		return c
	}
	switch t := in.Type(); {
	case (in.Op == "rcp" || in.Op == "sqrt") && in.Has("approx"):
		return classSpecial
	case t == ptx.F32:
		return classFloat32
	case t == ptx.F64:
		return classFloat64
	case t.Kind() == ptx.KindFloat:
		return classHalf
	case t != ptx.NoType:
		return classInteger
	}
	return classOther
}

// touchesMemory are the opcodes after which the independent schedule may switch.
var touchesMemory = map[string]bool{"ld": true, "st": true, "atom": true, "red": true, "cp": true, "mbarrier": true}

// writing are the opcodes after which a loop may go another way than before.
var writing = map[string]bool{"st": true, "atom": true, "red": true, "cp": true, "call": true}

// readsGlobal is whether an instruction reads memory that other blocks may write.
func readsGlobal(in *ptx.Inst) bool {
	if in.Op != "ld" && in.Op != "ldu" {
		return false
	}
	s := in.Space()
	return s == ptx.Global || s == ptx.Generic
}

// talking reports whether an instruction lets threads wait for each other outside barriers.
func talking(in *ptx.Inst) bool {
	switch in.Op {
	case "atom", "red", "membar", "fence", "mbarrier":
		return true
	case "ld", "st":
		for _, m := range []string{"volatile", "relaxed", "acquire", "release", "mmio"} {
			if in.Has(m) {
				return true
			}
		}
	}
	return false
}

// compiled returns the code of a variant, compiling it on first use.
func (k *Kernel) compiled(v variant) (*code, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.code[v]; c != nil {
		return c, nil
	}
	c, err := k.compile(v)
	if err == nil {
		k.code[v] = c
	}
	return c, err
}

func (k *Kernel) compile(v variant) (*code, error) {
	f, err := flatten(k.prog, k.fn)
	if err != nil {
		return nil, err
	}
	use, err := scan(f)
	if err != nil {
		return nil, err
	}
	g := newGraph(f, func(in *finst) bool {
		return endsBlock(in) || v.independent && touchesMemory[in.Op]
	})
	e, err := newEmitter(f, v)
	if err != nil {
		return nil, err
	}
	c := e.code
	c.kernel, c.regs, c.dynamic = k, len(f.regs), int(f.dynamicStart())
	c.engine, c.regions = engineOf(v.level), sharedRegions
	e.engine = c.engine
	e.polled = polled(f, g, use)
	e.findAliases(use)
	c.pressure = min(e.assign(g, use), maxRegisters) // ptxas spills what goes beyond
	c.blocks = make([]basic, len(g.blocks))
	for b := range g.blocks {
		e.block(&c.blocks[b], g, b)
	}
	e.chains(g, use)
	return c, e.err
}

// endsBlock is whether an instruction is a terminator.
func endsBlock(in *finst) bool {
	return in.Op == "bra" || in.Op == "exit" || converges[in.Op] && in.Op != "call"
}

// maxRegisters is how many registers of 32 bits an instruction can name.
const maxRegisters = 255

// assign chooses slots. The pressure counts registers that need none as well: against ptxas it is rather too low.
func (e *emitter) assign(g *graph, use []usage) (pressure int) {
	width := make([]int, len(e.bank))
	for r, b := range e.bank {
		width[r] = [banks]int{1, 2, 0}[b]
	}
	ivs, pressure := intervals(g, use, width)
	if e.v.poison {
		clear(e.alias) // a read before the write must be seen
	}
	ivs = slices.DeleteFunc(ivs, func(iv interval) bool { return e.alias[iv.reg] != nil })
	e.slots, e.code.slots = allocate(ivs, e.bank)
	e.code.predSlot = map[int]int32{}
	for r, b := range e.bank {
		if b == bankPred {
			e.code.predSlot[r] = e.slots[r]
		}
	}
	return pressure
}

func (e *emitter) block(b *basic, g *graph, i int) {
	x := g.blocks[i]
	b.next, b.ipdom, b.n = i+1, g.ipdom[i], int64(x.end-x.start)
	b.chain.start = len(e.code.prog)
	at := g.blocks[i].succ
	for j := x.start; j < x.end && e.err == nil; j++ {
		in := &e.f.code[j]
		b.classes[classify(in.Inst)]++
		b.memory = b.memory || touchesMemory[in.Op]
		e.code.talks = e.code.talks || talking(in.Inst)
		e.code.async = e.code.async || in.Op == "cp"
		if e.aliasedBy(j) {
			continue
		}
		e.use = &usage{}
		run := e.instruction(in)
		b.clock = b.clock || len(e.pre) > 0
		b.writes = b.writes || writing[in.Op] || b.clock
		b.reads = b.reads || readsGlobal(in.Inst)
		if run != nil {
			b.ops = append(b.ops, run)
		}
		if e.term != nil {
			b.term = *e.term
			b.targets = at
		}
		b.local = b.local || e.v.poison && e.mayBeLocal()
		e.append(i)
		e.forgetTile()
	}
}

// poisoned follows registers that nobody wrote: a result is undefined in the lanes where an operand is. That such a
// value is used as an address, a predicate of a branch or the data of a store is a finding. The data of a store to local
// memory is not, nor is what a shuffle passes on: compilers leave undefined what a variable holds on a path that never
// reads it.
func (e *emitter) poisoned(run op) op {
	u := *e.use
	s := e.site
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
		u.uses = e.addressUses()
	}
	active := e.mayAct()
	vector, register, unpack := packs(s.in.Inst)
	return func(w *warp) {
		var bad uint32
		for _, r := range u.uses {
			bad |= w.undef[r]
		}
		all, mask := w.mask, active(w)
		if chooses {
			bad = w.chosenUndef(u.uses, s.in)
		}
		if sensitive && bad&mask != 0 {
			w.noteUndef(s, bad&mask)
			bad = 0
		}
		run(w)
		for _, r := range u.defs {
			w.undef[r] = w.undef[r]&^mask | bad&mask
		}
		w.mask = mask
		switch {
		case vector != nil && register != nil:
			w.markMov(s.in, vector, register, unpack)
		case len(w.parts) > 0:
			w.setWhole(u.defs, mask, bad)
		}
		if local != nil && w.localUndef != nil && w.cta.fault == nil {
			local.follow(w, s)
		}
		if s.in.Op == "call" && len(s.in.args) == printfArgs {
			w.answered(s.in.args[0], 4)
		}
		w.mask = all
	}
}

// mayAct is the lanes that an instruction acts in, or may act in because nobody wrote its guard.
func (e *emitter) mayAct() func(w *warp) uint32 {
	if e.in.Guard == nil {
		return func(w *warp) uint32 { return w.mask }
	}
	p, neg := e.guard()
	g := e.in.guardReg()
	return func(w *warp) uint32 { return w.mask & (w.pred(p, neg) | w.undef[g]) }
}

func (w *warp) noteUndef(s *site, lanes uint32) {
	w.cta.note(w, s, lanes, Initcheck, "an address, predicate or value that was never written is used")
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
			uses = append(uses, e.in.fr.reg+r.ID)
		}
	}
	return uses
}

// chosenUndef is the poison of selp: that of the operand taken, and of the predicate.
func (w *warp) chosenUndef(uses []int, in *finst) uint32 {
	var all uint32
	for _, r := range uses {
		all |= w.undef[r]
	}
	p, ok := in.Args[3].(*ptx.Reg)
	if all == 0 || !ok {
		return all
	}
	undef := func(o ptx.Operand) uint32 {
		if r, ok := o.(*ptx.Reg); ok {
			return w.undef[in.fr.reg+r.ID]
		}
		return 0
	}
	pick := w.p[w.code.predSlot[in.fr.reg+p.ID]]
	return undef(p) | undef(in.Args[1])&pick | undef(in.Args[2])&^pick
}

// poisonedTerm checks what a terminator reads and marks what it writes as written; what a shuffle passes on is followed
// when it runs.
func (e *emitter) poisonedTerm(u usage) {
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
		u.uses, u.defs = without(u.uses, from), without(u.defs, to)
	}
	e.term.poison = func(w *warp) {
		var bad uint32
		for _, r := range u.uses {
			bad |= w.undef[r]
		}
		if bad&w.mask != 0 {
			w.cta.note(w, s, bad&w.mask, Initcheck, "a register that was never written is used")
		}
		for _, r := range u.defs {
			w.undef[r] &^= w.mask
		}
	}
}

// shuffled are the registers that a shuffle reads from other lanes and writes, -1 for what is none.
func (e *emitter) shuffled() (from, to int) {
	id := func(o ptx.Operand) int {
		if r, ok := o.(*ptx.Reg); ok {
			return e.in.fr.reg + r.ID
		}
		return -1
	}
	d := e.in.Args[0]
	if pair, ok := d.(*ptx.Pair); ok {
		d = pair.A
	}
	return id(e.in.Args[1]), id(d)
}
