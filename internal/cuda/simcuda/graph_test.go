package simcuda

import (
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/gpusim"
)

// graphRig is a rig whose test stays on its thread, with a vector of ones that kernels double.
type graphRig struct {
	*rig
	x     driver.Ptr
	scale driver.Function
	s     [3]driver.Stream
}

const vector = 64

func newGraphRig(t testing.TB, c Config) *graphRig {
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	g := &graphRig{rig: newRig(t, c)}
	g.x = g.upload(0, floats(vector, func(int) float32 { return 1 }))
	g.do(0, g.api.CtxSynchronize) // for streams without order to the upload's
	g.scale = g.kernel(0, "scale")
	for i := range g.s {
		g.s[i] = g.stream(0, driver.StreamNonBlocking)
	}
	return g
}

func (g *graphRig) double(s driver.Stream) driver.Result {
	return g.api.LaunchKernelEx(line(vector, s), g.scale, pack(g.x, uint32(vector)))
}

func (g *graphRig) begin(s driver.Stream, mode driver.CaptureMode) {
	g.t.Helper()
	g.do(0, func() driver.Result { return g.api.StreamBeginCapture(s, mode) })
}

func (g *graphRig) end(s driver.Stream) (h driver.Graph) {
	g.t.Helper()
	g.do(0, func() (r driver.Result) { h, r = g.api.StreamEndCapture(s); return r })
	return h
}

func (g *graphRig) ready(h driver.Graph) (x driver.GraphExec) {
	g.t.Helper()
	g.do(0, func() (r driver.Result) { x, r = g.api.GraphInstantiateWithFlags(h, 0); return r })
	return x
}

func (g *graphRig) run(x driver.GraphExec, s driver.Stream) {
	g.t.Helper()
	g.do(0, func() driver.Result { return g.api.GraphLaunch(x, s) })
}

// all is the value that all elements have.
func (g *graphRig) all() float32 {
	g.t.Helper()
	g.do(0, g.api.CtxSynchronize)
	v := g.download(0, g.x, vector)
	if slices.Max(v) != slices.Min(v) {
		g.t.Errorf("%v", v)
	}
	return v[0]
}

var graphConfigs = []Config{{}, {LateEffects: true}, {LateEffects: true, Seed: 1}, {LateEffects: true, Seed: 2}, {LateEffects: true, Seed: 3}}

// TestCapture captures a fork and a join over two streams: nothing runs while it is captured, and each launch runs all of it.
func TestCapture(t *testing.T) {
	for _, c := range graphConfigs {
		for mode := driver.CaptureGlobal; mode <= driver.CaptureRelaxed; mode++ {
			g := newGraphRig(t, c)
			y := g.upload(0, make([]float32, vector))
			g.do(0, g.api.CtxSynchronize)
			fork, join := g.event(0, 0), g.event(0, 0)
			g.begin(g.s[0], mode)
			g.do(0, func() driver.Result { return g.double(g.s[0]) })
			g.do(0, func() driver.Result { return g.api.EventRecord(fork, g.s[0]) })
			g.do(0, func() driver.Result { return g.api.StreamWaitEvent(g.s[1], fork) })
			g.do(0, func() driver.Result { return g.api.MemcpyDtoDAsync(y, g.x, 4*vector, g.s[1]) })
			g.do(0, func() driver.Result { return g.api.EventRecord(join, g.s[1]) })
			g.do(0, func() driver.Result { return g.api.StreamWaitEvent(g.s[0], join) })
			g.do(0, func() driver.Result { return g.double(g.s[0]) })
			h := g.end(g.s[0])
			if v := g.all(); v != 1 {
				t.Errorf("captured work ran: %v", v)
			}
			x := g.ready(h)
			for i := range 3 {
				g.run(x, g.s[i])
			}
			if v, half := g.all(), g.download(0, y, 1)[0]; v != 64 || half != 32 {
				t.Errorf("%+v: after three launches %v and %v, want 64 and 32", c, v, half)
			}
			g.do(0, func() driver.Result { return g.api.GraphDestroy(h) })
			g.run(x, 0)
			g.do(0, func() driver.Result { return g.api.GraphExecDestroy(x) })
			if v := g.all(); v != 256 {
				t.Errorf("after a launch whose graph and exec are gone: %v", v)
			}
		}
	}
}

