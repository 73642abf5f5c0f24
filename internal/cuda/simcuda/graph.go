package simcuda

import (
	"encoding/binary"
	"slices"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
)

// graph is nodes in the order in which they were added, which is that of dependencies too unless edges were added later.
type graph struct {
	sys     *System
	handle  driver.Graph
	capture *capture // that makes it
	inside  bool     // of a node
	nodes   []*node
	total   int // of nodes, with those of graphs inside, destroyed ones too
}

// maxNodes bounds total: graphs inside graphs double soon.
const maxNodes = 1 << 16

// node is a piece of work and what it waits for.
type node struct {
	graph  *graph
	handle driver.GraphNode
	typ    driver.NodeType
	ctx    *context // that it runs in; nil of a graph, and of what does nothing
	deps   []*node
	task   task         // of kernels, copies, fills and annotations
	event  driver.Event // to be recorded or waited for
	child  *graph
	origin driver.GraphNode // that this is a copy of
}

// nodeAnnotation is the type of a node that no card would have: an annotation, which only the simulator sees.
const nodeAnnotation driver.NodeType = -1

// typeOf is the type of a node that does something.
func typeOf(t task) driver.NodeType {
	switch t.(type) {
	case *kernelTask:
		return driver.NodeKernel
	case *copyTask:
		return driver.NodeMemcpy
	case *fillTask:
		return driver.NodeMemset
	}
	return nodeAnnotation
}

func (s *System) newGraph() *graph {
	g := &graph{sys: s, handle: driver.Graph(s.handle())}
	s.graphs[g.handle] = g
	return g
}

// add adds a node.
func (g *graph) add(typ driver.NodeType, ctx *context, t task, deps []*node) *node {
	n := &node{graph: g, handle: driver.GraphNode(g.sys.handle()), typ: typ, ctx: ctx, task: t, deps: slices.Clone(deps)}
	g.nodes = append(g.nodes, n)
	g.total++
	g.sys.nodes[n.handle] = n
	return n
}

// destroy forgets the graph with its nodes.
func (g *graph) destroy() {
	delete(g.sys.graphs, g.handle)
	for _, n := range g.nodes {
		n.forget()
	}
}

func (n *node) forget() {
	delete(n.graph.sys.nodes, n.handle)
	if n.child != nil {
		n.child.destroy()
	}
}

// clone copies the graph with all its nodes.
func (g *graph) clone() *graph {
	c := g.sys.newGraph()
	of := make(map[*node]*node, len(g.nodes))
	for _, n := range g.nodes {
		m := c.add(n.typ, n.ctx, n.task, nil)
		m.event, m.origin = n.event, n.handle
		if n.child != nil {
			m.insert(n.child)
		}
		of[n] = m
	}
	for _, n := range g.nodes {
		for _, d := range n.deps {
			of[n].deps = append(of[n].deps, of[d])
		}
	}
	return c
}

// insert makes a node one of a copy of a graph.
func (n *node) insert(child *graph) {
	n.child = child.clone()
	n.child.inside = true
	n.graph.total += n.child.total
}

// fits refuses to put a graph into another that would have too many nodes then.
func (c *context) fits(g, child *graph) driver.Result {
	if g.total+child.total >= maxNodes {
		return c.refuse(driver.OutOfMemory, "a graph of more than %d nodes", maxNodes)
	}
	return driver.Success
}

// public are the nodes, where one is an annotation those that it waits for instead.
func public(nodes []*node) []*node {
	var list []*node
	seen := map[*node]bool{}
	var visit func(nodes []*node)
	visit = func(nodes []*node) {
		for _, n := range nodes {
			switch {
			case seen[n]:
			case n.typ == nodeAnnotation:
				seen[n] = true
				visit(n.deps)
			default:
				seen[n] = true
				list = append(list, n)
			}
		}
	}
	visit(nodes)
	return list
}

// shown are the nodes that a card would have.
func (g *graph) shown() []*node {
	return slices.DeleteFunc(slices.Clone(g.nodes), func(n *node) bool { return n.typ == nodeAnnotation })
}

func handles(nodes []*node) []driver.GraphNode {
	var list []driver.GraphNode
	for _, n := range nodes {
		list = append(list, n.handle)
	}
	return list
}

