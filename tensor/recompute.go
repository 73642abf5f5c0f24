package tensor

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/warpline-ml/warpline/tensor/internal/heap"
)

// region is one Recompute: its nodes, in order, without the values they kept.
type region struct {
	x       *Tensor
	version uint32 // of x's storage
	f       func(*Tensor) *Tensor
	env     *Env
	nodes   []*node
	hold    *heap.Hold
	counter *atomic.Uint64 // of the random path
	drawn   [2]uint64      // what it was before and after the first run
	filled  bool
	outer   *region // within which this one is
	waiting int     // nodes that have not run
}

// Recompute runs f(x) and drops what its graph kept; Backward runs f again, with the same random numbers, and refills it.
// The numbers are those of f(x) without it, bit for bit. Modules see [Env.Recomputing] in the second run and leave their
// buffers alone. What Env.Recompute asks for does not count within f: nothing is run a third time.
func Recompute(x *Tensor, f func(*Tensor) *Tensor) *Tensor {
	x.alive("Recompute")
	env := x.env.inScope(x.env.live())
	r := &region{x: x, version: x.st.Version(), f: f, env: env}
	r.counter = &env.stream().draws
	r.drawn[0] = r.counter.Load()
	return r.run(false, func(e *Env) *Tensor {
		y := f(x.In(e))
		y.present()
		y.follow("Recompute")
		r.drawn[1] = r.counter.Load()
		r.unchanged()
		if r.nodes = nodesIn(y.node, e.scope); len(r.nodes) > 0 {
			r.strip(e.scope)
		}
		return y
	})
}

// run is one of the two runs: in a scope of its own, with the random path around it.
func (r *region) run(again bool, f func(*Env) *Tensor) *Tensor {
	s := newScope(r.env.dev, r.env.live(), 0)
	s.random = s.parent.home.random
	inner := *r.env
	inner.again, inner.parts, inner.offload = inner.again || again, noParts, off
	return doIn(s, r.env, &inner, f)
}

// unchanged refuses an input that the second run would find with other values than the first.
func (r *region) unchanged() {
	if v := r.x.st.Version(); v != r.version {
		raise("Recompute", "change a copy, or after Backward", "its input %s was changed in place: it is at version %d, the first run began at %d", r.x.typ, v, r.version)
	}
}

// strip lets go of what the region's nodes kept and holds its input for the second run.
func (r *region) strip(s *scope) {
	r.waiting = len(r.nodes)
	r.hold = r.env.scope.HoldAway(r.x.st.Storage) // Backward of what made x must not release it before the refill
	l := s.dev.heap.Lock()
	defer l.Unlock()
	for _, n := range r.nodes {
		n.oddly().region, n.fed = r, true
		for i := range n.keep {
			if k := &n.keep[i]; k.held && k.st != nil && l.Owner(k.st.Storage) == &s.Scope {
				l.EndHold(k.st.Storage, k.away, nil)
				k.st, k.away = nil, nil
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
	r.run(true, func(e *Env) *Tensor {
		y := r.f(r.x.In(e))
		y.follow("Recompute")
		again := nodesIn(y.node, e.scope)
		if !slices.EqualFunc(again, r.nodes, func(a, b *node) bool { return a.name() == b.name() && len(a.keep) == len(b.keep) || b.ran }) {
			raise("Recompute", "Forward must not depend on what changes between the runs", "the second run recorded %d operations, the first %d, or others", len(again), len(r.nodes))
		}
		l := e.dev.heap.Lock()
		defer l.Unlock()
		for i, n := range r.nodes {
			if !n.ran {
				n.takeOver(l, again[i], e.scope)
			}
		}
		return nil
	})
}

// rewind lets the second run draw the same numbers, and returns what sets the path forward again.
func (r *region) rewind() (forward func()) {
	if r.drawn[0] == r.drawn[1] {
		return func() {}
	}
	now := r.counter.Swap(r.drawn[0])
	return func() { r.counter.Store(now) }
}

// takeOver gives n what a, its like in the second run, kept in scope s. A region within the region was stripped again:
// its second form then waits for n.
func (n *node) takeOver(l heap.Locked, a *node, s *scope) {
	for j := range n.keep {
		k, b := &n.keep[j], &a.keep[j]
		if k.st != nil || b.st == nil {
			continue
		}
		k.st, k.version, k.away = b.st, b.version, b.away
		l.InheritHeld(&n.scope.Scope, &s.Scope, k.st.Storage) // its hold, and that it was made by a recorded op, come with it
		l.MoveHold(k.away, &n.scope.Scope)
	}
	if inner := a.odds().region; inner != nil {
		inner.nodes[slices.Index(inner.nodes, a)] = n
		inner.moveTo(l, s, n.scope)
		if inner.outer == nil {
			inner.outer = n.odds().region
		}
		n.oddly().region = inner
	}
}

// moveTo hands the claim on the region's input from block s to another scope.
func (r *region) moveTo(l heap.Locked, s, to *scope) {
	if l.HeldBy(r.hold, &s.Scope) {
		l.InheritHeld(&to.Scope, &s.Scope, r.x.st.Storage)
		l.MoveHold(r.hold, &to.Scope)
	}
}

// left ends the region's claim on its input after its last node.
func (r *region) left() {
	for ; r != nil; r = r.outer {
		if r.waiting--; r.waiting > 0 {
			continue
		}
		l := r.env.dev.heap.Lock()
		l.EndHold(r.x.st.Storage, r.hold, ranBack)
		l.Unlock()
	}
}
