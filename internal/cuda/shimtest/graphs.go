package shimtest

import (
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// graphHandlers are those of captures and graphs.
var graphHandlers = map[string]handler{
	"cuStreamBeginCapture_v2": func(a *driver.API, w []uint64) driver.Result {
		return a.StreamBeginCapture(stream(w[0]), driver.CaptureMode(w[1]))
	},
	"cuStreamEndCapture": func(a *driver.API, w []uint64) driver.Result {
		return give[driver.Graph](w)(a.StreamEndCapture(stream(w[0])))
	},
	"cuStreamIsCapturing": func(a *driver.API, w []uint64) driver.Result {
		return give[driver.CaptureStatus](w)(a.StreamIsCapturing(stream(w[0])))
	},
	"cuStreamGetCaptureInfo_v2": captureInfo,
	"cuThreadExchangeStreamCaptureMode": func(a *driver.API, w []uint64) driver.Result {
		return give[driver.CaptureMode](w)(a.ThreadExchangeStreamCaptureMode(driver.CaptureMode(w[0])))
	},

	"cuGraphCreate":  func(a *driver.API, w []uint64) driver.Result { return give[driver.Graph](w)(a.GraphCreate()) },
	"cuGraphDestroy": func(a *driver.API, w []uint64) driver.Result { return a.GraphDestroy(graph(w[0])) },
	"cuGraphClone": func(a *driver.API, w []uint64) driver.Result {
		return give[driver.Graph](w)(a.GraphClone(graph(w[0])))
	},
	"cuGraphNodeFindInClone": func(a *driver.API, w []uint64) driver.Result {
		return give[driver.GraphNode](w)(a.GraphNodeFindInClone(node(w[0]), graph(w[1])))
	},
	"cuGraphAddKernelNode":    addKernelNode,
	"cuGraphAddKernelNode_v2": addKernelNode,
	"cuGraphAddMemcpyNode": func(a *driver.API, w []uint64) driver.Result {
		c, ctx := copyNode(w[3:])
		return give[driver.GraphNode](w)(a.GraphAddMemcpyNode(graph(w[0]), nodes(w[1], w[2]), c, ctx))
	},
	"cuGraphAddMemsetNode": func(a *driver.API, w []uint64) driver.Result {
		f, ctx := fillNode(w[3:])
		return give[driver.GraphNode](w)(a.GraphAddMemsetNode(graph(w[0]), nodes(w[1], w[2]), f, ctx))
	},
	"cuGraphAddEmptyNode": func(a *driver.API, w []uint64) driver.Result {
		return give[driver.GraphNode](w)(a.GraphAddEmptyNode(graph(w[0]), nodes(w[1], w[2])))
	},
	"cuGraphAddEventRecordNode": func(a *driver.API, w []uint64) driver.Result {
		return give[driver.GraphNode](w)(a.GraphAddEventRecordNode(graph(w[0]), nodes(w[1], w[2]), event(w[3])))
	},
	"cuGraphAddEventWaitNode": func(a *driver.API, w []uint64) driver.Result {
		return give[driver.GraphNode](w)(a.GraphAddEventWaitNode(graph(w[0]), nodes(w[1], w[2]), event(w[3])))
	},
	"cuGraphAddChildGraphNode": func(a *driver.API, w []uint64) driver.Result {
		return give[driver.GraphNode](w)(a.GraphAddChildGraphNode(graph(w[0]), nodes(w[1], w[2]), graph(w[3])))
	},
	"cuGraphAddDependencies": func(a *driver.API, w []uint64) driver.Result {
		return a.GraphAddDependencies(graph(w[0]), nodes(w[1], w[3]), nodes(w[2], w[3]))
	},
	"cuGraphRemoveDependencies": func(a *driver.API, w []uint64) driver.Result {
		return a.GraphRemoveDependencies(graph(w[0]), nodes(w[1], w[3]), nodes(w[2], w[3]))
	},
	"cuGraphDestroyNode": func(a *driver.API, w []uint64) driver.Result { return a.GraphDestroyNode(node(w[0])) },
	"cuGraphGetNodes": func(a *driver.API, w []uint64) driver.Result {
		list, r := a.GraphGetNodes(graph(w[0]))
		return giveNodes(w, r, list)
	},
	"cuGraphGetEdges": func(a *driver.API, w []uint64) driver.Result {
		from, to, r := a.GraphGetEdges(graph(w[0]))
		return giveNodes(w, r, from, to)
	},
	"cuGraphNodeGetType": func(a *driver.API, w []uint64) driver.Result {
		return give[driver.NodeType](w)(a.GraphNodeGetType(node(w[0])))
	},
	"cuGraphNodeGetDependencies": func(a *driver.API, w []uint64) driver.Result {
		list, r := a.GraphNodeGetDependencies(node(w[0]))
		return giveNodes(w, r, list)
	},

	"cuGraphInstantiateWithFlags": func(a *driver.API, w []uint64) driver.Result {
		return give[driver.GraphExec](w)(a.GraphInstantiateWithFlags(graph(w[0]), w[1]))
	},
	"cuGraphExecUpdate_v2": func(a *driver.API, w []uint64) driver.Result {
		u, r := a.GraphExecUpdate(driver.GraphExec(w[0]), graph(w[1]))
		w[0], w[1], w[2] = uint64(u.Result), uint64(u.Node), uint64(u.From)
		return r
	},
	"cuGraphExecKernelNodeSetParams":    setKernelNode,
	"cuGraphExecKernelNodeSetParams_v2": setKernelNode,
	"cuGraphExecMemcpyNodeSetParams": func(a *driver.API, w []uint64) driver.Result {
		c, ctx := copyNode(w[2:])
		return a.GraphExecMemcpyNodeSetParams(driver.GraphExec(w[0]), node(w[1]), c, ctx)
	},
	"cuGraphExecMemsetNodeSetParams": func(a *driver.API, w []uint64) driver.Result {
		f, ctx := fillNode(w[2:])
		return a.GraphExecMemsetNodeSetParams(driver.GraphExec(w[0]), node(w[1]), f, ctx)
	},
	"cuGraphUpload": func(a *driver.API, w []uint64) driver.Result {
		return a.GraphUpload(driver.GraphExec(w[0]), stream(w[1]))
	},
	"cuGraphLaunch": func(a *driver.API, w []uint64) driver.Result {
		return a.GraphLaunch(driver.GraphExec(w[0]), stream(w[1]))
	},
	"cuGraphExecDestroy": func(a *driver.API, w []uint64) driver.Result { return a.GraphExecDestroy(driver.GraphExec(w[0])) },
}

func graph(w uint64) driver.Graph    { return driver.Graph(w) }
func node(w uint64) driver.GraphNode { return driver.GraphNode(w) }

// nodes are n nodes in the caller's memory, copied.
func nodes(addr, n uint64) []driver.GraphNode {
	if n == 0 {
		return nil
	}
	return append([]driver.GraphNode(nil), hostmem.Slice[driver.GraphNode](uintptr(addr), int(n))...)
}

// giveNodes writes lists of equal length to the caller's memory, whose addresses and room follow the first word, and puts the
// length in the first one.
func giveNodes(w []uint64, r driver.Result, lists ...[]driver.GraphNode) driver.Result {
	n, room := len(lists[0]), int(w[1+len(lists)])
	for i, list := range lists {
		if room > 0 {
			copy(hostmem.Slice[driver.GraphNode](uintptr(w[1+i]), room), list)
		}
	}
	w[0] = uint64(n)
	return r
}

// captureInfo gets the stream and a buffer for nodes with its size.
func captureInfo(a *driver.API, w []uint64) driver.Result {
	c, r := a.StreamGetCaptureInfo(stream(w[0]))
	w[3] = uint64(copy(hostmem.Slice[driver.GraphNode](uintptr(w[1]), int(w[2])), c.Dependencies))
	w[0], w[1], w[2] = uint64(c.Status), c.ID, uint64(c.Graph)
	return r
}

func addKernelNode(a *driver.API, w []uint64) driver.Result {
	return give[driver.GraphNode](w)(a.GraphAddKernelNode(graph(w[0]), nodes(w[1], w[2]), kernelNode(w[3:])))
}

func setKernelNode(a *driver.API, w []uint64) driver.Result {
	return a.GraphExecKernelNodeSetParams(driver.GraphExec(w[0]), node(w[1]), kernelNode(w[2:]))
}

// kernelNode gets the function, the shape, and the parameters with their length.
func kernelNode(w []uint64) *driver.KernelNode {
	dim := func(w []uint64) [3]uint32 { return [3]uint32{uint32(w[0]), uint32(w[1]), uint32(w[2])} }
	return &driver.KernelNode{Func: driver.Function(w[0]), Grid: dim(w[1:]), Block: dim(w[4:]), Shared: uint32(w[7]),
		Params: append([]byte(nil), bytesAt(w[8], w[9])...)}
}

func copyNode(w []uint64) (*driver.CopyNode, driver.Context) {
	return &driver.CopyNode{Dst: driver.Ptr(w[0]), Src: driver.Ptr(w[1]), DstHost: uintptr(w[2]), SrcHost: uintptr(w[3]), Bytes: int64(w[4])},
		driver.Context(w[5])
}

func fillNode(w []uint64) (*driver.FillNode, driver.Context) {
	return &driver.FillNode{Dst: driver.Ptr(w[0]), Value: uint32(w[1]), ElementSize: uint32(w[2]), Elements: int64(w[3])}, driver.Context(w[4])
}
