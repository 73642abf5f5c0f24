package warp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// A block whose state comes back, and which wrote nothing in between, goes on like that forever: what it runs depends on
// nothing else, unless it reads memory that other blocks write. An atomic that leaves what it finds writes nothing. Whether
// the state is back is looked at whenever a warp has used up a turn, and once in a while in a loop of barriers, against the
// state at the last time whose number was a power of two, so that a loop is found within about thrice its length. A loop
// that counts is not found; it ends at the step limit.
//
// Under the independent schedule chance says which lanes run, so that all of a state hardly comes back at once. But lanes
// that parted do not know of each other while nobody writes or waits for others: each such split goes through a cycle of
// its own, and when all have come back, nothing will ever change.

// moment is the state of a block.
type moment struct {
	warps   []warpState
	bars    [16]barrier
	execs   []uint64 // of the tally, at the last turn
	chains  []uint64
	turns   int  // since the block last wrote
	reads   bool // global memory, since the state was kept
	changes int  // of the worker, when the state was kept
	back    bool // the state has come back
	syncs   bool // lanes have waited for others since it was kept
}

// warpState is what decides how a warp goes on.
type warpState struct {
	live, cc uint32
	first    int // the split that has the next turn
	splits   []split
	came     []bool // by split: it has come back, under the independent schedule
	nodes    []node
	r        []simt.Vec32
	q        []simt.Vec64
	p        []uint32
}

// somePasses is how many passes over the warps of a block, none of which uses up a turn, are between two looks.
const somePasses = 1 << 12

// turnOver looks whether the block is in an endless loop, and stops it if no other block can end that.
func (c *CTA) turnOver() {
	c.lookBack()
	if m := c.moment; m.back && (!m.reads || c.Launch.Total == 1) {
		c.Endless("an endless loop: the block is where it was before and wrote nothing in between", nil)
	}
}

// lookBack looks whether the state of the block has come back, and keeps it now and then.
func (c *CTA) lookBack() {
	if c.moment == nil {
		n := len(c.Execs)
		c.moment = &moment{warps: make([]warpState, len(c.warps)), execs: make([]uint64, n), chains: make([]uint64, n)}
	}
	m := c.moment
	writes, reads := m.executed(c)
	m.back = false
	c.landAll() // what nobody waits for
	if writes || c.changed || slices.ContainsFunc(c.warps, func(w *Warp) bool { return w.async.Copies > 0 }) {
		m.turns = 0
		c.changed, c.spin, c.stuck = false, spin{}, stuck{}
		c.Worker.Changes++
		return
	}
	m.turns++
	m.reads = m.reads || reads
	if m.back = m.turns > 1 && m.holds(c); !m.back && m.turns&(m.turns-1) == 0 {
		m.keep(c)
	}
}

// spin is an atomic that has left what it found.
type spin struct {
	w     *Warp
	a     *check.Access
	lane  int
	addr  uint64
	found uint64
}

// Atomic is told of each atomic: what a lane has found at its address, and whether it left something else.
func (w *Warp) Atomic(a *check.Access, lane int, found uint64, changed bool) {
	if g := w.CTA.global; g != nil && memory.SpaceAt(w.Addr[lane]) == ptx.Global && a.Space != ptx.Shared {
		g.Atomic(w.CTA.Order, w.Id, lane, a, w.Addr[lane], changed)
	}
	if changed {
		w.CTA.changed = true
	} else {
		w.CTA.spin = spin{w, a, lane, w.Addr[lane], found}
	}
}

// Endless stops the block for a loop that has no end, in which the blocks of waiting take part too. Where an atomic is
// tried again and again, as with a lock, it is named with its place.
func (c *CTA) Endless(msg string, waiting []*CTA) {
	defer c.tellFault()
	if len(waiting) > 1 {
		msg += "; " + listed(waiting)
	}
	if s := c.spin; s.w != nil {
		c.Stop(s.w, s.a.Site, s.lane, memory.LaunchTimeout, 0, "%s; this atomic finds %#x each time and leaves it%s", msg, s.found, c.holder(s.addr))
		s.locate(&c.Fault.Finding)
		return
	}
	if s := c.stuck; s.w != nil {
		c.Stop(s.w, s.a.Site, s.lane, memory.LaunchTimeout, check.Synccheck, "%s; %s", msg, s.String())
		return
	}
	for _, w := range c.warps {
		if w.live != 0 {
			c.Stop(w, w.here(), simt.Lowest(w.live), memory.LaunchTimeout, 0, "%s", msg)
			return
		}
	}
}

// holder is who changed last what an atomic tries, as far as the check of global memory has seen it.
func (c *CTA) holder(addr uint64) string {
	by, site := c.global.Writer(addr)
	if site == nil {
		return ""
	}
	return fmt.Sprintf("; %s put it there, by %s at PTX line %d", check.Who(c.Launch.ThreadID(by.Thread), c.Launch.BlockID(int(by.Block))), site.Inst.Name(), site.Inst.Pos.Line)
}

// locate says where the atomic acts.
func (s *spin) locate(f *check.Finding) {
	space, addr := s.a.Space, s.addr
	if space == ptx.Generic {
		space = memory.SpaceAt(addr)
		addr -= memory.Window(space)
	}
	f.Space, f.Addr, f.Size = space.String(), addr, s.a.Size
	if f.Alloc = sharedSize(s.w.CTA); space == ptx.Global {
		f.Alloc = s.w.CTA.Launch.Mem.Nearest(addr)
	}
}

