package gpusim

import (
	"math/bits"
	"slices"
	"sort"
)

// bitset is a set of small numbers.
type bitset []uint64

func newBitset(n int) bitset    { return make(bitset, (n+63)/64) }
func (b bitset) has(i int) bool { return b[i/64]>>(i%64)&1 == 1 }
func (b bitset) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) unset(i int)    { b[i/64] &^= 1 << (i % 64) }
func (b bitset) each(f func(int)) {
	for w, v := range b {
		for ; v != 0; v &= v - 1 {
			f(w*64 + bits.TrailingZeros64(v))
		}
	}
}

// graph is the control flow of a flat function. Block number len(blocks) is the exit.
type graph struct {
	blocks []extent
	ipdom  []int // the block where lanes that part at the end of a block meet again
}

// extent is a basic block: instructions [start, end) and the blocks that may follow.
type extent struct {
	start, end int
	succ       []int
}

// newGraph cuts code into basic blocks. ends says which instructions end one.
func newGraph(f *flat, ends func(in *finst) bool) *graph {
	starts := map[int]bool{0: true}
	for i := range f.code {
		in := &f.code[i]
		for _, t := range in.jumps() {
			starts[f.labels[t]] = true
		}
		if ends(in) {
			starts[i+1] = true
		}
	}
	delete(starts, len(f.code))
	order := make([]int, 0, len(starts))
	for s := range starts {
		order = append(order, s)
	}
	sort.Ints(order)
	at := make(map[int]int, len(order))
	for b, s := range order {
		at[s] = b
	}
	g := &graph{blocks: make([]extent, len(order))}
	for b, s := range order {
		end := len(f.code)
		if b+1 < len(order) {
			end = order[b+1]
		}
		g.blocks[b] = extent{s, end, f.successors(end-1, b, at)}
	}
	g.postDominators()
	return g
}

// jumps are the labels that an instruction may go to.
func (in *finst) jumps() []int {
	switch in.Op {
	case "bra":
		return []int{in.target}
	case "brx":
		return in.targets
	}
	return nil
}

// successors of block b, which ends with instruction i. The target of a branch comes first.
func (f *flat) successors(i, b int, at map[int]int) []int {
	in := &f.code[i]
	var succ []int
	for _, t := range in.jumps() {
		succ = append(succ, at[f.labels[t]])
	}
	if in.Op == "exit" {
		succ = append(succ, len(at))
	}
	if ends := in.Op == "bra" || in.Op == "exit" || in.Op == "brx"; !ends || in.Guard != nil && in.Op != "brx" {
		succ = append(succ, b+1)
	}
	return succ
}

// postDominators fills ipdom by the algorithm of Cooper, Harvey and Kennedy on the reversed graph. A block that cannot
// reach the exit gets the exit: its lanes meet nowhere.
func (g *graph) postDominators() {
	n := len(g.blocks)
	preds := make([][]int, n+1)
	for b, e := range g.blocks {
		for _, s := range e.succ {
			preds[s] = append(preds[s], b)
		}
	}
	rank, order := reversePostorder(preds, n)
	idom := slices.Repeat([]int{-1}, n+1)
	idom[n] = n
	for changed := true; changed; {
		changed = false
		for _, b := range order[1:] {
			best := -1
			for _, s := range g.blocks[b].succ {
				switch {
				case idom[s] < 0:
				case best < 0:
					best = s
				default:
					best = meet(idom, rank, best, s)
				}
			}
			if idom[b] != best {
				idom[b], changed = best, true
			}
		}
	}
	g.ipdom = idom[:n]
	for b, d := range g.ipdom {
		if d < 0 {
			g.ipdom[b] = n
		}
	}
}

func meet(idom, rank []int, a, b int) int {
	for a != b {
		for rank[a] > rank[b] {
			a = idom[a]
		}
		for rank[b] > rank[a] {
			b = idom[b]
		}
	}
	return a
}

// reversePostorder walks from a root and numbers what it reaches; without recursion, as graphs may be deep.
func reversePostorder(next [][]int, root int) (rank, order []int) {
	rank = slices.Repeat([]int{-1}, len(next))
	type visit struct{ node, edge int }
	seen := newBitset(len(next))
	seen.set(root)
	stack := []visit{{root, 0}}
	for len(stack) > 0 {
		v := &stack[len(stack)-1]
		if v.edge == len(next[v.node]) {
			order = append(order, v.node)
			stack = stack[:len(stack)-1]
			continue
		}
		to := next[v.node][v.edge]
		v.edge++
		if !seen.has(to) {
			seen.set(to)
			stack = append(stack, visit{to, 0})
		}
	}
	slices.Reverse(order)
	for i, b := range order {
		rank[b] = i
	}
	return rank, order
}

