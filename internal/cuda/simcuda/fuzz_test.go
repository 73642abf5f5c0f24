package simcuda

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// FuzzCalls makes calls with right and wrong arguments in any order: nothing panics or leaks, and a reset mends all.
func FuzzCalls(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30})
	f.Add([]byte{7, 1, 3, 1, 1, 12, 2, 2, 3, 1, 9, 1, 3, 3, 1, 20, 1, 15, 3, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newRig(t, Config{Devices: 2, LateEffects: true, Seed: uint64(len(data)), Checks: gpusim.AllChecks, StepLimit: 1e6})
		m := newMonkey(r, data)
		m.play()
		defer runtime.KeepAlive(m) // the reset does what is pending
		for d := range 2 {         // with their captures
			r.want(driver.Success, r.api.DevicePrimaryCtxReset(driver.Device(d)))
		}
		for d := range 2 {
			ctx, res := r.api.DevicePrimaryCtxRetain(driver.Device(d))
			r.want(driver.Success, res)
			r.want(driver.Success, r.api.Do(ctx, r.api.CtxSynchronize))
		}
	})
}

// monkey picks calls and arguments by bytes.
type monkey struct {
	*rig
	data    []byte
	ptrs    []driver.Ptr
	hosts   []uintptr
	streams []driver.Stream
	events  []driver.Event
	funcs   []driver.Function
	graphs  []driver.Graph
	nodes   []driver.GraphNode
	execs   []driver.GraphExec
	buffer  []byte

	memories []driver.MemHandle
	count    map[driver.Result]int // if somebody asks
}

func newMonkey(r *rig, data []byte) *monkey {
	m := &monkey{rig: r, data: data, buffer: make([]byte, 4096), ptrs: []driver.Ptr{0, ^driver.Ptr(0)}, hosts: []uintptr{0},
		streams: []driver.Stream{driver.StreamLegacy, driver.StreamPerThread, 777}, events: []driver.Event{5}, funcs: []driver.Function{6},
		graphs: []driver.Graph{8}, nodes: []driver.GraphNode{9}, execs: []driver.GraphExec{10}, memories: []driver.MemHandle{9}}
	m.hosts = append(m.hosts, m.address(m.buffer), r.pinned(4096))
	for d := range 2 {
		p := r.alloc(d, 4096)
		m.ptrs = append(m.ptrs, p, p+512)
		m.streams = append(m.streams, r.stream(d, 0), r.stream(d, driver.StreamNonBlocking))
		m.events = append(m.events, r.event(d, 0))
		m.funcs = append(m.funcs, r.kernel(d, "scale"), r.kernel(d, "exact"))
	}
	return m
}

// play makes calls as long as there are bytes.
func (m *monkey) play() {
	for range 200 {
		if len(m.data) == 0 {
			return
		}
		m.call()
	}
}

// n is a number below most.
func (m *monkey) n(most int) int {
	if len(m.data) == 0 {
		return 0
	}
	b := m.data[0]
	m.data = m.data[1:]
	return int(b) % most
}

func pick[T any](m *monkey, list []T) T { return list[m.n(len(list))] }

func (m *monkey) size() int64 { return pick(m, []int64{0, 1, 64, 512, 4096, 4097, -1, 1 << 62}) }