// listed names blocks, the first of many.
func listed(blocks []*CTA) string {
	const most = 8
	var names []string
	for _, c := range blocks[:min(most, len(blocks))] {
		names = append(names, fmt.Sprintf("%d,%d,%d", c.Id[0], c.Id[1], c.Id[2]))
	}
	slices.Sort(names)
	text := fmt.Sprintf("%d blocks wait: %s", len(blocks), strings.Join(names, "  "))
	if len(blocks) > most {
		text += " …"
	}
	return text
}

// overLimit stops a block that has used up its steps, at the end of the loop that warps went through most often.
func (c *CTA) overLimit(w *Warp) {
	blocks, at := c.Launch.Code.Blocks, w.here()
	t := NewTally(c.Launch.Code)
	t.Add(&c.Tally)
	t.Spread(c.Launch.Code)
	var most uint64
	for i := range blocks {
		if b := &blocks[i]; t.Execs[i] > most && slices.ContainsFunc(b.Targets, func(to int) bool { return to <= i }) {
			at, most = b.Term.Site, t.Execs[i]
		}
	}
	loop := ""
	if most > 0 {
		loop = fmt.Sprintf("; warps were %d times at the end of this loop", most)
	}
	c.Stop(w, at, simt.Lowest(w.live), memory.LaunchTimeout, 0, "the block executed more than %d instructions of warps, its step limit%s", c.Launch.Limit, loop)
	c.Fault.StepLimit = c.Launch.Limit
}

// executed is whether the block wrote memory, or read what others may write, since the last call.
func (m *moment) executed(c *CTA) (writes, reads bool) {
	look := func(b *Basic) {
		writes, reads = writes || b.Writes, reads || b.Reads
		m.syncs = m.syncs || b.Term.Kind == TermSync || b.Term.Kind == TermBar
	}
	blocks := c.Launch.Code.Blocks
	for i := range blocks {
		if c.Execs[i] != m.execs[i] {
			look(&blocks[i])
		}
		if c.chains[i] != m.chains[i] {
			for j := i; j <= blocks[i].Chain.Last; j++ {
				look(&blocks[j])
			}
		}
	}
	copy(m.execs, c.Execs)
	copy(m.chains, c.chains)
	return writes, reads
}

func (w *Warp) firstSplit() int { return w.turn % max(len(w.splits), 1) }

// keep remembers the state.
func (m *moment) keep(c *CTA) {
	m.bars, m.reads, m.changes, m.syncs = c.bars, false, c.Worker.Changes, false
	for i, w := range c.warps {
		s := &m.warps[i]
		s.live, s.cc, s.first = w.live, w.Cc, w.firstSplit()
		w.ran = 0
		s.splits, s.nodes = append(s.splits[:0], w.splits...), append(s.nodes[:0], w.nodes...)
		s.came = append(s.came[:0], make([]bool, len(w.splits))...)
		s.r, s.q, s.p = append(s.r[:0], w.R32...), append(s.q[:0], w.R64...), append(s.p[:0], w.Preds...)
	}
}

// holds is whether the block is in the state.
func (m *moment) holds(c *CTA) bool {
	if c.bars != m.bars {
		return false
	}
	if c.Launch.Independent {
		return m.splitsHold(c)
	}
	for i, w := range c.warps {
		s := &m.warps[i]
		if s.live != w.live || s.cc != w.Cc || s.first != w.firstSplit() || !slices.Equal(s.splits, w.splits) || !slices.Equal(s.nodes, w.nodes) ||
			!slices.Equal(s.p, w.Preds) || !slices.Equal(s.r, w.R32) || !slices.Equal(s.q, w.R64) {
			return false
		}
	}
	return true
}

// splitsHold is whether each split has run and been in its state since that was kept; where lanes waited for each other, all
// at once.
func (m *moment) splitsHold(c *CTA) bool {
	all := true
	for i, w := range c.warps {
		s := &m.warps[i]
		if s.live != w.live || len(s.splits) != len(w.splits) {
			return false
		}
		for j := range s.splits {
			if m.syncs {
				s.came[j] = false
			}
			sp := s.splits[j]
			ran := sp.state != ready || sp.mask&^w.ran == 0
			s.came[j] = s.came[j] || ran && slices.Contains(w.splits, sp) && s.sameLanes(w, sp.mask)
			all = all && s.came[j]
		}
	}
	return all
}

// sameLanes is whether the registers of some lanes are as they were.
func (s *warpState) sameLanes(w *Warp, mask uint32) bool {
	if (s.cc^w.Cc)&mask != 0 {
		return false
	}
	for i, p := range w.Preds {
		if (p^s.p[i])&mask != 0 {
			return false
		}
	}
	for m := mask; m != 0; m &= m - 1 {
		lane := simt.Lowest(m)
		for i := range w.R32 {
			if w.R32[i][lane] != s.r[i][lane] {
				return false
			}
		}
		for i := range w.R64 {
			if w.R64[i][lane] != s.q[i][lane] {
				return false
			}
		}
	}
	return true
}

// AllEndless is whether each of the blocks on a core has come back to its state since any of them wrote.
func AllEndless(running []*CTA) bool {
	return !slices.ContainsFunc(running, func(c *CTA) bool {
		return c.moment == nil || !c.moment.back || c.moment.changes != c.Worker.Changes
	})
}

// forget begins anew with another block of the grid.
func (m *moment) forget() {
	if m != nil {
		m.turns, m.back = 0, false
		clear(m.execs)
		clear(m.chains)
	}
}
