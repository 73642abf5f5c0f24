package cabi

import (
	"encoding/binary"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
)

func graph(w uint64) driver.Graph         { return driver.Graph(w) }
func graphNode(w uint64) driver.GraphNode { return driver.GraphNode(w) }
func graphExec(w uint64) driver.GraphExec { return driver.GraphExec(w) }

var _ = add(map[string]handler{
	"cuGraphCreate":  func(t *Thread, a *Args) driver.Result { return give[driver.Graph](t, a[0])(t.GraphCreate()) },
	"cuGraphDestroy": func(t *Thread, a *Args) driver.Result { return t.GraphDestroy(graph(a[0])) },
	"cuGraphClone": func(t *Thread, a *Args) driver.Result {
		return give[driver.Graph](t, a[0])(t.GraphClone(graph(a[1])))
	},
	"cuGraphNodeFindInClone": func(t *Thread, a *Args) driver.Result {
		return give[driver.GraphNode](t, a[0])(t.GraphNodeFindInClone(graphNode(a[1]), graph(a[2])))
	},

	"cuGraphAddKernelNode": addKernelNode, "cuGraphAddKernelNode_v2": addKernelNode,
	"cuGraphAddMemcpyNode": adding(func(t *Thread, g driver.Graph, after []driver.GraphNode, a *Args) (driver.GraphNode, driver.Result) {
		c, r := t.copyNode(a[4])
		if r != driver.Success {
			return 0, r
		}
		return t.GraphAddMemcpyNode(g, after, c, driver.Context(a[5]))
	}),
	"cuGraphAddMemsetNode": adding(func(t *Thread, g driver.Graph, after []driver.GraphNode, a *Args) (driver.GraphNode, driver.Result) {
		f, r := t.fillNode(a[4])
		if r != driver.Success {
			return 0, r
		}
		return t.GraphAddMemsetNode(g, after, f, driver.Context(a[5]))
	}),
	"cuGraphAddEmptyNode": adding(func(t *Thread, g driver.Graph, after []driver.GraphNode, _ *Args) (driver.GraphNode, driver.Result) {
		return t.GraphAddEmptyNode(g, after)
	}),
	"cuGraphAddEventRecordNode": adding(func(t *Thread, g driver.Graph, after []driver.GraphNode, a *Args) (driver.GraphNode, driver.Result) {
		return t.GraphAddEventRecordNode(g, after, event(a[4]))
	}),
	"cuGraphAddEventWaitNode": adding(func(t *Thread, g driver.Graph, after []driver.GraphNode, a *Args) (driver.GraphNode, driver.Result) {
		return t.GraphAddEventWaitNode(g, after, event(a[4]))
	}),
	"cuGraphAddChildGraphNode": adding(func(t *Thread, g driver.Graph, after []driver.GraphNode, a *Args) (driver.GraphNode, driver.Result) {
		return t.GraphAddChildGraphNode(g, after, graph(a[4]))
	}),
	"cuGraphAddDependencies": func(t *Thread, a *Args) driver.Result {
		return t.edges(a, func(from, to []driver.GraphNode) driver.Result { return t.GraphAddDependencies(graph(a[0]), from, to) })
	},
	"cuGraphRemoveDependencies": func(t *Thread, a *Args) driver.Result {
		return t.edges(a, func(from, to []driver.GraphNode) driver.Result {
			return t.GraphRemoveDependencies(graph(a[0]), from, to)
		})
	},
	"cuGraphDestroyNode": func(t *Thread, a *Args) driver.Result { return t.GraphDestroyNode(graphNode(a[0])) },
	"cuGraphGetNodes": func(t *Thread, a *Args) driver.Result {
		list, r := t.GraphGetNodes(graph(a[0]))
		return t.giveNodes(r, a[2], []uint64{a[1]}, list)
	},
	"cuGraphGetRootNodes": rootNodes,
	"cuGraphGetEdges": func(t *Thread, a *Args) driver.Result {
		from, to, r := t.GraphGetEdges(graph(a[0]))
		return t.giveNodes(r, a[3], []uint64{a[1], a[2]}, from, to)
	},
	"cuGraphNodeGetType": func(t *Thread, a *Args) driver.Result {
		return give[driver.NodeType](t, a[1])(t.GraphNodeGetType(graphNode(a[0])))
	},
	"cuGraphNodeGetDependencies": func(t *Thread, a *Args) driver.Result {
		list, r := t.GraphNodeGetDependencies(graphNode(a[0]))
		return t.giveNodes(r, a[2], []uint64{a[1]}, list)
	},

	"cuGraphInstantiateWithFlags": func(t *Thread, a *Args) driver.Result {
		return give[driver.GraphExec](t, a[0])(t.GraphInstantiateWithFlags(graph(a[1]), a[2]))
	},
	"cuGraphInstantiate_v2": func(t *Thread, a *Args) driver.Result {
		return give[driver.GraphExec](t, a[0])(t.GraphInstantiateWithFlags(graph(a[1]), 0))
	},
	"cuGraphInstantiateWithParams": func(t *Thread, a *Args) driver.Result {
		w, r := t.words(a[2], 1)
		if r != driver.Success {
			return r
		}
		return give[driver.GraphExec](t, a[0])(t.GraphInstantiateWithFlags(graph(a[1]), w[0]))
	},
	"cuGraphExecUpdate": func(t *Thread, a *Args) driver.Result {
		u, r := t.GraphExecUpdate(graphExec(a[0]), graph(a[1]))
		if told := giveTwo[driver.GraphNode, driver.UpdateResult](t, a[2], a[3])(u.Node, u.Result, driver.Success); r == driver.Success {
			r = told
		}
		return r
	},
	"cuGraphExecUpdate_v2": func(t *Thread, a *Args) driver.Result {
		u, r := t.GraphExecUpdate(graphExec(a[0]), graph(a[1]))
		info := append(encoded(uint64(u.Result)), encoded(u.Node)...)
		if told := t.write(a[2], append(info, encoded(u.From)...)); r == driver.Success {
			r = told
		}
		return r
	},
	"cuGraphExecKernelNodeSetParams": setKernelNode, "cuGraphExecKernelNodeSetParams_v2": setKernelNode,
	"cuGraphExecMemcpyNodeSetParams": func(t *Thread, a *Args) driver.Result {
		c, r := t.copyNode(a[2])
		if r != driver.Success {
			return r
		}
		return t.GraphExecMemcpyNodeSetParams(graphExec(a[0]), graphNode(a[1]), c, driver.Context(a[3]))
	},
	"cuGraphExecMemsetNodeSetParams": func(t *Thread, a *Args) driver.Result {
		f, r := t.fillNode(a[2])
		if r != driver.Success {
			return r
		}
		return t.GraphExecMemsetNodeSetParams(graphExec(a[0]), graphNode(a[1]), f, driver.Context(a[3]))
	},
	"cuGraphUpload":      func(t *Thread, a *Args) driver.Result { return t.GraphUpload(graphExec(a[0]), t.stream(a[1])) },
	"cuGraphLaunch":      func(t *Thread, a *Args) driver.Result { return t.GraphLaunch(graphExec(a[0]), t.stream(a[1])) },
	"cuGraphExecDestroy": func(t *Thread, a *Args) driver.Result { return t.GraphExecDestroy(graphExec(a[0])) },
})

