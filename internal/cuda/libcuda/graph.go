package libcuda

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/dl"
	"github.com/warpline-ml/warpline/internal/hostmem"
)

// kernelNode is CUDA_KERNEL_NODE_PARAMS_v2, of which the first version is the beginning.
type kernelNode struct {
	function       uintptr
	grid, block    [3]uint32
	shared         uint32
	_              uint32
	kernelParams   uintptr
	extra          unsafe.Pointer
	kernel         uintptr // instead of function
	kernelsContext uintptr // of kernel
}

// copyEnd is what CUDA_MEMCPY3D says of a source, and then of a destination.
type copyEnd struct {
	x, y, z, lod  uintptr
	memoryType    uint32
	_             uint32
	host          uintptr
	device        uint64
	array         uintptr
	reserved      uintptr
	pitch, height uintptr
}

// copyNode is CUDA_MEMCPY3D.
type copyNode struct {
	src, dst             copyEnd
	width, height, depth uintptr
}

// fillNode is CUDA_MEMSET_NODE_PARAMS.
type fillNode struct {
	dst         uint64
	pitch       uintptr
	value       uint32
	elementSize uint32
	width       uintptr
	height      uintptr
}

// updateInfo is CUgraphExecUpdateResultInfo.
type updateInfo struct {
	result int32
	_      int32
	node   uintptr
	from   uintptr
}

// The types of memory, by their numbers in cuda.h.
const (
	memoryHost   = 1
	memoryDevice = 2
)

// Structures of the sizes that cuda.h gives them.
var (
	_ [72]byte  = [unsafe.Sizeof(kernelNode{})]byte{}
	_ [200]byte = [unsafe.Sizeof(copyNode{})]byte{}
	_ [40]byte  = [unsafe.Sizeof(fillNode{})]byte{}
	_ [24]byte  = [unsafe.Sizeof(updateInfo{})]byte{}
)

// graphCall is what a call about graphs points to. The driver copies what it keeps.
type graphCall struct {
	lists  [2][]driver.GraphNode
	count  uintptr
	launch launch
	kernel kernelNode
	copy   copyNode
	fill   fillNode
	update updateInfo
	info   struct {
		status    int32
		id        uint64
		graph     driver.Graph
		nodes     uintptr
		nodeCount uintptr
	}
}

var graphCalls = sync.Pool{New: func() any {
	g := new(graphCall)
	g.launch.extra = extra{bufferTag: extraBuffer, sizeTag: extraSize, size: unsafe.Pointer(&g.launch.size)}
	return g
}}

// list is the address of a copy of the nodes, 0 if there are none.
func (g *graphCall) list(i int, nodes []driver.GraphNode) uintptr {
	if len(nodes) == 0 {
		return 0
	}
	g.lists[i] = append(g.lists[i][:0], nodes...)
	return uintptr(unsafe.Pointer(&g.lists[i][0]))
}

// room is the address of a list for so many nodes.
func (g *graphCall) room(i int, n uintptr) uintptr {
	g.lists[i] = slices.Grow(g.lists[i][:0], int(n))[:n]
	return uintptr(unsafe.Pointer(&g.lists[i][0]))
}

// setKernel fills in a launch, and returns its address.
func (g *graphCall) setKernel(k *driver.KernelNode) uintptr {
	g.kernel = kernelNode{function: uintptr(k.Func), grid: k.Grid, block: k.Block, shared: k.Shared}
	if g.launch.setParams(k.Params) != 0 {
		g.kernel.extra = unsafe.Pointer(&g.launch.extra)
	}
	return uintptr(unsafe.Pointer(&g.kernel))
}

func (g *graphCall) setCopy(c *driver.CopyNode) uintptr {
	end := func(host uintptr, device driver.Ptr) copyEnd {
		e := copyEnd{memoryType: memoryDevice, device: uint64(device), host: host, pitch: uintptr(c.Bytes), height: 1}
		if host != 0 {
			e.memoryType = memoryHost
		}
		return e
	}
	g.copy = copyNode{src: end(c.SrcHost, c.Src), dst: end(c.DstHost, c.Dst), width: uintptr(c.Bytes), height: 1, depth: 1}
	return uintptr(unsafe.Pointer(&g.copy))
}

func (g *graphCall) setFill(f *driver.FillNode) uintptr {
	g.fill = fillNode{dst: uint64(f.Dst), value: f.Value, elementSize: f.ElementSize, width: uintptr(f.Elements), height: 1}
	return uintptr(unsafe.Pointer(&g.fill))
}

