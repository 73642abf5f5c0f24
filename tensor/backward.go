package tensor

import (
	"cmp"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// pass is one walk over a graph.
type pass struct {
	id      uint64
	out     *Env // of gradients that are returned
	record  bool
	sides   []*side        // the devices that gradients have reached
	only    map[*leaf]bool // nil: every leaf
	grads   map[*leaf]*Tensor
	order   []*node
	pending map[*leaf]int     // edges to a leaf that have not been walked
	sums    map[*leaf]*Tensor // what has reached a leaf so far
	op      string            // for errors: Backward or Grad
	claimed []*leaf           // that no other goroutine may add to meanwhile
	calling atomic.Uint64     // the goroutine, while functions of the program run in it
	stop    *node             // a node with a constant operand, for the error about no parameter

	builder builder // of the rule that runs
	current nodeCall
	results []*Tensor
}

// side is what a pass has on one device.
type side struct {
	env   *Env   // of the gradients, while they are on their way
	scope *scope // of temporaries; nil when recording
}

// Backward adds the gradients of t, one number, to the parameters (or only to those given), and releases what the graph
// made, down to the head: t itself and what leads to it from the first op on each path that a parameter feeds.
func (t *Tensor) Backward(only ...iter.Seq2[string, *Tensor]) { t.backward(false, only) }

// BackwardRetain keeps the graph and its values, for another Backward.
func (t *Tensor) BackwardRetain(only ...iter.Seq2[string, *Tensor]) { t.backward(true, only) }

func (t *Tensor) backward(retain bool, only []iter.Seq2[string, *Tensor]) {
	var set map[*leaf]bool
	if len(only) > 0 {
		set = map[*leaf]bool{}
		for _, seq := range only {
			for _, p := range seq {
				set[p.leafOf()] = true
			}
		}
	}
	t.walk("Backward", set, nil, false, retain)
}

// Grad returns the gradients of y, one number, with respect to leaves, in y's modes, and keeps the graph. A leaf that y
// does not depend on gets zeros.
func Grad(y *Tensor, x ...*Tensor) []*Tensor { return gradOf(y, x, false) }

// GradGraph records the gradients too, for a second derivative.
func GradGraph(y *Tensor, x ...*Tensor) []*Tensor { return gradOf(y, x, true) }

func gradOf(y *Tensor, x []*Tensor, record bool) []*Tensor {
	set, grads := map[*leaf]bool{}, map[*leaf]*Tensor{}
	for _, t := range x {
		if t.leafOf() == nil {
			raise("Grad", "call x.RequireGrad() before it is used", "%s from %s at %s is not a leaf", t.typ, t.st.What(), t.st.Site.String())
		}
		set[t.leaf] = true
	}
	y.walk("Grad", set, grads, record, true)
	out := make([]*Tensor, len(x))
	for i, t := range x {
		if out[i] = grads[t.leaf]; out[i] != nil {
			continue
		}
		env := y.env
		if env.dev != t.env.dev {
			env = t.env
		}
		out[i] = env.full(t.typ.AsDense(), 0)
	}
	return out
}

func (t *Tensor) walk(op string, only map[*leaf]bool, grads map[*leaf]*Tensor, record, retain bool) {
	t.alive(op)
	if t.Size() != 1 {
		raise(op, "reduce it first: Mean() or Sum()", "shape %v is not one number", t.Shape())
	}
	if t = t.current(op, t.env); t.node == nil {
		raise(op, "an operand must be a parameter or leaf, in an env that records", "nothing was recorded: the result of %s%s carries no graph", t.st.What(), t.elsewhere())
	}
	p := &pass{id: passes.Add(1), op: op, record: record, only: only, grads: grads, out: t.env, pending: map[*leaf]int{}, sums: map[*leaf]*Tensor{}}
	p.trace(t.node)
	if len(p.pending) == 0 {
		if grads != nil {
			return // Grad gives zeros
		}
		p.noLeaf()
	}
	defer p.end()
	p.claim()
	t.env.dev.heap.WalkedBack()
	p.tell(false)
	defer p.tell(true)
	home := p.enter(t.env.live(), t.node.queue)
	if !retain {
		p.head(t)
	}
	seed := home.env.full(t.typ.AsDense(), 1)
	seed.st.Pin(1)
	t.node.put(int(t.out), seed)
	slices.SortFunc(p.order, func(a, b *node) int { return cmp.Compare(b.seq, a.seq) })
	for _, n := range p.order {
		p.step(n)
		if !retain {
			n.finish()
		}
	}
}

// enter begins the pass on the device of a scope, in which it opens one of its own for temporaries.
func (p *pass) enter(parent *scope, q *queue) *side {
	s := &side{env: &Env{dev: parent.dev, scope: parent, grad: off, queue: q, back: true}}
	if p.record {
		s.env.grad = on
	} else {
		s.scope = newScope(parent.dev, parent, 0)
		s.scope.block = true
		s.env.scope = s.scope
	}
	p.sides = append(p.sides, s)
	return s
}

// at is the side of a device that the pass has entered; nil for another device.
func (p *pass) at(d *Device) *side {
	for _, s := range p.sides {
		if s.env.dev == d {
			return s
		}
	}
	return nil
}

// claim takes the leaves that the pass will add to.
func (p *pass) claim() {
	if p.grads != nil {
		return // Grad touches none
	}
	for l := range p.pending {
		if l.busy.CompareAndSwap(nil, p) {
			p.claimed = append(p.claimed, l)
		} else {
			l.idle(p.op)
		}
	}
}

// call runs a function of the program, which may use the gradients that the pass adds to.
func (p *pass) call(f func()) {
	was := p.calling.Swap(callsite.Goroutine())
	defer p.calling.Store(was)
	f()
}

// end releases temporaries and forgets pending gradients, which an error may have left.
func (p *pass) end() {
	for _, n := range p.order {
		n.grads = nil
	}
	for _, l := range p.claimed {
		l.busy.Store(nil)
	}
	for _, s := range p.sides {
		s.env.site, s.env.part, s.env.seq = nil, nil, 0 // an error may have left them
		if s.scope != nil {
			s.scope.End(internal)
		}
	}
}

func (p *pass) noLeaf() {
	why := "its parameters are frozen, or not among those given"
	if p.stop != nil {
		why = "recording stopped at " + p.stop.name() + " at " + p.stop.outs[0].Site.String()
	}
	raise(p.op, "use the parameters in an env that records, and not Detach", "no parameter is reached: %s", why)
}

// trace finds the nodes and edges that lead to a wanted leaf.
func (p *pass) trace(n *node) bool {
	if n.pass == p.id {
		return n.wanted
	}
	if n.ran {
		raise(p.op, "use BackwardRetain the first time", "this graph was already walked, and its values released, at %s", n.name())
	}
	if why := n.scope.Closed(); why != nil {
		raise(p.op, why.Hint, "this graph was ended by %s", why.By)
	}
	n.pass, n.wanted, n.grads = p.id, false, nil
	for i := range n.in {
		e := &n.in[i]
		switch {
		case e.node != nil:
			e.want = p.trace(e.node)
		case e.leaf != nil:
			e.want = !e.leaf.frozen.Load() && (p.only == nil || p.only[e.leaf])
			if e.want {
				n.reaches(e.leaf)
				p.pending[e.leaf]++
			}
		default:
			e.want = false
			if p.stop == nil && len(n.outs) > 0 {
				p.stop = n
			}
		}
		n.wanted = n.wanted || e.want
	}
	if n.wanted {
		p.order = append(p.order, n)
	}
	return n.wanted
}

// reaches refuses a leaf that was moved to another device after it was used.
func (n *node) reaches(l *leaf) {
	d := n.scope.dev
	if from := n.odds().from; from != nil {
		d = from.dev
	}
	if now := l.value.env.dev; now != d {
		raise("Backward", "call Backward before the model moves", "a parameter that %s used on %s is now on %s", n.name(), d.name, now.name)
	}
}

// head exempts what stays readable of the nodes that will be walked: from t down to the first op on each path that is
// fed by parameters.
func (p *pass) head(t *Tensor) {
	todo, scope := []*node{t.node}, t.env.live()
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if n == nil || n.headPass == p.id || !n.wanted {
			continue // what is not walked keeps its graph, and its values their scope
		}
		n.headPass = p.id
		n.exemptOuts(scope)
		if !n.fed {
			for _, e := range n.in {
				todo = append(todo, e.node)
			}
		}
	}
}