// graph finds a graph by its handle.
func (c *context) graph(h driver.Graph) (*graph, driver.Result) {
	if g := c.dev.sys.graphs[h]; g != nil {
		return g, driver.Success
	}
	return nil, c.refuse(driver.InvalidValue, "there is no graph %#x, or not any more", uintptr(h))
}

func (c *context) node(h driver.GraphNode) (*node, driver.Result) {
	if n := c.dev.sys.nodes[h]; n != nil {
		return n, driver.Success
	}
	return nil, c.refuse(driver.InvalidValue, "there is no node %#x, or not any more", uintptr(h))
}

// nodesOf finds different nodes of a graph.
func (c *context) nodesOf(g *graph, list []driver.GraphNode) ([]*node, driver.Result) {
	var nodes []*node
	for _, h := range list {
		n, r := c.node(h)
		switch {
		case r != driver.Success:
			return nil, r
		case n.graph != g:
			return nil, c.refuse(driver.InvalidValue, "node %#x is of another graph", uintptr(h))
		}
		nodes = append(nodes, n)
	}
	return nodes, driver.Success
}

func (s *System) graphCreate() (h driver.Graph, r driver.Result) {
	r = s.in(func(*context) driver.Result {
		h = s.newGraph().handle
		return driver.Success
	})
	return h, r
}

// own finds a graph that belongs to the caller, neither to a capture nor to a node.
func (c *context) own(h driver.Graph) (*graph, driver.Result) {
	g, r := c.graph(h)
	switch {
	case r != driver.Success:
		return nil, r
	case g.capture != nil:
		return nil, c.refuse(driver.InvalidValue, "graph %#x is being captured", uintptr(h))
	case g.inside:
		return nil, c.refuse(driver.InvalidValue, "graph %#x belongs to a node", uintptr(h))
	}
	return g, driver.Success
}

// graphDestroy leaves what was instantiated from the graph.
func (s *System) graphDestroy(h driver.Graph) driver.Result {
	return s.in(func(c *context) driver.Result {
		g, r := c.own(h)
		if r == driver.Success {
			g.destroy()
		}
		return r
	})
}

func (s *System) graphClone(h driver.Graph) (clone driver.Graph, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		g, r := c.graph(h)
		if r == driver.Success {
			clone = g.clone().handle
		}
		return r
	})
	return clone, r
}

func (s *System) findInClone(h driver.GraphNode, clone driver.Graph) (found driver.GraphNode, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		g, r := c.graph(clone)
		if r != driver.Success {
			return r
		}
		if _, r = c.node(h); r != driver.Success {
			return r
		}
		for _, n := range g.nodes {
			if n.origin == h {
				found = n.handle
				return driver.Success
			}
		}
		return c.refuse(driver.InvalidValue, "graph %#x has no copy of node %#x", uintptr(clone), uintptr(h))
	})
	return found, r
}

// addNode adds a node that f fills in, or refuses to.
func (s *System) addNode(h driver.Graph, after []driver.GraphNode, typ driver.NodeType, f func(c *context, n *node) driver.Result) (added driver.GraphNode, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		g, r := c.graph(h)
		if r != driver.Success {
			return r
		}
		deps, r := c.nodesOf(g, after)
		if r != driver.Success {
			return r
		}
		if len(union(nil, deps)) != len(deps) {
			return c.refuse(driver.InvalidValue, "a node is named twice among those to wait for")
		}
		n := node{typ: typ}
		if r := f(c, &n); r != driver.Success {
			return r
		}
		m := g.add(typ, n.ctx, n.task, deps)
		m.event = n.event
		if n.child != nil {
			m.insert(n.child)
		}
		added = m.handle
		return driver.Success
	})
	return added, r
}

// kernelOf is the task of a launch in a graph.
func (c *context) kernelOf(k *driver.KernelNode) (*kernelTask, driver.Result) {
	if k == nil {
		return nil, c.refuse(driver.InvalidValue, "a kernel's node without parameters")
	}
	f := c.dev.sys.funcs[k.Func]
	if f == nil {
		return nil, c.refuse(driver.InvalidHandle, "there is no function %#x", uintptr(k.Func))
	}
	return f.mod.ctx.newKernelTask(k.Func, &driver.LaunchConfig{Grid: k.Grid, Block: k.Block, Shared: k.Shared}, k.Params, true)
}

