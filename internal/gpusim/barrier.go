package gpusim

import "fmt"

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

// barOp is a compiled bar or barrier instruction.
type barOp struct {
	id, count slot
	hasCount  bool
	fixed     bool // id and count are numbers
	arrive    bool
	aligned   bool
	reduce    func(w *warp, lanes uint32) uint32 // the lanes whose predicate holds; nil without .red
	result    func(w *warp, count, threads int)  // writes the reduction
}

// names is the barrier and the number of threads that a lane gives.
func (t *barOp) names(w *warp, lane int) (id uint32, count int) {
	if t.hasCount {
		count = int(uint32(w.get(t.count, lane)))
	}
	return uint32(w.get(t.id, lane)), count
}

// barrier brings split s to a barrier of the block, or its lanes to several.
func (w *warp) barrier(s int, b *basic) (int, bool) {
	t, c := b.term.bar, w.cta
	first, ids := w.mask, uint32(0)
	for rest := w.mask; rest != 0; {
		lane := lowest(rest)
		id, count := t.names(w, lane)
		same := rest
		for m := rest; !t.fixed && m != 0; m &= m - 1 {
			if i, n := t.names(w, lowest(m)); i != id || n != count {
				same &^= 1 << lowest(m)
			}
		}
		if id > 15 || count%warpSize != 0 || t.hasCount && count == 0 {
			c.stop(w, b.term.site, lane, IllegalInstruction, Synccheck, "barrier %d for %d threads: the number goes to 15, the threads are a multiple of 32", id, count)
			return 0, false
		}
		if same != w.mask && t.aligned && rest == w.mask {
			c.note(w, b.term.site, rest&^same, Synccheck, "lanes of one warp name different barriers, or numbers of threads, in an instruction for whole warps (.aligned)")
		}
		rest &^= same
		ids |= 1 << id
		w.come(b, same, id, count)
		if t.arrive {
			continue
		}
		if sp := &w.splits[s]; same>>lowest(first)&1 == 1 {
			sp.mask, sp.state, sp.bar = same, atBar, id
		} else {
			w.splits = append(w.splits, split{pc: sp.pc, mask: same, node: sp.node, state: atBar, bar: id})
		}
	}
	if t.arrive {
		w.splits[s].pc = b.next
	}
	for ; ids != 0; ids &= ids - 1 {
		c.complete(uint32(lowest(ids)))
	}
	return 0, false
}

// come counts lanes in at a barrier.
func (w *warp) come(b *basic, lanes, id uint32, count int) {
	t, c := b.term.bar, w.cta
	bar := &c.bars[id]
	if bar.waiting > 0 || bar.arrived > 0 {
		if bar.count != count {
			c.note(w, b.term.site, lanes, Synccheck, fmt.Sprintf("barrier %d is used with %d and with %d threads at once", id, bar.count, count))
		}
		if bar.reduces != (t.reduce != nil) {
			c.note(w, b.term.site, lanes, Synccheck, fmt.Sprintf("barrier %d is used with and without .red at once", id))
		}
	}
	bar.count, bar.reduces = count, t.reduce != nil
	threads := popcount(lanes)
	if lanes == w.live {
		threads = warpSize
	}
	if t.arrive {
		if lanes != w.live && t.aligned {
			c.note(w, b.term.site, lanes, Synccheck, "bar.arrive by a part of a warp")
			threads = warpSize
		}
		bar.arrived += threads
	} else {
		bar.waiting += threads
		bar.parts = bar.parts || lanes != w.live
	}
	if c.race != nil {
		c.race.arrive(w, lanes, id)
	}
}

// lanesExited looks whether a warp's other lanes now are all that is left of it at a barrier.
func (w *warp) lanesExited() {
	for _, sp := range w.splits {
		if sp.state == atBar {
			w.cta.bars[sp.bar].parts = true
		}
	}
	w.cta.completeAll()
}

// warpExited may complete barriers that waited for all warps.
func (c *cta) warpExited() {
	c.alive--
	c.completeAll()
}

// completeAll lets the threads at barriers go on where all are there.
func (c *cta) completeAll() {
	for id := range c.bars {
		if b := &c.bars[id]; b.waiting > 0 || b.arrived > 0 {
			c.complete(uint32(id))
		}
	}
}