// exemptOuts keeps what n made from release. Values in an outer scope, made of parameters alone, join the loss's, or
// nothing would ever end them; for the same reason those in the root scope of another device are not kept.
func (n *node) exemptOuts(loss *scope) {
	d := n.scope.dev
	l := d.heap.Lock()
	defer l.Unlock()
	for _, st := range n.outs {
		if !st.Perishable() || st.Gone() != nil || d != loss.dev && l.Owner(st) == &d.base.scope.Scope {
			continue
		}
		l.Exempt(st)
		if d == loss.dev && l.Owner(st).Opened() < loss.Opened() {
			l.Adopt(&loss.Scope, st)
		}
	}
}

func (n *node) put(out int, g *Tensor) {
	if n.grads == nil {
		n.grads = n.gradBuf[:1]
		if len(n.outs) > 1 {
			n.grads = make([]*Tensor, len(n.outs))
		}
		clear(n.grads)
	}
	n.grads[out] = g
}

// step runs one node's rule and hands its gradients on; temporaries go at once.
func (p *pass) step(n *node) {
	if b := n.odds().block; b != nil {
		b.reach()
	}
	var gs []*Tensor
	if n.grads != nil {
		p.callHooks(n)
		gs = p.rule(n)
		for i, g := range gs {
			switch ed := n.in[i]; {
			case g == nil || !ed.want:
			case ed.node != nil:
				p.add(ed.node, int(ed.out), g)
			default:
				g.st.Pin(1) // before any leaf takes it over: several operands may share one gradient
			}
		}
		for _, g := range n.grads {
			if g != nil {
				g.st.Pin(-1)
			}
		}
		n.grads = nil
	}
	for i := range n.in {
		if ed := &n.in[i]; ed.leaf != nil && ed.want {
			var g *Tensor
			if i < len(gs) {
				g = gs[i]
			}
			p.reach(ed.leaf, g)
		}
	}
	p.sweep()
}

