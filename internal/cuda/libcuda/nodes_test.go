package libcuda_test

import (
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
)

// kernelNode is sum over three buffers.
func (b *bench) kernelNode(x, y, z int) *driver.KernelNode {
	return &driver.KernelNode{Func: b.sum, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{cells, 1, 1}, Params: b.params(x, y, z)}
}

func (b *bench) fillNode(i int, v uint32) *driver.FillNode {
	return &driver.FillNode{Dst: b.buffer(i), Value: v, ElementSize: 4, Elements: cells}
}

func (b *bench) graph() driver.Graph {
	b.t.Helper()
	g, r := b.api.GraphCreate()
	must(b.t, "cuGraphCreate", r)
	b.captured = append(b.captured, g)
	return g
}

// node passes a node on that must have been added.
func (b *bench) node(n driver.GraphNode, r driver.Result) driver.GraphNode {
	b.t.Helper()
	must(b.t, "adding a node", r)
	return n
}

func (b *bench) ready(g driver.Graph) driver.GraphExec {
	b.t.Helper()
	x, r := b.api.GraphInstantiateWithFlags(g, 0)
	must(b.t, "cuGraphInstantiateWithFlags", r)
	b.t.Cleanup(func() { must(b.t, "cuGraphExecDestroy", b.api.GraphExecDestroy(x)) })
	return x
}

// runs launches a graph and gives the first number of some buffers.
func (b *bench) runs(x driver.GraphExec, buffers ...int) (list []uint32) {
	b.t.Helper()
	must(b.t, "cuGraphLaunch", b.api.GraphLaunch(x, b.s[0]))
	for _, i := range buffers {
		must(b.t, "cuMemcpyDtoHAsync", b.api.MemcpyDtoHAsync(b.host, b.buffer(i), 4*cells, b.s[0]))
		must(b.t, "cuStreamSynchronize", b.api.StreamSynchronize(b.s[0]))
		list = append(list, b.numbers(b.host)[0])
	}
	return list
}

// shapes is a graph of one node of each kind: 0 fills, 1 copies it, 2 adds both up.
type shapes struct {
	graph                                           driver.Graph
	fill, copy, kernel, empty, record, wait, inside driver.GraphNode
}

func newShapes(b *bench) *shapes {
	s := &shapes{graph: b.graph()}
	a := b.api
	type nodes = []driver.GraphNode
	s.fill = b.node(a.GraphAddMemsetNode(s.graph, nil, b.fillNode(0, 3), b.ctx))
	s.copy = b.node(a.GraphAddMemcpyNode(s.graph, nodes{s.fill}, &driver.CopyNode{Dst: b.buffer(1), Src: b.buffer(0), Bytes: 4 * cells}, b.ctx))
	s.record = b.node(a.GraphAddEventRecordNode(s.graph, nodes{s.copy}, b.e[0]))
	s.wait = b.node(a.GraphAddEventWaitNode(s.graph, nodes{s.record}, b.e[0]))
	s.empty = b.node(a.GraphAddEmptyNode(s.graph, nodes{s.fill, s.wait}))
	s.kernel = b.node(a.GraphAddKernelNode(s.graph, nodes{s.empty}, b.kernelNode(0, 1, 2)))
	child := b.graph()
	b.node(a.GraphAddKernelNode(child, nil, b.kernelNode(2, 2, 3)))
	s.inside = b.node(a.GraphAddChildGraphNode(s.graph, nodes{s.kernel}, child))
	return s
}