// waitingAt is the lanes of a warp that wait at a barrier.
func (w *warp) waitingAt(id uint32) (lanes uint32) {
	for _, sp := range w.splits {
		if sp.state == atBar && sp.bar == id {
			lanes |= sp.mask
		}
	}
	return lanes
}

// present counts the threads at a barrier. What a warp has left counts as the whole.
func (c *cta) present(id uint32) int {
	b := &c.bars[id]
	if b.parts {
		b.waiting = 0
		for _, w := range c.warps {
			switch lanes := w.waitingAt(id); {
			case lanes == 0:
			case lanes == w.live:
				b.waiting += warpSize
			default:
				b.waiting += popcount(lanes)
			}
		}
	}
	return b.arrived + b.waiting
}

func (c *cta) complete(id uint32) {
	b := &c.bars[id]
	expected := b.count
	if expected == 0 {
		expected = c.alive * warpSize
	}
	here := c.present(id)
	if here < expected || expected == 0 {
		return
	}
	all := b.arrived == 0 && here == len(c.warps)*warpSize
	if b.count == 0 && c.grid.checks&Synccheck != 0 {
		c.sameForAll(id)
	}
	if b.count == 0 || all {
		c.allPassed()
	}
	*b = barrier{}
	holds, threads := 0, 0
	c.eachWaiting(id, func(w *warp, sp *split, t *barOp) {
		threads += popcount(sp.mask)
		if t.reduce != nil {
			holds += popcount(t.reduce(w, sp.mask))
		}
	})
	for _, w := range c.warps {
		if lanes := w.waitingAt(id); lanes != 0 {
			w.wholeAt(id, lanes)
			if c.race != nil {
				c.race.leave(w, lanes, id, all)
			}
		}
	}
	c.eachWaiting(id, func(w *warp, sp *split, t *barOp) {
		if t.result != nil {
			w.mask = sp.mask
			t.result(w, holds, threads)
		}
		sp.state, sp.pc = ready, w.code.blocks[sp.pc].next
	})
	for _, w := range c.warps {
		w.merge()
	}
	if c.race != nil {
		c.race.reset(id, all)
	}
}

// wholeAt checks that a whole warp executes a barrier that is for whole warps.
func (w *warp) wholeAt(id, lanes uint32) {
	pc := -1
	for _, sp := range w.splits {
		if sp.state != atBar || sp.bar != id {
			continue
		}
		t := &w.code.blocks[sp.pc].term
		switch {
		case !t.bar.aligned:
		case pc >= 0 && pc != sp.pc:
			w.cta.note(w, t.site, sp.mask, Synccheck, "lanes of one warp meet at different bar instructions")
		case lanes != w.born:
			w.cta.note(w, t.site, sp.mask, Synccheck, "a barrier for whole warps (.aligned) is executed by a part of a warp, whose other lanes "+
				w.absent(lanes))
		}
		pc = sp.pc
	}
}

// sameForAll checks that all warps are at one instruction, if it is for all threads of the block. Which warp came first does
// not matter: they are compared with the first of them that waits.
func (c *cta) sameForAll(id uint32) {
	var first *site
	var of *warp
	c.eachWaiting(id, func(w *warp, sp *split, t *barOp) {
		s := w.code.blocks[sp.pc].term.site
		switch {
		case !t.aligned:
		case first == nil:
			first, of = s, w
		case of != w && s.in.Pos != first.in.Pos:
			c.noteBoth(w, s, first, lowest(sp.mask), Synccheck,
				"warps of the block meet at different bar instructions, and one without a number of threads is for all of the block", "", 0, 0, "")
		}
	})
}

// absent says where the lanes are that are not at a barrier.
func (w *warp) absent(here uint32) string {
	if w.live&^here == 0 {
		return "have exited"
	}
	return "are elsewhere"
}

func (c *cta) eachWaiting(id uint32, f func(w *warp, sp *split, t *barOp)) {
	for _, w := range c.warps {
		if w.live == 0 {
			continue
		}
		for i := range w.splits {
			if sp := &w.splits[i]; sp.state == atBar && sp.bar == id {
				f(w, sp, w.code.blocks[sp.pc].term.bar)
			}
		}
	}
}
