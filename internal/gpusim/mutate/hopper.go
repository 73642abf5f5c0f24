package mutate

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// hopper lists the mutants of what orders blocks of a cluster, and threads and the asynchronous proxy.
func (m *mutator) hopper(b *ptx.Block, i int, in *ptx.Inst) {
	switch {
	case in.Op == "barrier" && in.Has("cluster"):
		m.clusterBarrier(b, i, in)
	case in.Op == "mbarrier":
		m.mbarrier(b, i, in)
	case in.Op == "cp" && in.Has("bulk"):
		m.bulk(in)
	case in.Op == "wgmma" && in.Has("fence"):
		m.drop(Fence, b, i, in)
	case in.Op == "wgmma":
		m.groups(b, i, in)
	case in.Op == "mapa":
		m.rank(in)
	case in.Op == "fence" && (in.Has("proxy") || in.Has("mbarrier_init")):
		m.drop(Fence, b, i, in)
		m.mod(Scope, in, "shared::cta", "global")
	}
}

// clusterBarrier takes either half of the barrier of a cluster or both, lets it release nothing, or has that of the block.
func (m *mutator) clusterBarrier(b *ptx.Block, i int, in *ptx.Inst) {
	m.drop(Barrier, b, i, in)
	if in.Has("wait") {
		return
	}
	m.relax(in, "arrive")
	j := i + slices.IndexFunc(b.Stmts[i:], func(s ptx.Stmt) bool {
		w, ok := s.(*ptx.Inst)
		return ok && w.Op == "barrier" && w.Has("wait")
	})
	if j < i {
		return
	}
	wait := b.Stmts[j]
	instead := func(k Kind, what string, of ptx.Stmt) {
		m.add(k, in, what, func(on bool) {
			b.Stmts[i], b.Stmts[j] = in, wait
			if on {
				b.Stmts[i], b.Stmts[j] = &ptx.Block{Pos: in.Pos}, of
			}
		})
	}
	instead(Barrier, "barrier.cluster.arrive and wait dropped", &ptx.Block{Pos: in.Pos})
	instead(Scope, "bar.sync instead of the barrier of the cluster", &ptx.Inst{Pos: in.Pos, Op: "bar", Mods: []string{"sync"}, Args: []ptx.Operand{&ptx.Imm{}}})
}

// relax makes an arrival or a wait relaxed, which by default it is not.
func (m *mutator) relax(in *ptx.Inst, behind string) {
	if in.Has("relaxed") {
		return
	}
	for _, order := range []string{"acquire", "release"} {
		if in.Has(order) {
			m.mod(Semantics, in, order, "relaxed")
			return
		}
	}
	mods := []string{"relaxed"}
	if in.Op == "mbarrier" {
		mods = append(mods, "cluster")
	}
	m.mods(Semantics, in, "relaxed", slices.Insert(slices.Clone(in.Mods), 1+slices.Index(in.Mods, behind), mods...))
}

// mbarrier lists the mutants of arrivals and of waits, which loop back to a label before them.
func (m *mutator) mbarrier(b *ptx.Block, i int, in *ptx.Inst) {
	switch {
	case in.Has("init"):
		m.oneOff(Arrive, in, 1, 1, 1)
	case in.Has("arrive"):
		m.drop(Arrive, b, i, in)
		m.mod(Scope, in, "cluster", "cta")
		if in.Has("expect_tx") {
			m.relax(in, "expect_tx")
			m.oneOff(Arrive, in, 2, 16, 1)
		} else {
			m.relax(in, "arrive")
		}
	case in.Has("try_wait"), in.Has("test_wait"):
		m.relax(in, "parity")
		if parity, ok := in.Args[2].(*ptx.Imm); ok {
			m.imm(Wait, in, &in.Args[2], parity.Int()^1)
		}
		if i+1 < len(b.Stmts) {
			if back, ok := b.Stmts[i+1].(*ptx.Inst); ok && back.Op == "bra" {
				m.drop(Wait, b, i+1, back)
			}
		}
	}
}

// bulk lists the mutants of what a bulk copy brings, and to whom.
func (m *mutator) bulk(in *ptx.Inst) {
	if in.Has("commit_group") || in.Has("wait_group") || in.Has("tensor") || in.Has("prefetch") {
		if in.Has("wait_group") && !in.Has("read") {
			m.mods(Wait, in, "read", append(slices.Clone(in.Mods), "read"))
		}
		return
	}
	m.oneOff(Arrive, in, 2, 16, 1)
	if in.Has("multicast::cluster") {
		alone := slices.DeleteFunc(slices.Clone(in.Mods), func(s string) bool { return s == "multicast::cluster" })
		m.words(Arrive, in, "to the block alone", in.Op, alone, in.Args[:len(in.Args)-1])
	}
}

// rank has the block's own memory instead of another's.
func (m *mutator) rank(in *ptx.Inst) {
	m.words(Rank, in, "the block's own", "mov", in.Mods[len(in.Mods)-1:], in.Args[:2])
}
