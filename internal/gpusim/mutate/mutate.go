// Package mutate judges the checks of the simulated GPU: it breaks correct kernels in small ways, and asks whether a
// check reports what was broken.
//
// A Case is a correct kernel with a launch. Open parses it, lists its mutants, and Case.Try runs one under several
// schedules. Verdicts are counted by category: mutants of the synchronisation of shared memory, and mutants of bounds,
// for which Open has an oracle of its own that does not rest on memcheck.
package mutate

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// Kind is a way to break a kernel.
type Kind string

// The kinds. A mutant of Barrier, SyncWarp, Wait, Commit, Stage, Member, Arrive, Fence, Swap, Scope, Semantics and Plain breaks synchronisation; of Guard,
// Branch and Bound a condition that usually keeps accesses in bounds; of Shuffle and Rank only which value a lane gets.
const (
	Barrier   Kind = "barrier"   // a bar or barrier instruction dropped, of the barrier of a cluster either half or both
	SyncWarp  Kind = "syncwarp"  // a bar.warp.sync dropped
	Wait      Kind = "wait"      // a wait_group ±1, or for what is read alone, the other phase of an mbarrier, or any wait dropped
	Commit    Kind = "commit"    // a commit_group dropped
	Stage     Kind = "stage"     // of the arithmetic that goes through the stages of a pipeline a constant ±1, or the way back to the first
	Member    Kind = "member"    // a lane taken out of a member mask
	Arrive    Kind = "arrive"    // an arrival at an mbarrier dropped, its arrivals ±1, bytes that come or are expected ±16, or for one block alone
	Fence     Kind = "fence"     // a fence or membar dropped
	Swap      Kind = "swap"      // a fence and the strong write behind it change places
	Scope     Kind = "scope"     // .cta instead of a wider scope, the barrier of the block instead of the cluster's, the wrong memory of a proxy fence
	Semantics Kind = "semantics" // .relaxed instead of .acquire, .release and .acq_rel, said or by default
	Plain     Kind = "plain"     // a volatile or relaxed load or store made a plain one
	Guard     Kind = "guard"     // the predicate of a memory access dropped
	Branch    Kind = "branch"    // a forward branch dropped
	Bound     Kind = "bound"     // a comparison of integers off by one
	Shuffle   Kind = "shuffle"   // the lane or the segment of a shuffle
	Rank      Kind = "rank"      // the block's own shared memory instead of another's
)

// Kinds lists the kinds in the order of reports.
var Kinds = []Kind{Barrier, SyncWarp, Wait, Commit, Stage, Member, Arrive, Fence, Swap, Scope, Semantics, Plain, Guard, Branch, Bound, Shuffle, Rank}

// Synchronises reports whether mutants of the kind break the synchronisation of shared memory or of lanes.
func (k Kind) Synchronises() bool {
	switch k {
	case Barrier, SyncWarp, Wait, Commit, Stage, Member, Arrive, Fence, Swap, Scope, Semantics, Plain:
		return true
	}
	return false
}

// Values reports whether a mutant of the kind only changes values, which is in itself no error.
func (k Kind) Values() bool { return k == Shuffle || k == Rank }

// Mutant is one change of a kernel. Its ID is stable as long as the kernel's instructions are.
type Mutant struct {
	ID   string // "kernel kind n: what"
	Kind Kind
	Line int // in the PTX
	What string

	set func(on bool)
}

// mutator lists the mutants of a function.
type mutator struct {
	fn    *ptx.Func
	found []*Mutant
	count map[Kind]int
	last  map[int]int // by label: the place of its definition
	at    int
	loop  *dataflow
}

// mutants lists every mutant of a kernel. Setting one changes the tree in place.
func mutants(fn *ptx.Func) []*Mutant {
	m := &mutator{fn: fn, count: map[Kind]int{}, last: map[int]int{}, loop: newDataflow(fn)}
	m.labels(fn.Body)
	m.at = 0
	m.block(fn.Body)
	return m.found
}

func (m *mutator) labels(b *ptx.Block) {
	for _, s := range b.Stmts {
		m.at++
		switch s := s.(type) {
		case *ptx.LabelDef:
			m.last[s.ID] = m.at
		case *ptx.Block:
			m.labels(s)
		}
	}
}

func (m *mutator) block(b *ptx.Block) {
	for i, s := range b.Stmts {
		m.at++
		switch s := s.(type) {
		case *ptx.Inst:
			m.inst(b, i, s)
		case *ptx.Block:
			m.block(s)
		}
	}
}

func (m *mutator) add(k Kind, in *ptx.Inst, what string, set func(on bool)) {
	m.count[k]++
	id := fmt.Sprintf("%s %s %d: %s", m.fn.Name, k, m.count[k], what)
	m.found = append(m.found, &Mutant{id, k, in.Pos.Line, what, set})
}

// drop replaces a statement by nothing.
func (m *mutator) drop(k Kind, b *ptx.Block, i int, in *ptx.Inst) {
	m.add(k, in, in.Name()+" dropped", func(on bool) {
		b.Stmts[i] = in
		if on {
			b.Stmts[i] = &ptx.Block{Pos: in.Pos}
		}
	})
}

