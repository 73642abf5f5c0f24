// Package warp runs compiled kernels: warps, whose lanes part and meet again, the blocks that they belong to with their
// shared memory and barriers, and their accesses to memory with the checks that are on. What an instruction does is an Op,
// which package compile makes.
package warp

import (
	"github.com/warpline-ml/warpline/internal/gpusim/arith"
	"github.com/warpline-ml/warpline/internal/gpusim/lanes"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

// Warp is 32 lanes. Lanes that part become splits, which meet again at the block that post-dominates the branch, or at
// an instruction that waits for them.
type Warp struct {
	CTA        *CTA
	Code       *Code
	Id         uint32
	R32        []simt.Vec32
	R64        []simt.Vec64
	Preds      []uint32        // predicates: a mask of lanes each
	Mask       uint32          // the lanes that run now
	live       uint32          // the lanes that have not exited
	born       uint32          // the lanes that there ever were
	early      uint32          // of those that have exited: see leaving
	Cc         uint32          // carry bits
	Undef      []uint32        // by virtual register: lanes that never wrote it
	UndefBytes map[int]*ByByte // the same by byte, of registers that vectors are packed into
	Local      []byte

	LocalUndef []byte                // 1 for each byte of local that nobody wrote, under initcheck
	From       *[simt.WarpSize]uint8 // the lanes that the last shuffle read
	FromAny    [simt.WarpSize]uint8

	async     lanes.AsyncState
	registers int // of each thread, by setmaxnreg; 0 before
	products  products
	groups    *[simt.WarpSize]int64 // by lane: of bulk copies, once there are any
	arrived   [simt.WarpSize]uint32 // by lane: the phase of the cluster's barrier in which it arrived, 0 once it has waited
	yield     bool                  // the warp waits for others: it ends its turn

	Stack [simt.WarpSize]uint32 // bytes that alloca has taken, by lane

	Seen bool // the access under way has been checked and counted

	splits []split
	nodes  []node
	turn   int    // which split runs next
	ran    uint32 // lanes that have run since the state of the block was kept

	tmp  [4]simt.Vec64
	T32  simt.Vec32
	T64  simt.Vec64
	Addr simt.Vec64
	Data [16]byte           // what the lane is about to store
	Off  [simt.WarpSize]int // of addresses within the memory that area found
	Row  bool               // these follow each other
}

type splitState uint8

const (
	ready splitState = iota
	atSync
	atBar
	atCluster
	atProducts
)

// split is lanes of a warp that run together.
type split struct {
	pc    int
	mask  uint32
	node  int // where they wait for their siblings; -1 nowhere
	state splitState
	bar   uint32 // the barrier waited for
}

// node is a meeting of lanes that parted: those that arrived wait for the pending ones at block pc.
type node struct {
	pc               int
	pending, arrived uint32
	parent           int
	used             bool
}

// Wide returns a slot as 64-bit values; scratch says which buffer to widen into.
func (w *Warp) Wide(s Slot, scratch int) *simt.Vec64 {
	if s.Bank == simt.Bank64 {
		return &w.R64[s.I]
	}
	t := &w.tmp[scratch]
	for i, v := range &w.R32[s.I] {
		t[i] = uint64(v)
	}
	return t
}

// Put writes the active lanes of a slot.
func (w *Warp) Put(d Slot, v *simt.Vec64) {
	if d.Bank == simt.Bank64 {
		out := &w.R64[d.I]
		for m := w.Mask; m != 0; m &= m - 1 {
			i := simt.Lowest(m)
			out[i] = v[i]
		}
		return
	}
	out, keep := &w.R32[d.I], uint32(1<<d.Bits-1)
	for m := w.Mask; m != 0; m &= m - 1 {
		i := simt.Lowest(m)
		out[i] = uint32(v[i]) & keep
	}
}

// Get reads one lane.
func (w *Warp) Get(s Slot, lane int) uint64 {
	if s.Bank == simt.Bank64 {
		return w.R64[s.I][lane]
	}
	return uint64(w.R32[s.I][lane])
}

// Set writes one lane.
func (w *Warp) Set(d Slot, lane int, v uint64) {
	if d.Bank == simt.Bank64 {
		w.R64[d.I][lane] = v
		return
	}
	w.R32[d.I][lane] = uint32(v) & uint32(1<<d.Bits-1)
}

// Pred is the mask of lanes in which a predicate holds, or does not.
func (w *Warp) Pred(i int32, neg bool) uint32 {
	if neg {
		return ^w.Preds[i]
	}
	return w.Preds[i]
}

// SetPred writes a predicate in the active lanes.
func (w *Warp) SetPred(i int32, m uint32) { w.Preds[i] = w.Preds[i]&^w.Mask | m&w.Mask }

// Compare is the mask of active lanes for which f holds.
func (w *Warp) Compare(f arith.Compare, a, b Slot) uint32 {
	x, y := w.Wide(a, 0), w.Wide(b, 1)
	var r uint32
	for m := w.Mask; m != 0; m &= m - 1 {
		if i := simt.Lowest(m); f(x[i], y[i]) {
			r |= 1 << i
		}
	}
	return r
}

// SetSpecial reads a special register for all lanes, once if they all have the same.
func (w *Warp) SetSpecial(s Special) {
	if s.Uniform {
		v := s.Read(w, 0)
		if s.Slot.Bank == simt.BankPred {
			w.Preds[s.Slot.I] = simt.Full * uint32(v)
		} else if s.Slot.Bank == simt.Bank64 {
			fill(&w.R64[s.Slot.I], v)
		} else {
			fill(&w.R32[s.Slot.I], uint32(v)&uint32(1<<s.Slot.Bits-1))
		}
		return
	}
	for i := range uint32(simt.WarpSize) {
		w.Set(s.Slot, int(i), s.Read(w, i))
	}
}

func fill[T any](d *[simt.WarpSize]T, v T) {
	for i := range d {
		d[i] = v
	}
}

// quantum is how many basic blocks a split runs before others get a turn. Kernels whose threads may wait for each other
// switch early, so that who is waited for gets on.
func (w *Warp) quantum() int {
	if w.Code.Waits {
		return 256
	}
	return 1 << 14
}

// run lets the warp go on until all its splits wait or have exited, or a quantum is over. It reports whether anything
// ran, and whether a quantum ran out.
func (w *Warp) run() (progress, spun bool) {
	for left := w.turns(); w.live != 0 && w.CTA.Fault == nil; left-- {
		s := w.pick()
		if s < 0 {
			if !w.unblock() {
				return progress, false
			}
			continue
		}
		progress = true
		w.ran |= w.splits[s].mask
		if w.runSplit(s) || left <= 0 {
			w.turn++
			if w.Code.Waits {
				w.releaseEarly()
			}
			return true, true
		}
	}
	return progress, false
}

// turns is how often splits take turns before another warp gets one. Under the independent schedule warps and blocks whose
// threads talk change early too, so that who waits sees each step of the others.
func (w *Warp) turns() int {
	if w.Code.Talks && w.CTA.Launch.Independent {
		return int(w.CTA.random() % 64)
	}
	return 512
}

// pick chooses a split that can run; by chance under the independent schedule.
func (w *Warp) pick() int {
	n := len(w.splits)
	if n == 0 {
		return -1
	}
	start := w.turn
	if w.CTA.Launch.Independent {
		start = int(w.CTA.random() >> 1)
	}
	for i := range n {
		if s := (start + i) % n; w.splits[s].state == ready {
			return s
		}
	}
	return -1
}

// runSplit runs split s until it waits, parts, meets, exits or has had its quantum, which it reports.
func (w *Warp) runSplit(s int) bool {
	sp := w.splits[s]
	pc, mask := sp.pc, sp.mask
	meet := -1
	if sp.node >= 0 {
		meet = w.nodes[sp.node].pc
	}
	c, blocks := w.CTA, w.Code.Blocks
	for left := w.quantum(); left > 0; {
		if pc == meet {
			w.arrive(s)
			return false
		}
		b := &blocks[pc]
		if b.Chain.Blocks > 0 && mask == simt.Full && meet < 0 && w.defined(&b.Chain) {
			var ok bool
			if pc, left, ok = w.runChain(pc, left); !ok {
				return false
			}
			b = &blocks[pc]
			if b.Term.InChain() {
				pc = b.Next
				continue
			}
		} else {
			if !w.runBlock(pc, b, mask) {
				return false
			}
			left--
		}
		w.splits[s].pc = pc
		var again bool
		if pc, again = w.next(s, b); !again {
			return false
		}
		if w.yield {
			w.yield, w.splits[s].pc = false, pc
			return true
		}
		mask = w.splits[s].mask
		if b.Memory && c.Launch.Independent {
			w.splits[s].pc = pc
			return false
		}
	}
	w.splits[s].pc, w.yield = pc, false
	return true
}

// runBlock runs a block for some lanes, up to its terminator. It reports whether the kernel goes on.
func (w *Warp) runBlock(pc int, b *Basic, mask uint32) bool {
	c := w.CTA
	c.Execs[pc]++
	c.Lanes[pc] += simt.LanesOf(mask)
	c.Steps += b.N
	w.Mask = mask
	for _, f := range b.Ops {
		f(w)
	}
	if c.Fault != nil {
		return false
	}
	if b.Term.Poison != nil {
		b.Term.Poison(w)
	}
	return true
}

// next carries out the terminator of block b for split s. It returns where the split goes on, or false when another
// split must be chosen.
func (w *Warp) next(s int, b *Basic) (pc int, again bool) {
	t := &b.Term
	switch t.Kind {
	case TermJump:
		return b.Targets[0], true
	case TermBranch:
		return w.branch(s, b, w.Pred(t.P, t.Neg)&w.Mask)
	case TermIndex:
		return w.branchIndexed(s, b)
	case TermExit:
		return w.exitSplit(s, b)
	case TermSync:
		return b.Next, w.reach(s, t)
	case TermBar:
		return w.barrier(s, b)
	case TermCluster:
		return w.waitForCluster(s, b)
	case TermProducts:
		return w.waitForProducts(s, b)
	}
	return b.Next, true
}

func (w *Warp) branch(s int, b *Basic, taken uint32) (int, bool) {
	w.CTA.Branches++
	switch taken {
	case w.Mask:
		w.leaving(b.Targets[0], taken)
		return b.Targets[0], true
	case 0:
		w.leaving(b.Next, w.Mask)
		return b.Next, true
	}
	w.leaving(b.Targets[0], taken)
	w.leaving(b.Next, w.Mask&^taken)
	w.diverge(s, b.Ipdom, []split{{pc: b.Targets[0], mask: taken}, {pc: b.Next, mask: w.Mask &^ taken}})
	return 0, false
}

func (w *Warp) branchIndexed(s int, b *Basic) (int, bool) {
	w.CTA.Branches++
	var parts []split
	for m := w.Mask; m != 0; {
		k := w.Get(b.Term.Index, simt.Lowest(m))
		if k >= uint64(len(b.Targets)) {
			w.CTA.Stop(w, b.Term.Site, simt.Lowest(m), memory.IllegalInstruction, 0, "an index past the end of the branch table")
			return 0, false
		}
		var same uint32
		for n := m; n != 0; n &= n - 1 {
			if i := simt.Lowest(n); w.Get(b.Term.Index, i) == k {
				same |= 1 << i
			}
		}
		parts = append(parts, split{pc: b.Targets[k], mask: same})
		m &^= same
	}
	if len(parts) == 1 {
		return parts[0].pc, true
	}
	w.diverge(s, b.Ipdom, parts)
	return 0, false
}

// diverge replaces split s by several, which meet at block ipdom.
func (w *Warp) diverge(s, ipdom int, parts []split) {
	w.CTA.Parted[w.splits[s].pc]++
	parent := w.splits[s].node
	n := parent
	if !w.CTA.Launch.Independent && ipdom < len(w.Code.Blocks) && (n < 0 || w.nodes[n].pc != ipdom) {
		n = w.newNode(node{pc: ipdom, pending: w.Mask, parent: parent, used: true})
	}
	for i := range parts {
		parts[i].node = n
	}
	w.splits[s] = parts[0]
	w.splits = append(w.splits, parts[1:]...)
}

func (w *Warp) newNode(n node) int {
	for i := range w.nodes {
		if !w.nodes[i].used {
			w.nodes[i] = n
			return i
		}
	}
	w.nodes = append(w.nodes, n)
	return len(w.nodes) - 1
}

func (w *Warp) remove(s int) {
	last := len(w.splits) - 1
	w.splits[s] = w.splits[last]
	w.splits = w.splits[:last]
}

// arrive ends split s at its meeting.
func (w *Warp) arrive(s int) {
	sp := w.splits[s]
	n := &w.nodes[sp.node]
	n.arrived |= sp.mask
	n.pending &^= sp.mask
	w.remove(s)
	w.settle(sp.node)
}

// settle lets the lanes of a meeting go on when none is missing.
func (w *Warp) settle(i int) {
	n := &w.nodes[i]
	if !n.used || n.pending != 0 {
		return
	}
	n.used = false
	if n.arrived != 0 {
		w.splits = append(w.splits, split{pc: n.pc, mask: n.arrived, node: n.parent})
	}
}

// releaseEarly lets lanes go on that wait for others, which may be waiting for them: a lock is held by one who left the
// loop. It reports whether there were any.
func (w *Warp) releaseEarly() bool {
	any := false
	for i := range w.nodes {
		if n := &w.nodes[i]; n.used && n.arrived != 0 {
			any = true
			w.splits = append(w.splits, split{pc: n.pc, mask: n.arrived, node: n.parent})
			n.arrived = 0
		}
	}
	return any
}

// exitSplit ends the lanes of split s for which the predicate of an exit holds.
func (w *Warp) exitSplit(s int, b *Basic) (int, bool) {
	gone := w.Mask
	if b.Term.P >= 0 {
		gone &= w.Pred(b.Term.P, b.Term.Neg)
		w.leave(gone)
	}
	if gone == 0 {
		return b.Next, true
	}
	if w.Code.Async {
		w.FinishAsync(gone, 0)
		w.finishBulk(gone)
	}
	w.live &^= gone
	rest := w.Mask &^ gone
	if rest == 0 {
		w.remove(s)
	} else {
		w.splits[s].mask = rest
		w.splits[s].pc = b.Next
	}
	for i := range w.nodes {
		if w.nodes[i].used {
			w.nodes[i].pending &^= gone
			w.nodes[i].arrived &^= gone
			w.settle(i)
		}
	}
	if w.Code.Clusters {
		w.CTA.cluster.complete()
	}
	if w.live == 0 && w.Code.Bulk {
		w.wakeFour()
	}
	if rest != 0 {
		w.Mask = rest
		return b.Next, true
	}
	if w.live == 0 {
		w.CTA.warpExited()
	} else {
		w.lanesExited()
	}
	return 0, false
}

// Nanoseconds is a clock that depends on nothing but what the block has executed: one instruction is one nanosecond.
func (w *Warp) Nanoseconds() uint64 { return w.CTA.Launch.Serial<<32 + uint64(w.CTA.Steps) }

// Tick reads the clock, which is the number of instructions that the block has run and rises with each read.
func (w *Warp) Tick() uint64 {
	w.CTA.Steps++
	return uint64(w.CTA.Steps)
}