// graphCalls are the functions of graphs that need a context, with arguments that are right.
func graphCalls(r *rig, p driver.Ptr, st driver.Stream, ev driver.Event, f driver.Function) map[string]func() driver.Result {
	a := r.api
	kernel := &driver.KernelNode{Func: f, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 2, 1}}
	move := &driver.CopyNode{Dst: p, Src: p + 64, Bytes: 64}
	fill := &driver.FillNode{Dst: p, ElementSize: 4, Elements: 16}
	var g, child driver.Graph
	var x driver.GraphExec
	var n [3]driver.GraphNode
	r.do(0, func() (res driver.Result) {
		g, _ = a.GraphCreate()
		child, _ = a.GraphCreate()
		n[0], _ = a.GraphAddKernelNode(g, nil, kernel)
		n[1], _ = a.GraphAddMemcpyNode(g, n[:1], move, r.ctx[0])
		n[2], _ = a.GraphAddMemsetNode(g, n[1:2], fill, r.ctx[0])
		x, res = a.GraphInstantiateWithFlags(g, 0)
		return res
	})
	second := func(_ driver.GraphNode, res driver.Result) driver.Result { return res }
	capture := r.stream(0, driver.StreamNonBlocking)
	return map[string]func() driver.Result{
		"StreamBeginCapture and StreamEndCapture": func() driver.Result {
			if res := a.StreamBeginCapture(capture, driver.CaptureRelaxed); res != driver.Success {
				return res
			}
			_, res := a.StreamEndCapture(capture)
			return res
		},
		"StreamIsCapturing":       func() driver.Result { _, res := a.StreamIsCapturing(st); return res },
		"StreamGetCaptureInfo":    func() driver.Result { _, res := a.StreamGetCaptureInfo(st); return res },
		"GraphCreate":             func() driver.Result { _, res := a.GraphCreate(); return res },
		"GraphClone":              func() driver.Result { _, res := a.GraphClone(g); return res },
		"GraphAddKernelNode":      func() driver.Result { return second(a.GraphAddKernelNode(g, n[:1], kernel)) },
		"GraphAddMemcpyNode":      func() driver.Result { return second(a.GraphAddMemcpyNode(g, n[:1], move, r.ctx[0])) },
		"GraphAddMemsetNode":      func() driver.Result { return second(a.GraphAddMemsetNode(g, n[:1], fill, r.ctx[0])) },
		"GraphAddEmptyNode":       func() driver.Result { return second(a.GraphAddEmptyNode(g, n[:1])) },
		"GraphAddEventRecordNode": func() driver.Result { return second(a.GraphAddEventRecordNode(g, n[:1], ev)) },
		"GraphAddEventWaitNode":   func() driver.Result { return second(a.GraphAddEventWaitNode(g, n[:1], ev)) },
		"GraphAddChildGraphNode":  func() driver.Result { return second(a.GraphAddChildGraphNode(g, n[:1], child)) },
		"GraphAddDependencies and GraphRemoveDependencies": func() driver.Result {
			if res := a.GraphAddDependencies(g, n[:1], n[2:]); res != driver.Success {
				return res
			}
			return a.GraphRemoveDependencies(g, n[:1], n[2:])
		},
		"GraphGetNodes":                func() driver.Result { _, res := a.GraphGetNodes(g); return res },
		"GraphGetEdges":                func() driver.Result { _, _, res := a.GraphGetEdges(g); return res },
		"GraphNodeGetType":             func() driver.Result { _, res := a.GraphNodeGetType(n[0]); return res },
		"GraphNodeGetDependencies":     func() driver.Result { _, res := a.GraphNodeGetDependencies(n[1]); return res },
		"GraphInstantiateWithFlags":    func() driver.Result { _, res := a.GraphInstantiateWithFlags(g, 0); return res },
		"GraphExecKernelNodeSetParams": func() driver.Result { return a.GraphExecKernelNodeSetParams(x, n[0], kernel) },
		"GraphExecMemcpyNodeSetParams": func() driver.Result { return a.GraphExecMemcpyNodeSetParams(x, n[1], move, r.ctx[0]) },
		"GraphExecMemsetNodeSetParams": func() driver.Result { return a.GraphExecMemsetNodeSetParams(x, n[2], fill, r.ctx[0]) },
		"GraphUpload":                  func() driver.Result { return a.GraphUpload(x, st) },
		"GraphLaunch":                  func() driver.Result { return a.GraphLaunch(x, st) },
	}
}