// maxNodes bounds the lists of nodes that a caller may hand over.
const maxNodes = 1 << 20

func (t *Thread) nodes(at, n uint64) ([]driver.GraphNode, driver.Result) {
	if n > maxNodes {
		return nil, t.refuse(driver.InvalidValue, "a list of more nodes than graphs have")
	}
	w, r := t.words(at, int(n))
	list := make([]driver.GraphNode, len(w))
	for i, v := range w {
		list[i] = graphNode(v)
	}
	return list, r
}

// adding is a function that adds a node: (node, graph, dependencies, how many, …).
func adding(f func(t *Thread, g driver.Graph, after []driver.GraphNode, a *Args) (driver.GraphNode, driver.Result)) handler {
	return func(t *Thread, a *Args) driver.Result {
		after, r := t.nodes(a[2], a[3])
		if r != driver.Success {
			return r
		}
		return give[driver.GraphNode](t, a[0])(f(t, graph(a[1]), after, a))
	}
}

var addKernelNode = adding(func(t *Thread, g driver.Graph, after []driver.GraphNode, a *Args) (driver.GraphNode, driver.Result) {
	k, r := t.kernelNode(a[4])
	if r != driver.Success {
		return 0, r
	}
	return t.GraphAddKernelNode(g, after, k)
})

func setKernelNode(t *Thread, a *Args) driver.Result {
	k, r := t.kernelNode(a[2])
	if r != driver.Success {
		return r
	}
	return t.GraphExecKernelNodeSetParams(graphExec(a[0]), graphNode(a[1]), k)
}

