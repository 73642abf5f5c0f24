package simcuda

import (
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/gpusim"
)

// TestUpdateByCapture captures a step again with other values, annotations included, and updates what runs; a graph inside follows.
func TestUpdateByCapture(t *testing.T) {
	for _, c := range graphConfigs {
		c.Checks, c.Collect = gpusim.AllChecks, true
		g := newGraphRig(t, c)
		step := func(value uint32, notes bool) driver.Graph {
			g.begin(g.s[0], driver.CaptureGlobal)
			note := func(state driver.State) {
				if notes {
					g.do(0, func() driver.Result { return g.api.Annotate(g.x, 4*vector, state, g.s[0], "block") })
				}
			}
			note(driver.Fresh)
			g.do(0, func() driver.Result { return g.api.MemsetD32Async(g.x, value, vector, g.s[0]) })
			g.do(0, func() driver.Result { return g.double(g.s[0]) })
			note(driver.Free)
			note(driver.Fresh)
			g.do(0, func() driver.Result { return g.api.MemsetD32Async(g.x, value, vector, g.s[0]) })
			return g.end(g.s[0])
		}
		const one, three = 0x3f800000, 0x40400000
		x := g.ready(step(one, false))
		outer := func(inner driver.Graph) (h driver.Graph) {
			g.do(0, func() (r driver.Result) {
				if h, r = g.api.GraphCreate(); r == driver.Success {
					_, r = g.api.GraphAddChildGraphNode(h, nil, inner)
				}
				return r
			})
			return h
		}
		y := g.ready(outer(step(one, true)))
		for _, x := range []driver.GraphExec{x, y} {
			g.run(x, g.s[1])
			if v := g.all(); v != 1 {
				t.Errorf("%v, want 1", v)
			}
		}
		next, nextOuter := step(three, true), outer(step(three, false))
		g.do(0, func() driver.Result { _, r := g.api.GraphExecUpdate(x, next); return r })
		g.do(0, func() driver.Result { _, r := g.api.GraphExecUpdate(y, nextOuter); return r })
		for _, x := range []driver.GraphExec{x, y} {
			g.do(0, func() driver.Result { return g.api.MemsetD32Async(g.x, one, vector, g.s[1]) })
			g.run(x, g.s[1])
			if v := g.all(); v != 3 {
				t.Errorf("after the update %v, want 3", v)
			}
		}
		if found := g.sys.Findings(); len(found) != 0 {
			t.Errorf("%v", found)
		}
	}
}

