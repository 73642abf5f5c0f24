package tensor

import (
	"cmp"
	"iter"
	"slices"

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
	stop    *node             // a node with a constant operand, for the error about no parameter
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
			raise("Grad", "call x.RequireGrad() before it is used", "%s from %s at %s is not a leaf", t.typ, t.st.rec.code, t.st.rec.site.String())
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
	if t.node == nil {
		raise(op, "an operand must be a parameter or leaf, in an env that records", "nothing was recorded: the result of %s%s carries no graph", t.st.rec.code, t.elsewhere())
	}
	p := &pass{id: passes.Add(1), op: op, record: record, only: only, grads: grads, out: t.env, pending: map[*leaf]int{}, sums: map[*leaf]*Tensor{}}
	p.plan(t.node)
	if len(p.pending) == 0 {
		if grads != nil {
			return // Grad gives zeros
		}
		p.noLeaf()
	}
	defer p.end()
	home := p.enter(t.env.live(), t.node.queue)
	if !retain {
		p.head(t)
	}
	seed := home.env.full(t.typ.AsDense(), 1)
	seed.st.rec.uses = 1
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
	s := &side{env: &Env{dev: parent.dev, scope: parent, grad: off, queue: q}}
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

// end releases temporaries and forgets pending gradients, which an error may have left.
func (p *pass) end() {
	for _, n := range p.order {
		n.grads = nil
	}
	for _, s := range p.sides {
		if s.scope != nil {
			s.scope.end(internal)
		}
	}
}

func (p *pass) noLeaf() {
	why := "its parameters are frozen, or not among those given"
	if p.stop != nil {
		why = "recording stopped at " + p.stop.name() + " at " + p.stop.outs[0].site.String()
	}
	raise(p.op, "use the parameters in an env that records, and not Detach", "no parameter is reached: %s", why)
}

// plan marks the nodes and edges that lead to a wanted leaf.
func (p *pass) plan(n *node) bool {
	if n.pass == p.id {
		return n.wanted
	}
	if n.ran {
		raise(p.op, "use BackwardRetain the first time", "this graph was already walked, and its values released, at %s", n.name())
	}
	if why := n.scope.closed.Load(); why != nil {
		raise(p.op, why.hint, "this graph was ended by %s", why.by)
	}
	n.pass, n.wanted, n.grads = p.id, false, nil
	for i := range n.in {
		e := &n.in[i]
		switch {
		case e.node != nil:
			e.want = p.plan(e.node)
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
	if n.from != nil {
		d = n.from.dev
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
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range n.outs {
		s := r.scope.Load()
		if !r.made || r.exempt || r.gone.Load() != nil || d != loss.dev && s == d.base.scope {
			continue
		}
		r.exempt = true
		if d == loss.dev && s.opened < loss.opened {
			loss.adopt(r)
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
				g.st.rec.uses++ // before any leaf takes it over: several operands may share one gradient
			}
		}
		for _, g := range n.grads {
			if g != nil {
				g.st.rec.uses--
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
	for _, h := range n.hooks {
		old := n.grads[h.out]
		if old == nil {
			continue
		}
		if g := p.callHook(h.f, old); g != old {
			g.st.rec.uses++
			old.st.rec.uses--
			n.grads[h.out] = g
		}
	}
}

// callHook returns what takes the place of g. Other operands may share g's storage, so a hook may not write to it.
func (p *pass) callHook(f func(*Tensor) *Tensor, g *Tensor) *Tensor {
	version := g.st.rec.version.Load()
	h := f(g)
	if g.st.rec.version.Load() != version {
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

// rule runs the gradient rule of one node.
func (p *pass) rule(n *node) []*Tensor {
	if n.from != nil {
		return []*Tensor{p.carry(n)}
	}
	env := p.at(n.scope.dev).env
	if n.call != nil {
		return n.call.backward(n, env)
	}
	env.site = &n.outs[0].site // what a gradient costs belongs to the line of its op
	values := n.plan.rule.Grad(ir.B{Builder: &builder{env: env}}, &nodeCall{n, env})
	env.site = nil
	out := make([]*Tensor, len(values))
	for i, v := range values {
		if v != nil {
			out[i] = v.(*Tensor)
		}
	}
	return out
}

// carry takes the gradient of a To back to the operand's device.
func (p *pass) carry(n *node) *Tensor {
	s := p.at(n.from.dev)
	if s == nil {
		parent := n.from.scope
		for parent.closed.Load() != nil {
			parent = parent.parent
		}
		s = p.enter(parent, n.from.onQueue())
	}
	s.env.site = &n.outs[0].site
	g := n.grads[0].To(s.env)
	s.env.site = nil
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
	d := s.env.dev
	d.mu.Lock()
	for i := len(s.scope.records) - 1; i >= 0; i-- {
		if r := s.scope.records[i]; r.uses <= 0 {
			d.release(r, internal)
		}
	}
	d.mu.Unlock()
}

func (p *pass) plus(a, b *Tensor) *Tensor {
	in := [2]*Tensor{a, b}
	var out [1]*Tensor
	exec(p.at(a.env.dev).env, ir.Add, &ir.Attr{}, &ir.Params{}, in[:], out[:])
	return out[0]
}

// add sums a gradient into a node's pending one.
func (p *pass) add(n *node, out int, g *Tensor) {
	g.st.rec.uses++
	if n.grads == nil || n.grads[out] == nil {
		n.put(out, g)
		return
	}
	old := n.grads[out]
	n.grads[out] = p.plus(old, g)
	n.grads[out].st.rec.uses++
	old.st.rec.uses--
	g.st.rec.uses--
}

// reach is one edge to a leaf: g, which may be nil and counts as used, joins the leaf's sum, and the last edge delivers
// it.
func (p *pass) reach(l *leaf, g *Tensor) {
	if g != nil {
		if old := p.sums[l]; old != nil {
			sum := p.plus(old, g)
			sum.st.rec.uses++
			old.st.rec.uses--
			g.st.rec.uses--
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
			h.st.rec.uses++
			g.st.rec.uses--
			g = h
		}
	}
	g.st.rec.uses--
	switch {
	case p.grads != nil:
		p.grads[l] = p.returned(g)
		return
	case l.grad != nil:
		l.value.env.into(ir.Add, ir.Attr{}, ir.Params{}, l.grad, l.grad, g)
		l.grad.st.rec.version.Add(1)
	case l.buffer != nil:
		l.value.env.into(ir.Copy, ir.Attr{Out: l.buffer.typ}, ir.Params{}, l.buffer, g)
		l.buffer.st.rec.version.Add(1)
		l.grad = l.buffer
	default:
		l.grad = p.own(g, l.value.env)
	}
	for _, f := range l.after {
		f(l.value)
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
	r, d := g.st.rec, g.env.dev
	if r.scope.Load() != p.at(d).scope || r.uses > 0 || g.Bytes() != r.bytes || !g.typ.IsDense() {
		return g.copyTo(env)
	}
	d.mu.Lock()
	env.live().inherit(r)
	d.mu.Unlock()
	c := *g
	c.env, c.node = env, nil
	return &c
}