// done lets the parameters go.
func (g *graphCall) done() {
	g.launch.extra.buffer = nil
	graphCalls.Put(g)
}

// addNode calls a function that adds a node.
func (g *graphCall) addNode(p dl.Proc, graph driver.Graph, after []driver.GraphNode, rest ...uintptr) (driver.GraphNode, driver.Result) {
	var words [dl.MaxArgs - 1]uintptr
	words[0], words[1], words[2] = uintptr(graph), g.list(0, after), uintptr(len(after))
	n := copy(words[3:], rest)
	return get[driver.GraphNode](p, words[:3+n]...)
}

// edges calls a function that takes edges.
func (g *graphCall) edges(p dl.Proc, graph driver.Graph, from, to []driver.GraphNode) driver.Result {
	if len(from) != len(to) {
		return driver.InvalidValue
	}
	return call(p, uintptr(graph), g.list(0, from), g.list(1, to), uintptr(len(from)))
}

// listed calls a function that lists nodes of something, twice: for their number, and for them.
func (g *graphCall) listed(p dl.Proc, of uintptr, lists int) driver.Result {
	args := [4]uintptr{of}
	args[1+lists] = uintptr(unsafe.Pointer(&g.count))
	g.count = 0
	r := call(p, args[:2+lists]...)
	if r != driver.Success || g.count == 0 {
		return r
	}
	for i := range lists {
		args[1+i] = g.room(i, g.count)
	}
	return call(p, args[:2+lists]...)
}

// nodes is a copy of the list.
func (g *graphCall) nodes(i int) []driver.GraphNode { return slices.Clone(g.lists[i][:g.count]) }

// inGraphCall runs a call with memory that it may point to.
func inGraphCall[T any](f func(g *graphCall) (T, driver.Result)) (T, driver.Result) {
	g := graphCalls.Get().(*graphCall)
	defer g.done()
	return f(g)
}

func (b *binder) bindCapture(a *driver.API) {
	begin := b.want("cuStreamBeginCapture_v2")
	end := b.want("cuStreamEndCapture")
	capturing := b.want("cuStreamIsCapturing")
	info := b.want("cuStreamGetCaptureInfo_v2")
	exchange := b.want("cuThreadExchangeStreamCaptureMode")

	a.StreamBeginCapture = func(s driver.Stream, m driver.CaptureMode) driver.Result {
		return call(begin, uintptr(s), uintptr(m))
	}
	a.StreamEndCapture = func(s driver.Stream) (driver.Graph, driver.Result) {
		return getAfter[driver.Graph](end, uintptr(s))
	}
	a.StreamIsCapturing = func(s driver.Stream) (driver.CaptureStatus, driver.Result) {
		return getAfter[driver.CaptureStatus](capturing, uintptr(s))
	}
	a.StreamGetCaptureInfo = func(s driver.Stream) (driver.CaptureInfo, driver.Result) {
		return inGraphCall(func(g *graphCall) (driver.CaptureInfo, driver.Result) { return g.captureInfo(info, s) })
	}
	a.ThreadExchangeStreamCaptureMode = func(m driver.CaptureMode) (driver.CaptureMode, driver.Result) {
		s := scratches.Get().(*scratch)
		defer scratches.Put(s)
		mode := (*driver.CaptureMode)(unsafe.Pointer(&s.out[0]))
		*mode = m
		if r := call(exchange, uintptr(unsafe.Pointer(mode))); r != driver.Success {
			return 0, r
		}
		return *mode, driver.Success
	}
}

// captureInfo says nothing of a capture that is not active: the driver leaves undefined what it writes then.
func (g *graphCall) captureInfo(p dl.Proc, s driver.Stream) (c driver.CaptureInfo, r driver.Result) {
	i := &g.info
	r = call(p, uintptr(s), uintptr(unsafe.Pointer(&i.status)), uintptr(unsafe.Pointer(&i.id)), uintptr(unsafe.Pointer(&i.graph)),
		uintptr(unsafe.Pointer(&i.nodes)), uintptr(unsafe.Pointer(&i.nodeCount)))
	if r != driver.Success {
		return c, r
	}
	if c.Status = driver.CaptureStatus(i.status); c.Status == driver.CaptureActive {
		c.ID, c.Graph = i.id, i.graph
		if i.nodeCount > 0 {
			c.Dependencies = slices.Clone(hostmem.Slice[driver.GraphNode](i.nodes, int(i.nodeCount)))
		}
	}
	return c, r
}

