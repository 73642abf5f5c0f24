// Package driver is the CUDA driver API as a table of functions, with what its results are called and what to do about
// them. The real libcuda fills the table on a machine with a card, the simulated GPU everywhere else; the engine is
// written once, against the table.
//
// Functions have the names of their C counterparts without the prefix cu and the suffix _v2, and return results instead
// of writing through pointers. Host memory is named by its address and must lie outside the Go heap: asynchronous copies
// outlive the call.
package driver

import "runtime"

// KernelModule is where the kernel's half of NVIDIA's driver names its version on Linux. It is there while that half is
// loaded, seen from inside of containers too.
const KernelModule = "/proc/driver/nvidia/version"

// The handles of the driver. Zero is no handle, except that the zero Stream is the legacy default stream.
type (
	Device   int32
	Context  uintptr
	Module   uintptr
	Function uintptr
	Stream   uintptr
	Event    uintptr
	Ptr      uint64 // an address in device memory

	MemHandle uint64 // memory without an address
)

// Granularity is a CUmemAllocationGranularity_flags.
type Granularity int32

// The granularities.
const (
	GranularityMinimum     Granularity = 0
	GranularityRecommended Granularity = 1
)

// Access is a CUmemAccess_flags.
type Access int32

// What a device may do with mapped memory.
const (
	AccessNone      Access = 0
	AccessRead      Access = 1
	AccessReadWrite Access = 3
)

// LaunchConfig is the shape of a launch.
type LaunchConfig struct {
	Grid, Block [3]uint32
	Shared      uint32 // bytes of dynamic shared memory
	Stream      Stream
	Cluster     [3]uint32 // blocks that share a cluster; zero for none
	Dependent   bool      // may start before the launch ahead of it in the stream ends (programmatic serialization)
}

// CUtensorMap is an encoded tensor map, a parameter by value at a multiple of 64. What its bytes mean is the driver's affair.
type CUtensorMap [128]byte

// TensorMap is what a tensor map describes, with the numbers of CUDA's enumerations. Dimension 0 is the innermost one.
type TensorMap struct {
	Type                      int32 // a CUtensorMapDataType
	Address                   Ptr
	Dims                      []uint64 // elements
	Strides                   []uint64 // bytes, of dimensions from 1 on
	Box                       []uint32 // elements; not for im2col
	ElementStrides            []uint32
	Interleave, Swizzle, Fill int32 // CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapFloatOOBfill

	// Of im2col: the corners of the bounds, for each dimension between channels and images, and what a box has.
	Lower, Upper     []int32
	Channels, Pixels uint32
}

