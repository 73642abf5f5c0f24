package tensor

import (
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/tensor/internal/heap"
)

// PartUse is what a part of a model keeps for Backward, and what it takes to run it again.
type PartUse struct {
	Kind  Part
	Path  string // as the model's parameters have it
	Bytes int64  // kept beside its input and its result
	FLOPs int64  // of its recorded operations
	Moved int64  // bytes that they read and write

	Kernels []*device.Kernel // of those that are planned by themselves
}

// SurveyParts derives an env in which models tell found of each of their parts that is recorded, as it has run: those within
// others before these. Nothing is recomputed.
func (e *Env) SurveyParts(found func(PartUse)) *Env {
	return e.with(func(c *Env) { c.parts = &Parts{found: found, rank: 1 << 29} })
}

// survey runs f(x), and looks at what was recorded of it.
func (p *Parts) survey(kind Part, x *Tensor, path func() string, f func(*Tensor) *Tensor) *Tensor {
	before := nodeSeq.Load()
	y := f(x)
	y.present()
	use := PartUse{Kind: kind, Path: path()}
	kept := map[*heap.Ref]bool{x.st: true, y.st: true}
	for _, n := range nodesSince(y.node, before) {
		use.add(n, kept)
	}
	p.found(use)
	return y
}

// add adds a node's operation, and what nothing before has kept.
func (u *PartUse) add(n *node, kept map[*heap.Ref]bool) {
	if n.plan != nil {
		flops, moved := n.plan.op.Cost()
		u.FLOPs, u.Moved = u.FLOPs+flops, u.Moved+moved
		if k := n.plan.kernel; k != nil {
			u.Kernels = append(u.Kernels, k)
		}
	}
	for i := range n.keep {
		if k := &n.keep[i]; k.held && k.st != nil && !kept[k.st] {
			kept[k.st] = true
			u.Bytes += k.st.Bytes()
		}
	}
}

// nodesSince are those that lead to n and were recorded after a moment.
func nodesSince(n *node, before uint64) (list []*node) {
	seen := map[*node]bool{}
	var walk func(*node)
	walk = func(n *node) {
		if n == nil || n.seq <= before || seen[n] {
			return
		}
		seen[n] = true
		list = append(list, n)
		for _, e := range n.in {
			walk(e.node)
		}
	}
	walk(n)
	return list
}
