package mutate

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// talk lists the mutants of what orders accesses of threads beyond barriers.
func (m *mutator) talk(b *ptx.Block, i int, in *ptx.Inst) {
	switch in.Op {
	case "membar", "fence":
		if in.Has("proxy") || in.Has("mbarrier_init") {
			return
		}
		m.drop(Fence, b, i, in)
		m.swap(b, i, in)
		m.narrow(in)
	case "atom", "red", "ld", "st":
		if (in.Has("shared") || in.Has("shared::cta")) && !in.Has("cluster") {
			return
		}
		m.narrow(in)
		for _, order := range []string{"acquire", "release", "acq_rel"} {
			m.mod(Semantics, in, order, "relaxed")
		}
		if in.Op == "ld" || in.Op == "st" {
			m.mod(Plain, in, "volatile", "weak")
			m.mod(Plain, in, "relaxed", "weak")
		}
	}
}

// swap lets a fence and the strong write behind it change places.
func (m *mutator) swap(b *ptx.Block, i int, in *ptx.Inst) {
	for j := i + 1; j < len(b.Stmts); j++ {
		switch s := b.Stmts[j].(type) {
		case *ptx.Inst:
			if s.Op == "atom" || s.Op == "red" || s.Op == "st" && (s.Has("volatile") || s.Has("relaxed")) {
				m.add(Swap, in, s.Name()+" before "+in.Name(), func(on bool) {
					b.Stmts[i], b.Stmts[j] = in, s
					if on {
						b.Stmts[i], b.Stmts[j] = s, in
					}
				})
			}
			return
		case *ptx.LabelDef, *ptx.Block:
			return
		}
	}
}

// narrow makes the scope that of the block.
func (m *mutator) narrow(in *ptx.Inst) {
	switch {
	case in.Has("volatile"): // its scope is the system's
	case in.Has("cta"):
	case in.Has("cluster"), in.Has("gpu"), in.Has("sys"), in.Has("gl"):
		for _, scope := range []string{"cluster", "gpu", "sys", "gl"} {
			m.mod(Scope, in, scope, "cta")
		}
	case in.Op == "atom" || in.Op == "red":
		m.mods(Scope, in, "cta", append([]string{"cta"}, in.Mods...))
	}
}

// mod replaces a qualifier, weak for one without which an access is plain: its scope goes with it.
func (m *mutator) mod(k Kind, in *ptx.Inst, old, to string) {
	at := slices.Index(in.Mods, old)
	if at < 0 {
		return
	}
	mods := slices.Clone(in.Mods)
	if mods[at] = to; to == "weak" {
		mods = slices.DeleteFunc(mods, func(s string) bool { return slices.Contains([]string{"weak", "sys", "gpu", "cluster", "cta"}, s) })
	}
	m.mods(k, in, to+" instead of "+old, mods)
}

func (m *mutator) mods(k Kind, in *ptx.Inst, what string, mods []string) {
	m.words(k, in, what, in.Op, mods, in.Args)
}

// words has an instruction of other words and operands.
func (m *mutator) words(k Kind, in *ptx.Inst, what, op string, mods []string, args []ptx.Operand) {
	wasOp, wasMods, wasArgs := in.Op, in.Mods, in.Args
	m.add(k, in, in.Name()+": "+what, func(on bool) {
		in.Op, in.Mods, in.Args = wasOp, wasMods, wasArgs
		if on {
			in.Op, in.Mods, in.Args = op, mods, args
		}
	})
}
