package libcuda_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// work is a piece of a random program over buffers: those on the card from 0 on, and those of the host from onCard on.
type work struct {
	kind    int // of those of workKinds
	x, y, z int // buffers; z is written
	value   uint32
	deps    []int // pieces before it
}

// How many buffers there are.
const (
	onCard = 5
	onHost = 2
)

// What a piece does.
const (
	workSum   = iota // z = x + y
	workFill         // z = value
	workCopy         // z = x
	workUp           // z = x of the host
	workDown         // z of the host = x
	workEmpty        // nothing, for the sake of its edges
	workKinds
)

// program is random work with the edges that make any order of it right: to the last that wrote what a piece touches, and for
// what it writes, to all that have read it since; and a few more.
func program(rng *rand.Rand, n int) []work {
	var list []work
	writer := map[int]int{} // piece and one
	readers := map[int][]int{}
	for i := range n {
		w := work{kind: rng.IntN(workKinds), x: rng.IntN(onCard), y: rng.IntN(onCard), z: rng.IntN(onCard), value: rng.Uint32()}
		reads := []int{w.x}
		switch w.kind {
		case workSum:
			reads = []int{w.x, w.y}
		case workFill:
			reads = nil
		case workUp:
			w.x = onCard + rng.IntN(onHost)
			reads = []int{w.x}
		case workDown:
			w.z = onCard + rng.IntN(onHost)
		case workCopy:
			w.z = (w.x + 1 + rng.IntN(onCard-1)) % onCard
		}
		if w.kind == workEmpty {
			reads, w.z = nil, -1
		}
		deps := map[int]bool{}
		for _, b := range append(slices.Clone(reads), w.z) {
			if writer[b] > 0 {
				deps[writer[b]-1] = true
			}
		}
		for _, r := range readers[w.z] {
			deps[r] = true
		}
		if i > 0 && rng.IntN(3) == 0 {
			deps[rng.IntN(i)] = true
		}
		for _, b := range reads {
			readers[b] = append(readers[b], i)
		}
		if w.z >= 0 {
			writer[w.z], readers[w.z] = i+1, nil
		}
		for d := range i {
			if deps[d] {
				w.deps = append(w.deps, d)
			}
		}
		list = append(list, w)
	}
	return list
}

// model runs a program on numbers.
func model(list []work, v *[onCard + onHost]uint32) {
	for _, w := range list {
		switch w.kind {
		case workSum:
			v[w.z] = v[w.x] + v[w.y]
		case workFill:
			v[w.z] = w.value
		case workCopy, workUp, workDown:
			v[w.z] = v[w.x]
		}
	}
}

// give gives a piece to a stream.
func (b *bench) give(w work, s driver.Stream) driver.Result {
	switch w.kind {
	case workSum:
		c := &driver.LaunchConfig{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{cells, 1, 1}, Stream: s}
		return b.api.LaunchKernelEx(c, b.sum, b.params(w.x, w.y, w.z))
	case workFill:
		return b.api.MemsetD32Async(b.buffer(w.z), w.value, cells, s)
	case workCopy:
		return b.api.MemcpyDtoDAsync(b.buffer(w.z), b.buffer(w.x), 4*cells, s)
	case workUp:
		return b.api.MemcpyHtoDAsync(b.buffer(w.z), b.hostBuffer(w.x), 4*cells, s)
	case workDown:
		return b.api.MemcpyDtoHAsync(b.hostBuffer(w.z), b.buffer(w.x), 4*cells, s)
	}
	return driver.Success
}

// asNode adds a piece to a graph.
func (b *bench) asNode(w work, g driver.Graph, after []driver.GraphNode) driver.GraphNode {
	a, c := b.api, &driver.CopyNode{Bytes: 4 * cells}
	switch w.kind {
	case workSum:
		return b.node(a.GraphAddKernelNode(g, after, b.kernelNode(w.x, w.y, w.z)))
	case workFill:
		return b.node(a.GraphAddMemsetNode(g, after, b.fillNode(w.z, w.value), b.ctx))
	case workCopy:
		c.Dst, c.Src = b.buffer(w.z), b.buffer(w.x)
	case workUp:
		c.Dst, c.SrcHost = b.buffer(w.z), b.hostBuffer(w.x)
	case workDown:
		c.DstHost, c.Src = b.hostBuffer(w.z), b.buffer(w.x)
	default:
		return b.node(a.GraphAddEmptyNode(g, after))
	}
	return b.node(a.GraphAddMemcpyNode(g, after, c, b.ctx))
}

// explicit builds a graph of a program node by node, some runs of it as graphs inside, and some edges later.
func (b *bench) explicit(list []work, rng *rand.Rand) driver.Graph {
	g := b.graph()
	nodes := make([]driver.GraphNode, len(list))
	for i := 0; i < len(list); {
		n := 1
		if rng.IntN(4) == 0 {
			n = min(1+rng.IntN(4), len(list)-i)
		}
		var after []driver.GraphNode
		for j := i; j < i+n; j++ {
			for _, d := range list[j].deps {
				if d < i && !slices.Contains(after, nodes[d]) {
					after = append(after, nodes[d])
				}
			}
		}
		now := after
		if rng.IntN(2) == 0 {
			now = nil
		}
		if n == 1 {
			nodes[i] = b.asNode(list[i], g, now)
		} else {
			child := b.graph()
			inner := make([]driver.GraphNode, n)
			for j := range n {
				var after []driver.GraphNode
				for _, d := range list[i+j].deps {
					if d >= i {
						after = append(after, inner[d-i])
					}
				}
				inner[j] = b.asNode(list[i+j], child, after)
			}
			added := b.node(b.api.GraphAddChildGraphNode(g, now, child))
			for j := range n {
				nodes[i+j] = added
			}
		}
		if now == nil && len(after) > 0 {
			to := slices.Repeat([]driver.GraphNode{nodes[i]}, len(after))
			must(b.t, "cuGraphAddDependencies", b.api.GraphAddDependencies(g, after, to))
		}
		i += n
	}
	return g
}