// disturbing are the calls that may disturb a capture under way, though they are about nothing of it: they wait, or may, or take
// memory.
var disturbing = []string{"CtxSynchronize", "ModuleLoadData", "MemAlloc", "MemHostAlloc", "MemHostRegister", "MemHostUnregister", "MemcpyHtoD", "MemcpyDtoH",
	"MemcpyDtoD", "StreamSynchronize", "StreamQuery", "EventSynchronize", "EventQuery"}

// TestDisturbing makes every call of the table while a stream captures that the call is not about: by the modes of the capture and
// of the thread, and on the thread that captures or another, it is refused and invalidates the capture, or neither.
func TestDisturbing(t *testing.T) {
	for mode := driver.CaptureGlobal; mode <= driver.CaptureRelaxed; mode++ {
		for own := driver.CaptureGlobal; own <= driver.CaptureRelaxed; own++ {
			for _, same := range []bool{true, false} {
				g := newGraphRig(t, Config{Devices: 2})
				list := calls(g.rig)
				for _, name := range first {
					g.do(0, list[name])
				}
				g.do(0, g.api.CtxSynchronize) // EventQuery is not to find the record pending
				refused := own != driver.CaptureRelaxed && mode != driver.CaptureRelaxed && same || own == driver.CaptureGlobal && mode == driver.CaptureGlobal
				for name, f := range list {
					if slices.Contains(first, name) {
						continue
					}
					g.begin(g.s[0], mode)
					got := g.on(same, func() driver.Result {
						old, _ := g.api.ThreadExchangeStreamCaptureMode(own)
						defer g.api.ThreadExchangeStreamCaptureMode(old)
						return f()
					})
					want, after := driver.Success, driver.CaptureActive
					if refused && slices.Contains(disturbing, name) || name == "CtxSynchronize" {
						want, after = driver.StreamCaptureUnsupported, driver.CaptureInvalidated
					}
					g.do(0, func() driver.Result {
						if status, _ := g.api.StreamIsCapturing(g.s[0]); got != want || status != after {
							t.Errorf("%s, modes %d and %d, same thread %v: %v, status %d; want %v, %d", name, mode, own, same, got, status, want, after)
						}
						if h, r := g.api.StreamEndCapture(g.s[0]); r == driver.Success {
							return g.api.GraphDestroy(h)
						}
						return driver.Success
					})
					g.do(0, g.api.CtxSynchronize)
				}
			}
		}
	}
}

// on makes a call on this thread or another one.
func (g *graphRig) on(same bool, f func() driver.Result) driver.Result {
	if same {
		return g.api.Do(g.ctx[0], f)
	}
	done := make(chan driver.Result)
	go func() { done <- g.api.Do(g.ctx[0], f) }()
	return <-done
}

// TestCapturedMemory: what a graph uses must live. Memory that was freed is found as with any launch, and kernels, events and
// contexts that are gone refuse the launch.
func TestCapturedMemory(t *testing.T) {
	for name, f := range map[string]func(g *graphRig, s driver.Stream) driver.Result{
		"kernel": (*graphRig).double,
		"fill":   func(g *graphRig, s driver.Stream) driver.Result { return g.api.MemsetD8Async(g.x, 0, 64, s) },
		"copy":   func(g *graphRig, s driver.Stream) driver.Result { return g.api.MemcpyDtoDAsync(g.x, g.x+64, 64, s) },
	} {
		for _, c := range graphConfigs {
			g := newGraphRig(t, c)
			g.begin(g.s[0], driver.CaptureGlobal)
			g.do(0, func() driver.Result { return f(g, g.s[0]) })
			x := g.ready(g.end(g.s[0]))
			g.run(x, g.s[0])
			g.do(0, g.api.CtxSynchronize)
			g.do(0, func() driver.Result { return g.api.MemFree(g.x) })
			g.fails(driver.IllegalAddress, 0, "freed by MemFree", func() driver.Result {
				g.api.GraphLaunch(x, g.s[0])
				return g.api.CtxSynchronize()
			})
			if name == "kernel" && !strings.Contains(g.sys.lastWhy(), "scale") {
				t.Errorf("the kernel is not named in %q", g.sys.lastWhy())
			}
		}
	}
}