// API is the table. A provider fills every field but those of the last group.
type API struct {
	Init             func(flags uint32) Result
	DriverGetVersion func() (version int, r Result) // 12040 for 12.4

	DeviceGetCount      func() (n int, r Result)
	DeviceGet           func(ordinal int) (Device, Result)
	DeviceGetName       func(Device) (string, Result)
	DeviceGetUuid       func(Device) ([16]byte, Result)
	DeviceTotalMem      func(Device) (bytes int64, r Result)
	DeviceGetAttribute  func(Attribute, Device) (value int, r Result)
	DeviceGetPCIBusId   func(Device) (string, Result)
	DeviceCanAccessPeer func(d, peer Device) (bool, Result)

	DevicePrimaryCtxRetain    func(Device) (Context, Result)
	DevicePrimaryCtxRelease   func(Device) Result
	DevicePrimaryCtxReset     func(Device) Result
	DevicePrimaryCtxSetFlags  func(d Device, flags uint32) Result
	CtxSetCurrent             func(Context) Result
	CtxGetCurrent             func() (Context, Result)
	CtxSynchronize            func() Result
	CtxEnablePeerAccess       func(peer Context) Result
	CtxGetStreamPriorityRange func() (least, greatest int, r Result)

	// ModuleLoadData compiles a module from PTX, without a closing NUL, or a cubin. The log is the compiler's, empty when
	// it has nothing to say.
	ModuleLoadData    func(image []byte) (m Module, log string, r Result)
	ModuleUnload      func(Module) Result
	ModuleGetFunction func(m Module, name string) (Function, Result)
	ModuleGetGlobal   func(m Module, name string) (p Ptr, bytes int64, r Result)
	FuncLoad          func(Function) Result
	FuncGetAttribute  func(FuncAttribute, Function) (value int, r Result)
	FuncSetAttribute  func(f Function, a FuncAttribute, value int) Result

	OccupancyMaxActiveBlocksPerMultiprocessor func(f Function, blockSize int, dynamicShared int64) (blocks int, r Result)

	MemGetInfo        func() (free, total int64, r Result)
	MemAlloc          func(bytes int64) (Ptr, Result)
	MemFree           func(Ptr) Result
	MemAllocAsync     func(bytes int64, s Stream) (Ptr, Result)
	MemFreeAsync      func(p Ptr, s Stream) Result
	MemHostAlloc      func(bytes int64, flags uint32) (host uintptr, r Result)
	MemFreeHost       func(host uintptr) Result
	MemHostRegister   func(host uintptr, bytes int64, flags uint32) Result
	MemHostUnregister func(host uintptr) Result

	// Addresses apart from memory: a range is reserved, memory created, mapped there and made accessible. Sizes and addresses are
	// multiples of the granularity. Mapping gives no access. What was mapped in one call is unmapped in whole; memory lives
	// until its handle is released and nothing maps it.
	MemGetAllocationGranularity func(Device, Granularity) (bytes int64, r Result)
	MemAddressReserve           func(bytes, alignment int64, hint Ptr) (Ptr, Result)
	MemAddressFree              func(p Ptr, bytes int64) Result
	MemCreate                   func(bytes int64, on Device) (MemHandle, Result)
	MemRelease                  func(MemHandle) Result
	MemMap                      func(p Ptr, bytes, offset int64, h MemHandle) Result
	MemUnmap                    func(p Ptr, bytes int64) Result
	MemSetAccess                func(p Ptr, bytes int64, by Device, a Access) Result

	MemcpyHtoD      func(dst Ptr, src uintptr, bytes int64) Result
	MemcpyDtoH      func(dst uintptr, src Ptr, bytes int64) Result
	MemcpyDtoD      func(dst, src Ptr, bytes int64) Result
	MemcpyHtoDAsync func(dst Ptr, src uintptr, bytes int64, s Stream) Result
	MemcpyDtoHAsync func(dst uintptr, src Ptr, bytes int64, s Stream) Result
	MemcpyDtoDAsync func(dst, src Ptr, bytes int64, s Stream) Result
	MemcpyPeerAsync func(dst Ptr, dstCtx Context, src Ptr, srcCtx Context, bytes int64, s Stream) Result
	MemsetD8Async   func(dst Ptr, value uint8, n int64, s Stream) Result
	MemsetD32Async  func(dst Ptr, value uint32, n int64, s Stream) Result

	StreamCreateWithPriority func(flags uint32, priority int) (Stream, Result)
	StreamDestroy            func(Stream) Result
	StreamSynchronize        func(Stream) Result
	StreamQuery              func(Stream) Result
	StreamWaitEvent          func(Stream, Event) Result

	EventCreate      func(flags uint32) (Event, Result)
	EventDestroy     func(Event) Result
	EventRecord      func(Event, Stream) Result
	EventSynchronize func(Event) Result
	EventQuery       func(Event) Result
	EventElapsedTime func(start, end Event) (milliseconds float32, r Result)

	// LaunchKernelEx starts a kernel. params are the bytes of its parameter buffer, each parameter at its offset; the
	// driver copies them before it returns.
	LaunchKernelEx func(c *LaunchConfig, f Function, params []byte) Result

	// While a stream captures, what is given to it becomes nodes of a graph, as does what is given to streams that wait for an
	// event recorded in it. StreamEndCapture gives the graph, which the caller must destroy. It must be called on the thread of
	// StreamBeginCapture unless the mode is CaptureRelaxed: Do keeps a goroutine on its thread for one function only.
	StreamBeginCapture              func(Stream, CaptureMode) Result
	StreamEndCapture                func(Stream) (Graph, Result)
	StreamIsCapturing               func(Stream) (CaptureStatus, Result)
	StreamGetCaptureInfo            func(Stream) (CaptureInfo, Result)
	ThreadExchangeStreamCaptureMode func(CaptureMode) (old CaptureMode, r Result) // of the calling thread

	// Nodes are added with what they wait for. What they are told is copied; the graph of a child node too. Contexts are those in
	// which copies and fills run.
	GraphCreate             func() (Graph, Result)
	GraphDestroy            func(Graph) Result
	GraphClone              func(Graph) (Graph, Result)
	GraphNodeFindInClone    func(n GraphNode, clone Graph) (GraphNode, Result)
	GraphAddKernelNode      func(g Graph, after []GraphNode, k *KernelNode) (GraphNode, Result)
	GraphAddMemcpyNode      func(g Graph, after []GraphNode, c *CopyNode, ctx Context) (GraphNode, Result)
	GraphAddMemsetNode      func(g Graph, after []GraphNode, f *FillNode, ctx Context) (GraphNode, Result)
	GraphAddEmptyNode       func(g Graph, after []GraphNode) (GraphNode, Result)
	GraphAddEventRecordNode func(g Graph, after []GraphNode, e Event) (GraphNode, Result)
	GraphAddEventWaitNode   func(g Graph, after []GraphNode, e Event) (GraphNode, Result)
	GraphAddChildGraphNode  func(g Graph, after []GraphNode, child Graph) (GraphNode, Result)
	// GraphAddDependencies adds edges, and GraphRemoveDependencies takes them away: from[i] comes before to[i].
	GraphAddDependencies     func(g Graph, from, to []GraphNode) Result
	GraphRemoveDependencies  func(g Graph, from, to []GraphNode) Result
	GraphDestroyNode         func(GraphNode) Result
	GraphGetNodes            func(Graph) ([]GraphNode, Result)
	GraphGetEdges            func(Graph) (from, to []GraphNode, r Result)
	GraphNodeGetType         func(GraphNode) (NodeType, Result)
	GraphNodeGetDependencies func(GraphNode) ([]GraphNode, Result)

	GraphInstantiateWithFlags func(g Graph, flags uint64) (GraphExec, Result)
	// GraphExecUpdate gives the nodes what those of a graph of the same shape have. Beside GRAPH_EXEC_UPDATE_FAILURE it says what
	// differs; nothing is changed then.
	GraphExecUpdate func(GraphExec, Graph) (GraphUpdate, Result)
	// The nodes are those of the graph that was instantiated, which must live.
	GraphExecKernelNodeSetParams func(x GraphExec, n GraphNode, k *KernelNode) Result
	GraphExecMemcpyNodeSetParams func(x GraphExec, n GraphNode, c *CopyNode, ctx Context) Result
	GraphExecMemsetNodeSetParams func(x GraphExec, n GraphNode, f *FillNode, ctx Context) Result
	GraphUpload                  func(GraphExec, Stream) Result // ahead of the first launch, which is quicker then
	GraphLaunch                  func(GraphExec, Stream) Result // one piece of work for the stream, after the graph's last launch
	GraphExecDestroy             func(GraphExec) Result         // launches under way still happen

	// What only a simulated GPU has; nil on a real one.

	// Annotate tells the checks what an allocator above MemAlloc does with a part of an allocation, in the order of the
	// stream that the part belongs to: work enqueued there before still finds the earlier state. The tag names the place
	// that asked. A stream that captures keeps it for the graph, each launch of which repeats it in its place.
	Annotate func(p Ptr, bytes int64, state State, s Stream, tag string) Result
	// Gap is how many bytes an allocator should leave between parts of an allocation, for accesses that leave one to be seen.
	Gap int64
	// Explain describes the error that the current context is in, or else its last refused call: kernel, block, thread,
	// source line, address. Empty when there is nothing to say.
	Explain func() string

	// TensorMapEncodeTiled and TensorMapEncodeIm2col make a tensor map, of a layout that simulated cards alone read.
	TensorMapEncodeTiled, TensorMapEncodeIm2col func(*TensorMap) (CUtensorMap, Result)
	// TensorMapReplaceAddress is the map with another address of its tensor.
	TensorMapReplaceAddress func(CUtensorMap, Ptr) (CUtensorMap, Result)

	// Assembled tells how many registers a thread of a kernel has once NVIDIA's assembler has made code of it, for occupancy and times.
	Assembled func(f Function, registers int) Result

	// Parameters tells where in the parameter buffer of a kernel each parameter lies, and how many bytes it has.
	Parameters func(f Function) (offsets, sizes []int, r Result)

	// HostTime is the clock of the virtual host that works with a context, in nanoseconds; what it has asked for and what has not
	// taken effect yet is counted as if it waited for nothing. EventTime is when the card came to an event, by the same clock, and
	// when it began the next work of the stream, which may have arrived later. Asking takes no time by it.
	HostTime  func(Context) int64
	EventTime func(Event) (ns, next int64, r Result)

	// Lines tells that a module may have the table of its source lines behind its text, as comments, for findings to name
	// them.
	Lines bool
	// Unbind makes Do take the context off the thread again, so that a call outside of Do is an error.
	Unbind bool
}

// State is what a part of device memory holds by an allocator's account.
type State uint8

// The states.
const (
	Free  State = iota // nobody may touch it
	Fresh              // handed out, its bytes not yet written
)

// Do runs f with a context current on its thread. Every call that needs a context goes through it: goroutines move
// between threads, contexts do not.
func (a *API) Do(ctx Context, f func() Result) Result {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if r := a.CtxSetCurrent(ctx); r != Success {
		return r
	}
	r := f()
	if a.Unbind {
		a.CtxSetCurrent(0)
	}
	return r
}