func (p *pass) callHooks(n *node) {
	for _, h := range n.odds().hooks {
		old := n.grads[h.out]
		if old == nil {
			continue
		}
		if g := p.callHook(h.f, old); g != old {
			g.st.Pin(1)
			old.st.Pin(-1)
			n.grads[h.out] = g
		}
	}
}

// callHook returns what takes the place of g. Other operands may share g's storage, so a hook may not write to it.
func (p *pass) callHook(f func(*Tensor) *Tensor, g *Tensor) *Tensor {
	version := g.st.Version()
	var h *Tensor
	p.call(func() { h = f(g) })
	if g.st.Version() != version {
		raise("OnGrad", "return a new value: g.Scale(…)", "a hook changed its gradient %s in place", g.typ)
	}
	if h == nil {
		return g
	}
	h.alive("OnGrad")
	if h.DType() != g.DType() || !h.SameShape(g) || h.env.dev != g.env.dev {
		raise("OnGrad", "a hook returns the gradient's shape, dtype and device", "a hook returned %s on %s for %s on %s", h.typ, h.env.dev.name, g.typ, g.env.dev.name)
	}
	return h
}

// rule runs the gradient rule of one node. What it returns is good until the next.
func (p *pass) rule(n *node) []*Tensor {
	if n.odds().from != nil {
		return []*Tensor{p.carry(n)}
	}
	env := p.at(n.scope.dev).env
	env.part, env.seq = n.part, n.seq
	gs := p.gradients(n, env)
	if w := env.dev.watcher.Load(); w != nil {
		w.looked(env, n.name(), n.outs[0].Site.String(), sound, n.grads, sounding(gs))
	}
	env.site, env.part, env.seq = nil, nil, 0
	return gs
}

// gradients are those of n's operands, computed in env.
func (p *pass) gradients(n *node, env *Env) []*Tensor {
	o := n.odds()
	if o.call != nil {
		var gs []*Tensor
		p.call(func() { gs = o.call.backward(n, env) })
		return gs
	}
	if o.blind {
		raise(p.op, "save operands and results alone and compute the rest from them in Backward, or return the value as a result",
			"a Func is differentiated twice, and the derivative of a value that its Forward computed and saved is not known: %s at %s", n.outs[0].What(), n.outs[0].Site.String())
	}
	if o.splice != nil {
		env.site = n.outs[0].Site
		return o.splice.grads(env, n)
	}
	if n.plan.rule == nil {
		raise(p.op, "Detach its operands, or define the operation with its gradient as a Func",
			"the result of %s at %s has no gradient with respect to its operands", n.name(), n.outs[0].Site.String())
	}
	env.site = n.outs[0].Site // what a gradient costs belongs to the line of its op
	p.current = nodeCall{n, env}
	clear(p.results)
	p.results = p.results[:0]
	for _, v := range n.plan.rule.Grad(p.builder.in(env), &p.current) {
		g, _ := v.(*Tensor)
		p.results = append(p.results, g)
	}
	return p.results
}