// imm replaces an immediate operand.
func (m *mutator) imm(k Kind, in *ptx.Inst, at *ptx.Operand, to int64) {
	old := (*at).(*ptx.Imm)
	changed := *old
	changed.Bits = uint64(to)
	m.add(k, in, fmt.Sprintf("%s: %d instead of %d", in.Name(), to, old.Int()), func(on bool) {
		*at = old
		if on {
			*at = &changed
		}
	})
}

// same makes operand i of a selp what operand from is.
func (m *mutator) same(in *ptx.Inst, from, i int, what string) {
	old := in.Args[i]
	m.add(Stage, in, in.Name()+": "+what, func(on bool) {
		in.Args[i] = old
		if on {
			in.Args[i] = in.Args[from]
		}
	})
}

func (m *mutator) inst(b *ptx.Block, i int, in *ptx.Inst) {
	switch in.Op {
	case "bar", "barrier":
		m.barrier(b, i, in)
	case "cp":
		m.groups(b, i, in)
	case "shfl", "vote", "match", "redux":
		m.member(in, len(in.Args)-1)
		if in.Op == "shfl" {
			m.shuffle(in)
		}
	case "bra":
		m.branch(b, i, in)
	case "setp":
		m.bound(in)
	}
	m.talk(b, i, in)
	m.hopper(b, i, in)
	if in.Guard != nil && (in.Op == "ld" || in.Op == "st" || in.Op == "atom" || in.Op == "red" || in.Op == "cp") {
		g := in.Guard
		m.add(Guard, in, "predicate of "+in.Name()+" dropped", func(on bool) {
			in.Guard = g
			if on {
				in.Guard = nil
			}
		})
	}
	if m.loop.wraps(in) {
		m.same(in, 2, 1, "never back to the first stage")
		m.same(in, 1, 2, "always the first stage")
	}
	for _, at := range m.loop.stages(in) {
		n := (*at).(*ptx.Imm).Int()
		m.imm(Stage, in, at, n+1)
		m.imm(Stage, in, at, n-1)
	}
}

func (m *mutator) barrier(b *ptx.Block, i int, in *ptx.Inst) {
	switch {
	case in.Has("warp"):
		m.drop(SyncWarp, b, i, in)
		m.member(in, 0)
	case !in.Has("red") && !in.Has("cluster"): // the result of bar.red would be missing
		m.drop(Barrier, b, i, in)
	}
}

// groups lists the mutants of groups of copies or products.
func (m *mutator) groups(b *ptx.Block, i int, in *ptx.Inst) {
	switch {
	case in.Has("commit_group"):
		m.drop(Commit, b, i, in)
	case in.Has("wait_all"):
		m.drop(Wait, b, i, in)
	case in.Has("wait_group"):
		m.drop(Wait, b, i, in)
		m.oneOff(Wait, in, 0, 1, 0)
	}
}

// oneOff has a constant operand by a step more, and less where it may be.
func (m *mutator) oneOff(k Kind, in *ptx.Inst, arg int, step, least int64) {
	if n, ok := in.Args[arg].(*ptx.Imm); ok {
		m.imm(k, in, &in.Args[arg], n.Int()+step)
		if n.Int()-step >= least {
			m.imm(k, in, &in.Args[arg], n.Int()-step)
		}
	}
}

// member takes the highest and the lowest lane out of a constant mask.
func (m *mutator) member(in *ptx.Inst, i int) {
	if x, ok := in.Args[i].(*ptx.Imm); ok {
		mask := uint32(x.Int())
		m.imm(Member, in, &in.Args[i], int64(mask&(mask-1)))
		m.imm(Member, in, &in.Args[i], int64(mask>>1&mask))
	}
}

func (m *mutator) shuffle(in *ptx.Inst) {
	if x, ok := in.Args[2].(*ptx.Imm); ok {
		m.imm(Shuffle, in, &in.Args[2], x.Int()^1)
	}
	if x, ok := in.Args[3].(*ptx.Imm); ok {
		m.imm(Shuffle, in, &in.Args[3], x.Int()^1)
	}
}

// branch drops a branch that skips something; without those back to the start of a loop, it would only end early.
func (m *mutator) branch(b *ptx.Block, i int, in *ptx.Inst) {
	if l, ok := in.Args[0].(*ptx.Label); ok && in.Guard != nil && m.last[l.ID] > m.at {
		m.drop(Branch, b, i, in)
	}
}

var offByOne = map[string]string{"lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "lo": "ls", "ls": "lo", "hi": "hs", "hs": "hi"}

func (m *mutator) bound(in *ptx.Inst) {
	if len(in.Mods) == 0 || in.Type().Kind() == ptx.KindFloat {
		return
	}
	if to := offByOne[in.Mods[0]]; to != "" {
		m.mod(Bound, in, in.Mods[0], to)
	}
}