// TestCapturedHostMemory: so must pinned memory.
func TestCapturedHostMemory(t *testing.T) {
	for _, c := range graphConfigs {
		for _, f := range []func(g *graphRig, h uintptr) driver.Result{
			func(g *graphRig, h uintptr) driver.Result { return g.api.MemcpyHtoDAsync(g.x, h, 64, g.s[0]) },
			func(g *graphRig, h uintptr) driver.Result { return g.api.MemcpyDtoHAsync(h, g.x, 64, g.s[0]) },
		} {
			g := newGraphRig(t, c)
			h := g.pinned(64)
			g.begin(g.s[0], driver.CaptureGlobal)
			g.do(0, func() driver.Result { return f(g, h) })
			x := g.ready(g.end(g.s[0]))
			g.run(x, g.s[0])
			g.do(0, func() driver.Result { return g.api.MemFreeHost(h) })
			g.fails(driver.IllegalAddress, 0, "is pinned no more", func() driver.Result {
				g.api.GraphLaunch(x, g.s[0])
				return g.api.CtxSynchronize()
			})
		}
	}
}

// TestGone: a graph is not launched without what it needs.
func TestGone(t *testing.T) {
	g := newGraphRig(t, Config{Devices: 2})
	a := g.api
	e := g.event(0, 0)
	far := g.alloc(1, 64)
	kernel := func(n driver.Graph) (driver.GraphNode, driver.Result) {
		return a.GraphAddKernelNode(n, nil, &driver.KernelNode{Func: g.scale, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{vector, 1, 1}, Params: pack(g.x, uint32(vector))})
	}
	made := func(add func(h driver.Graph) (driver.GraphNode, driver.Result)) driver.GraphExec {
		var h driver.Graph
		g.do(0, func() (r driver.Result) {
			if h, r = a.GraphCreate(); r == driver.Success {
				_, r = add(h)
			}
			return r
		})
		return g.ready(h)
	}
	withKernel, withEvent := made(kernel), made(func(h driver.Graph) (driver.GraphNode, driver.Result) { return a.GraphAddEventRecordNode(h, nil, e) })
	elsewhere := made(func(h driver.Graph) (driver.GraphNode, driver.Result) {
		return a.GraphAddMemsetNode(h, nil, &driver.FillNode{Dst: far, ElementSize: 1, Elements: 64}, g.ctx[1])
	})
	for _, x := range []driver.GraphExec{withKernel, withEvent, elsewhere} {
		g.run(x, g.s[0])
	}
	g.do(0, func() driver.Result { return a.EventDestroy(e) })
	g.do(0, func() driver.Result { return a.ModuleUnload(g.mods[0]) })
	g.want(driver.Success, a.DevicePrimaryCtxReset(1))
	launch := func(x driver.GraphExec) func() driver.Result {
		return func() driver.Result { return a.GraphLaunch(x, g.s[0]) }
	}
	g.fails(driver.InvalidHandle, 0, "the module of kernel scale", launch(withKernel))
	g.fails(driver.InvalidHandle, 0, "event", launch(withEvent))
	g.fails(driver.ContextDestroyed, 0, "released or reset", launch(elsewhere))
	g.do(0, func() driver.Result { return a.GraphExecDestroy(withKernel) })
	g.fails(driver.InvalidValue, 0, "not any more", launch(withKernel))
}

