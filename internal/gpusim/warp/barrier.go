package warp

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

// A block completes a barrier when all threads that it expects are there, as hardware since compute capability 7.0 does:
// threads that have exited are not waited for. A barrier that is aligned, as __syncthreads is, must be executed by whole
// warps, which is a matter of its own.

// barrier is one of the sixteen barriers of a block.
type barrier struct {
	arrived int  // threads that arrived without waiting, by bar.arrive
	waiting int  // threads that wait, unless parts of warps do
	count   int  // threads expected; 0 for all
	parts   bool // parts of warps wait
	reduces bool // those who are here came by .red
}

// BarOp is a compiled bar or barrier instruction.
type BarOp struct {
	Id, Count Slot
	HasCount  bool
	Fixed     bool // id and count are numbers
	Arrive    bool
	Aligned   bool
	Reduce    func(w *Warp, lanes uint32) uint32 // the lanes whose predicate holds; nil without .red
	Result    func(w *Warp, count, threads int)  // writes the reduction
}

// names is the barrier and the number of threads that a lane gives.
func (t *BarOp) names(w *Warp, lane int) (id uint32, count int) {
	if t.HasCount {
		count = int(uint32(w.Get(t.Count, lane)))
	}
	return uint32(w.Get(t.Id, lane)), count
}

// barrier brings split s to a barrier of the block, or its lanes to several.
func (w *Warp) barrier(s int, b *Basic) (int, bool) {
	t, c := b.Term.Bar, w.CTA
	first, ids := w.Mask, uint32(0)
	for rest := w.Mask; rest != 0; {
		lane := simt.Lowest(rest)
		id, count := t.names(w, lane)
		same := rest
		for m := rest; !t.Fixed && m != 0; m &= m - 1 {
			if i, n := t.names(w, simt.Lowest(m)); i != id || n != count {
				same &^= 1 << simt.Lowest(m)
			}
		}
		if id > 15 || count%simt.WarpSize != 0 || t.HasCount && count == 0 {
			c.Stop(w, b.Term.Site, lane, memory.IllegalInstruction, check.Synccheck, "barrier %d for %d threads: the number goes to 15, the threads are a multiple of 32", id, count)
			return 0, false
		}
		if same != w.Mask && t.Aligned && rest == w.Mask {
			c.Note(w, b.Term.Site, rest&^same, check.Synccheck, "lanes of one warp name different barriers, or numbers of threads, in an instruction for whole warps (.aligned)")
		}
		rest &^= same
		ids |= 1 << id
		w.come(b, same, id, count)
		if t.Arrive {
			continue
		}
		if sp := &w.splits[s]; same>>simt.Lowest(first)&1 == 1 {
			sp.mask, sp.state, sp.bar = same, atBar, id
		} else {
			w.splits = append(w.splits, split{pc: sp.pc, mask: same, node: sp.node, state: atBar, bar: id})
		}
	}
	if t.Arrive {
		w.splits[s].pc = b.Next
	}
	for ; ids != 0; ids &= ids - 1 {
		c.complete(uint32(simt.Lowest(ids)))
	}
	return 0, false
}

// come counts lanes in at a barrier.
func (w *Warp) come(b *Basic, lanes, id uint32, count int) {
	t, c := b.Term.Bar, w.CTA
	bar := &c.bars[id]
	if bar.waiting > 0 || bar.arrived > 0 {
		if bar.count != count {
			c.Note(w, b.Term.Site, lanes, check.Synccheck, fmt.Sprintf("barrier %d is used with %d and with %d threads at once", id, bar.count, count))
		}
		if bar.reduces != (t.Reduce != nil) {
			c.Note(w, b.Term.Site, lanes, check.Synccheck, fmt.Sprintf("barrier %d is used with and without .red at once", id))
		}
	}
	bar.count, bar.reduces = count, t.Reduce != nil
	threads := simt.Popcount(lanes)
	if lanes == w.live {
		threads = simt.WarpSize
	}
	if t.Arrive {
		if lanes != w.live && t.Aligned {
			c.Note(w, b.Term.Site, lanes, check.Synccheck, "bar.arrive by a part of a warp")
			threads = simt.WarpSize
		}
		bar.arrived += threads
	} else {
		bar.waiting += threads
		bar.parts = bar.parts || lanes != w.live
	}
	if c.Order != nil {
		c.Order.Arrive(w.Id, lanes, id)
	}
}

// lanesExited looks whether a warp's other lanes now are all that is left of it at a barrier.
func (w *Warp) lanesExited() {
	for _, sp := range w.splits {
		if sp.state == atBar {
			w.CTA.bars[sp.bar].parts = true
		}
	}
	w.CTA.completeAll()
}

// warpExited may complete barriers that waited for all warps.
func (c *CTA) warpExited() {
	c.Alive--
	c.completeAll()
}

// completeAll lets the threads at barriers go on where all are there.
func (c *CTA) completeAll() {
	for id := range c.bars {
		if b := &c.bars[id]; b.waiting > 0 || b.arrived > 0 {
			c.complete(uint32(id))
		}
	}
}

