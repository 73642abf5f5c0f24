// Package simcuda fills the table of the CUDA driver (package driver) from simulated GPUs (package gpusim), strictly: what
// happens to work on real hardware is an error with an explanation here.
//
//	device.go    devices, their attributes, primary contexts, what is current on a thread, sticky errors
//	module.go    PTX, kernels and their attributes, occupancy
//	memory.go    allocations, in the order of the call or of a stream; annotations of allocators; pinned host memory
//	virtual.go   addresses apart from memory
//	leaks.go     memory that was not given back, or more often than once
//	copy.go      copies and fills
//	launch.go    launches
//	task.go      what calls and nodes do
//	stream.go    streams and events
//	capture.go   streams that capture
//	graph.go     graphs and their nodes
//	exec.go      graphs that are ready, updated and launched
//	queue.go     the order in which work takes effect
//	timeline.go  the times that it has
//
// Work takes effect at the call, or late (Config.LateEffects): then each stream is a queue, and what is in it happens when
// something waits for it, at the latest legal moment. Asynchronous copies read pinned host memory and write host memory of
// either kind only then.
//
// Time is virtual: a timeline for the host, the streams, the multiprocessors and two engines for copies. Each piece of work
// begins when all that it waits for has ended, the host has called, and its part of the card has room; kernels take what
// package estimate makes of their counts, and share the multiprocessors where they leave some. The host's clock moves on by what
// calls cost and by waiting, or also by what the program took between calls (Config.RealHost). Otherwise neither the wall clock
// nor the order of maps decides anything, and late effects have the times of early ones.
//
// The error codes are those that cuda.h and NVIDIA's "CUDA Driver API" state for each function, and where these are
// silent those of the programming guide's sections on streams, multiple devices and implicit synchronization.
package simcuda

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/gpusim"
)

// System is a machine with simulated GPUs. Its driver's functions run one at a time.
type System struct {
	cfg  Config
	card cards.Card

	mu           sync.Mutex
	inited       bool
	devices      []*device
	current      map[uint64]*context // by thread
	next         uintptr             // handle
	modules      map[driver.Module]*module
	funcs        map[driver.Function]*function
	streams      map[driver.Stream]*stream
	events       map[driver.Event]*event
	graphs       map[driver.Graph]*graph
	nodes        map[driver.GraphNode]*node
	execs        map[driver.GraphExec]*exec
	captures     []*capture                    // under way, by id
	captured     uint64                        // how many there have been
	instantiated int                           // graphs so far
	modes        map[uint64]driver.CaptureMode // by thread
	memories     map[driver.MemHandle]*physical
	pinned       []pinned // by address
	findings     []gpusim.Finding
	misuses      []Misuse
	leaked       []Leak // of contexts that have ended
	takes        int    // allocations so far
	order        order
	failIn       int    // allocations until one fails by order; 0: none
	why          string // of the last refusal without a context
	steps        []step // of the host, from first on without times
	first        int
	left         time.Time                 // when the last call ended, if the host's clock is real
	traffic      map[alike]estimate.Launch // by launch, what was counted of it
	timed        bool                      // somebody reads times
}

// New makes a machine.
func New(c Config) (*System, error) {
	name := cmp.Or(c.Card, cards.Default)
	card, ok := cards.Find(name)
	if !ok {
		return nil, fmt.Errorf("there is no card %q to simulate; there are %s", name, strings.Join(cards.Names(), ", "))
	}
	c.Checks |= gpusim.Memcheck
	if c.Output == nil {
		c.Output = io.Discard
	}
	if c.Host == nil {
		c.Host = thisHost{}
	}
	s := &System{cfg: c, card: card, order: order{on: c.Checks&gpusim.Globalcheck != 0 && !c.Off}, current: map[uint64]*context{}, next: firstHandle,
		modules: map[driver.Module]*module{}, funcs: map[driver.Function]*function{},
		memories: map[driver.MemHandle]*physical{},
		streams:  map[driver.Stream]*stream{}, events: map[driver.Event]*event{}, graphs: map[driver.Graph]*graph{},
		nodes: map[driver.GraphNode]*node{}, execs: map[driver.GraphExec]*exec{}, modes: map[uint64]driver.CaptureMode{},
		traffic: map[alike]estimate.Launch{}}
	sims, err := gpusim.NewDevices(max(c.Devices, 1), gpusim.NewCard(card.Name, card.Memory, card.SMs, card.Compute), c.Checks&gpusim.Initcheck != 0)
	if err != nil {
		return nil, err
	}
	for i, sim := range sims {
		s.devices = append(s.devices, &device{sys: s, ordinal: i, sim: sim})
	}
	return s, nil
}

// firstHandle is far from the numbers that somebody might pass by mistake; handles are never used twice.
const firstHandle = 0x5100_0000

// handle is a new one. No two objects of a System have the same, of whatever kind.
func (s *System) handle() uintptr {
	s.next += 16
	return s.next
}

// Findings returns what the checks found since the last call, at most 4096 of it.
func (s *System) Findings() []gpusim.Finding {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.findings
	s.findings = nil
	return f
}

// Notes says what the checks of the machine left out, beside what reports of launches say.
func (s *System) Notes() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.order.note(); n != "" {
		list = append(list, n)
	}
	return list
}

// maxFindings bounds what is kept for Findings.
const maxFindings = 4096