// TestNotCaptured: what this simulator leaves out of graphs, handles of nothing, and what would take a stream out of a capture.
func TestNotCaptured(t *testing.T) {
	g := newGraphRig(t, Config{})
	a := g.api
	none := func(r driver.Result) driver.Result { return r }
	for _, c := range []struct {
		want    driver.Result
		explain string
		call    func() driver.Result
	}{
		{driver.StreamCaptureUnsupported, "memory of graphs is not simulated", func() driver.Result { _, r := a.MemAllocAsync(64, g.s[0]); return r }},
		{driver.StreamCaptureUnsupported, "memory of graphs is not simulated", func() driver.Result { return a.MemFreeAsync(g.x, g.s[0]) }},
		{driver.StreamCaptureUnsupported, "destruction", func() driver.Result { return a.StreamDestroy(g.s[0]) }},
		{driver.StreamCaptureUnsupported, "GraphUpload", func() driver.Result {
			h, _ := a.GraphCreate()
			x, _ := a.GraphInstantiateWithFlags(h, 0)
			return a.GraphUpload(x, g.s[0])
		}},
		{driver.InvalidValue, "overlap", func() driver.Result { return a.MemcpyDtoDAsync(g.x, g.x+8, 16, g.s[0]) }},
		{driver.InvalidHandle, "no function", func() driver.Result { return a.LaunchKernelEx(line(1, g.s[0]), 5, nil) }},
	} {
		g.begin(g.s[0], driver.CaptureRelaxed)
		g.fails(c.want, 0, c.explain, c.call)
		g.fails(driver.StreamCaptureInvalidated, 0, "invalidated by", func() driver.Result { _, r := a.StreamEndCapture(g.s[0]); return r })
	}
	var captured driver.Graph
	g.begin(g.s[0], driver.CaptureRelaxed)
	g.do(0, func() driver.Result {
		info, r := a.StreamGetCaptureInfo(g.s[0])
		captured = info.Graph
		return r
	})
	var own driver.Graph
	var node driver.GraphNode
	g.do(0, func() (r driver.Result) { own, r = a.GraphCreate(); return r })
	g.do(0, func() (r driver.Result) { node, r = a.GraphAddEmptyNode(own, nil); return r })
	fill := &driver.FillNode{Dst: g.x, ElementSize: 4, Elements: 4}
	for name, call := range map[string]func() driver.Result{
		"destroy a graph in the making":     func() driver.Result { return a.GraphDestroy(captured) },
		"instantiate a graph in the making": func() driver.Result { _, r := a.GraphInstantiateWithFlags(captured, 0); return r },
		"destroy nothing":                   func() driver.Result { return a.GraphDestroy(7) },
		"clone nothing":                     func() driver.Result { _, r := a.GraphClone(7); return r },
		"find nothing":                      func() driver.Result { _, r := a.GraphNodeFindInClone(7, own); return r },
		"find in nothing":                   func() driver.Result { _, r := a.GraphNodeFindInClone(node, 7); return r },
		"add to nothing":                    func() driver.Result { _, r := a.GraphAddEmptyNode(7, nil); return r },
		"add behind nothing":                func() driver.Result { _, r := a.GraphAddEmptyNode(own, []driver.GraphNode{7}); return r },
		"add a graph to itself":             func() driver.Result { _, r := a.GraphAddChildGraphNode(own, nil, own); return r },
		"add a graph that is none":          func() driver.Result { _, r := a.GraphAddChildGraphNode(own, nil, 7); return r },
		"add no kernel":                     func() driver.Result { _, r := a.GraphAddKernelNode(own, nil, nil); return r },
		"add no copy":                       func() driver.Result { _, r := a.GraphAddMemcpyNode(own, nil, nil, g.ctx[0]); return r },
		"add a copy without source": func() driver.Result {
			_, r := a.GraphAddMemcpyNode(own, nil, &driver.CopyNode{Dst: g.x, Bytes: 4}, g.ctx[0])
			return r
		},
		"add a copy with two sources": func() driver.Result {
			_, r := a.GraphAddMemcpyNode(own, nil, &driver.CopyNode{Dst: g.x, Src: g.x + 64, SrcHost: 8, Bytes: 4}, g.ctx[0])
			return r
		},
		"add a copy past the end": func() driver.Result {
			_, r := a.GraphAddMemcpyNode(own, nil, &driver.CopyNode{Dst: g.x, Src: g.x + 64, Bytes: 1 << 40}, g.ctx[0])
			return r
		},
		"add no fill": func() driver.Result { _, r := a.GraphAddMemsetNode(own, nil, nil, g.ctx[0]); return r },
		"no edges":    func() driver.Result { return a.GraphAddDependencies(7, nil, nil) },
		"edges to nothing": func() driver.Result {
			return a.GraphAddDependencies(own, []driver.GraphNode{node}, []driver.GraphNode{7})
		},
		"destroy no node":      func() driver.Result { return a.GraphDestroyNode(7) },
		"nodes of nothing":     func() driver.Result { _, r := a.GraphGetNodes(7); return r },
		"edges of nothing":     func() driver.Result { _, _, r := a.GraphGetEdges(7); return r },
		"type of nothing":      func() driver.Result { _, r := a.GraphNodeGetType(7); return r },
		"what nothing awaits":  func() driver.Result { _, r := a.GraphNodeGetDependencies(7); return r },
		"instantiate nothing":  func() driver.Result { _, r := a.GraphInstantiateWithFlags(7, 0); return r },
		"destroy no exec":      func() driver.Result { return a.GraphExecDestroy(7) },
		"launch nothing":       func() driver.Result { return a.GraphLaunch(7, g.s[1]) },
		"upload nothing":       func() driver.Result { return a.GraphUpload(7, g.s[1]) },
		"update nothing":       func() driver.Result { _, r := a.GraphExecUpdate(7, own); return r },
		"a parameter of none":  func() driver.Result { return a.GraphExecMemsetNodeSetParams(7, node, fill, g.ctx[0]) },
		"a parameter of empty": func() driver.Result { return a.GraphExecMemsetNodeSetParams(7, node, fill, g.ctx[0]) },
	} {
		t.Run(name, func(t *testing.T) { g.fails(driver.InvalidValue, 0, "", func() driver.Result { return none(call()) }) })
	}
	for name, call := range map[string]func() driver.Result{
		"a kernel that is none": func() driver.Result { _, r := a.GraphAddKernelNode(own, nil, &driver.KernelNode{Func: 7}); return r },
		"an event that is none": func() driver.Result { _, r := a.GraphAddEventWaitNode(own, nil, 7); return r },
		"a stream that is none": func() driver.Result {
			x, _ := a.GraphInstantiateWithFlags(own, 0)
			return a.GraphLaunch(x, 7)
		},
		"begin nothing": func() driver.Result { return a.StreamBeginCapture(7, 0) },
		"end nothing":   func() driver.Result { _, r := a.StreamEndCapture(7); return r },
		"ask nothing":   func() driver.Result { _, r := a.StreamIsCapturing(7); return r },
	} {
		t.Run(name, func(t *testing.T) { g.fails(driver.InvalidHandle, 0, "", call) })
	}
	g.fails(driver.InvalidContext, 0, "", func() driver.Result { _, r := a.GraphAddMemsetNode(own, nil, fill, 7); return r })
	// What was refused has not invalidated the capture, which the end of the context ends.
	g.do(0, func() driver.Result {
		if s, _ := a.StreamIsCapturing(g.s[0]); s != driver.CaptureActive {
			t.Errorf("status %d", s)
		}
		return driver.Success
	})
	g.want(driver.Success, a.DevicePrimaryCtxReset(0))
	if len(g.sys.captures) != 0 {
		t.Errorf("%d captures outlive the context", len(g.sys.captures))
	}
}

