package flow

import (
	"math/bits"
	"slices"
	"sort"

	"github.com/warpline-ml/warpline/internal/gpusim/simt"
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

// Graph is the control flow of a flat function. Block number len(blocks) is the exit.
type Graph struct {
	Blocks []extent
	Ipdom  []int // the block where lanes that part at the end of a block meet again
}

// extent is a basic block: instructions [start, end) and the blocks that may follow.
type extent struct {
	Start, End int
	Succ       []int
}

// NewGraph cuts code into basic blocks. ends says which instructions end one.
func NewGraph(f *Flat, ends func(in *Inst) bool) *Graph {
	starts := map[int]bool{0: true}
	for i := range f.Code {
		in := &f.Code[i]
		for _, t := range in.jumps() {
			starts[f.labels[t]] = true
		}
		if ends(in) {
			starts[i+1] = true
		}
	}
	delete(starts, len(f.Code))
	order := make([]int, 0, len(starts))
	for s := range starts {
		order = append(order, s)
	}
	sort.Ints(order)
	at := make(map[int]int, len(order))
	for b, s := range order {
		at[s] = b
	}
	g := &Graph{Blocks: make([]extent, len(order))}
	for b, s := range order {
		end := len(f.Code)
		if b+1 < len(order) {
			end = order[b+1]
		}
		g.Blocks[b] = extent{s, end, f.successors(end-1, b, at)}
	}
	g.postDominators()
	return g
}

// jumps are the labels that an instruction may go to.
func (in *Inst) jumps() []int {
	switch in.Op {
	case "bra":
		return []int{in.target}
	case "brx":
		return in.targets
	}
	return nil
}

// successors of block b, which ends with instruction i. The target of a branch comes first.
func (f *Flat) successors(i, b int, at map[int]int) []int {
	in := &f.Code[i]
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
func (g *Graph) postDominators() {
	n := len(g.Blocks)
	preds := make([][]int, n+1)
	for b, e := range g.Blocks {
		for _, s := range e.Succ {
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
			for _, s := range g.Blocks[b].Succ {
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
	g.Ipdom = idom[:n]
	for b, d := range g.Ipdom {
		if d < 0 {
			g.Ipdom[b] = n
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

// Usage is what an instruction reads and writes.
type Usage struct {
	Defs, Uses []int
	Partial    bool // under a predicate: the old value may survive
}

// liveness finds the registers that are live at the start and the end of each block.
func liveness(g *Graph, use []Usage, regs int) (in, out []bitset) {
	n := len(g.Blocks)
	gen, kill := make([]bitset, n), make([]bitset, n)
	in, out = make([]bitset, n), make([]bitset, n)
	for b, e := range g.Blocks {
		gen[b], kill[b] = upward(use[e.Start:e.End], regs)
		in[b], out[b] = newBitset(regs), newBitset(regs)
	}
	for changed := true; changed; {
		changed = false
		for b := n - 1; b >= 0; b-- {
			for w := range in[b] {
				var o uint64
				for _, s := range g.Blocks[b].Succ {
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
func upward(use []Usage, regs int) (gen, kill bitset) {
	gen, kill = newBitset(regs), newBitset(regs)
	for _, u := range use {
		for _, r := range u.Uses {
			if !kill.has(r) {
				gen.set(r)
			}
		}
		if u.Partial {
			continue
		}
		for _, r := range u.Defs {
			kill.set(r)
		}
	}
	return gen, kill
}

// Interval is where a register is alive, in half steps of the code.
type Interval struct{ Reg, first, last int }

// Intervals returns the hull of each register's life, ordered by start, and the greatest number of 32-bit registers
// that are alive at once.
func Intervals(g *Graph, use []Usage, width []int) (ivs []Interval, pressure int) {
	in, out := liveness(g, use, len(width))
	first, last := slices.Repeat([]int{-1}, len(width)), make([]int, len(width))
	touch := func(r, at int) {
		if first[r] < 0 || at < first[r] {
			first[r] = at
		}
		last[r] = max(last[r], at)
	}
	for b, e := range g.Blocks {
		in[b].each(func(r int) { touch(r, 2*e.Start) })
		out[b].each(func(r int) { touch(r, 2*e.End-1) })
		for i := e.Start; i < e.End; i++ {
			for _, r := range use[i].Uses {
				touch(r, 2*i)
			}
			for _, r := range use[i].Defs {
				touch(r, 2*i+1)
				if use[i].Partial {
					touch(r, 2*i)
				}
			}
		}
		pressure = max(pressure, blockPressure(e, use, out[b], width))
	}
	for r, f := range first {
		if f >= 0 {
			ivs = append(ivs, Interval{r, f, last[r]})
		}
	}
	sort.SliceStable(ivs, func(i, j int) bool { return ivs[i].first < ivs[j].first })
	return ivs, pressure
}

// blockPressure walks a block backwards; width is in 32-bit registers, 0 for a predicate.
func blockPressure(e extent, use []Usage, out bitset, width []int) int {
	live := slices.Clone(out)
	n := 0
	live.each(func(r int) { n += width[r] })
	most := n
	for i := e.End - 1; i >= e.Start; i-- {
		if !use[i].Partial {
			for _, r := range use[i].Defs {
				if live.has(r) {
					live.unset(r)
					n -= width[r]
				}
			}
		}
		for _, r := range use[i].Uses {
			if !live.has(r) {
				live.set(r)
				n += width[r]
			}
		}
		most = max(most, n)
	}
	return most
}

// Allocate gives registers that are never alive together the same slot of their bank, by linear scan.
func Allocate(ivs []Interval, bank []simt.Bank) (slots []int32, counts [simt.Banks]int) {
	slots = make([]int32, len(bank))
	var free [simt.Banks][]int32
	var active []Interval
	for _, iv := range ivs {
		kept := active[:0]
		for _, a := range active {
			if a.last < iv.first {
				free[bank[a.Reg]] = append(free[bank[a.Reg]], slots[a.Reg])
			} else {
				kept = append(kept, a)
			}
		}
		active = append(kept, iv)
		b := bank[iv.Reg]
		if n := len(free[b]); n > 0 {
			slots[iv.Reg], free[b] = free[b][n-1], free[b][:n-1]
			continue
		}
		slots[iv.Reg] = int32(counts[b])
		counts[b]++
	}
	return slots, counts
}
