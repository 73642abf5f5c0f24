package gpusim

import "math/bits"

const (
	warpSize = 32
	full     = ^uint32(0)
)

type (
	vec32 = [warpSize]uint32
	vec64 = [warpSize]uint64
)

func lowest(m uint32) int { return bits.TrailingZeros32(m) & 31 }

// warp is 32 lanes. Lanes that part become splits, which meet again at the block that post-dominates the branch, or at
// an instruction that waits for them.
type warp struct {
	cta   *cta
	code  *code
	id    uint32
	r     []vec32
	q     []vec64
	p     []uint32       // predicates: a mask of lanes each
	mask  uint32         // the lanes that run now
	live  uint32         // the lanes that have not exited
	born  uint32         // the lanes that there ever were
	cc    uint32         // carry bits
	undef []uint32       // by virtual register: lanes that never wrote it
	parts map[int]*parts // the same by byte, of registers that vectors are packed into
	local []byte

	localUndef []byte           // 1 for each byte of local that nobody wrote, under initcheck
	from       *[warpSize]uint8 // the lanes that the last shuffle read
	fromAny    [warpSize]uint8

	async asyncState

	stack [warpSize]uint32 // bytes that alloca has taken, by lane

	seen bool // the access under way has been checked and counted

	splits []split
	nodes  []node
	turn   int // which split runs next

	tmp  [4]vec64
	t32  vec32
	t64  vec64
	addr vec64
	data [16]byte      // what the lane is about to store
	off  [warpSize]int // of addresses within the memory that area found
	row  bool          // these follow each other
}

type splitState uint8