// TestLaunchInCapture: a graph that is launched into a capture becomes a node of its graph.
func TestLaunchInCapture(t *testing.T) {
	for _, c := range graphConfigs {
		g := newGraphRig(t, c)
		g.begin(g.s[0], driver.CaptureGlobal)
		g.do(0, func() driver.Result { return g.double(g.s[0]) })
		inner := g.ready(g.end(g.s[0]))
		g.begin(g.s[0], driver.CaptureGlobal)
		g.run(inner, g.s[0])
		g.do(0, func() driver.Result { return g.double(g.s[0]) })
		g.run(inner, g.s[0])
		h := g.end(g.s[0])
		g.do(0, func() driver.Result {
			nodes, r := g.api.GraphGetNodes(h)
			if typ, _ := g.api.GraphNodeGetType(nodes[2]); len(nodes) != 3 || typ != driver.NodeGraph {
				t.Errorf("nodes %v, the last of type %d", nodes, typ)
			}
			return r
		})
		g.do(0, func() driver.Result { return g.api.GraphExecDestroy(inner) })
		g.run(g.ready(h), g.s[1])
		if v := g.all(); v != 8 {
			t.Errorf("%+v: %v, want 8", c, v)
		}
	}
}

// TestTooManyNodes: graphs in graphs double until that is refused.
func TestTooManyNodes(t *testing.T) {
	g := newGraphRig(t, Config{})
	g.do(0, func() driver.Result {
		h, _ := g.api.GraphCreate()
		if _, r := g.api.GraphAddEmptyNode(h, nil); r != driver.Success {
			return r
		}
		for range 10 {
			next, _ := g.api.GraphCreate()
			for range 4 {
				_, r := g.api.GraphAddChildGraphNode(next, nil, h)
				if r == driver.OutOfMemory && strings.Contains(g.api.Explain(), "nodes") {
					return driver.Success
				}
				if r != driver.Success {
					return r
				}
			}
			g.api.GraphDestroy(h)
			h = next
		}
		return driver.OutOfMemory
	})
}

