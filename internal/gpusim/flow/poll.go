package flow

// A volatile load may be a way to wait for another thread or, from the time before __syncwarp, a way to read its data
// without waiting. The code tells: in the first case the value decides whether a loop around the load goes on, or at least
// where the thread goes and nothing else.

// Polled finds the strong loads whose value is waited for, or only decides where the thread goes.
func Polled(f *Flat, g *Graph, use []Usage) map[*Inst]bool {
	found, flows := map[*Inst]bool{}, map[int]spread{}
	var waits []int // predicates that decide whether a loop around a load of theirs goes on
	for b, x := range g.Blocks {
		for i := x.Start; i < x.End; i++ {
			if in := &f.Code[i]; in.Op != "ld" || !Talking(in.Inst) {
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
		found[&f.Code[i]] = is
	}
	return found
}

// spread is where the result of an instruction goes: the registers that it reaches, and whether it goes anywhere but into
// arithmetic and branches.
type spread struct {
	regs []bool
	data bool
}

func (f *Flat) flowOf(use []Usage, i int) (fl spread) {
	fl.regs = make([]bool, len(f.Regs))
	for _, d := range use[i].Defs {
		fl.regs[d] = true
	}
	for changed := true; changed; {
		changed = false
		for j := range f.Code {
			in := &f.Code[j]
			if in.branches() || !fl.feeds(in, use[j].Uses) {
				continue
			}
			if TouchesMemory[in.Op] {
				fl.data = true
				continue
			}
			fl.data = fl.data || Converges[in.Op]
			for _, d := range use[j].Defs {
				changed = changed || !fl.regs[d]
				fl.regs[d] = true
			}
		}
	}
	return fl
}

// feeds is whether an instruction takes what flows. That it accesses memory or not is like a branch.
func (fl *spread) feeds(in *Inst, uses []int) bool {
	guard := -1
	if in.Guard != nil && TouchesMemory[in.Op] {
		guard = in.GuardReg()
	}
	for _, r := range uses {
		if fl.regs[r] && r != guard {
			return true
		}
	}
	return false
}

func (in *Inst) branches() bool { return in.Op == "bra" || in.Op == "exit" || in.Op == "brx" }

// GuardReg is the register of an instruction's predicate.
func (in *Inst) GuardReg() int { return in.Frame.Reg + in.Guard.Reg.ID }

// exits are the predicates of branches that may leave the loop that block b is in.
func (g *Graph) exits(f *Flat, b int) (preds []int) {
	next, before := make([][]int, len(g.Blocks)), make([][]int, len(g.Blocks))
	for x, e := range g.Blocks {
		for _, s := range e.Succ {
			if s < len(g.Blocks) {
				next[x], before[s] = append(next[x], s), append(before[s], x)
			}
		}
	}
	after, loop := reachable(next, b), reachable(before, b)
	for x := range loop {
		loop[x] = loop[x] && after[x]
	}
	for x, e := range g.Blocks {
		last := &f.Code[e.End-1]
		if !loop[x] || last.Guard == nil || !last.branches() {
			continue
		}
		for _, s := range e.Succ {
			if s == len(g.Blocks) || !loop[s] {
				preds = append(preds, last.GuardReg())
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
