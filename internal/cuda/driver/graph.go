package driver

// The handles of graphs. A node's is good as long as its graph, or the graph that it was removed from.
type (
	Graph     uintptr // nodes and what each waits for
	GraphNode uintptr
	GraphExec uintptr // a graph made ready to be launched
)

// CaptureMode is a CUstreamCaptureMode: which calls that may disturb a capture are refused while it goes on.
type CaptureMode int32

// The modes of captures, and of threads, whose mode is CaptureGlobal until ThreadExchangeStreamCaptureMode changes it. A thread
// of mode CaptureGlobal may not make such calls while it captures itself, nor while another thread captures in mode CaptureGlobal;
// one of mode CaptureThreadLocal not while it captures itself; one of mode CaptureRelaxed may always. A thread's own captures in
// mode CaptureRelaxed do not count, and may end on another thread.
const (
	CaptureGlobal      CaptureMode = 0
	CaptureThreadLocal CaptureMode = 1
	CaptureRelaxed     CaptureMode = 2
)

// CaptureStatus is a CUstreamCaptureStatus.
type CaptureStatus int32

// The states of a stream. An invalidated capture must still be ended.
const (
	CaptureNone        CaptureStatus = 0
	CaptureActive      CaptureStatus = 1
	CaptureInvalidated CaptureStatus = 2
)

// CaptureInfo says what a stream captures.
type CaptureInfo struct {
	Status CaptureStatus
	// Of an active capture: its number, which no other has; the graph so far, which belongs to the capture; and what the stream's
	// next node will wait for.
	ID           uint64
	Graph        Graph
	Dependencies []GraphNode
}

// NodeType is a CUgraphNodeType.
type NodeType int32

// The types of nodes that the table has functions for.
const (
	NodeKernel      NodeType = 0
	NodeMemcpy      NodeType = 1
	NodeMemset      NodeType = 2
	NodeGraph       NodeType = 4 // a graph in the graph
	NodeEmpty       NodeType = 5
	NodeWaitEvent   NodeType = 6
	NodeEventRecord NodeType = 7
)

// KernelNode is a launch in a graph: CUDA_KERNEL_NODE_PARAMS, whose parameters come in one buffer, as those of LaunchKernelEx.
type KernelNode struct {
	Func        Function
	Grid, Block [3]uint32
	Shared      uint32 // bytes of dynamic shared memory
	Params      []byte
}

// CopyNode is a copy in a graph: CUDA_MEMCPY3D of one row. Of each end one address is set, the other 0. Memory of the host is read
// or written whenever the graph runs.
type CopyNode struct {
	Dst, Src         Ptr
	DstHost, SrcHost uintptr
	Bytes            int64
}

// FillNode is a fill in a graph: CUDA_MEMSET_NODE_PARAMS of one row.
type FillNode struct {
	Dst         Ptr
	Value       uint32
	ElementSize uint32 // bytes: 1, 2 or 4
	Elements    int64
}

// UpdateResult is a CUgraphExecUpdateResult: why a graph that is ready for launches cannot become another.
type UpdateResult int32

// The answers to an update. A node that has another function, type, or memory than it may take is named.
const (
	UpdateSuccess           UpdateResult = 0
	UpdateError             UpdateResult = 1
	UpdateTopologyChanged   UpdateResult = 2
	UpdateNodeTypeChanged   UpdateResult = 3
	UpdateFunctionChanged   UpdateResult = 4
	UpdateParametersChanged UpdateResult = 5
	UpdateNotSupported      UpdateResult = 6
)

// GraphUpdate is a CUgraphExecUpdateResultInfo.
type GraphUpdate struct {
	Result UpdateResult
	Node   GraphNode // of the new graph, at which it differs; 0 if it is no single node
	From   GraphNode // the end of the edge that differs, if it is one
}

// Flags of GraphInstantiateWithFlags.
const (
	GraphAutoFreeOnLaunch = 1 // memory that the graph allocated and did not free is freed before its next launch
	GraphUseNodePriority  = 8 // nodes run with their own priorities, not that of the stream
)