func (b *binder) bindGraphs(a *driver.API) {
	create := b.want("cuGraphCreate")
	destroy := b.want("cuGraphDestroy")
	clone := b.want("cuGraphClone")
	find := b.want("cuGraphNodeFindInClone")
	add, remove := b.want("cuGraphAddDependencies"), b.want("cuGraphRemoveDependencies")
	destroyNode := b.want("cuGraphDestroyNode")
	nodes := b.want("cuGraphGetNodes")
	edges := b.want("cuGraphGetEdges")
	typ := b.want("cuGraphNodeGetType")
	before := b.want("cuGraphNodeGetDependencies")

	a.GraphCreate = func() (driver.Graph, driver.Result) { return get[driver.Graph](create, 0) }
	a.GraphDestroy = func(g driver.Graph) driver.Result { return call(destroy, uintptr(g)) }
	a.GraphClone = func(g driver.Graph) (driver.Graph, driver.Result) { return get[driver.Graph](clone, uintptr(g)) }
	a.GraphNodeFindInClone = func(n driver.GraphNode, clone driver.Graph) (driver.GraphNode, driver.Result) {
		return get[driver.GraphNode](find, uintptr(n), uintptr(clone))
	}
	a.GraphAddDependencies = func(graph driver.Graph, from, to []driver.GraphNode) driver.Result {
		return inGraph(func(g *graphCall) driver.Result { return g.edges(add, graph, from, to) })
	}
	a.GraphRemoveDependencies = func(graph driver.Graph, from, to []driver.GraphNode) driver.Result {
		return inGraph(func(g *graphCall) driver.Result { return g.edges(remove, graph, from, to) })
	}
	a.GraphDestroyNode = func(n driver.GraphNode) driver.Result { return call(destroyNode, uintptr(n)) }
	a.GraphGetNodes = func(graph driver.Graph) ([]driver.GraphNode, driver.Result) { return listNodes(nodes, uintptr(graph)) }
	a.GraphGetEdges = func(graph driver.Graph) (from, to []driver.GraphNode, r driver.Result) {
		r = inGraph(func(g *graphCall) driver.Result {
			r := g.listed(edges, uintptr(graph), 2)
			if r == driver.Success && g.count > 0 {
				from, to = g.nodes(0), g.nodes(1)
			}
			return r
		})
		return from, to, r
	}
	a.GraphNodeGetType = func(n driver.GraphNode) (driver.NodeType, driver.Result) {
		return getAfter[driver.NodeType](typ, uintptr(n))
	}
	a.GraphNodeGetDependencies = func(n driver.GraphNode) ([]driver.GraphNode, driver.Result) { return listNodes(before, uintptr(n)) }
}

// inGraph is inGraphCall of a call without a result.
func inGraph(f func(g *graphCall) driver.Result) driver.Result {
	g := graphCalls.Get().(*graphCall)
	defer g.done()
	return f(g)
}

// listNodes lists nodes of something.
func listNodes(p dl.Proc, of uintptr) ([]driver.GraphNode, driver.Result) {
	return inGraphCall(func(g *graphCall) ([]driver.GraphNode, driver.Result) {
		if r := g.listed(p, of, 1); r != driver.Success || g.count == 0 {
			return nil, r
		}
		return g.nodes(0), driver.Success
	})
}

