package tensor

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/rng"
)

// region is one Recompute: its nodes, in order, without the values they kept.
type region struct {
	x       *Tensor
	version uint32 // of x's storage
	f       func(*Tensor) *Tensor
	env     *Env
	key     rng.Key
	nodes   []*node
	hold    *hold
	counter *atomic.Uint64 // of the enclosing random path
	drawn   [2]uint64      // what it was before and after the first run
	filled  bool
	outer   *region // of which this one is a part
	waiting int     // nodes that have not run
}

// Recompute runs f(x) and drops what its graph kept; Backward runs f again, in the same random path, and refills it.
// Modules see [Env.Recomputing] in the second run and leave their buffers alone.
func Recompute(x *Tensor, f func(*Tensor) *Tensor) *Tensor {
	x.alive("Recompute")
	env := x.env.inScope(x.env.live())
	r := &region{x: x, version: x.st.rec.version.Load(), f: f, env: env, key: rng.Fold(env.draw(), 0)}
	r.counter = env.counter()
	r.drawn[0] = r.counter.Load()
	return doKeyed(env, r.key, false, func(e *Env) *Tensor {
		y := f(x.In(e))
		y.present()
		r.drawn[1] = r.counter.Load()
		r.unchanged()
		if r.nodes = nodesIn(y.node, e.scope); len(r.nodes) > 0 {
			r.strip(e.scope)
		}
		return y
	})
}

// unchanged refuses an input that the second run would find with other values than the first.
func (r *region) unchanged() {
	if v := r.x.st.rec.version.Load(); v != r.version {
		raise("Recompute", "change a copy, or after Backward", "its input %s was changed in place: it is at version %d, the first run began at %d", r.x.typ, v, r.version)
	}
}

// strip lets go of what the region's nodes kept and holds its input for the second run.
func (r *region) strip(s *scope) {
	r.waiting = len(r.nodes)
	d := s.dev
	d.hold(r.x.st.rec) // Backward of what made x must not release it before the refill
	r.hold = &hold{rec: r.x.st.rec, scope: r.env.scope}
	d.mu.Lock()
	defer d.mu.Unlock()
	r.env.scope.holds(r.hold)
	for _, n := range r.nodes {
		n.region, n.fed = r, true
		for i := range n.keep {
			if k := &n.keep[i]; k.held && k.st != nil && k.st.rec.scope.Load() == s {
				k.letGo(d, nil)
				k.st, k.outer = nil, nil
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
		if n == nil || n.seq <= s.begun || seen[n] {
			return
		}
		seen[n] = true
		if n.scope == s {
			list = append(list, n)
		}
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
	r.unchanged()
	r.filled = true
	defer r.rewind()()
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
			if !n.ran {
				n.takeOver(again[i], e.scope)
			}
		}
		return nil
	})
}

// rewind lets the second run draw the same numbers for captured values of the enclosing scope, and returns what sets the
// path forward again. A region's own numbers need none of it: they follow from its key.
func (r *region) rewind() (forward func()) {
	if r.drawn[0] == r.drawn[1] {
		return func() {}
	}
	now := r.counter.Swap(r.drawn[0])
	return func() { r.counter.Store(now) }
}

// takeOver gives n what a, its like in the second run, kept in scope s. A region within the region was stripped again:
// its second form then waits for n. dev.mu is held.
func (n *node) takeOver(a *node, s *scope) {
	for j := range n.keep {
		k, b := &n.keep[j], &a.keep[j]
		if k.st != nil || b.st == nil {
			continue
		}
		k.st, k.version, k.outer = b.st, b.version, b.outer
		n.scope.inheritHeld(s, k.st.rec) // its hold, and that it was made by a recorded op, come with it
		if k.outer != nil {
			k.outer.scope = n.scope
			n.scope.holds(k.outer)
		}
	}
	if part := a.region; part != nil {
		part.nodes[slices.Index(part.nodes, a)] = n
		part.moveTo(s, n.scope)
		if part.outer == nil {
			part.outer = n.region
		}
		n.region = part
	}
}

// moveTo hands the claim on the region's input from block s to another scope; dev.mu is held.
func (r *region) moveTo(s, to *scope) {
	if r.hold.done || r.hold.scope != s {
		return
	}
	to.inheritHeld(s, r.x.st.rec)
	r.hold.scope = to
	to.holds(r.hold)
}

// left ends the region's claim on its input after its last node.
func (r *region) left() {
	for ; r != nil; r = r.outer {
		if r.waiting--; r.waiting > 0 || r.hold.done {
			continue
		}
		d := r.env.dev
		d.mu.Lock()
		r.hold.done = true
		d.unhold(r.hold.rec, ranBack)
		d.mu.Unlock()
	}
}