func (m *monkey) call() {
	const pages = 2 * gpusim.Granularity
	a := m.api
	p, q, host := pick(m, m.ptrs), pick(m, m.ptrs), pick(m, m.hosts)
	s, e, size := pick(m, m.streams), pick(m, m.events), m.size()
	list := []func() driver.Result{
		a.CtxSynchronize,
		func() driver.Result { return a.CtxEnablePeerAccess(pick(m, m.ctx)) },
		func() driver.Result { x, res := a.MemAlloc(size); m.ptrs = append(m.ptrs, x); return res },
		func() driver.Result { x, res := a.MemAllocAsync(size, s); m.ptrs = append(m.ptrs, x); return res },
		func() driver.Result { return a.MemFree(p) },
		func() driver.Result { return a.MemFreeAsync(p, s) },
		func() driver.Result { x, res := a.MemHostAlloc(size, 0); m.hosts = append(m.hosts, x); return res },
		func() driver.Result { return a.MemFreeHost(host) },
		func() driver.Result { return a.MemHostRegister(m.address(m.buffer), size, 0) },
		func() driver.Result { return a.MemHostUnregister(host) },
		func() driver.Result { return a.MemcpyDtoD(p, q, size) },
		func() driver.Result { return a.MemcpyDtoDAsync(p, q, size, s) },
		func() driver.Result { return a.MemcpyPeerAsync(p, m.ctx[0], q, m.ctx[1], size, s) },
		func() driver.Result { return a.MemsetD8Async(p, 1, size, s) },
		func() driver.Result { return a.MemsetD32Async(p, 1, size, s) },
		func() driver.Result { return a.StreamSynchronize(s) },
		func() driver.Result { return a.StreamQuery(s) },
		func() driver.Result { return a.StreamWaitEvent(s, e) },
		func() driver.Result { return a.StreamDestroy(s) },
		func() driver.Result { return a.EventRecord(e, s) },
		func() driver.Result { return a.EventSynchronize(e) },
		func() driver.Result { return a.EventQuery(e) },
		func() driver.Result { _, res := a.EventElapsedTime(e, pick(m, m.events)); return res },
		func() driver.Result { return a.EventDestroy(e) },
		func() driver.Result { return a.Annotate(p, size, driver.State(m.n(2)), s, "monkey") },
		func() driver.Result {
			return a.LaunchKernelEx(line(32*m.n(9), s), pick(m, m.funcs), pack(p, uint32(m.n(64))))
		},
		func() driver.Result { return a.ModuleUnload(m.mods[0]) },
		func() driver.Result {
			x, res := a.MemAddressReserve(pages, 0, p)
			m.ptrs = append(m.ptrs, x, x+pages/2)
			return res
		},
		func() driver.Result { return a.MemAddressFree(p, pages) },
		func() driver.Result {
			h, res := a.MemCreate(pages/2, driver.Device(m.n(3)))
			m.memories = append(m.memories, h)
			return res
		},
		func() driver.Result { return a.MemRelease(pick(m, m.memories)) },
		func() driver.Result { return a.MemMap(p, pages/2, 0, pick(m, m.memories)) },
		func() driver.Result { return a.MemUnmap(p, pages>>m.n(2)) },
		func() driver.Result {
			return a.MemSetAccess(p, pages>>m.n(2), driver.Device(m.n(3)), driver.Access(m.n(4)))
		},
	}
	list = append(list, m.graphCalls(p, q, s, e, size)...)
	// Copies with the host stay in memory that is there, whatever was freed: a real address is all that a driver can check.
	if host == m.address(m.buffer) {
		size = min(size, int64(len(m.buffer)))
		list = append(list, func() driver.Result { return a.MemcpyHtoD(p, host, size) }, func() driver.Result { return a.MemcpyDtoH(host, p, size) },
			func() driver.Result { return a.MemcpyHtoDAsync(p, host, size, s) }, func() driver.Result { return a.MemcpyDtoHAsync(host, p, size, s) })
	}
	defer m.legal()
	d := m.n(2)
	res := a.Do(m.ctx[d], pick(m, list))
	if m.count != nil {
		m.count[res]++
	}
	if strings.HasPrefix(res.String(), "CUDA error") {
		m.t.Errorf("%v, which package driver has no name for", res)
	}
}

// graphCalls are calls of captures and graphs.
func (m *monkey) graphCalls(p, q driver.Ptr, s driver.Stream, e driver.Event, size int64) []func() driver.Result {
	a := m.api
	g, x, n := pick(m, m.graphs), pick(m, m.execs), pick(m, m.nodes)
	after := m.nodes[len(m.nodes)-m.n(2):] // the last one, often of the same graph
	ctx := pick(m, m.ctx)
	keep := func(n driver.GraphNode, res driver.Result) driver.Result {
		if res == driver.Success {
			m.nodes = append(m.nodes, n)
		}
		return res
	}
	kernel := &driver.KernelNode{Func: pick(m, m.funcs), Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: pack(p, uint32(m.n(64)))}
	move := &driver.CopyNode{Dst: p, Src: q, Bytes: size}
	if m.n(3) == 0 {
		*move = driver.CopyNode{Dst: p, SrcHost: m.address(m.buffer), Bytes: min(size, int64(len(m.buffer)))}
	}
	fill := &driver.FillNode{Dst: p, ElementSize: uint32(m.n(5)), Elements: size}
	return []func() driver.Result{
		func() driver.Result { return a.StreamBeginCapture(s, driver.CaptureMode(m.n(4))) },
		func() driver.Result { return a.StreamBeginCapture(s, driver.CaptureRelaxed) },
		func() driver.Result {
			h, res := a.StreamEndCapture(s)
			m.graphs = append(m.graphs, h)
			return res
		},
		func() driver.Result { _, res := a.StreamIsCapturing(s); return res },
		func() driver.Result {
			info, res := a.StreamGetCaptureInfo(s)
			m.graphs, m.nodes = append(m.graphs, info.Graph), append(m.nodes, info.Dependencies...)
			return res
		},
		func() driver.Result {
			_, res := a.ThreadExchangeStreamCaptureMode(driver.CaptureMode(m.n(4)))
			return res
		},
		func() driver.Result { h, res := a.GraphCreate(); m.graphs = append(m.graphs, h); return res },
		func() driver.Result { return a.GraphDestroy(g) },
		func() driver.Result { h, res := a.GraphClone(g); m.graphs = append(m.graphs, h); return res },
		func() driver.Result { return keep(a.GraphNodeFindInClone(n, g)) },
		func() driver.Result { return keep(a.GraphAddKernelNode(g, after, kernel)) },
		func() driver.Result { return keep(a.GraphAddMemcpyNode(g, after, move, ctx)) },
		func() driver.Result { return keep(a.GraphAddMemsetNode(g, after, fill, ctx)) },
		func() driver.Result { return keep(a.GraphAddEmptyNode(g, after)) },
		func() driver.Result { return keep(a.GraphAddEventRecordNode(g, after, e)) },
		func() driver.Result { return keep(a.GraphAddEventWaitNode(g, after, e)) },
		func() driver.Result { return m.addChild(g, after, keep) },
		func() driver.Result { return a.GraphAddDependencies(g, []driver.GraphNode{n}, after) },
		func() driver.Result { return a.GraphRemoveDependencies(g, []driver.GraphNode{n}, after) },
		func() driver.Result { return a.GraphDestroyNode(n) },
		func() driver.Result { h, res := a.GraphGetNodes(g); m.nodes = append(m.nodes, h...); return res },
		func() driver.Result { _, _, res := a.GraphGetEdges(g); return res },
		func() driver.Result { _, res := a.GraphNodeGetDependencies(n); return res },
		func() driver.Result {
			h, res := a.GraphInstantiateWithFlags(g, uint64(m.n(3)))
			m.execs = append(m.execs, h)
			return res
		},
		func() driver.Result { _, res := a.GraphExecUpdate(x, g); return res },
		func() driver.Result { return a.GraphExecKernelNodeSetParams(x, n, kernel) },
		func() driver.Result { return a.GraphExecMemcpyNodeSetParams(x, n, move, ctx) },
		func() driver.Result { return a.GraphExecMemsetNodeSetParams(x, n, fill, ctx) },
		func() driver.Result { return a.GraphUpload(x, s) },
		func() driver.Result { return m.launchGraph(x, s) },
		func() driver.Result { return m.launchGraph(x, s) },
		func() driver.Result { return a.GraphExecDestroy(x) },
	}
}

