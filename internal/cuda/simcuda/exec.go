package simcuda

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
)

// What the launch of a graph costs the host, in ns: published are about 2.5 µs, and by drivers of CUDA 12.6 and later some tens of ns
// a node.
const (
	graphCall = 2500
	nodeTime  = 50
)

// exec is a graph that is ready: its nodes and those of the graphs in it, in an order in which they could run one by one.
type exec struct {
	sys    *System
	number int // of the machine's execs
	handle driver.GraphExec
	ctx    *context // in which it was made, and in which nodes are that need none
	graph  *graph   // a copy of what it was made of
	nodes  map[driver.GraphNode]*node
	steps  []turn
	ends   []int     // the steps that come last
	count  int64     // of the nodes that a card would have
	lanes  []*stream // of steps that come one after another
	last   *op       // the end of the last launch
}

// turn is a node's place in the order.
type turn struct {
	node *node
	deps []int // steps
	lane int
}

// sorted is the nodes in an order in which each comes after those that it waits for; ok is false if there is none.
func (g *graph) sorted() (list []*node, ok bool) {
	const (
		entered = 1
		left    = 2
	)
	state := make(map[*node]int, len(g.nodes))
	var visit func(n *node) bool
	visit = func(n *node) bool {
		switch state[n] {
		case entered:
			return false
		case left:
			return true
		}
		state[n] = entered
		for _, d := range n.deps {
			if !visit(d) {
				return false
			}
		}
		state[n] = left
		list = append(list, n)
		return true
	}
	for _, n := range g.nodes {
		if !visit(n) {
			return nil, false
		}
	}
	return list, true
}

// lay puts the nodes of a graph into order, after some steps, and returns those that come last. ok is false if there is no order.
func (x *exec) lay(g *graph, after []int) (ends []int, ok bool) {
	nodes, ok := g.sorted()
	if !ok {
		return nil, false
	}
	through := make(map[*node][]int, len(nodes)) // the steps with which a node is through
	waited := make(map[*node]bool, len(nodes))
	for _, n := range nodes {
		var deps []int
		for _, d := range n.deps {
			waited[d] = true
			deps = merge(deps, through[d])
		}
		if len(deps) == 0 {
			deps = after
		}
		if n.typ != nodeAnnotation {
			x.count++
		}
		if n.child == nil {
			through[n] = []int{len(x.steps)}
			x.steps = append(x.steps, turn{node: n, deps: deps})
			continue
		}
		if through[n], ok = x.lay(n.child, deps); !ok {
			return nil, false
		}
		if len(through[n]) == 0 {
			through[n] = deps
		}
	}
	for _, n := range nodes {
		if !waited[n] {
			ends = merge(ends, through[n])
		}
	}
	return ends, true
}

// merge is a list with what it lacks of another.
func merge(a, b []int) []int {
	if len(a) == 0 {
		return b
	}
	a = slices.Clip(a)
	for _, v := range b {
		if !slices.Contains(a, v) {
			a = append(a, v)
		}
	}
	return a
}

// spread puts the steps on lanes: a step follows one that it waits for where no other does, so that lanes add no order.
func (x *exec) spread() {
	var tails []int // by lane
	x.lanes = nil
	for i := range x.steps {
		t := &x.steps[i]
		ctx := t.node.ctx
		if ctx == nil {
			ctx = x.ctx
		}
		t.lane = -1
		for _, d := range t.deps {
			if l := x.steps[d].lane; tails[l] == d && x.lanes[l].ctx == ctx {
				t.lane = l
				break
			}
		}
		if t.lane < 0 {
			t.lane = len(tails)
			tails = append(tails, i)
			x.lanes = append(x.lanes, &stream{ctx: ctx, index: x.number<<20 + t.lane, lane: true, dead: true})
		}
		tails[t.lane] = i
	}
}

// build makes the exec ready to run a graph, which it copies; false if that has a cycle.
func (x *exec) build(g *graph) bool {
	x.graph, x.steps, x.count = g.clone(), nil, 0
	x.graph.destroy() // nobody else has its handles
	var ok bool
	if x.ends, ok = x.lay(x.graph, nil); ok {
		x.spread()
	}
	return ok
}

// instantiateFlags are those known.
const instantiateFlags = driver.GraphAutoFreeOnLaunch | driver.GraphUseNodePriority

func (s *System) instantiate(h driver.Graph, flags uint64) (made driver.GraphExec, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		g, r := c.own(h)
		switch {
		case r != driver.Success:
			return r
		case flags&^instantiateFlags != 0:
			return c.refuse(driver.InvalidValue, "flags %#x to instantiate a graph", flags)
		}
		s.instantiated++
		x := &exec{sys: s, number: s.instantiated, handle: driver.GraphExec(s.handle()), ctx: c, nodes: map[driver.GraphNode]*node{}}
		if !x.build(g) {
			return c.refuse(driver.InvalidValue, "graph %#x has a cycle: nodes wait for each other", uintptr(h))
		}
		for _, n := range x.graph.nodes {
			x.nodes[n.origin] = n
		}
		s.execs[x.handle] = x
		made = x.handle
		return driver.Success
	})
	return made, r
}