// FailAllocation makes the n-th allocation of device memory from now on, the next being 1, fail for lack of memory.
func (s *System) FailAllocation(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failIn = n
}

// API is the table. Every table of a System reaches the same machine.
func (s *System) API() *driver.API {
	return &driver.API{
		Init: s.init, DriverGetVersion: s.driverVersion,

		DeviceGetCount: s.deviceCount, DeviceGet: s.deviceGet, DeviceGetName: s.deviceName, DeviceGetUuid: s.deviceUUID,
		DeviceTotalMem: s.deviceTotalMem, DeviceGetAttribute: s.deviceAttribute, DeviceGetPCIBusId: s.deviceBus,
		DeviceCanAccessPeer: s.deviceCanAccessPeer,

		DevicePrimaryCtxRetain: s.retain, DevicePrimaryCtxRelease: s.release, DevicePrimaryCtxReset: s.reset,
		DevicePrimaryCtxSetFlags: s.setFlags, CtxSetCurrent: s.setCurrent, CtxGetCurrent: s.getCurrent,
		CtxSynchronize: s.ctxSynchronize, CtxEnablePeerAccess: s.enablePeer, CtxGetStreamPriorityRange: s.priorityRange,

		ModuleLoadData: s.moduleLoad, ModuleUnload: s.moduleUnload, ModuleGetFunction: s.moduleFunction,
		ModuleGetGlobal: s.moduleGlobal, FuncLoad: s.funcLoad, FuncGetAttribute: s.funcAttribute,
		FuncSetAttribute: s.funcSetAttribute, OccupancyMaxActiveBlocksPerMultiprocessor: s.occupancy,

		TensorMapEncodeTiled: s.encodeTiled, TensorMapEncodeIm2col: s.encodeIm2col, TensorMapReplaceAddress: s.moveMap,

		MemGetInfo: s.memInfo, MemAlloc: s.memAlloc, MemFree: s.memFree, MemAllocAsync: s.memAllocAsync,
		MemFreeAsync: s.memFreeAsync, MemHostAlloc: s.hostAlloc, MemFreeHost: s.hostFree, MemHostRegister: s.hostRegister,
		MemHostUnregister: s.hostUnregister,

		MemGetAllocationGranularity: s.granularity, MemAddressReserve: s.addressReserve, MemAddressFree: s.addressFree,
		MemCreate: s.memCreate, MemRelease: s.memRelease, MemMap: s.memMap, MemUnmap: s.memUnmap, MemSetAccess: s.setAccess,

		MemcpyHtoD: s.copyToDevice, MemcpyDtoH: s.copyToHost, MemcpyDtoD: s.copyOnDevice, MemcpyHtoDAsync: s.copyToDeviceAsync,
		MemcpyDtoHAsync: s.copyToHostAsync, MemcpyDtoDAsync: s.copyOnDeviceAsync, MemcpyPeerAsync: s.copyPeerAsync,
		MemsetD8Async: s.fill8, MemsetD32Async: s.fill32,

		StreamCreateWithPriority: s.streamCreate, StreamDestroy: s.streamDestroy, StreamSynchronize: s.streamSynchronize,
		StreamQuery: s.streamQuery, StreamWaitEvent: s.streamWait,

		EventCreate: s.eventCreate, EventDestroy: s.eventDestroy, EventRecord: s.eventRecord, EventSynchronize: s.eventSynchronize,
		EventQuery: s.eventQuery, EventElapsedTime: s.eventElapsed,

		StreamBeginCapture: s.beginCapture, StreamEndCapture: s.endCapture, StreamIsCapturing: s.isCapturing,
		StreamGetCaptureInfo: s.captureInfo, ThreadExchangeStreamCaptureMode: s.exchangeMode,

		GraphCreate: s.graphCreate, GraphDestroy: s.graphDestroy, GraphClone: s.graphClone, GraphNodeFindInClone: s.findInClone,
		GraphAddKernelNode: s.addKernelNode, GraphAddMemcpyNode: s.addCopyNode, GraphAddMemsetNode: s.addFillNode,
		GraphAddEmptyNode: s.addEmptyNode, GraphAddEventRecordNode: s.addRecordNode, GraphAddEventWaitNode: s.addWaitNode,
		GraphAddChildGraphNode: s.addChildNode, GraphAddDependencies: s.addDependencies,
		GraphRemoveDependencies: s.removeDependencies, GraphDestroyNode: s.destroyNode, GraphGetNodes: s.graphNodes,
		GraphGetEdges: s.graphEdges, GraphNodeGetType: s.nodeType, GraphNodeGetDependencies: s.nodeDependencies,
		GraphInstantiateWithFlags: s.instantiate, GraphExecUpdate: s.execUpdate, GraphExecKernelNodeSetParams: s.setKernelNode,
		GraphExecMemcpyNodeSetParams: s.setCopyNode, GraphExecMemsetNodeSetParams: s.setFillNode, GraphUpload: s.graphUpload,
		GraphLaunch: s.graphLaunch, GraphExecDestroy: s.execDestroy,

		LaunchKernelEx: s.launch, Annotate: s.annotate, Assembled: s.assembled, Parameters: s.parameters, Gap: s.cfg.gap(), Explain: s.explain,
		HostTime: s.hostTime, EventTime: s.eventTime, Lines: true, Unbind: true,
	}
}