func (b *binder) bindNodes(a *driver.API) {
	kernel := b.wantNewer("cuGraphAddKernelNode_v2", "cuGraphAddKernelNode")
	copies := b.want("cuGraphAddMemcpyNode")
	fill := b.want("cuGraphAddMemsetNode")
	empty := b.want("cuGraphAddEmptyNode")
	record, wait := b.want("cuGraphAddEventRecordNode"), b.want("cuGraphAddEventWaitNode")
	child := b.want("cuGraphAddChildGraphNode")

	type nodes = []driver.GraphNode
	add := func(p dl.Proc, graph driver.Graph, after nodes, rest func(g *graphCall) (uintptr, uintptr), n int) (driver.GraphNode, driver.Result) {
		return inGraphCall(func(g *graphCall) (driver.GraphNode, driver.Result) {
			var words [2]uintptr
			if rest != nil {
				words[0], words[1] = rest(g)
			}
			return g.addNode(p, graph, after, words[:n]...)
		})
	}
	a.GraphAddKernelNode = func(g driver.Graph, after nodes, k *driver.KernelNode) (driver.GraphNode, driver.Result) {
		return add(kernel, g, after, func(g *graphCall) (uintptr, uintptr) { return g.setKernel(k), 0 }, 1)
	}
	a.GraphAddMemcpyNode = func(g driver.Graph, after nodes, c *driver.CopyNode, ctx driver.Context) (driver.GraphNode, driver.Result) {
		return add(copies, g, after, func(g *graphCall) (uintptr, uintptr) { return g.setCopy(c), uintptr(ctx) }, 2)
	}
	a.GraphAddMemsetNode = func(g driver.Graph, after nodes, f *driver.FillNode, ctx driver.Context) (driver.GraphNode, driver.Result) {
		return add(fill, g, after, func(g *graphCall) (uintptr, uintptr) { return g.setFill(f), uintptr(ctx) }, 2)
	}
	a.GraphAddEmptyNode = func(g driver.Graph, after nodes) (driver.GraphNode, driver.Result) {
		return add(empty, g, after, nil, 0)
	}
	a.GraphAddEventRecordNode = func(g driver.Graph, after nodes, e driver.Event) (driver.GraphNode, driver.Result) {
		return add(record, g, after, func(*graphCall) (uintptr, uintptr) { return uintptr(e), 0 }, 1)
	}
	a.GraphAddEventWaitNode = func(g driver.Graph, after nodes, e driver.Event) (driver.GraphNode, driver.Result) {
		return add(wait, g, after, func(*graphCall) (uintptr, uintptr) { return uintptr(e), 0 }, 1)
	}
	a.GraphAddChildGraphNode = func(g driver.Graph, after nodes, of driver.Graph) (driver.GraphNode, driver.Result) {
		return add(child, g, after, func(*graphCall) (uintptr, uintptr) { return uintptr(of), 0 }, 1)
	}
}

func (b *binder) bindGraphExecs(a *driver.API) {
	instantiate := b.want("cuGraphInstantiateWithFlags")
	update := b.want("cuGraphExecUpdate_v2")
	kernel := b.wantNewer("cuGraphExecKernelNodeSetParams_v2", "cuGraphExecKernelNodeSetParams")
	copies := b.want("cuGraphExecMemcpyNodeSetParams")
	fill := b.want("cuGraphExecMemsetNodeSetParams")
	upload := b.want("cuGraphUpload")
	launch := b.want("cuGraphLaunch")
	destroy := b.want("cuGraphExecDestroy")

	a.GraphInstantiateWithFlags = func(g driver.Graph, flags uint64) (driver.GraphExec, driver.Result) {
		return get[driver.GraphExec](instantiate, uintptr(g), uintptr(flags))
	}
	a.GraphExecUpdate = func(x driver.GraphExec, graph driver.Graph) (driver.GraphUpdate, driver.Result) {
		return inGraphCall(func(g *graphCall) (driver.GraphUpdate, driver.Result) {
			g.update = updateInfo{}
			r := call(update, uintptr(x), uintptr(graph), uintptr(unsafe.Pointer(&g.update)))
			return driver.GraphUpdate{Result: driver.UpdateResult(g.update.result), Node: driver.GraphNode(g.update.node),
				From: driver.GraphNode(g.update.from)}, r
		})
	}
	a.GraphExecKernelNodeSetParams = func(x driver.GraphExec, n driver.GraphNode, k *driver.KernelNode) driver.Result {
		return inGraph(func(g *graphCall) driver.Result { return call(kernel, uintptr(x), uintptr(n), g.setKernel(k)) })
	}
	a.GraphExecMemcpyNodeSetParams = func(x driver.GraphExec, n driver.GraphNode, c *driver.CopyNode, ctx driver.Context) driver.Result {
		return inGraph(func(g *graphCall) driver.Result {
			return call(copies, uintptr(x), uintptr(n), g.setCopy(c), uintptr(ctx))
		})
	}
	a.GraphExecMemsetNodeSetParams = func(x driver.GraphExec, n driver.GraphNode, f *driver.FillNode, ctx driver.Context) driver.Result {
		return inGraph(func(g *graphCall) driver.Result {
			return call(fill, uintptr(x), uintptr(n), g.setFill(f), uintptr(ctx))
		})
	}
	a.GraphUpload = func(x driver.GraphExec, s driver.Stream) driver.Result { return call(upload, uintptr(x), uintptr(s)) }
	a.GraphLaunch = func(x driver.GraphExec, s driver.Stream) driver.Result { return call(launch, uintptr(x), uintptr(s)) }
	a.GraphExecDestroy = func(x driver.GraphExec) driver.Result { return call(destroy, uintptr(x)) }
}