func (c *context) exec(h driver.GraphExec) (*exec, driver.Result) {
	if x := c.dev.sys.execs[h]; x != nil {
		return x, driver.Success
	}
	return nil, c.refuse(driver.InvalidValue, "there is no graph %#x that was instantiated, or not any more", uintptr(h))
}

// execDestroy does not wait: launches under way still happen.
func (s *System) execDestroy(h driver.GraphExec) driver.Result {
	return s.in(func(c *context) driver.Result {
		_, r := c.exec(h)
		if r == driver.Success {
			delete(s.execs, h)
		}
		return r
	})
}

func (s *System) graphUpload(h driver.GraphExec, sh driver.Stream) driver.Result {
	return s.in(func(c *context) driver.Result {
		x, r := c.exec(h)
		if r != driver.Success {
			return r
		}
		st, r := c.uncaptured(sh, "GraphUpload")
		if r != driver.Success {
			return r
		}
		s.enqueue(c, st, mark, nil, x.last)
		return driver.Success
	})
}

func (s *System) graphLaunch(h driver.GraphExec, sh driver.Stream) driver.Result {
	return s.in(func(c *context) driver.Result {
		x, r := c.exec(h)
		if r != driver.Success {
			return r
		}
		return c.target(sh, func(st *stream) driver.Result {
			if p := st.capture; p != nil {
				r := c.fits(p.graph, x.graph)
				if r == driver.Success {
					p.addGraph(st, x.graph)
				}
				return r
			}
			if r := x.complete(c); r != driver.Success {
				return r
			}
			x.launch(c, st)
			return driver.Success
		})
	})
}

// complete refuses a launch that lacks something.
func (x *exec) complete(c *context) driver.Result {
	for _, t := range x.steps {
		n := t.node
		switch {
		case n.ctx == nil:
		case n.ctx.gone:
			return c.refuse(driver.ContextDestroyed, "a node's context was released or reset")
		case n.ctx.err != driver.Success:
			return n.ctx.err
		case n.task != nil && n.task.missing() != "":
			return c.refuse(driver.InvalidHandle, "a node needs %s, which is gone", n.task.missing())
		case n.event != 0 && x.sys.events[n.event] == nil:
			return c.refuse(driver.InvalidHandle, "a node's event %#x is gone", uintptr(n.event))
		}
	}
	return driver.Success
}

// launch enqueues the nodes between two marks in the stream. The call is of context c.
func (x *exec) launch(c *context, st *stream) {
	s := x.sys
	for _, l := range x.lanes {
		if q := l.ctx.queues; l.ctx != st.ctx && !slices.Contains(q, l) { // who waits for the other context finds it there
			l.ctx.queues = append(q, l)
		}
	}
	begin := s.add(st, mark, nil, []*op{x.last})
	s.passed(step{c: c, work: begin, ns: graphCall + nodeTime*x.count})
	ops := make([]*op, len(x.steps))
	for i, t := range x.steps {
		deps := []*op{begin}
		for _, d := range t.deps {
			deps = append(deps, ops[d])
		}
		ops[i] = x.begin(t, deps)
		s.passed(step{c: c, work: ops[i]})
	}
	ends := []*op{begin}
	for _, i := range x.ends {
		ends = append(ends, ops[i])
	}
	x.last = s.add(st, note, nil, ends)
	s.passed(step{c: c, work: x.last})
}

// begin enqueues a step.
func (x *exec) begin(t turn, deps []*op) *op {
	lane, n := x.lanes[t.lane], t.node
	var o *op
	switch n.typ {
	case driver.NodeWaitEvent:
		o = x.sys.add(lane, note, nil, append(deps, x.sys.events[n.event].record))
	case driver.NodeEventRecord:
		o = x.sys.add(lane, note, nil, deps)
		e := x.sys.events[n.event]
		e.record, e.capture, e.tips = o, nil, nil
	case driver.NodeEmpty:
		o = x.sys.add(lane, note, nil, deps)
	default:
		task := n.task
		o = x.sys.add(lane, task.kind(), func() cost { return task.run(lane.ctx) }, deps)
	}
	return o
}

// compare says whether a graph differs from another in more than what an update can change. Nodes are pairs by the order in which
// they were added, and what they wait for by the order of edges.
func (g *graph) compare(with *graph) driver.GraphUpdate {
	a, b := g.shown(), with.shown()
	if len(a) != len(b) {
		return driver.GraphUpdate{Result: driver.UpdateTopologyChanged}
	}
	at := map[*node]int{}
	for i := range a {
		at[a[i]], at[b[i]] = i, i
	}
	for i := range a {
		p, q := public(a[i].deps), public(b[i].deps)
		if len(p) != len(q) {
			return driver.GraphUpdate{Result: driver.UpdateTopologyChanged, Node: b[i].handle}
		}
		for j := range p {
			if at[p[j]] != at[q[j]] {
				return driver.GraphUpdate{Result: driver.UpdateTopologyChanged, Node: b[i].handle, From: q[j].handle}
			}
		}
	}
	for i := range a {
		if u := a[i].compare(b[i]); u.Result != driver.UpdateSuccess {
			return u
		}
	}
	return driver.GraphUpdate{}
}

