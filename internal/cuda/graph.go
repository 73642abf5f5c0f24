package cuda

import (
	"errors"
	"fmt"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/device"
)

// graph is launches of a queue that the driver starts as one.
type graph struct {
	q        *queue
	exec     driver.GraphExec
	launches int
	kept     []uint32 // launches whose kernels report faults by these numbers, in each run
	start    func() driver.Result
}

// Capture implements [device.Capturer] by a graph of the driver. It is none where each launch is to be waited for, so that an
// error names it.
func (q *queue) Capture(f func() error) (device.Graph, error) {
	if q.d.blocking || q.d.api.GraphLaunch == nil {
		return nil, fmt.Errorf("%s: graphs of launches: %w", q.d.info.Name, device.ErrUnsupported)
	}
	err := q.do("cuStreamBeginCapture", func() driver.Result {
		return q.d.api.StreamBeginCapture(q.stream, driver.CaptureRelaxed) // the goroutine may change threads meanwhile
	})
	if err != nil {
		return nil, err
	}
	g := &graph{q: q}
	q.log.keep(&g.kept)
	before := q.log.serial
	failed := f()
	g.launches = int(q.log.serial - before)
	q.log.keep(nil)
	var nodes driver.Graph
	err = q.do("cuStreamEndCapture", func() (r driver.Result) {
		nodes, r = q.d.api.StreamEndCapture(q.stream)
		return r
	})
	if err == nil && failed == nil {
		err = q.do("cuGraphInstantiateWithFlags", func() (r driver.Result) {
			g.exec, r = q.d.api.GraphInstantiateWithFlags(nodes, 0)
			return r
		})
	}
	if nodes != 0 {
		err = errors.Join(err, q.do("cuGraphDestroy", func() driver.Result { return q.d.api.GraphDestroy(nodes) }))
	}
	if failed != nil || err != nil {
		q.log.forget(g.kept)
		if failed != nil {
			return nil, failed // what it spoilt follows from it
		}
		return nil, err
	}
	g.start = func() driver.Result { return q.d.api.GraphLaunch(g.exec, q.stream) }
	return g, nil
}

// Launch implements [device.Graph].
func (g *graph) Launch() error {
	q := g.q
	q.log.addGraph(g.launches)
	if r := q.d.api.Do(q.d.ctx, g.start); r != driver.Success {
		q.log.withdraw()
		return q.d.failed("cuGraphLaunch", r)
	}
	if len(g.kept) > 0 {
		q.fault.last, q.fault.told = q.log.serial, 0 // a fault has the number that it had in the run before
	}
	return nil
}

// Close implements [device.Graph].
func (g *graph) Close() error {
	if g.exec == 0 {
		return nil
	}
	x := g.exec
	g.exec = 0
	g.q.log.forget(g.kept)
	return g.q.do("cuGraphExecDestroy", func() driver.Result { return g.q.d.api.GraphExecDestroy(x) })
}
