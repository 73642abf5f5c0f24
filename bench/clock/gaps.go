package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/gpusim"
)

// gap is a loop of launches of one small kernel, timed by the host from its first call until it has waited for the last: what
// launches cost beside kernels.
type gap struct {
	file, kernel string
	grid, block  uint32
	elements     uint64
	launches     int
	graph        bool // a node for each launch in one graph; else one after the other in a stream
}

// gaps are published times of launches in a row, each with little to do. What they touch stays in L2.
func gaps() (list []row) {
	for _, c := range []struct {
		what   string
		figure float64
		graph  bool
	}{
		{"a launch of a stream of 1000, 4 MB in L2", 110.885e3 / 20e3, false},
		{"a node of a graph of 1000, 4 MB in L2", 104.635e3 / 20e3, true},
	} {
		list = append(list, row{what: c.what, card: "v100-32", source: "gunrock", figure: c.figure, unit: "µs",
			gap: &gap{"again", "again", 512, 256, 1_024_000, 1000, c.graph}})
	}
	return list
}

// seconds is what a launch takes by the clock of the simulated card's host, and what bounds it: the kernel's limiter, or launches where
// the card waits for them.
func (g *gap) seconds(dir, name string) (seconds float64, limiter string, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var work estimate.Launch
	s, err := simcuda.New(simcuda.Config{Card: name, Clock: true, Warm: true, OnLaunch: func(_ string, r *gpusim.Report) { work = r.Work }})
	if err != nil {
		return 0, "", err
	}
	text, err := os.ReadFile(dir + "/" + g.file + ".ptx")
	if err != nil {
		return 0, "", err
	}
	p := loop{gap: g, api: s.API()}
	if seconds, err = p.run(text); err != nil {
		return 0, "", err
	}
	card, _ := cards.Find(name)
	work.Warm = true
	limiter = string(estimate.Fixed)
	if e := estimate.Time(&card, &work); e.Seconds > seconds/2 {
		limiter = string(e.Limiter)
	}
	return seconds, limiter, nil
}

// loop is a gap on a card. The first call that fails is kept, and ends what follows.
type loop struct {
	*gap
	api    *driver.API
	ctx    driver.Context
	kernel driver.Function
	stream driver.Stream
	failed error
}

func (p *loop) do(what string, f func() driver.Result) {
	if p.failed != nil {
		return
	}
	if r := f(); r != driver.Success {
		p.failed = fmt.Errorf("%s: %v", what, r)
	}
}

func (p *loop) run(text []byte) (float64, error) {
	p.do("cuInit", func() driver.Result { return p.api.Init(0) })
	p.do("context", func() (r driver.Result) { p.ctx, r = p.api.DevicePrimaryCtxRetain(0); return r })
	if p.failed != nil {
		return 0, p.failed
	}
	defer p.api.DevicePrimaryCtxReset(0)
	var results, counter driver.Ptr
	p.do("current", func() driver.Result { return p.api.CtxSetCurrent(p.ctx) })
	p.do("module", func() driver.Result {
		m, _, r := p.api.ModuleLoadData(text)
		if r == driver.Success {
			p.kernel, r = p.api.ModuleGetFunction(m, p.gap.kernel)
		}
		return r
	})
	p.do("stream", func() (r driver.Result) {
		p.stream, r = p.api.StreamCreateWithPriority(driver.StreamNonBlocking, 0)
		return r
	})
	p.do("memory", func() (r driver.Result) { results, r = p.api.MemAlloc(4 * int64(p.elements)); return r })
	p.do("memory", func() (r driver.Result) { counter, r = p.api.MemAlloc(8); return r })
	p.do("fill", func() driver.Result { return p.api.MemsetD8Async(counter, 0, 8, p.stream) })
	took := p.loop(func(step int) {
		b := binary.LittleEndian.AppendUint64(nil, uint64(results))
		b = binary.LittleEndian.AppendUint64(b, uint64(counter))
		b = binary.LittleEndian.AppendUint64(b, uint64(step)) // of 4 bytes, and 4 to align what follows
		b = binary.LittleEndian.AppendUint64(b, p.elements)
		cfg := driver.LaunchConfig{Grid: [3]uint32{p.grid, 1, 1}, Block: [3]uint32{p.block, 1, 1}, Stream: p.stream}
		p.do("launch", func() driver.Result { return p.api.LaunchKernelEx(&cfg, p.kernel, b) })
	})
	return took / float64(p.launches), p.failed
}

// loop is the seconds of all launches.
func (p *loop) loop(launch func(step int)) float64 {
	var graph driver.GraphExec
	if p.graph {
		p.do("capture", func() driver.Result { return p.api.StreamBeginCapture(p.stream, driver.CaptureRelaxed) })
		for i := range p.launches {
			launch(i)
		}
		p.do("graph", func() driver.Result {
			g, r := p.api.StreamEndCapture(p.stream)
			if r == driver.Success {
				graph, r = p.api.GraphInstantiateWithFlags(g, 0)
			}
			return r
		})
	}
	began := p.api.HostTime(p.ctx)
	if p.graph {
		p.do("launch of a graph", func() driver.Result { return p.api.GraphLaunch(graph, p.stream) })
	} else {
		for i := range p.launches {
			launch(i)
		}
	}
	p.do("wait", func() driver.Result { return p.api.StreamSynchronize(p.stream) })
	return 1e-9 * float64(p.api.HostTime(p.ctx)-began)
}