func (n *node) compare(with *node) driver.GraphUpdate {
	u := driver.GraphUpdate{Node: with.handle}
	switch {
	case n.typ != with.typ:
		u.Result = driver.UpdateNodeTypeChanged
	case n.child != nil:
		if inside := n.child.compare(with.child); inside.Result != driver.UpdateSuccess {
			return inside
		}
		return driver.GraphUpdate{}
	case n.task != nil && !replaces(n.task, with.task) || n.ctx != with.ctx:
		u.Result = driver.UpdateParametersChanged
		if n.typ == driver.NodeKernel {
			u.Result = driver.UpdateFunctionChanged
		}
	default:
		return driver.GraphUpdate{}
	}
	return u
}

// replaces reports whether a node may do something else instead: the same kind of thing, to memory of the same device or of the
// host as before, or a kernel of the same context.
func replaces(old, t task) bool {
	switch a := old.(type) {
	case *kernelTask:
		b, ok := t.(*kernelTask)
		return ok && a.f.mod.ctx == b.f.mod.ctx
	case *copyTask:
		b, ok := t.(*copyTask)
		return ok && a.to == b.to && a.from == b.from
	case *fillTask:
		b, ok := t.(*fillTask)
		return ok && a.on == b.on
	}
	return false
}

func (s *System) execUpdate(h driver.GraphExec, gh driver.Graph) (u driver.GraphUpdate, r driver.Result) {
	u.Result = driver.UpdateError
	r = s.in(func(c *context) driver.Result {
		x, r := c.exec(h)
		if r != driver.Success {
			return r
		}
		g, r := c.own(gh)
		if r != driver.Success {
			return r
		}
		if u = x.graph.compare(g); u.Result != driver.UpdateSuccess {
			return c.refuse(driver.GraphUpdateFailure, "graph %#x differs from the one that was instantiated in more than an update changes (%d), at node %#x; instantiate it",
				uintptr(gh), u.Result, uintptr(u.Node))
		}
		old := x.graph.shown()
		if !x.build(g) {
			return c.refuse(driver.InvalidValue, "graph %#x has a cycle", uintptr(gh))
		}
		for was, n := range x.nodes {
			if i := slices.Index(old, n); i >= 0 {
				x.nodes[was] = x.graph.shown()[i]
			}
		}
		return driver.Success
	})
	return u, r
}

// setNode gives a node of an exec another task, which f makes. in is the context that it is to run in; nil for its own.
func (s *System) setNode(h driver.GraphExec, nh driver.GraphNode, f func(c *context) (t task, in *context, r driver.Result)) driver.Result {
	return s.in(func(c *context) driver.Result {
		x, r := c.exec(h)
		if r != driver.Success {
			return r
		}
		if _, r = c.node(nh); r != driver.Success {
			return r
		}
		n := x.nodes[nh]
		if n == nil {
			return c.refuse(driver.InvalidValue, "node %#x is not of the graph that was instantiated", uintptr(nh))
		}
		t, in, r := f(c)
		switch {
		case r != driver.Success:
			return r
		case n.task == nil || !replaces(n.task, t) || in != n.ctx:
			return c.refuse(driver.InvalidValue, "node %#x does something else, or to memory of another device", uintptr(nh))
		}
		n.task = t
		return driver.Success
	})
}

func (s *System) setKernelNode(x driver.GraphExec, n driver.GraphNode, k *driver.KernelNode) driver.Result {
	return s.setNode(x, n, func(c *context) (task, *context, driver.Result) {
		t, r := c.kernelOf(k)
		if r != driver.Success {
			return nil, nil, r
		}
		return t, t.f.mod.ctx, r
	})
}

func (s *System) setCopyNode(x driver.GraphExec, n driver.GraphNode, p *driver.CopyNode, in driver.Context) driver.Result {
	return s.setNode(x, n, func(c *context) (task, *context, driver.Result) {
		ctx, r := c.running(in)
		if r != driver.Success {
			return nil, nil, r
		}
		t, r := c.copyOf(p)
		return t, ctx, r
	})
}

func (s *System) setFillNode(x driver.GraphExec, n driver.GraphNode, f *driver.FillNode, in driver.Context) driver.Result {
	return s.setNode(x, n, func(c *context) (task, *context, driver.Result) {
		ctx, r := c.running(in)
		if r != driver.Success {
			return nil, nil, r
		}
		t, r := c.fillOf(f)
		return t, ctx, r
	})
}