// launchGraph launches a graph, unless into the capture of one that is large.
func (m *monkey) launchGraph(x driver.GraphExec, s driver.Stream) driver.Result {
	if st, e := m.sys.streams[s], m.sys.execs[x]; st != nil && st.capture != nil && e != nil && st.capture.graph.total+e.graph.total > 256 {
		return driver.Success
	}
	return m.api.GraphLaunch(x, s)
}

// addChild adds a graph to another, unless both together would take long.
func (m *monkey) addChild(g driver.Graph, after []driver.GraphNode, keep func(driver.GraphNode, driver.Result) driver.Result) driver.Result {
	child := pick(m, m.graphs)
	if a, b := m.sys.graphs[g], m.sys.graphs[child]; a != nil && b != nil && a.total+b.total > 256 {
		return driver.Success
	}
	return keep(m.api.GraphAddChildGraphNode(g, after, child))
}

// legal compares what captures, streams and graphs say of each other.
func (m *monkey) legal() {
	s := m.sys
	for _, p := range s.captures {
		if p.graph.capture != p || s.graphs[p.graph.handle] != p.graph || len(p.streams) == 0 {
			m.t.Fatalf("capture %d has a graph of another, or no stream", p.id)
		}
		for _, st := range p.streams {
			if st.capture != p || slices.ContainsFunc(st.tips, func(n *node) bool { return n.graph != p.graph }) {
				m.t.Fatalf("a stream of capture %d is in another, or waits for nodes of another", p.id)
			}
		}
	}
	for _, d := range s.devices {
		if d.ctx == nil {
			continue
		}
		for _, q := range d.ctx.queues {
			if q.capture != nil && !slices.Contains(q.capture.streams, q) || q.capture != nil && !q.capture.alive() {
				m.t.Fatal("a stream is in a capture that does not know it, or has ended")
			}
		}
	}
	for h, n := range s.nodes {
		if n.handle != h || !slices.Contains(n.graph.nodes, n) || s.graphs[n.graph.handle] != n.graph {
			m.t.Fatalf("node %#x is in no graph", uintptr(h))
		}
		for _, d := range n.deps {
			if d.graph != n.graph || !slices.Contains(n.graph.nodes, d) {
				m.t.Fatalf("node %#x waits for one that is not in its graph", uintptr(h))
			}
		}
	}
}

// TestRandomCalls is FuzzCalls for a while, on one thread.
func TestRandomCalls(t *testing.T) {
	rng := testutil.Rand(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	done := map[driver.Result]int{}
	for range 60 {
		data := make([]byte, 1500)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		r := newRig(t, Config{Devices: 2, LateEffects: true, Seed: rng.Uint64() >> 32, Checks: gpusim.AllChecks, StepLimit: 1e6})
		m := newMonkey(r, data)
		m.count = done
		m.play()
		runtime.KeepAlive(m)
	}
	if done[driver.Success] < 100 || len(done) < 6 {
		t.Errorf("results: %v", done)
	}
}