// spread captures a program over three streams, with an event for each piece that another stream waits for.
func (b *bench) spread(list []work, rng *rand.Rand) driver.Graph {
	must(b.t, "cuStreamBeginCapture", b.api.StreamBeginCapture(b.s[0], captureModes[rng.IntN(3)]))
	wait := func(s int, e driver.Event) { must(b.t, "cuStreamWaitEvent", b.api.StreamWaitEvent(b.s[s], e)) }
	record := func(s int) driver.Event {
		e := b.event()
		must(b.t, "cuEventRecord", b.api.EventRecord(e, b.s[s]))
		return e
	}
	begun := record(0)
	wait(1, begun)
	wait(2, begun)
	on, events := make([]int, len(list)), make([]driver.Event, len(list))
	for i, w := range list {
		on[i] = rng.IntN(3)
		for _, d := range w.deps {
			if on[d] != on[i] {
				wait(on[i], events[d])
			}
		}
		must(b.t, "work in a capture", b.give(w, b.s[on[i]]))
		events[i] = record(on[i])
	}
	wait(0, record(1))
	wait(0, record(2))
	g, r := b.api.StreamEndCapture(b.s[0])
	must(b.t, "cuStreamEndCapture", r)
	b.captured = append(b.captured, g)
	return g
}

// shuffled is a program in another order that its edges permit, without them.
func shuffled(list []work, rng *rand.Rand) []work {
	done := make([]bool, len(list))
	var order []work
	for len(order) < len(list) {
		i := rng.IntN(len(list))
		if !done[i] && !slices.ContainsFunc(list[i].deps, func(d int) bool { return !done[d] }) {
			done[i] = true
			order = append(order, list[i])
		}
	}
	return order
}

// reset gives the buffers values, which the model has too.
func (b *bench) reset(rng *rand.Rand, v *[onCard + onHost]uint32) {
	for i := range v {
		v[i] = rng.Uint32()
		if i < onCard {
			must(b.t, "cuMemsetD32Async", b.api.MemsetD32Async(b.buffer(i), v[i], cells, b.s[0]))
			continue
		}
		for j := range b.numbers(b.hostBuffer(i)) {
			b.numbers(b.hostBuffer(i))[j] = v[i]
		}
	}
}

// compare compares the buffers with the model.
func (b *bench) compare(what string, v *[onCard + onHost]uint32) {
	b.t.Helper()
	must(b.t, "cuCtxSynchronize", b.api.CtxSynchronize())
	for i, want := range v {
		at := b.hostBuffer(i)
		if i < onCard {
			at = b.hostBuffer(onCard + onHost)
			must(b.t, "cuMemcpyDtoH", b.api.MemcpyDtoH(at, b.buffer(i), 4*cells))
		}
		for j, got := range b.numbers(at) {
			if got != want {
				b.t.Fatalf("%s: buffer %d[%d] is %d, want %d", what, i, j, got, want)
			}
		}
	}
}

// TestRandomGraphs runs random programs as graphs built node by node, as captures over three streams, and one piece after another in
// an order that the edges permit: all give what the model gives, for each seed of late effects.
func TestRandomGraphs(t *testing.T) {
	seed := testutil.Rand(t).Uint64()
	for _, c := range []simcuda.Config{{}, {LateEffects: true}, {LateEffects: true, Seed: seed | 1, Checks: gpusim.AllChecks},
		{LateEffects: true, Seed: seed>>1 | 1}} {
		t.Run(fmt.Sprintf("late=%v,seed=%d", c.LateEffects, c.Seed), func(t *testing.T) {
			onEach(t, c, func(t *testing.T, api *driver.API) {
				b := newBench(t, api)
				rng := rand.New(rand.NewPCG(seed, c.Seed))
				for range 6 {
					b.try(program(rng, 1+rng.IntN(24)), rng)
				}
			})
		})
	}
}

// try runs a program in all ways.
func (b *bench) try(list []work, rng *rand.Rand) {
	seed := rng.Uint64()
	for name, make := range map[string]func([]work, *rand.Rand) driver.Graph{"built": b.explicit, "captured": b.spread} {
		rng := rand.New(rand.NewPCG(seed, uint64(len(name))))
		x := b.ready(make(list, rng))
		var v [onCard + onHost]uint32
		b.reset(rng, &v)
		for range 3 {
			must(b.t, "cuGraphLaunch", b.api.GraphLaunch(x, b.s[0]))
			model(list, &v)
		}
		b.compare(name, &v)
		must(b.t, "cuGraphLaunch", b.api.GraphLaunch(x, b.s[0]))
		must(b.t, "cuGraphLaunch", b.api.GraphLaunch(x, b.s[1])) // behind the other
		model(list, &v)
		model(list, &v)
		b.compare(name+", on two streams", &v)
	}
	var v [onCard + onHost]uint32
	b.reset(rng, &v)
	for _, w := range shuffled(list, rng) {
		must(b.t, "work", b.give(w, b.s[0]))
	}
	model(list, &v)
	b.compare("in a row", &v)
}