// TestGraphAnnotations: what an allocator tells is repeated by each launch in its place, and makes no nodes.
func TestGraphAnnotations(t *testing.T) {
	for _, c := range graphConfigs {
		c.Checks, c.Collect = gpusim.AllChecks, true
		g := newGraphRig(t, c)
		fork, join := g.event(0, 0), g.event(0, 0)
		note := func(state driver.State, s driver.Stream) {
			g.do(0, func() driver.Result { return g.api.Annotate(g.x, 4*vector, state, s, "block") })
		}
		y := g.upload(0, make([]float32, vector))
		g.do(0, g.api.CtxSynchronize)
		g.begin(g.s[0], driver.CaptureGlobal)
		g.do(0, func() driver.Result { return g.api.MemsetD8Async(y, 0, 64, g.s[0]) })
		note(driver.Fresh, g.s[0])
		g.do(0, func() driver.Result { return g.api.EventRecord(fork, g.s[0]) })
		g.do(0, func() driver.Result { return g.api.StreamWaitEvent(g.s[1], fork) })
		g.do(0, func() driver.Result { return g.double(g.s[1]) })
		g.do(0, func() driver.Result { return g.api.EventRecord(join, g.s[1]) })
		g.do(0, func() driver.Result { return g.api.StreamWaitEvent(g.s[0], join) })
		note(driver.Free, g.s[0])
		note(driver.Free, g.s[1]) // behind the join, and yet not unjoined
		h := g.end(g.s[0])
		g.do(0, func() driver.Result {
			nodes, r := g.api.GraphGetNodes(h)
			if len(nodes) != 2 {
				t.Fatalf("nodes %v", nodes)
			}
			if deps, _ := g.api.GraphNodeGetDependencies(nodes[1]); !slices.Equal(deps, nodes[:1]) {
				t.Errorf("the kernel waits for %v, want %v", deps, nodes[:1])
			}
			return r
		})
		x := g.ready(h)
		g.do(0, g.api.CtxSynchronize)
		for i := range 2 {
			g.run(x, g.s[0])
			g.do(0, g.api.CtxSynchronize)
			if found := g.sys.Findings(); len(found) == 0 || found[0].Check != gpusim.Initcheck {
				t.Errorf("%+v, launch %d: the kernel reads what was never written; found %v", c, i, found)
			}
		}
		g.fails(driver.IllegalAddress, 0, "block", func() driver.Result {
			g.double(g.s[0])
			return g.api.CtxSynchronize()
		})
	}
}

