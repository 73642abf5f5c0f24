package tensor

import (
	"cmp"
	"slices"

	"github.com/warpline-ml/warpline/internal/rng"
)

// region is one Recompute: its nodes, in order, without the values they kept.
type region struct {
	x       *Tensor
	f       func(*Tensor) *Tensor
	env     *Env
	key     rng.Key
	nodes   []*node
	hold    *hold
	filled  bool
	waiting int // nodes that have not run
}

// Recompute runs f(x) and drops what its graph kept; Backward runs f again, in the same random path, and refills it.
// Modules see [Env.Recomputing] in the second run and leave their buffers alone.
func Recompute(x *Tensor, f func(*Tensor) *Tensor) *Tensor {
	env := x.env.inScope(x.env.live())
	r := &region{x: x, f: f, env: env, key: rng.Fold(env.draw(), 0)}
	return doKeyed(env, r.key, false, func(e *Env) *Tensor {
		y := f(x.In(e))
		if r.nodes = nodesIn(y.node, e.scope); len(r.nodes) > 0 {
			r.strip(e.scope)
		}
		return y
	})
}

// strip lets go of what the region's nodes kept and holds its input for the second run.
func (r *region) strip(s *scope) {
	r.waiting = len(r.nodes)
	d := s.dev
	d.hold(r.x.st.rec) // Backward of what made x must not release it before the refill
	r.hold = &hold{rec: r.x.st.rec, scope: r.env.scope}
	d.mu.Lock()
	defer d.mu.Unlock()
	r.env.scope.outer = append(r.env.scope.outer, r.hold)
	for _, n := range r.nodes {
		n.region, n.fed = r, true
		for i := range n.keep {
			if k := &n.keep[i]; k.held && k.st.rec.scope.Load() == s {
				d.unhold(k.st.rec, nil)
				k.st.rec.homely.Add(-1)
				k.st = nil
			}
		}
	}
}

// nodesIn lists the nodes of scope s that lead to n, in creation order.
func nodesIn(n *node, s *scope) []*node {
	seen := map[*node]bool{}
	var list []*node
	var walk func(*node)
	walk = func(n *node) {
		if n == nil || n.scope != s || seen[n] {
			return
		}
		seen[n] = true
		list = append(list, n)
		for _, e := range n.in {
			walk(e.node)
		}
	}
	walk(n)
	slices.SortFunc(list, func(a, b *node) int { return cmp.Compare(a.seq, b.seq) })
	return list
}

// refill runs f again and gives its kept values to the nodes that wait for them.
func (r *region) refill() {
	if r.filled {
		return
	}
	r.filled = true
	doKeyed(r.env, r.key, true, func(e *Env) *Tensor {
		y := r.f(r.x.In(e))
		again := nodesIn(y.node, e.scope)
		if !slices.EqualFunc(again, r.nodes, func(a, b *node) bool { return a.name() == b.name() && len(a.keep) == len(b.keep) || b.ran }) {
			raise("Recompute", "Forward must not depend on what changes between the runs", "the second run recorded %d operations, the first %d, or others", len(again), len(r.nodes))
		}
		d := e.dev
		d.mu.Lock()
		defer d.mu.Unlock()
		for i, n := range r.nodes {
			for j := range n.keep {
				if k := &n.keep[j]; k.st == nil && !n.ran {
					k.st, k.version = again[i].keep[j].st, again[i].keep[j].version
					n.scope.inherit(k.st.rec) // its hold, and that it was made by a recorded op, come with it
				}
			}
		}
		return nil
	})
}

// left ends the region's claim on its input after its last node.
func (r *region) left() {
	if r.waiting--; r.waiting > 0 || r.hold.done {
		return
	}
	d := r.env.dev
	d.mu.Lock()
	r.hold.done = true
	d.unhold(r.hold.rec, ranBack)
	d.mu.Unlock()
}
