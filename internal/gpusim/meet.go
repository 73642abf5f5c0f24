package gpusim

// trySync runs the instruction that splits wait at in block pc, if all the lanes that it needs are there.
func (w *warp) trySync(pc int) bool {
	t := &w.code.blocks[pc].term
	var here uint32
	for i := range w.splits {
		if w.meets(&w.splits[i], pc) {
			here |= w.splits[i].mask
		}
	}
	if here == 0 {
		return false
	}
	w.mask = here
	need := t.need(w) & w.live
	if need&^here != 0 {
		return false
	}
	t.run(w) // once for all of them: it puts each lane's accesses before those of every other
	for i := range w.splits {
		sp := &w.splits[i]
		if w.meets(sp, pc) {
			sp.state, sp.pc = ready, w.code.blocks[sp.pc].next
		}
	}
	w.merge()
	return true
}

// meets is whether a split waits at block pc, or at another bar.warp.sync if that is one.
func (w *warp) meets(sp *split, pc int) bool {
	return sp.state == atSync && (sp.pc == pc || w.code.blocks[pc].term.warp && w.code.blocks[sp.pc].term.warp)
}

// merge joins splits that stand at the same place and wait for the same siblings.
func (w *warp) merge() {
	for i := 0; i < len(w.splits); i++ {
		for j := len(w.splits) - 1; j > i; j-- {
			a, b := &w.splits[i], w.splits[j]
			if a.state == ready && b.state == ready && a.pc == b.pc && a.node == b.node {
				a.mask |= b.mask
				w.remove(j)
			}
		}
	}
}

// unblock looks for a wait that is over because lanes exited, or for lanes that wait at a meeting.
func (w *warp) unblock() bool {
	for _, sp := range w.splits {
		if sp.state == atSync && w.trySync(sp.pc) {
			return true
		}
	}
	for _, sp := range w.splits {
		if sp.state == atBar && sp.mask != w.live {
			return w.releaseEarly()
		}
		if sp.state == atSync {
			return w.releaseEarly()
		}
	}
	return len(w.splits) == 0 && w.releaseEarly()
}