// TestNodes: nodes of every kind run, tell what they are and what they wait for, and change.
func TestNodes(t *testing.T) {
	onEach(t, simcuda.Config{LateEffects: true, Seed: 5}, func(t *testing.T, api *driver.API) {
		b := newBench(t, api)
		s := newShapes(b)
		x := b.ready(s.graph)
		if got := b.runs(x, 0, 1, 2, 3); !slices.Equal(got, []uint32{3, 3, 6, 12}) {
			t.Errorf("%v, want 3 3 6 12", got)
		}
		order := []driver.GraphNode{s.fill, s.copy, s.record, s.wait, s.empty, s.kernel, s.inside}
		types := []driver.NodeType{driver.NodeMemset, driver.NodeMemcpy, driver.NodeEventRecord, driver.NodeWaitEvent, driver.NodeEmpty,
			driver.NodeKernel, driver.NodeGraph}
		list, r := api.GraphGetNodes(s.graph)
		if slices.Sort(list); r != driver.Success || !slices.Equal(list, slices.Sorted(slices.Values(order))) {
			t.Errorf("nodes %v, %v", list, r)
		}
		for i, n := range order {
			if typ, r := api.GraphNodeGetType(n); typ != types[i] || r != driver.Success {
				t.Errorf("node %d: type %d, %v", i, typ, r)
			}
		}
		deps, r := api.GraphNodeGetDependencies(s.empty)
		if slices.Sort(deps); r != driver.Success || !slices.Equal(deps, slices.Sorted(slices.Values([]driver.GraphNode{s.fill, s.wait}))) {
			t.Errorf("dependencies %v, %v", deps, r)
		}
		from, to, r := api.GraphGetEdges(s.graph)
		if len(from) != 7 || len(to) != 7 || r != driver.Success {
			t.Errorf("edges %v to %v, %v", from, to, r)
		}
		if deps, r := api.GraphNodeGetDependencies(s.fill); len(deps) != 0 || r != driver.Success {
			t.Errorf("the first node waits for %v, %v", deps, r)
		}

		b.want("a kernel", driver.Success, api.GraphExecKernelNodeSetParams(x, s.kernel, b.kernelNode(1, 3, 2)))
		b.want("a fill", driver.Success, api.GraphExecMemsetNodeSetParams(x, s.fill, b.fillNode(0, 5), b.ctx))
		b.want("a copy", driver.Success,
			api.GraphExecMemcpyNodeSetParams(x, s.copy, &driver.CopyNode{Dst: b.buffer(4), Src: b.buffer(0), Bytes: 4 * cells}, b.ctx))
		if got := b.runs(x, 0, 1, 4, 2, 3); !slices.Equal(got, []uint32{5, 3, 5, 15, 30}) {
			t.Errorf("%v, want 5 3 5 15 30", got)
		}
		b.want("upload", driver.Success, api.GraphUpload(x, b.s[1]))
		b.want("the event", driver.Success, api.EventSynchronize(b.e[0]))
	})
}

// TestHostCopies: a graph reads and writes memory of the host when it runs, not when it is made.
func TestHostCopies(t *testing.T) {
	onEach(t, simcuda.Config{LateEffects: true}, func(t *testing.T, api *driver.API) {
		b := newBench(t, api)
		g := b.graph()
		up := b.node(api.GraphAddMemcpyNode(g, nil, &driver.CopyNode{Dst: b.buffer(0), SrcHost: b.hostBuffer(1), Bytes: 4 * cells}, b.ctx))
		double := b.node(api.GraphAddKernelNode(g, []driver.GraphNode{up}, b.kernelNode(0, 0, 1)))
		down := b.node(api.GraphAddMemcpyNode(g, []driver.GraphNode{double}, &driver.CopyNode{DstHost: b.hostBuffer(2), Src: b.buffer(1), Bytes: 4 * cells}, b.ctx))
		b.node(api.GraphAddMemcpyNode(g, []driver.GraphNode{down}, &driver.CopyNode{DstHost: b.hostBuffer(3), SrcHost: b.hostBuffer(2), Bytes: 4 * cells}, b.ctx))
		x := b.ready(g)
		for i := range uint32(3) {
			b.numbers(b.hostBuffer(1))[7] = i + 10
			must(t, "cuGraphLaunch", api.GraphLaunch(x, b.s[0]))
			must(t, "cuStreamSynchronize", api.StreamSynchronize(b.s[0]))
			if got := b.numbers(b.hostBuffer(3))[7]; got != 2*i+20 {
				t.Errorf("launch %d: %d, want %d", i, got, 2*i+20)
			}
		}
	})
}