// edges are (graph, from, to, how many).
func (t *Thread) edges(a *Args, f func(from, to []driver.GraphNode) driver.Result) driver.Result {
	from, r := t.nodes(a[1], a[3])
	if r != driver.Success {
		return r
	}
	to, r := t.nodes(a[2], a[3])
	if r != driver.Success {
		return r
	}
	return f(from, to)
}

// giveNodes gives lists of equal length, as far as there is room: that stands at n, and the length goes there. Without a place for
// the lists only their length is asked for.
func (t *Thread) giveNodes(r driver.Result, n uint64, at []uint64, lists ...[]driver.GraphNode) driver.Result {
	if r != driver.Success {
		return r
	}
	room, r := t.words(n, 1)
	if r != driver.Success {
		return r
	}
	given := uint64(len(lists[0]))
	for i, list := range lists {
		if at[i] == 0 {
			continue
		}
		given = min(given, room[0])
		var p []byte
		for _, x := range list[:given] {
			p = append(p, encoded(x)...)
		}
		if len(p) == 0 {
			continue
		}
		if r := t.write(at[i], p); r != driver.Success {
			return r
		}
	}
	return t.write(n, encoded(given))
}

func rootNodes(t *Thread, a *Args) driver.Result {
	all, r := t.GraphGetNodes(graph(a[0]))
	var roots []driver.GraphNode
	for _, n := range all {
		deps, failed := t.GraphNodeGetDependencies(n)
		if failed != driver.Success {
			return failed
		}
		if len(deps) == 0 {
			roots = append(roots, n)
		}
	}
	return t.giveNodes(r, a[2], []uint64{a[1]}, roots)
}

// kernelNode reads a CUDA_KERNEL_NODE_PARAMS: function, dimensions, shared memory, parameters at 40, extra at 48.
func (t *Thread) kernelNode(at uint64) (*driver.KernelNode, driver.Result) {
	p, r := t.read(at, 56)
	if r != driver.Success {
		return nil, r
	}
	u32 := func(i int) uint32 { return binary.LittleEndian.Uint32(p[8+4*i:]) }
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(p[at:]) }
	k := &driver.KernelNode{Func: function(u64(0)), Grid: [3]uint32{u32(0), u32(1), u32(2)}, Block: [3]uint32{u32(3), u32(4), u32(5)}, Shared: u32(6)}
	k.Params, r = t.parameters(k.Func, u64(40), u64(48))
	return k, r
}

// copyNode reads a CUDA_MEMCPY3D of one row. An end is 10 words: x, y, z, level, type, host, device, array, reserved, pitch and, in
// the eleventh, height.
func (t *Thread) copyNode(at uint64) (*driver.CopyNode, driver.Result) {
	const end = 11
	w, r := t.words(at, 2*end+3)
	if r != driver.Success {
		return nil, r
	}
	if w[2*end+1] > 1 || w[2*end+2] > 1 {
		return nil, t.refuse(driver.NotSupported, "copies of several rows in a graph are not simulated: add one for each row")
	}
	c := &driver.CopyNode{Bytes: int64(w[2*end])}
	for i := range 2 {
		e := w[i*end:]
		var host uintptr
		var dev driver.Ptr
		switch uint32(e[4]) {
		case memoryHost:
			host = uintptr(e[5] + e[0])
		case memoryDevice:
			dev = ptr(e[6] + e[0])
		default:
			return nil, t.refuse(driver.NotSupported, "copies to and from arrays are not simulated: use memory")
		}
		if i == 0 {
			c.SrcHost, c.Src = host, dev
		} else {
			c.DstHost, c.Dst = host, dev
		}
	}
	return c, r
}

// fillNode reads a CUDA_MEMSET_NODE_PARAMS of one row: address, pitch, value, size of an element, width, height.
func (t *Thread) fillNode(at uint64) (*driver.FillNode, driver.Result) {
	w, r := t.words(at, 5)
	if r != driver.Success {
		return nil, r
	}
	if w[4] > 1 {
		return nil, t.refuse(driver.NotSupported, "fills of several rows in a graph are not simulated: add one for each row")
	}
	return &driver.FillNode{Dst: ptr(w[0]), Value: uint32(w[2]), ElementSize: uint32(w[2] >> 32), Elements: int64(w[3])}, r
}
