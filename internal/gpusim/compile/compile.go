// Package compile turns kernels into what package warp runs: an Op in Go for each instruction, and where package lanes has a
// form of it, that too. The opcodes with operands in and one result out are package arith's; the others are in a file by
// kind: move, memory, atomic, exchange (between lanes), control, mma, matrix, mbarrier, stack, printf.
package compile

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/gpusim/flow"
	"github.com/warpline-ml/warpline/internal/gpusim/lanes"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// Variant is how a kernel is compiled.
type Variant struct {
	Poison      bool // follow registers that nobody wrote
	Independent bool // blocks end at memory operations, where lanes may part
	Watched     bool // every access to memory is looked at in Go: it is checked or counted
	Global      bool // every access to global memory is
	Modelled    bool // tensor cores are not those of the assembly
	Guarded     bool // there are gaps between arrays
	Debugged    bool // a warp.Debugger comes by at each instruction, and every register has a slot of its own
	Level       cpufeat.Level
}

// writing are the opcodes after which a loop may go another way than before; atomics say for themselves whether they have
// changed anything.
var writing = map[string]bool{"st": true, "cp": true, "call": true, "stmatrix": true, "tensormap": true}

// readsGlobal is whether an instruction reads memory that other blocks may write.
func readsGlobal(in *ptx.Inst) bool {
	if in.Op != "ld" && in.Op != "ldu" && in.Op != "atom" && in.Op != "red" {
		return false
	}
	s := in.Space()
	return s == ptx.Global || s == ptx.Generic
}

// Kernel makes the code of a kernel.
func Kernel(from *flow.Module, fn *ptx.Func, v Variant) (*warp.Code, error) {
	f, err := flow.Flatten(from, fn, v.Guarded)
	if err != nil {
		return nil, err
	}
	use, err := Scan(f)
	if err != nil {
		return nil, err
	}
	g := flow.NewGraph(f, func(in *flow.Inst) bool {
		return endsBlock(in) || v.Independent && flow.TouchesMemory[in.Op]
	})
	e, err := newEmitter(f, v)
	if err != nil {
		return nil, err
	}
	c := e.code
	c.Name, c.Local, c.Regs, c.Dynamic = fn.Name, int(f.Locals), len(f.Regs), int(f.DynamicStart()-f.Shift)
	c.Extra, c.SharedGaps, c.LocalGaps = int(f.Shift), f.SharedGaps, f.LocalGaps
	c.Engine, c.Regions = lanes.EngineOf(v.Level), lanes.SharedRegions
	e.engine = c.Engine
	e.polled = flow.Polled(f, g, use)
	if v.Debugged {
		c.Symbols = &warp.Symbols{}
	} else {
		e.findAliases(use)
	}
	e.flying = e.flyingRegisters()
	c.Pressure = min(e.assign(g, use), cards.MaxRegisters) // ptxas spills what goes beyond
	c.Blocks = make([]warp.Basic, len(g.Blocks))
	for b := range g.Blocks {
		e.block(&c.Blocks[b], g, b)
	}
	leaves(c.Blocks)
	e.chains(g, use)
	if v.Debugged {
		e.symbols()
	}
	return c, e.err
}

// endsBlock is whether an instruction is a terminator.
func endsBlock(in *flow.Inst) bool {
	return in.Op == "bra" || in.Op == "exit" || flow.Converges[in.Op] && in.Op != "call"
}

// assign chooses slots. The pressure counts registers that need none as well: against ptxas it is rather too low.
func (e *emitter) assign(g *flow.Graph, use []flow.Usage) (pressure int) {
	width := make([]int, len(e.bank))
	for r, b := range e.bank {
		width[r] = [simt.Banks]int{1, 2, 0}[b]
	}
	ivs, pressure := flow.Intervals(g, use, width)
	if e.v.Poison {
		clear(e.alias) // a read before the write must be seen
	}
	ivs = slices.DeleteFunc(ivs, func(iv flow.Interval) bool { return e.alias[iv.Reg] != nil })
	if e.v.Debugged {
		e.slots, e.code.Slots = e.apart()
	} else {
		e.slots, e.code.Slots = flow.Allocate(ivs, e.bank)
	}
	e.code.PredSlot = map[int]int32{}
	for r, b := range e.bank {
		if b == simt.BankPred {
			e.code.PredSlot[r] = e.slots[r]
		}
	}
	return pressure
}

// leaves finds those of the blocks without an effect that do nothing but exit.
func leaves(blocks []warp.Basic) {
	for i := len(blocks) - 1; i >= 0; i-- {
		b := &blocks[i]
		next := b.Next
		switch {
		case b.Term.Kind == warp.TermExit && b.Term.P < 0:
			continue
		case b.Term.Kind == warp.TermJump:
			next = b.Targets[0]
		case b.Term.Kind != warp.TermNext:
			b.Leaves = false
			continue
		}
		b.Leaves = b.Leaves && (next == len(blocks) || next > i && blocks[next].Leaves)
	}
}

func (e *emitter) block(b *warp.Basic, g *flow.Graph, i int) {
	x := g.Blocks[i]
	b.Leaves = true
	b.Next, b.Ipdom, b.N = i+1, g.Ipdom[i], int64(x.End-x.Start)
	b.Chain.Start, b.First = len(e.code.Prog), len(e.code.Sites)
	at := g.Blocks[i].Succ
	for j := x.Start; j < x.End && e.err == nil; j++ {
		in := &e.f.Code[j]
		b.Classes[in.Inst.Class()]++
		b.Memory = b.Memory || flow.TouchesMemory[in.Op]
		e.code.Talks = e.code.Talks || flow.Talking(in.Inst)
		e.code.Waits = e.code.Waits || e.code.Talks || in.Op == "mbarrier" || in.Op == "barrier"
		e.code.Async = e.code.Async || in.Op == "cp"
		e.code.Clusters = e.code.Clusters || in.Op == "barrier" && in.Has("cluster")
		e.code.Far = e.code.Far || in.Op == "mapa" || in.Has("multicast::cluster")
		e.code.Signals = e.code.Signals || e.code.Far
		e.code.Bulk = e.code.Bulk || in.Has("bulk") || in.Op == "wgmma"
		if e.aliasedBy(j) {
			continue
		}
		e.use = &flow.Usage{}
		run := e.instruction(in)
		b.Leaves = b.Leaves && run == nil
		if e.v.Debugged && e.err == nil {
			b.Ops = append(b.Ops, e.point(in))
		}
		b.Clock = b.Clock || len(e.pre) > 0
		b.Writes = b.Writes || writing[in.Op] || b.Clock
		b.Reads = b.Reads || readsGlobal(in.Inst)
		if run != nil {
			b.Ops = append(b.Ops, run)
		}
		if e.term != nil {
			b.Term = *e.term
			b.Targets = at
		}
		b.Local = b.Local || e.v.Poison && e.mayBeLocal()
		e.append(i)
		e.forgetTile()
	}
}