// TestUpdateRefusals: what an update says of two devices, of a graph inside, and of an edge from another node. They are by the
// driver's documents.
func TestUpdateRefusals(t *testing.T) {
	g := newGraphRig(t, Config{Devices: 2})
	a := g.api
	far := g.upload(1, make([]float32, vector))
	farScale := g.kernel(1, "scale")
	type nodes = []driver.GraphNode
	build := func(f func(h driver.Graph, add func(driver.GraphNode, driver.Result) driver.GraphNode)) (h driver.Graph) {
		g.do(0, func() (r driver.Result) {
			h, r = a.GraphCreate()
			f(h, func(n driver.GraphNode, res driver.Result) driver.GraphNode {
				if res != driver.Success {
					r = res
				}
				return n
			})
			return r
		})
		return h
	}
	fill := func(p driver.Ptr) *driver.FillNode { return &driver.FillNode{Dst: p, ElementSize: 4, Elements: vector} }
	kernel := func(f driver.Function, p driver.Ptr) *driver.KernelNode {
		return &driver.KernelNode{Func: f, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{vector, 1, 1}, Params: pack(p, uint32(vector))}
	}
	var last driver.GraphNode // of the graph that is refused, at fault
	type add = func(driver.GraphNode, driver.Result) driver.GraphNode
	kernelOn := func(f driver.Function, p driver.Ptr) driver.Graph {
		return build(func(h driver.Graph, add add) { last = add(a.GraphAddKernelNode(h, nil, kernel(f, p))) })
	}
	fillOn := func(p driver.Ptr) driver.Graph {
		return build(func(h driver.Graph, add add) { last = add(a.GraphAddMemsetNode(h, nil, fill(p), g.ctx[0])) })
	}
	copyFrom := func(p driver.Ptr) driver.Graph {
		return build(func(h driver.Graph, add add) {
			last = add(a.GraphAddMemcpyNode(h, nil, &driver.CopyNode{Dst: g.x, Src: p, Bytes: 64}, g.ctx[0]))
		})
	}
	inside := func(h driver.Graph) driver.Graph {
		return build(func(outer driver.Graph, add add) { add(a.GraphAddChildGraphNode(outer, nil, h)) })
	}
	chain := func(second int) driver.Graph {
		return build(func(h driver.Graph, add add) {
			n := nodes{add(a.GraphAddEmptyNode(h, nil)), add(a.GraphAddEmptyNode(h, nil))}
			last = add(a.GraphAddEmptyNode(h, n[second:second+1]))
		})
	}
	for _, c := range []struct {
		name      string
		old, next func() driver.Graph
		want      driver.UpdateResult
		hidden    bool // the node is of a graph inside, whose handle nobody has
		from      bool // an edge is named
	}{
		{"a kernel of another context", func() driver.Graph { return kernelOn(g.scale, g.x) }, func() driver.Graph { return kernelOn(farScale, far) },
			driver.UpdateFunctionChanged, false, false},
		{"a fill on another device", func() driver.Graph { return fillOn(g.x) }, func() driver.Graph { return fillOn(far) },
			driver.UpdateParametersChanged, false, false},
		{"a copy from another device", func() driver.Graph { return copyFrom(g.x + 64) }, func() driver.Graph { return copyFrom(far) },
			driver.UpdateParametersChanged, false, false},
		{"a graph inside", func() driver.Graph { return inside(fillOn(g.x)) }, func() driver.Graph { return inside(fillOn(far)) },
			driver.UpdateParametersChanged, true, false},
		{"a graph inside of another type", func() driver.Graph { return inside(fillOn(g.x)) }, func() driver.Graph { return inside(copyFrom(g.x + 64)) },
			driver.UpdateNodeTypeChanged, true, false},
		{"an edge from another node", func() driver.Graph { return chain(0) }, func() driver.Graph { return chain(1) },
			driver.UpdateTopologyChanged, false, true},
	} {
		x := g.ready(c.old())
		next := c.next()
		g.fails(driver.GraphUpdateFailure, 0, "instantiate it", func() driver.Result {
			u, r := a.GraphExecUpdate(x, next)
			if u.Result != c.want || (u.From != 0) != c.from || !c.hidden && u.Node != last {
				t.Errorf("%s: %+v", c.name, u)
			}
			return r
		})
		g.do(0, func() driver.Result { return a.GraphLaunch(x, g.s[0]) })
	}
	for name, call := range map[string]func(x driver.GraphExec, h driver.Graph) driver.Result{
		"another graph's update": func(x driver.GraphExec, _ driver.Graph) driver.Result { _, r := a.GraphExecUpdate(x, 7); return r },
		"another device's fill": func(x driver.GraphExec, _ driver.Graph) driver.Result {
			return a.GraphExecMemsetNodeSetParams(x, last, fill(far), g.ctx[0])
		},
		"another device's context": func(x driver.GraphExec, _ driver.Graph) driver.Result {
			return a.GraphExecMemsetNodeSetParams(x, last, fill(g.x), g.ctx[1])
		},
		"no fill": func(x driver.GraphExec, _ driver.Graph) driver.Result {
			return a.GraphExecMemsetNodeSetParams(x, last, nil, g.ctx[0])
		},
		"a fill of nothing that is there": func(x driver.GraphExec, _ driver.Graph) driver.Result {
			return a.GraphExecMemsetNodeSetParams(x, last, fill(8), g.ctx[0])
		},
		"a node that is gone": func(x driver.GraphExec, h driver.Graph) driver.Result {
			a.GraphDestroy(h)
			return a.GraphExecMemsetNodeSetParams(x, last, fill(g.x), g.ctx[0])
		},
	} {
		h := fillOn(g.x)
		x := g.ready(h)
		t.Run(name, func(t *testing.T) {
			g.fails(driver.InvalidValue, 0, "", func() driver.Result { return call(x, h) })
		})
	}
}

// TestEventsOfEnded: an event of a capture that has ended stands for nothing.
func TestEventsOfEnded(t *testing.T) {
	g := newGraphRig(t, Config{})
	e := g.event(0, 0)
	g.begin(g.s[0], driver.CaptureGlobal)
	g.do(0, func() driver.Result { return g.api.EventRecord(e, g.s[0]) })
	g.end(g.s[0])
	g.fails(driver.CapturedEvent, 0, "has ended", func() driver.Result { return g.api.StreamWaitEvent(g.s[1], e) })
	g.begin(g.s[1], driver.CaptureGlobal)
	g.fails(driver.StreamCaptureIsolation, 0, "not recorded in its capture", func() driver.Result { return g.api.StreamWaitEvent(g.s[1], e) })
}