// TestGraphOfTwoDevices captures work of two devices, forked and joined by events; memory of either is freed only when the graph is
// through.
func TestGraphOfTwoDevices(t *testing.T) {
	for _, c := range graphConfigs {
		c.Devices = 2
		g := newGraphRig(t, c)
		far, there := g.upload(1, make([]float32, vector)), g.stream(1, driver.StreamNonBlocking)
		g.do(1, g.api.CtxSynchronize)
		fork, join := g.event(0, 0), g.event(1, 0)
		g.begin(g.s[0], driver.CaptureGlobal)
		g.do(0, func() driver.Result { return g.double(g.s[0]) })
		g.do(0, func() driver.Result { return g.api.EventRecord(fork, g.s[0]) })
		g.do(1, func() driver.Result { return g.api.StreamWaitEvent(there, fork) })
		g.do(1, func() driver.Result { return g.api.MemcpyPeerAsync(far, g.ctx[1], g.x, g.ctx[0], 4*vector, there) })
		scale := g.kernel(1, "scale")
		g.do(1, func() driver.Result {
			return g.api.LaunchKernelEx(line(vector, there), scale, pack(far, uint32(vector)))
		})
		g.do(1, func() driver.Result { return g.api.EventRecord(join, there) })
		g.do(0, func() driver.Result { return g.api.StreamWaitEvent(g.s[0], join) })
		g.do(0, func() driver.Result { return g.double(g.s[0]) })
		x := g.ready(g.end(g.s[0]))
		g.run(x, g.s[0])
		if v := g.download(1, far, 1)[0]; c.Seed == 0 && c.LateEffects == (v != 0) { // a seed lets some happen earlier
			t.Errorf("%+v: %v before a wait", c, v)
		}
		g.run(x, g.s[0])
		g.do(1, func() driver.Result { return g.api.MemFree(far) }) // waits for the device, though no stream of it has the work
		if v := g.all(); v != 16 {
			t.Errorf("%+v: %v, want 16", c, v)
		}
	}
}

// elsewhere says of functions of the table that calls leaves out which test makes them: they need no context, or what they take is
// gone afterwards.
var elsewhere = map[string]string{
	"Init": "TestInit", "DriverGetVersion": "TestInit", "DeviceGetCount": "TestInit", "DeviceGet": "TestInit", "DeviceGetName": "TestCards",
	"DeviceGetUuid": "TestCards", "DeviceTotalMem": "TestCards", "DeviceGetAttribute": "TestCards", "DeviceGetPCIBusId": "TestCards",
	"DeviceCanAccessPeer": "TestCards", "DevicePrimaryCtxRetain": "TestPrimaryContext", "DevicePrimaryCtxRelease": "TestPrimaryContext",
	"DevicePrimaryCtxReset": "TestPrimaryContext", "DevicePrimaryCtxSetFlags": "TestPrimaryContext", "CtxSetCurrent": "TestContext",
	"CtxGetCurrent": "TestPrimaryContext", "ModuleUnload": "TestRefusals", "MemFree": "TestRefusals", "MemFreeAsync": "TestRefusals",
	"MemFreeHost": "TestRefusals", "StreamDestroy": "TestRefusals", "EventDestroy": "TestRefusals", "GraphDestroy": "TestNotCaptured",
	"GraphNodeFindInClone": "TestNotCaptured", "GraphDestroyNode": "TestNotCaptured", "GraphExecUpdate": "TestNotCaptured",
	"GraphExecDestroy": "TestNotCaptured", "ThreadExchangeStreamCaptureMode": "TestDisturbing", "Explain": "all", "Assembled": "TestAssembled", "MemAddressFree": "TestVirtual", "MemRelease": "TestVirtual", "MemMap": "TestVirtual",
	"MemUnmap": "TestVirtual", "HostTime": "TestHostTime", "TensorMapEncodeTiled": "TestHopper", "TensorMapEncodeIm2col": "TestHopper", "TensorMapReplaceAddress": "TestHopper", "MemSetAccess": "TestVirtual",
}

// TestEveryFunction: the table is full, and each function of it is among those that are made with and without a context, or has a test
// of its own.
func TestEveryFunction(t *testing.T) {
	r := newRig(t, Config{Devices: 2})
	made := strings.Join(slices.Collect(maps.Keys(calls(r))), " ")
	made = strings.NewReplacer("Occupancy", "OccupancyMaxActiveBlocksPerMultiprocessor", "StreamCreate", "StreamCreateWithPriority").Replace(made)
	v := reflect.ValueOf(*r.api)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if v.Field(i).Kind() != reflect.Func {
			continue
		}
		if v.Field(i).IsNil() {
			t.Errorf("%s is not there", name)
		}
		if slices.Contains(strings.Fields(made), name) == (elsewhere[name] != "") {
			t.Errorf("%s: name it in calls, or in elsewhere with its test, not in both", name)
		}
	}
}