func (s *System) addKernelNode(g driver.Graph, after []driver.GraphNode, k *driver.KernelNode) (driver.GraphNode, driver.Result) {
	return s.addNode(g, after, driver.NodeKernel, func(c *context, n *node) driver.Result {
		t, r := c.kernelOf(k)
		if r == driver.Success {
			n.ctx, n.task = t.f.mod.ctx, t
		}
		return r
	})
}

// copyOf is the task of a copy in a graph.
func (c *context) copyOf(n *driver.CopyNode) (*copyTask, driver.Result) {
	switch {
	case n == nil || n.Bytes <= 0 || (n.Dst == 0) == (n.DstHost == 0) || (n.Src == 0) == (n.SrcHost == 0):
		return nil, c.refuse(driver.InvalidValue, "the node of a copy needs one destination, one source and bytes: %+v", n)
	case n.DstHost == 0 && n.SrcHost == 0:
		return c.newMove(n.Dst, n.Src, n.Bytes)
	}
	t := &copyTask{dst: uint64(n.Dst), src: uint64(n.Src), dstHost: n.DstHost, srcHost: n.SrcHost, n: int(n.Bytes)}
	var r driver.Result
	for i, h := range t.hosts() {
		if h == 0 {
			continue
		}
		if t.locked[i], r = c.locked(h, n.Bytes); r != driver.Success {
			return nil, r
		}
	}
	if n.Dst != 0 {
		t.to, r = c.device(n.Dst, n.Bytes)
	} else if n.Src != 0 {
		t.from, r = c.device(n.Src, n.Bytes)
	}
	return t, r
}

// running finds the context that a node is to run in.
func (c *context) running(h driver.Context) (*context, driver.Result) {
	if x := c.dev.sys.find(h); x != nil {
		return x, driver.Success
	}
	return nil, c.refuse(driver.InvalidContext, "there is no context %#x, or not any more", uintptr(h))
}

func (s *System) addCopyNode(g driver.Graph, after []driver.GraphNode, p *driver.CopyNode, in driver.Context) (driver.GraphNode, driver.Result) {
	return s.addNode(g, after, driver.NodeMemcpy, func(c *context, n *node) (r driver.Result) {
		if n.ctx, r = c.running(in); r != driver.Success {
			return r
		}
		t, r := c.copyOf(p)
		n.task = t
		return r
	})
}

// fillOf is the task of a fill in a graph.
func (c *context) fillOf(f *driver.FillNode) (*fillTask, driver.Result) {
	if f == nil || f.Elements <= 0 || f.ElementSize != 1 && f.ElementSize != 2 && f.ElementSize != 4 {
		return nil, c.refuse(driver.InvalidValue, "the node of a fill needs elements of 1, 2 or 4 bytes: %+v", f)
	}
	return c.newFill(f.Dst, binary.LittleEndian.AppendUint32(nil, f.Value)[:f.ElementSize], f.Elements)
}

func (s *System) addFillNode(g driver.Graph, after []driver.GraphNode, f *driver.FillNode, in driver.Context) (driver.GraphNode, driver.Result) {
	return s.addNode(g, after, driver.NodeMemset, func(c *context, n *node) (r driver.Result) {
		if n.ctx, r = c.running(in); r != driver.Success {
			return r
		}
		t, r := c.fillOf(f)
		n.task = t
		return r
	})
}

func (s *System) addEmptyNode(g driver.Graph, after []driver.GraphNode) (driver.GraphNode, driver.Result) {
	return s.addNode(g, after, driver.NodeEmpty, func(*context, *node) driver.Result { return driver.Success })
}

func (s *System) addRecordNode(g driver.Graph, after []driver.GraphNode, e driver.Event) (driver.GraphNode, driver.Result) {
	return s.addNode(g, after, driver.NodeEventRecord, eventNode(e))
}

func (s *System) addWaitNode(g driver.Graph, after []driver.GraphNode, e driver.Event) (driver.GraphNode, driver.Result) {
	return s.addNode(g, after, driver.NodeWaitEvent, eventNode(e))
}

func eventNode(h driver.Event) func(c *context, n *node) driver.Result {
	return func(c *context, n *node) driver.Result {
		e, r := c.event(h)
		if r == driver.Success {
			n.ctx, n.event = e.ctx, h
		}
		return r
	}
}