// graphRefusals are by function: what makes it fail, and how. Graphs and nodes that do not exist are nothing to show a card, whose
// driver believes any.
var graphRefusals = []struct {
	name string
	want driver.Result
	call func(b *bench, s *shapes, x driver.GraphExec) driver.Result
}{
	{"a node that waits for one twice", driver.InvalidValue, func(b *bench, s *shapes, _ driver.GraphExec) driver.Result {
		_, r := b.api.GraphAddEmptyNode(s.graph, []driver.GraphNode{s.fill, s.fill})
		return r
	}},
	{"a node that waits for one of another graph", driver.InvalidValue, func(b *bench, s *shapes, _ driver.GraphExec) driver.Result {
		_, r := b.api.GraphAddEmptyNode(b.graph(), []driver.GraphNode{s.fill})
		return r
	}},
	{"a kernel in no blocks", driver.InvalidValue, func(b *bench, s *shapes, _ driver.GraphExec) driver.Result {
		k := b.kernelNode(0, 1, 2)
		k.Grid[1] = 0
		_, r := b.api.GraphAddKernelNode(s.graph, nil, k)
		return r
	}},
	{"a fill with elements of 3 bytes", driver.InvalidValue, func(b *bench, s *shapes, _ driver.GraphExec) driver.Result {
		f := b.fillNode(0, 1)
		f.ElementSize = 3
		_, r := b.api.GraphAddMemsetNode(s.graph, nil, f, b.ctx)
		return r
	}},
	{"a fill of nothing", driver.InvalidValue, func(b *bench, s *shapes, _ driver.GraphExec) driver.Result {
		f := b.fillNode(0, 1)
		f.Elements = 0
		_, r := b.api.GraphAddMemsetNode(s.graph, nil, f, b.ctx)
		return r
	}},
	{"an edge that is there", driver.InvalidValue, func(b *bench, s *shapes, _ driver.GraphExec) driver.Result {
		return b.api.GraphAddDependencies(s.graph, []driver.GraphNode{s.fill}, []driver.GraphNode{s.copy})
	}},
	{"an edge to itself", driver.InvalidValue, func(b *bench, s *shapes, _ driver.GraphExec) driver.Result {
		return b.api.GraphAddDependencies(s.graph, []driver.GraphNode{s.fill}, []driver.GraphNode{s.fill})
	}},
	{"an edge without end", driver.InvalidValue, func(b *bench, s *shapes, _ driver.GraphExec) driver.Result {
		return b.api.GraphAddDependencies(s.graph, []driver.GraphNode{s.fill}, nil)
	}},
	{"an edge to another graph", driver.InvalidValue, func(b *bench, s *shapes, _ driver.GraphExec) driver.Result {
		n, _ := b.api.GraphAddEmptyNode(b.graph(), nil)
		return b.api.GraphAddDependencies(s.graph, []driver.GraphNode{s.fill}, []driver.GraphNode{n})
	}},
	{"removing an edge that is not there", driver.InvalidValue, func(b *bench, s *shapes, _ driver.GraphExec) driver.Result {
		return b.api.GraphRemoveDependencies(s.graph, []driver.GraphNode{s.copy}, []driver.GraphNode{s.fill})
	}},
	{"a cycle", driver.InvalidValue, func(b *bench, s *shapes, _ driver.GraphExec) driver.Result {
		b.want("an edge back", driver.Success, b.api.GraphAddDependencies(s.graph, []driver.GraphNode{s.inside}, []driver.GraphNode{s.fill}))
		_, r := b.api.GraphInstantiateWithFlags(s.graph, 0)
		b.want("no edge back", driver.Success, b.api.GraphRemoveDependencies(s.graph, []driver.GraphNode{s.inside}, []driver.GraphNode{s.fill}))
		b.ready(s.graph)
		return r
	}},
	{"unknown flags", driver.InvalidValue, func(b *bench, s *shapes, _ driver.GraphExec) driver.Result {
		_, r := b.api.GraphInstantiateWithFlags(s.graph, 1<<20)
		return r
	}},
	{"a node that its clone lacks", driver.InvalidValue, func(b *bench, s *shapes, _ driver.GraphExec) driver.Result {
		clone, r := b.api.GraphClone(s.graph)
		b.want("clone", driver.Success, r)
		b.captured = append(b.captured, clone)
		_, r = b.api.GraphNodeFindInClone(b.node(b.api.GraphAddEmptyNode(s.graph, nil)), clone)
		return r
	}},
	{"parameters of a node of another graph", driver.InvalidValue, func(b *bench, s *shapes, x driver.GraphExec) driver.Result {
		n := b.node(b.api.GraphAddKernelNode(b.graph(), nil, b.kernelNode(0, 1, 2)))
		return b.api.GraphExecKernelNodeSetParams(x, n, b.kernelNode(0, 1, 2))
	}},
	{"a kernel instead of a fill", driver.InvalidValue, func(b *bench, s *shapes, x driver.GraphExec) driver.Result {
		return b.api.GraphExecKernelNodeSetParams(x, s.fill, b.kernelNode(0, 1, 2))
	}},
	{"a fill instead of a copy", driver.InvalidValue, func(b *bench, s *shapes, x driver.GraphExec) driver.Result {
		return b.api.GraphExecMemsetNodeSetParams(x, s.copy, b.fillNode(0, 1), b.ctx)
	}},
	{"a copy instead of a kernel", driver.InvalidValue, func(b *bench, s *shapes, x driver.GraphExec) driver.Result {
		return b.api.GraphExecMemcpyNodeSetParams(x, s.kernel, &driver.CopyNode{Dst: b.buffer(1), Src: b.buffer(0), Bytes: 4}, b.ctx)
	}},
	{"a copy from the host instead of one on the device", driver.InvalidValue, func(b *bench, s *shapes, x driver.GraphExec) driver.Result {
		return b.api.GraphExecMemcpyNodeSetParams(x, s.copy, &driver.CopyNode{Dst: b.buffer(1), SrcHost: b.host, Bytes: 4}, b.ctx)
	}},
}

