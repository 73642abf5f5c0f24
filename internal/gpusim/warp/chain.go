package warp

import (
	"unsafe"

	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/lanes"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

// Chain is a run of blocks that a whole warp goes through without a choice: they follow each other in the code, and what
// ends them waits for no lane but those that are here. Each block starts a chain; those of its successors are tails of it.
type Chain struct {
	Start  int   // in prog
	Ends   bool  // with this block
	Last   int   // block
	Blocks int   // how many
	N      int64 // instructions
	Need   []int // registers that must have been written, for poison
	Defs   []int // registers that are written
}

// InChain is whether a chain carries out the terminator too: all lanes are there, so nobody is waited for.
func (t *Terminator) InChain() bool { return t.Kind == TermSync && t.All }

// Step is an instruction of a chain in Go.
type Step struct {
	Run   Op  // nil at the end of a chain
	Words int // of prog, with the review that it makes needless
	Block int
}

// defined is whether all that a chain reads has been written by all lanes.
func (w *Warp) defined(c *Chain) bool {
	var bad uint32
	for _, r := range c.Need {
		bad |= w.Undef[r]
	}
	return bad == 0
}

// runChain runs the blocks of a chain for the whole warp, and of those that the assembly goes on to. It returns the last
// block, how many of left there remain, and whether the kernel goes on.
func (w *Warp) runChain(b, left int) (last, remaining int, ok bool) {
	c, k := w.CTA, w.Code
	x := &k.Blocks[b].Chain
	c.chains[b]++
	c.Steps += x.N
	w.Mask = simt.Full
	left -= x.Blocks
	if k.Engine != nil {
		if b, left, ok = w.runEngine(b, left); !ok {
			return b, left, false
		}
		x = &k.Blocks[b].Chain
	} else {
		for i := x.Start; ; i++ {
			s := &k.Steps[i]
			if s.Run == nil {
				break
			}
			if s.Run(w); c.Fault != nil {
				return b, left, c.broken(b, s.Block)
			}
		}
	}
	for _, r := range x.Defs {
		w.Undef[r] = 0
	}
	return x.Last, left, true
}

func (w *Warp) runEngine(b, left int) (at, remaining int, ok bool) {
	c, k := w.CTA, w.Code
	f := c.Worker.frame
	f.R, f.Q, f.P = address(unsafe.SliceData(w.R32)), address(unsafe.SliceData(w.R64)), address(unsafe.SliceData(w.Preds))
	f.Async, f.Chains, f.Tag = address(&w.async), address(&c.chains[0]), 0
	f.Prog, f.Block, f.Left, f.Steps, f.Jumps = address(&k.Prog[0]), int64(b), int64(left), 0, 0
	ok = true
	for i := k.Blocks[b].Chain.Start; ; {
		k.Engine.Run(f, &k.Prog[i])
		i = int((f.Pc - f.Prog) / unsafe.Sizeof(lanes.Inst{}))
		s := &k.Steps[i]
		if s.Run == nil {
			break
		}
		if s.Run(w); c.Fault != nil {
			ok = c.broken(int(f.Block), s.Block)
			break
		}
		i += s.Words
	}
	c.Steps += f.Steps
	c.Branches += uint64(f.Jumps)
	return int(f.Block), int(f.Left), ok
}

// broken corrects the counts of a chain that began at block b and faulted in another.
func (c *CTA) broken(b, at int) bool {
	c.chains[b]--
	for i := b; i <= at; i++ {
		c.Execs[i]++
		c.Lanes[i] += simt.WarpSize
	}
	return false
}

// remember lets the assembly use an allocation for an instruction.
func (wk *Worker) remember(a *check.Access, al *memory.Allocation) {
	if a.Region < lanes.SharedRegions || len(al.Data) < a.Size || len(al.Data) > 1<<31-1 {
		return
	}
	wk.regions[a.Region] = lanes.Region{Lo: al.Lo, Limit: uint64(len(al.Data) - a.Size + 1), Data: unsafe.Pointer(&al.Data[0]), Alloc: al}
}

func address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// bind makes the assembly access the shared memory of a block.
func (wk *Worker) bind(c *CTA) {
	wk.bound = c
	shared := unsafe.SliceData(c.shared)
	wk.frame.Regions, wk.frame.Shared = address(unsafe.SliceData(wk.regions)), address(shared)
	for i := range lanes.SharedRegions {
		wk.regions[i] = lanes.Region{Limit: uint64(max(len(c.shared)-1<<i+1, 0)), Data: unsafe.Pointer(shared)}
	}
}
