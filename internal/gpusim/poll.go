package gpusim

// A volatile load may be a way to wait for another thread or, from the time before __syncwarp, a way to read its data
// without waiting. The code tells: in the first case the value decides whether a loop around the load goes on, or at least
// where the thread goes and nothing else.

// polled finds the strong loads whose value is waited for, or only decides where the thread goes.
func polled(f *flat, g *graph, use []usage) map[*finst]bool {
	found, flows := map[*finst]bool{}, map[int]flow{}
	var waits []int // predicates that decide whether a loop around a load of theirs goes on
	for b, x := range g.blocks {
		for i := x.start; i < x.end; i++ {
			if in := &f.code[i]; in.Op != "ld" || !talking(in.Inst) {
				continue
			}
			flows[i] = f.flowOf(use, i)
			for _, p := range g.exits(f, b) {
				if flows[i].regs[p] {
					waits = append(waits, p)
				}
			}
		}
	}
	for i, fl := range flows {
		is := !fl.data
		for _, p := range waits {
			is = is || fl.regs[p] // a compiler may peel the first turn of the loop
		}
		found[&f.code[i]] = is
	}
	return found
}

// flow is where the result of an instruction goes: the registers that it reaches, and whether it goes anywhere but into
// arithmetic and branches.
type flow struct {
	regs []bool
	data bool
}

func (f *flat) flowOf(use []usage, i int) (fl flow) {
	fl.regs = make([]bool, len(f.regs))
	for _, d := range use[i].defs {
		fl.regs[d] = true
	}
	for changed := true; changed; {
		changed = false
		for j := range f.code {
			in := &f.code[j]
			if in.branches() || !fl.feeds(in, use[j].uses) {
				continue
			}
			if touchesMemory[in.Op] {
				fl.data = true
				continue
			}
			fl.data = fl.data || converges[in.Op]
			for _, d := range use[j].defs {
				changed = changed || !fl.regs[d]
				fl.regs[d] = true
			}
		}
	}
	return fl
}

// feeds is whether an instruction takes what flows. That it accesses memory or not is like a branch.
func (fl *flow) feeds(in *finst, uses []int) bool {
	guard := -1
	if in.Guard != nil && touchesMemory[in.Op] {
		guard = in.guardReg()
	}
	for _, r := range uses {
		if fl.regs[r] && r != guard {
			return true
		}
	}
	return false
}

func (in *finst) branches() bool { return in.Op == "bra" || in.Op == "exit" || in.Op == "brx" }

// guardReg is the register of an instruction's predicate.
func (in *finst) guardReg() int { return in.fr.reg + in.Guard.Reg.ID }

// exits are the predicates of branches that may leave the loop that block b is in.
func (g *graph) exits(f *flat, b int) (preds []int) {
	next, before := make([][]int, len(g.blocks)), make([][]int, len(g.blocks))
	for x, e := range g.blocks {
		for _, s := range e.succ {
			if s < len(g.blocks) {
				next[x], before[s] = append(next[x], s), append(before[s], x)
			}
		}
	}
	after, loop := reachable(next, b), reachable(before, b)
	for x := range loop {
		loop[x] = loop[x] && after[x]
	}
	for x, e := range g.blocks {
		last := &f.code[e.end-1]
		if !loop[x] || last.Guard == nil || !last.branches() {
			continue
		}
		for _, s := range e.succ {
			if s == len(g.blocks) || !loop[s] {
				preds = append(preds, last.guardReg())
				break
			}
		}
	}
	return preds
}

// reachable is the nodes that a path of at least one edge leads to.
func reachable(next [][]int, from int) []bool {
	seen := make([]bool, len(next))
	for todo := next[from]; len(todo) > 0; {
		x := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen[x] {
			seen[x] = true
			todo = append(todo[:len(todo):len(todo)], next[x]...)
		}
	}
	return seen
}