func (s *System) addChildNode(g driver.Graph, after []driver.GraphNode, h driver.Graph) (driver.GraphNode, driver.Result) {
	return s.addNode(g, after, driver.NodeGraph, func(c *context, n *node) driver.Result {
		child, r := c.graph(h)
		switch {
		case r != driver.Success:
			return r
		case h == g || child.capture != nil:
			return c.refuse(driver.InvalidValue, "graph %#x cannot become a node of graph %#x", uintptr(h), uintptr(g))
		}
		if r := c.fits(c.dev.sys.graphs[g], child); r != driver.Success {
			return r
		}
		n.child = child
		return driver.Success
	})
}

// withEdges calls f for each edge, once all of them are right.
func (s *System) withEdges(h driver.Graph, from, to []driver.GraphNode, wanted bool, f func(from, to *node)) driver.Result {
	return s.in(func(c *context) driver.Result {
		g, r := c.graph(h)
		if r != driver.Success {
			return r
		}
		if len(from) != len(to) {
			return c.refuse(driver.InvalidValue, "edges from %d nodes to %d", len(from), len(to))
		}
		a, r := c.nodesOf(g, from)
		if r != driver.Success {
			return r
		}
		b, r := c.nodesOf(g, to)
		if r != driver.Success {
			return r
		}
		type edge struct{ from, to *node }
		seen := map[edge]bool{}
		for i := range a {
			e := edge{a[i], b[i]}
			if a[i] == b[i] || seen[e] || slices.Contains(b[i].deps, a[i]) != wanted {
				return c.refuse(driver.InvalidValue, "the edge from node %#x to %#x: it is there already, or not there, or a node would wait for itself", uintptr(from[i]), uintptr(to[i]))
			}
			seen[e] = true
		}
		for i := range a {
			f(a[i], b[i])
		}
		return driver.Success
	})
}

// addDependencies does not look for cycles: instantiate does.
func (s *System) addDependencies(g driver.Graph, from, to []driver.GraphNode) driver.Result {
	return s.withEdges(g, from, to, false, func(from, to *node) { to.deps = append(to.deps, from) })
}

func (s *System) removeDependencies(g driver.Graph, from, to []driver.GraphNode) driver.Result {
	return s.withEdges(g, from, to, true, func(from, to *node) {
		to.deps = slices.DeleteFunc(to.deps, func(n *node) bool { return n == from })
	})
}

// destroyNode takes a node out with its edges.
func (s *System) destroyNode(h driver.GraphNode) driver.Result {
	return s.in(func(c *context) driver.Result {
		n, r := c.node(h)
		switch {
		case r != driver.Success:
			return r
		case n.graph.capture != nil:
			return c.refuse(driver.InvalidValue, "node %#x is of a graph that is being captured", uintptr(h))
		}
		is := func(m *node) bool { return m == n }
		for _, m := range n.graph.nodes {
			m.deps = slices.DeleteFunc(m.deps, is)
		}
		n.graph.nodes = slices.DeleteFunc(n.graph.nodes, is)
		n.forget()
		return driver.Success
	})
}

func (s *System) graphNodes(h driver.Graph) (list []driver.GraphNode, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		g, r := c.graph(h)
		if r == driver.Success {
			list = handles(g.shown())
		}
		return r
	})
	return list, r
}

func (s *System) graphEdges(h driver.Graph) (from, to []driver.GraphNode, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		g, r := c.graph(h)
		if r != driver.Success {
			return r
		}
		for _, n := range g.shown() {
			for _, d := range public(n.deps) {
				from, to = append(from, d.handle), append(to, n.handle)
			}
		}
		return driver.Success
	})
	return from, to, r
}

func (s *System) nodeType(h driver.GraphNode) (typ driver.NodeType, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		n, r := c.node(h)
		if r == driver.Success {
			typ = n.typ
		}
		return r
	})
	return typ, r
}

func (s *System) nodeDependencies(h driver.GraphNode) (list []driver.GraphNode, r driver.Result) {
	r = s.in(func(c *context) driver.Result {
		n, r := c.node(h)
		if r == driver.Success {
			list = handles(public(n.deps))
		}
		return r
	})
	return list, r
}