// TestGraphRefusals: what is refused changes nothing.
func TestGraphRefusals(t *testing.T) {
	onEach(t, simcuda.Config{}, func(t *testing.T, api *driver.API) {
		for _, c := range graphRefusals {
			t.Run(c.name, func(t *testing.T) {
				b := newBench(t, api)
				s := newShapes(b)
				x := b.ready(s.graph)
				b.want(c.name, c.want, c.call(b, s, x))
				if got := b.runs(x, 0, 1, 2, 3); !slices.Equal(got, []uint32{3, 3, 6, 12}) {
					t.Errorf("%v, want 3 3 6 12", got)
				}
			})
		}
	})
}

// pair is a graph of a fill and a kernel behind it.
func (b *bench) pair(v uint32) (g driver.Graph, fill, kernel driver.GraphNode) {
	g = b.graph()
	fill = b.node(b.api.GraphAddMemsetNode(g, nil, b.fillNode(0, v), b.ctx))
	kernel = b.node(b.api.GraphAddKernelNode(g, []driver.GraphNode{fill}, b.kernelNode(0, 0, 1)))
	return g, fill, kernel
}

// TestUpdate gives a graph that is ready the parameters of another, and compares what it cannot be given.
func TestUpdate(t *testing.T) {
	onEach(t, simcuda.Config{}, func(t *testing.T, api *driver.API) {
		b := newBench(t, api)
		g, _, kernel := b.pair(1)
		x := b.ready(g)
		other, _, _ := b.pair(4)
		b.want("update", driver.Success, second(api.GraphExecUpdate(x, other)))
		if got := b.runs(x, 1); got[0] != 8 {
			t.Errorf("after the update %d, want 8", got[0])
		}
		// The nodes are still known by those of the first graph.
		b.want("set", driver.Success, api.GraphExecKernelNodeSetParams(x, kernel, b.kernelNode(0, 0, 2)))
		if got := b.runs(x, 2); got[0] != 8 {
			t.Errorf("after a change %d, want 8", got[0])
		}
		type refusal struct {
			name       string
			graph      driver.Graph
			result     driver.UpdateResult
			node, from driver.GraphNode
		}
		var list []refusal
		more, _, k := b.pair(1)
		b.node(api.GraphAddEmptyNode(more, []driver.GraphNode{k}))
		list = append(list, refusal{"another node", more, driver.UpdateTopologyChanged, 0, 0})
		loose, fill, k := b.pair(1)
		must(t, "cuGraphRemoveDependencies", api.GraphRemoveDependencies(loose, []driver.GraphNode{fill}, []driver.GraphNode{k}))
		list = append(list, refusal{"no edge", loose, driver.UpdateTopologyChanged, k, 0})
		typ := b.graph()
		fill = b.node(api.GraphAddMemsetNode(typ, nil, b.fillNode(0, 1), b.ctx))
		k = b.node(api.GraphAddEmptyNode(typ, []driver.GraphNode{fill}))
		list = append(list, refusal{"another type", typ, driver.UpdateNodeTypeChanged, k, 0})
		for _, c := range list {
			u, r := api.GraphExecUpdate(x, c.graph)
			if r != driver.GraphUpdateFailure || u != (driver.GraphUpdate{Result: c.result, Node: c.node, From: c.from}) {
				t.Errorf("%s: %v, %+v, want %+v", c.name, r, u, c)
			}
			if got := b.runs(x, 0, 1, 2); !slices.Equal(got, []uint32{4, 8, 8}) {
				t.Errorf("after %s: %v, want 4 8 8", c.name, got)
			}
		}
	})
}