// usage is what an instruction reads and writes.
type usage struct {
	defs, uses []int
	partial    bool // under a predicate: the old value may survive
}

// liveness finds the registers that are live at the start and the end of each block.
func liveness(g *graph, use []usage, regs int) (in, out []bitset) {
	n := len(g.blocks)
	gen, kill := make([]bitset, n), make([]bitset, n)
	in, out = make([]bitset, n), make([]bitset, n)
	for b, e := range g.blocks {
		gen[b], kill[b] = upward(use[e.start:e.end], regs)
		in[b], out[b] = newBitset(regs), newBitset(regs)
	}
	for changed := true; changed; {
		changed = false
		for b := n - 1; b >= 0; b-- {
			for w := range in[b] {
				var o uint64
				for _, s := range g.blocks[b].succ {
					if s < n {
						o |= in[s][w]
					}
				}
				out[b][w] = o
				if v := gen[b][w] | o&^kill[b][w]; v != in[b][w] {
					in[b][w], changed = v, true
				}
			}
		}
	}
	return in, out
}

// upward finds the registers that a block reads before it writes them, and those that it overwrites.
func upward(use []usage, regs int) (gen, kill bitset) {
	gen, kill = newBitset(regs), newBitset(regs)
	for _, u := range use {
		for _, r := range u.uses {
			if !kill.has(r) {
				gen.set(r)
			}
		}
		if u.partial {
			continue
		}
		for _, r := range u.defs {
			kill.set(r)
		}
	}
	return gen, kill
}

// interval is where a register is alive, in half steps of the code.
type interval struct{ reg, first, last int }

// intervals returns the hull of each register's life, ordered by start, and the greatest number of 32-bit registers
// that are alive at once.
func intervals(g *graph, use []usage, width []int) (ivs []interval, pressure int) {
	in, out := liveness(g, use, len(width))
	first, last := slices.Repeat([]int{-1}, len(width)), make([]int, len(width))
	touch := func(r, at int) {
		if first[r] < 0 || at < first[r] {
			first[r] = at
		}
		last[r] = max(last[r], at)
	}
	for b, e := range g.blocks {
		in[b].each(func(r int) { touch(r, 2*e.start) })
		out[b].each(func(r int) { touch(r, 2*e.end-1) })
		for i := e.start; i < e.end; i++ {
			for _, r := range use[i].uses {
				touch(r, 2*i)
			}
			for _, r := range use[i].defs {
				touch(r, 2*i+1)
				if use[i].partial {
					touch(r, 2*i)
				}
			}
		}
		pressure = max(pressure, blockPressure(e, use, out[b], width))
	}
	for r, f := range first {
		if f >= 0 {
			ivs = append(ivs, interval{r, f, last[r]})
		}
	}
	sort.SliceStable(ivs, func(i, j int) bool { return ivs[i].first < ivs[j].first })
	return ivs, pressure
}

// blockPressure walks a block backwards; width is in 32-bit registers, 0 for a predicate.
func blockPressure(e extent, use []usage, out bitset, width []int) int {
	live := slices.Clone(out)
	n := 0
	live.each(func(r int) { n += width[r] })
	most := n
	for i := e.end - 1; i >= e.start; i-- {
		if !use[i].partial {
			for _, r := range use[i].defs {
				if live.has(r) {
					live.unset(r)
					n -= width[r]
				}
			}
		}
		for _, r := range use[i].uses {
			if !live.has(r) {
				live.set(r)
				n += width[r]
			}
		}
		most = max(most, n)
	}
	return most
}

// allocate gives registers that are never alive together the same slot of their bank, by linear scan.
func allocate(ivs []interval, bank []bankID) (slots []int32, counts [banks]int) {
	slots = make([]int32, len(bank))
	var free [banks][]int32
	var active []interval
	for _, iv := range ivs {
		kept := active[:0]
		for _, a := range active {
			if a.last < iv.first {
				free[bank[a.reg]] = append(free[bank[a.reg]], slots[a.reg])
			} else {
				kept = append(kept, a)
			}
		}
		active = append(kept, iv)
		b := bank[iv.reg]
		if n := len(free[b]); n > 0 {
			slots[iv.reg], free[b] = free[b][n-1], free[b][:n-1]
			continue
		}
		slots[iv.reg] = int32(counts[b])
		counts[b]++
	}
	return slots, counts
}
