package warp

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

// An instruction that waits for lanes of its warp names them by a member mask. Lanes that name the same ones wait for each
// other, whatever others do at the same place: tiles of a warp, as cooperative groups have them, run on their own.

// member is the mask that a lane gives a terminator.
func (w *Warp) member(t *Terminator, lane int) uint32 {
	if t.Whole {
		return w.live
	}
	return uint32(w.Get(t.Mask, lane))
}

// sameMask is the mask of the lowest of some lanes, and those of them that give the same.
func (w *Warp) sameMask(t *Terminator, lanes uint32) (mask, same uint32) {
	mask = w.member(t, simt.Lowest(lanes))
	if t.Whole || t.All {
		return mask, lanes
	}
	for m := lanes; m != 0; m &= m - 1 {
		if i := simt.Lowest(m); w.member(t, i) == mask {
			same |= 1 << i
		}
	}
	return mask, same
}

// reach brings the active lanes, those of split s, to an instruction that waits for lanes. It reports whether they go on.
func (w *Warp) reach(s int, t *Terminator) bool {
	if !t.Whole && !t.All {
		for m := w.Mask; m != 0; m &= m - 1 {
			if i := simt.Lowest(m); w.member(t, i)>>i&1 == 0 {
				w.CTA.Note(w, t.Site, 1<<i, check.Synccheck, "the member mask lacks the executing lane")
			}
		}
	}
	if mask, same := w.sameMask(t, w.Mask); same == w.Mask && mask&w.live&^same == 0 {
		w.without(t, mask&w.born&^same)
		t.Run(w)
		return w.CTA.Fault == nil
	}
	w.splits[s].state = atSync
	w.trySync(w.splits[s].pc)
	return false
}

// PTX waits for the lanes of a mask that have not exited, CUDA's guide wants all of them to execute the instruction. Threads
// that return at once because there is nothing for them, before a shuffle of those that are left, get along with both on every card. Those
// that went another way and exit when they are through with it were expected.

// leaving notes lanes that a branch sends to block pc, if they exit there at once.
func (w *Warp) leaving(pc int, lanes uint32) {
	if pc == len(w.Code.Blocks) || w.Code.Blocks[pc].Leaves {
		w.leave(lanes)
	}
}

// leave notes lanes that exit at once. If others wait for them already, they have left out what those are at; where lanes run on their
// own it says nothing that some are late.
func (w *Warp) leave(lanes uint32) {
	for i := range w.splits {
		if sp := &w.splits[i]; sp.state == atSync && !w.CTA.Launch.Independent {
			lanes &^= w.member(&w.Code.Blocks[sp.pc].Term, simt.Lowest(sp.mask))
		}
	}
	w.early |= lanes
}

// without tells of lanes that a mask names and that have exited.
func (w *Warp) without(t *Terminator, exited uint32) {
	switch late := exited &^ w.early; {
	case late != 0:
		w.CTA.Note(w, t.Site, w.Mask, check.Synccheck, fmt.Sprintf("the mask names lanes that go another way and exit without executing it: %s", laneList(late)))
	case exited != 0:
		w.CTA.advise(w, t.Site, w.Mask, check.Synccheck, fmt.Sprintf("the mask names lanes that have returned: %s; cards do not wait for them, CUDA's guide wants all that the mask names", laneList(exited)))
	}
}

// laneList is lanes for people: 0 to 3, 8.
func laneList(lanes uint32) string {
	var list []string
	for lanes != 0 {
		first := simt.Lowest(lanes)
		n := bits.TrailingZeros32(^(lanes >> first))
		if list = append(list, strconv.Itoa(first)); n > 1 {
			list[len(list)-1] += " to " + strconv.Itoa(first+n-1)
		}
		lanes &^= uint32(1<<n-1) << first
	}
	return strings.Join(list, ", ")
}

// trySync runs the instruction that splits wait at in block pc, for those lanes whose company is complete. It reports
// whether there were any.
func (w *Warp) trySync(pc int) (any bool) {
	var here uint32
	var masks [simt.WarpSize]uint32
	for i := range w.splits {
		if sp := &w.splits[i]; w.meets(sp, pc) {
			here |= sp.mask
			for m := sp.mask; m != 0; m &= m - 1 {
				masks[simt.Lowest(m)] = w.member(&w.Code.Blocks[sp.pc].Term, simt.Lowest(m))
			}
		}
	}
	for here != 0 && w.CTA.Fault == nil {
		mask, same := masks[simt.Lowest(here)], uint32(0)
		for m := here; m != 0; m &= m - 1 {
			if i := simt.Lowest(m); masks[i] == mask {
				same |= 1 << i
			}
		}
		here &^= same
		if mask&w.live&^same == 0 {
			w.Mask = same
			w.without(&w.Code.Blocks[pc].Term, mask&w.born&^same)
			w.Code.Blocks[pc].Term.Run(w)
			w.goOn(pc, same)
			any = true
		}
	}
	if any {
		w.merge()
	}
	return any
}

// goOn lets lanes go on behind the instruction of block pc; the others of their splits wait there still.
func (w *Warp) goOn(pc int, lanes uint32) {
	for i := range w.splits {
		sp := &w.splits[i]
		if !w.meets(sp, pc) || sp.mask&lanes == 0 {
			continue
		}
		next := w.Code.Blocks[sp.pc].Next
		if rest := sp.mask &^ lanes; rest != 0 {
			done := split{pc: next, mask: sp.mask & lanes, node: sp.node}
			sp.mask = rest
			w.splits = append(w.splits, done)
			continue
		}
		sp.state, sp.pc = ready, next
	}
}

// meets is whether a split waits at block pc, or at another bar.warp.sync if that is one.
func (w *Warp) meets(sp *split, pc int) bool {
	return sp.state == atSync && (sp.pc == pc || w.Code.Blocks[pc].Term.Warp && w.Code.Blocks[sp.pc].Term.Warp)
}

// merge joins splits that stand at the same place and wait for the same siblings.
func (w *Warp) merge() {
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
func (w *Warp) unblock() bool {
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