// waitingAt is the lanes of a warp that wait at a barrier.
func (w *Warp) waitingAt(id uint32) (lanes uint32) {
	for _, sp := range w.splits {
		if sp.state == atBar && sp.bar == id {
			lanes |= sp.mask
		}
	}
	return lanes
}

// present counts the threads at a barrier. What a warp has left counts as the whole.
func (c *CTA) present(id uint32) int {
	b := &c.bars[id]
	if b.parts {
		b.waiting = 0
		for _, w := range c.warps {
			switch lanes := w.waitingAt(id); {
			case lanes == 0:
			case lanes == w.live:
				b.waiting += simt.WarpSize
			default:
				b.waiting += simt.Popcount(lanes)
			}
		}
	}
	return b.arrived + b.waiting
}

func (c *CTA) complete(id uint32) {
	b := &c.bars[id]
	expected := b.count
	if expected == 0 {
		expected = c.Alive * simt.WarpSize
	}
	here := c.present(id)
	if here < expected || expected == 0 {
		return
	}
	all := b.arrived == 0 && here == len(c.warps)*simt.WarpSize
	if b.count == 0 && c.Launch.Checks&check.Synccheck != 0 {
		c.sameForAll(id)
		c.exitedBefore(id)
	}
	if b.count == 0 || all {
		c.allPassed()
	}
	*b = barrier{}
	holds, threads := 0, 0
	c.eachWaiting(id, func(w *Warp, sp *split, t *BarOp) {
		threads += simt.Popcount(sp.mask)
		if t.Reduce != nil {
			holds += simt.Popcount(t.Reduce(w, sp.mask))
		}
	})
	for _, w := range c.warps {
		if lanes := w.waitingAt(id); lanes != 0 {
			w.wholeAt(id, lanes)
			if c.Order != nil {
				if lanes == w.live {
					lanes = simt.Full
				}
				c.Order.Leave(w.Id, lanes, id, all)
			}
		}
	}
	c.eachWaiting(id, func(w *Warp, sp *split, t *BarOp) {
		if t.Result != nil {
			w.Mask = sp.mask
			t.Result(w, holds, threads)
		}
		sp.state, sp.pc = ready, w.Code.Blocks[sp.pc].Next
	})
	for _, w := range c.warps {
		w.merge()
	}
	if c.Order != nil {
		c.Order.Reset(id, all)
	}
}

// wholeAt checks that a whole warp executes a barrier that is for whole warps.
func (w *Warp) wholeAt(id, lanes uint32) {
	pc := -1
	for _, sp := range w.splits {
		if sp.state != atBar || sp.bar != id {
			continue
		}
		t := &w.Code.Blocks[sp.pc].Term
		switch {
		case !t.Bar.Aligned:
		case pc >= 0 && pc != sp.pc:
			w.CTA.Note(w, t.Site, sp.mask, check.Synccheck, "lanes of one warp meet at different bar instructions")
		case lanes != w.born:
			w.CTA.Note(w, t.Site, sp.mask, check.Synccheck, "a barrier for whole warps (.aligned) is executed by a part of a warp, whose other lanes "+
				w.absent(lanes))
		}
		pc = sp.pc
	}
}

// sameForAll checks that all warps are at one instruction, if it is for all threads of the block. Which warp came first does
// not matter: they are compared with the first of them that waits.
func (c *CTA) sameForAll(id uint32) {
	var first *check.Site
	var of *Warp
	c.eachWaiting(id, func(w *Warp, sp *split, t *BarOp) {
		s := w.Code.Blocks[sp.pc].Term.Site
		switch {
		case !t.Aligned:
		case first == nil:
			first, of = s, w
		case of != w && s.Inst.Pos != first.Inst.Pos:
			c.noteBoth(w, s, first, simt.Lowest(sp.mask), check.Synccheck,
				"warps of the block meet at different bar instructions, and one without a number of threads is for all of the block", "", 0, 0, "")
		}
	})
}

// exitedBefore tells of whole warps that have exited and that the barrier does not wait for.
func (c *CTA) exitedBefore(id uint32) {
	gone := len(c.warps) - c.Alive
	if gone == 0 {
		return
	}
	told := false
	c.eachWaiting(id, func(w *Warp, sp *split, t *BarOp) {
		if !told {
			c.advise(w, w.Code.Blocks[sp.pc].Term.Site, sp.mask, check.Synccheck, fmt.Sprintf(
				"%d of the block's %d warps had exited without coming to this barrier: cards do not wait for them, CUDA's guide wants all threads of the block", gone, len(c.warps)))
		}
		told = true
	})
}

// absent says where the lanes are that are not at a barrier.
func (w *Warp) absent(here uint32) string {
	if w.live&^here == 0 {
		return "have exited"
	}
	return "are elsewhere"
}

func (c *CTA) eachWaiting(id uint32, f func(w *Warp, sp *split, t *BarOp)) {
	for _, w := range c.warps {
		if w.live == 0 {
			continue
		}
		for i := range w.splits {
			if sp := &w.splits[i]; sp.state == atBar && sp.bar == id {
				f(w, sp, w.Code.Blocks[sp.pc].Term.Bar)
			}
		}
	}
}
