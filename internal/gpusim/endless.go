package gpusim

import (
	"fmt"
	"slices"
)

// A block whose state comes back, and which wrote nothing in between, goes on like that forever: what it runs depends on
// nothing else, unless it reads memory that other blocks write. Whether it does is looked at whenever a warp has used up a
// turn, and once in a while in a loop of barriers, against the state at the last time whose number was a power of two, so that a
// loop is found within about thrice its length. A loop that counts is not found; it ends at the step limit.

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
}

// warpState is what decides how a warp goes on.
type warpState struct {
	live, cc uint32
	first    int // the split that has the next turn
	splits   []split
	nodes    []node
	r        []vec32
	q        []vec64
	p        []uint32
}

// somePasses is how many passes over the warps of a block, none of which uses up a turn, are between two looks.
const somePasses = 1 << 12

// turnOver looks whether the block is in an endless loop, and stops it if no other block can end that.
func (c *cta) turnOver() {
	if c.grid.independent {
		return
	}
	if c.moment == nil {
		n := len(c.execs)
		c.moment = &moment{warps: make([]warpState, len(c.warps)), execs: make([]uint64, n), chains: make([]uint64, n)}
	}
	m := c.moment
	writes, reads := m.executed(c)
	m.back = false
	if writes || slices.ContainsFunc(c.warps, func(w *warp) bool { return w.async.copies > 0 }) {
		m.turns = 0
		c.worker.changes++
		return
	}
	m.turns++
	m.reads = m.reads || reads
	if m.back = m.turns > 1 && m.holds(c); m.back && (!m.reads || c.grid.total == 1) {
		c.endless("an endless loop: the block is where it was before and wrote nothing in between")
	} else if !m.back && m.turns&(m.turns-1) == 0 {
		m.keep(c)
	}
}

func (c *cta) endless(msg string) {
	for _, w := range c.warps {
		if w.live != 0 {
			c.stop(w, w.here(), lowest(w.live), LaunchTimeout, 0, "%s", msg)
			return
		}
	}
}

// overLimit stops a block that has used up its steps, at the end of the loop that warps went through most often.
func (c *cta) overLimit(w *warp) {
	blocks, at := c.grid.code.blocks, w.here()
	t := newTally(c.grid.code)
	t.add(&c.tally)
	t.spread(c.grid.code)
	var most uint64
	for i := range blocks {
		if b := &blocks[i]; t.execs[i] > most && slices.ContainsFunc(b.targets, func(to int) bool { return to <= i }) {
			at, most = b.term.site, t.execs[i]
		}
	}
	loop := ""
	if most > 0 {
		loop = fmt.Sprintf("; warps were %d times at the end of this loop", most)
	}
	c.stop(w, at, lowest(w.live), LaunchTimeout, 0, "the block executed more than %d instructions of warps, its step limit%s", c.grid.limit, loop)
	c.fault.StepLimit = c.grid.limit
}

// executed is whether the block wrote memory, or read what others may write, since the last call.
func (m *moment) executed(c *cta) (writes, reads bool) {
	look := func(b *basic) { writes, reads = writes || b.writes, reads || b.reads }
	blocks := c.grid.code.blocks
	for i := range blocks {
		if c.execs[i] != m.execs[i] {
			look(&blocks[i])
		}
		if c.chains[i] != m.chains[i] {
			for j := i; j <= blocks[i].chain.last; j++ {
				look(&blocks[j])
			}
		}
	}
	copy(m.execs, c.execs)
	copy(m.chains, c.chains)
	return writes, reads
}

func (w *warp) firstSplit() int { return w.turn % max(len(w.splits), 1) }

// keep remembers the state.
func (m *moment) keep(c *cta) {
	m.bars, m.reads, m.changes = c.bars, false, c.worker.changes
	for i, w := range c.warps {
		s := &m.warps[i]
		s.live, s.cc, s.first = w.live, w.cc, w.firstSplit()
		s.splits, s.nodes = append(s.splits[:0], w.splits...), append(s.nodes[:0], w.nodes...)
		s.r, s.q, s.p = append(s.r[:0], w.r...), append(s.q[:0], w.q...), append(s.p[:0], w.p...)
	}
}

// holds is whether the block is in the state.
func (m *moment) holds(c *cta) bool {
	if c.bars != m.bars {
		return false
	}
	for i, w := range c.warps {
		s := &m.warps[i]
		if s.live != w.live || s.cc != w.cc || s.first != w.firstSplit() || !slices.Equal(s.splits, w.splits) || !slices.Equal(s.nodes, w.nodes) ||
			!slices.Equal(s.p, w.p) || !slices.Equal(s.r, w.r) || !slices.Equal(s.q, w.q) {
			return false
		}
	}
	return true
}

// allEndless is whether each of the blocks on a core has come back to its state since any of them wrote.
func allEndless(running []*cta) bool {
	return !slices.ContainsFunc(running, func(c *cta) bool {
		return c.moment == nil || !c.moment.back || c.moment.changes != c.worker.changes
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