// second is the second of two.
func second[T any](_ T, r driver.Result) driver.Result { return r }

// TestClone: a clone is as the graph was, and changes of one do not touch the other; so with a graph inside another, and one that is
// ready.
func TestClone(t *testing.T) {
	onEach(t, simcuda.Config{}, func(t *testing.T, api *driver.API) {
		b := newBench(t, api)
		g, _, kernel := b.pair(2)
		clone, r := api.GraphClone(g)
		must(t, "cuGraphClone", r)
		b.captured = append(b.captured, clone)
		found, r := api.GraphNodeFindInClone(kernel, clone)
		must(t, "cuGraphNodeFindInClone", r)
		parent := b.graph()
		b.node(api.GraphAddChildGraphNode(parent, nil, g))
		x := b.ready(g)
		must(t, "cuGraphDestroyNode", api.GraphDestroyNode(kernel))
		if n, r := api.GraphGetNodes(g); len(n) != 1 || r != driver.Success {
			t.Errorf("the graph has nodes %v, %v", n, r)
		}
		if n, r := api.GraphGetNodes(clone); !slices.Contains(n, found) || len(n) != 2 || r != driver.Success {
			t.Errorf("the clone has nodes %v, %v", n, r)
		}
		for _, x := range []driver.GraphExec{x, b.ready(clone), b.ready(parent)} {
			must(t, "cuMemsetD8Async", api.MemsetD8Async(b.buffer(1), 0, 4*cells, b.s[0]))
			if got := b.runs(x, 1); got[0] != 4 {
				t.Errorf("%d, want 4", got[0])
			}
		}
	})
}