// carry takes the gradient of a To back to the operand's device.
func (p *pass) carry(n *node) *Tensor {
	from := n.odds().from
	s := p.at(from.dev)
	if s == nil {
		parent := from.scope
		for parent.Closed() != nil {
			parent = parent.parent
		}
		s = p.enter(parent, from.onQueue())
	}
	s.env.site, s.env.part, s.env.seq = n.outs[0].Site, n.part, n.seq
	g := n.grads[0].To(s.env)
	s.env.site, s.env.part, s.env.seq = nil, nil, 0
	return g
}

// sweep releases temporaries that no pending gradient needs.
func (p *pass) sweep() {
	for _, s := range p.sides {
		s.sweep()
	}
}

func (s *side) sweep() {
	if s.scope == nil {
		return
	}
	l := s.env.dev.heap.Lock()
	l.Sweep(&s.scope.Scope, internal)
	l.Unlock()
}

func (p *pass) plus(a, b *Tensor) *Tensor {
	in := [2]*Tensor{a, b}
	var out [1]*Tensor
	if wide := ir.Wide(a.DType()); a.DType() != b.DType() { // one of them came wider than asked for: see autograd.Wider
		in[0], in[1] = a.Cast(wide), b.Cast(wide)
	}
	exec(p.at(a.env.dev).env, ir.Add, &ir.Attr{}, &ir.Params{}, in[:], out[:])
	return out[0]
}

// add sums a gradient into a node's pending one.
func (p *pass) add(n *node, out int, g *Tensor) {
	g.st.Pin(1)
	if n.grads == nil || n.grads[out] == nil {
		n.put(out, g)
		return
	}
	old := n.grads[out]
	n.grads[out] = p.plus(old, g)
	n.grads[out].st.Pin(1)
	old.st.Pin(-1)
	g.st.Pin(-1)
}

// reach is one edge to a leaf: g, which may be nil and counts as used, joins the leaf's sum, and the last edge delivers
// it.
func (p *pass) reach(l *leaf, g *Tensor) {
	if g != nil {
		if old := p.sums[l]; old != nil {
			sum := p.plus(old, g)
			sum.st.Pin(1)
			old.st.Pin(-1)
			g.st.Pin(-1)
			g = sum
		}
		p.sums[l] = g
	}
	if p.pending[l]--; p.pending[l] > 0 {
		return
	}
	if g = p.sums[l]; g != nil {
		delete(p.sums, l)
		p.deliver(l, g)
	}
}

// deliver gives a complete gradient to a leaf.
func (p *pass) deliver(l *leaf, g *Tensor) {
	for _, f := range l.hooks {
		if h := p.callHook(f, g); h != g {
			h.st.Pin(1)
			g.st.Pin(-1)
			g = h
		}
	}
	g.st.Pin(-1)
	if step := recordings.step(); step != nil && p.grads == nil && l.grad == nil {
		step.leaves = append(step.leaves, l)
	}
	switch {
	case p.grads != nil:
		p.grads[l] = p.returned(g)
		return
	case l.grad != nil:
		l.value.env.backward().into(ir.Add, ir.Attr{}, ir.Params{}, l.grad, l.grad, g)
		l.grad.st.Written()
	case l.buffer != nil:
		l.value.env.backward().into(ir.Copy, ir.Attr{Out: l.buffer.typ}, ir.Params{}, l.buffer, g)
		l.buffer.st.Written()
		l.grad = l.buffer
	default:
		l.grad = p.own(g, l.value.env)
	}
	l.grad.Label(device.LabelGradient, l.path())
	for _, f := range l.after {
		p.call(func() { f(l.value) })
	}
}

// returned is a gradient that Grad gives back, in y's modes.
func (p *pass) returned(g *Tensor) *Tensor {
	s := p.at(g.env.dev)
	c := *g
	if s.scope != nil {
		c = *p.own(g, s.env.inScope(s.scope.parent))
	}
	env := *p.out
	if env.dev != s.env.dev {
		env.dev, env.queue, env.seeded = s.env.dev, s.env.queue, nil
	}
	c.env = env.inScope(c.env.scope)
	return &c
}

// own moves a temporary to env, or copies what others use too.
func (p *pass) own(g *Tensor, env *Env) *Tensor {
	d := g.env.dev
	if s := p.at(d).scope; s == nil || !s.owns(g.st.Storage) || g.st.Pinned() || g.Bytes() != g.st.Bytes() || !g.typ.IsDense() {
		return g.copyTo(env)
	}
	l := d.heap.Lock()
	l.Inherit(&env.live().Scope, g.st.Storage)
	l.Unlock()
	c := *g
	c.env, c.node = env, nil
	return &c
}