const (
	ready splitState = iota
	atSync
	atBar
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

// wide returns a slot as 64-bit values; scratch says which buffer to widen into.
func (w *warp) wide(s slot, scratch int) *vec64 {
	if s.bank == bank64 {
		return &w.q[s.i]
	}
	t := &w.tmp[scratch]
	for i, v := range &w.r[s.i] {
		t[i] = uint64(v)
	}
	return t
}

// put writes the active lanes of a slot.
func (w *warp) put(d slot, v *vec64) {
	if d.bank == bank64 {
		out := &w.q[d.i]
		for m := w.mask; m != 0; m &= m - 1 {
			i := lowest(m)
			out[i] = v[i]
		}
		return
	}
	out, keep := &w.r[d.i], uint32(1<<d.bits-1)
	for m := w.mask; m != 0; m &= m - 1 {
		i := lowest(m)
		out[i] = uint32(v[i]) & keep
	}
}

// get reads one lane.
func (w *warp) get(s slot, lane int) uint64 {
	if s.bank == bank64 {
		return w.q[s.i][lane]
	}
	return uint64(w.r[s.i][lane])
}

// set writes one lane.
func (w *warp) set(d slot, lane int, v uint64) {
	if d.bank == bank64 {
		w.q[d.i][lane] = v
		return
	}
	w.r[d.i][lane] = uint32(v) & uint32(1<<d.bits-1)
}

func (w *warp) pred(i int32, neg bool) uint32 {
	if neg {
		return ^w.p[i]
	}
	return w.p[i]
}

func (w *warp) setPred(i int32, m uint32) { w.p[i] = w.p[i]&^w.mask | m&w.mask }

// compare is the mask of active lanes for which f holds.
func (w *warp) compare(f compare, a, b slot) uint32 {
	x, y := w.wide(a, 0), w.wide(b, 1)
	var r uint32
	for m := w.mask; m != 0; m &= m - 1 {
		if i := lowest(m); f(x[i], y[i]) {
			r |= 1 << i
		}
	}
	return r
}

// setSpecial reads a special register for all lanes, once if they all have the same.
func (w *warp) setSpecial(s special) {
	if s.uniform {
		v := s.read(w, 0)
		if s.slot.bank == bank64 {
			fill(&w.q[s.slot.i], v)
		} else {
			fill(&w.r[s.slot.i], uint32(v)&uint32(1<<s.slot.bits-1))
		}
		return
	}
	for i := range uint32(warpSize) {
		w.set(s.slot, int(i), s.read(w, i))
	}
}

func fill[T any](d *[warpSize]T, v T) {
	for i := range d {
		d[i] = v
	}
}

// quantum is how many basic blocks a split runs before others get a turn. Kernels whose threads may wait for each other
// switch early, so that who is waited for gets on.
func (w *warp) quantum() int {
	if w.code.talks {
		return 256
	}
	return 1 << 14
}

// run lets the warp go on until all its splits wait or have exited, or a quantum is over. It reports whether anything
// ran, and whether a quantum ran out.
func (w *warp) run() (progress, spun bool) {
	const turns = 512 // between splits, before another warp gets one
	for left := turns; w.live != 0 && w.cta.fault == nil; left-- {
		s := w.pick()
		if s < 0 {
			if !w.unblock() {
				return progress, false
			}
			continue
		}
		progress = true
		if w.runSplit(s) || left <= 0 {
			w.turn++
			if w.code.talks {
				w.releaseEarly()
			}
			return true, true
		}
	}
	return progress, false
}

// pick chooses a split that can run; by chance under the independent schedule.
func (w *warp) pick() int {
	n := len(w.splits)
	if n == 0 {
		return -1
	}
	start := w.turn
	if w.cta.grid.independent {
		start = int(w.cta.random() >> 1)
	}
	for i := range n {
		if s := (start + i) % n; w.splits[s].state == ready {
			return s
		}
	}
	return -1
}

// runSplit runs split s until it waits, parts, meets, exits or has had its quantum, which it reports.
func (w *warp) runSplit(s int) bool {
	sp := w.splits[s]
	pc, mask := sp.pc, sp.mask
	meet := -1
	if sp.node >= 0 {
		meet = w.nodes[sp.node].pc
	}
	c, blocks := w.cta, w.code.blocks
	for left := w.quantum(); left > 0; {
		if pc == meet {
			w.arrive(s)
			return false
		}
		b := &blocks[pc]
		if b.chain.blocks > 0 && mask == full && meet < 0 && w.defined(&b.chain) {
			var ok bool
			if pc, left, ok = w.runChain(pc, left); !ok {
				return false
			}
			b = &blocks[pc]
			if b.term.inChain() {
				pc = b.next
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
		mask = w.splits[s].mask
		if b.memory && c.grid.independent {
			w.splits[s].pc = pc
			return false
		}
	}
	w.splits[s].pc = pc
	return true
}

// runBlock runs a block for some lanes, up to its terminator. It reports whether the kernel goes on.
func (w *warp) runBlock(pc int, b *basic, mask uint32) bool {
	c := w.cta
	c.execs[pc]++
	c.lanes[pc] += lanesOf(mask)
	c.steps += b.n
	w.mask = mask
	for _, f := range b.ops {
		f(w)
	}
	if c.fault != nil {
		return false
	}
	if b.term.poison != nil {
		b.term.poison(w)
	}
	return true
}

// next carries out the terminator of block b for split s. It returns where the split goes on, or false when another
// split must be chosen.
func (w *warp) next(s int, b *basic) (pc int, again bool) {
	t := &b.term
	switch t.kind {
	case termJump:
		return b.targets[0], true
	case termBranch:
		return w.branch(s, b, w.pred(t.p, t.neg)&w.mask)
	case termIndex:
		return w.branchIndexed(s, b)
	case termExit:
		return w.exitSplit(s, b)
	case termSync:
		return b.next, w.reach(s, t)
	case termBar:
		return w.barrier(s, b)
	}
	return b.next, true
}

func (w *warp) branch(s int, b *basic, taken uint32) (int, bool) {
	w.cta.branches++
	switch taken {
	case w.mask:
		return b.targets[0], true
	case 0:
		return b.next, true
	}
	w.part(s, b.ipdom, []split{{pc: b.targets[0], mask: taken}, {pc: b.next, mask: w.mask &^ taken}})
	return 0, false
}

func (w *warp) branchIndexed(s int, b *basic) (int, bool) {
	w.cta.branches++
	var parts []split
	for m := w.mask; m != 0; {
		k := w.get(b.term.index, lowest(m))
		if k >= uint64(len(b.targets)) {
			w.cta.stop(w, b.term.site, lowest(m), IllegalInstruction, 0, "an index past the end of the branch table")
			return 0, false
		}
		var same uint32
		for n := m; n != 0; n &= n - 1 {
			if i := lowest(n); w.get(b.term.index, i) == k {
				same |= 1 << i
			}
		}
		parts = append(parts, split{pc: b.targets[k], mask: same})
		m &^= same
	}
	if len(parts) == 1 {
		return parts[0].pc, true
	}
	w.part(s, b.ipdom, parts)
	return 0, false
}

// part replaces split s by several, which meet at block ipdom.
func (w *warp) part(s, ipdom int, parts []split) {
	w.cta.divergent++
	parent := w.splits[s].node
	n := parent
	if !w.cta.grid.independent && ipdom < len(w.code.blocks) && (n < 0 || w.nodes[n].pc != ipdom) {
		n = w.newNode(node{pc: ipdom, pending: w.mask, parent: parent, used: true})
	}
	for i := range parts {
		parts[i].node = n
	}
	w.splits[s] = parts[0]
	w.splits = append(w.splits, parts[1:]...)
}

func (w *warp) newNode(n node) int {
	for i := range w.nodes {
		if !w.nodes[i].used {
			w.nodes[i] = n
			return i
		}
	}
	w.nodes = append(w.nodes, n)
	return len(w.nodes) - 1
}

func (w *warp) remove(s int) {
	last := len(w.splits) - 1
	w.splits[s] = w.splits[last]
	w.splits = w.splits[:last]
}

// arrive ends split s at its meeting.
func (w *warp) arrive(s int) {
	sp := w.splits[s]
	n := &w.nodes[sp.node]
	n.arrived |= sp.mask
	n.pending &^= sp.mask
	w.remove(s)
	w.settle(sp.node)
}

// settle lets the lanes of a meeting go on when none is missing.
func (w *warp) settle(i int) {
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
func (w *warp) releaseEarly() bool {
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
func (w *warp) exitSplit(s int, b *basic) (int, bool) {
	gone := w.mask
	if b.term.p >= 0 {
		gone &= w.pred(b.term.p, b.term.neg)
	}
	if gone == 0 {
		return b.next, true
	}
	if w.code.async {
		w.finishAsync(gone, 0)
	}
	w.live &^= gone
	rest := w.mask &^ gone
	if rest == 0 {
		w.remove(s)
	} else {
		w.splits[s].mask = rest
		w.splits[s].pc = b.next
	}
	for i := range w.nodes {
		if w.nodes[i].used {
			w.nodes[i].pending &^= gone
			w.nodes[i].arrived &^= gone
			w.settle(i)
		}
	}
	if rest != 0 {
		w.mask = rest
		return b.next, true
	}
	if w.live == 0 {
		w.cta.warpExited()
	} else {
		w.lanesExited()
	}
	return 0, false
}
