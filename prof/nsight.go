package prof

import (
	"maps"
	"slices"
	"sync"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/nvtx"
	"github.com/warpline-ml/warpline/tensor"
)

// Nsight shows a program's ranges to the tool that watches it: NVIDIA's Nsight Systems, which puts them beside the kernels that
// it sees by itself, or another that takes the ranges of NVTX.
//
//	n, err := prof.NewNsight()
//	env = env.Profiled(n)
//
// Modules, ranges of [Range] and walks back over recorded operations are ranges there, operations are marks. Ranges are those that
// begin and end by number, not those that are pushed and popped: goroutines change threads. Where no tool watches, nothing is
// observed, and the program runs as it does without.
type Nsight struct {
	tool *nvtx.Tool // nil for none

	mu      sync.Mutex
	devices map[*tensor.Device]func() // which end their observers
	open    map[uint64]nvtx.ID        // by the range's number
	walks   map[*tensor.Device][]nvtx.ID
}

// NewNsight finds the tool by the environment variable NVTX_INJECTION64_PATH, in which it names its library to the programs that
// it starts. The error says why one that is named cannot be shown anything.
func NewNsight() (*Nsight, error) {
	tool, err := nvtx.Attached()
	if err != nil {
		return nil, err
	}
	return &Nsight{tool: tool, devices: map[*tensor.Device]func(){}, open: map[uint64]nvtx.ID{}, walks: map[*tensor.Device][]nvtx.ID{}}, nil
}

// Attached tells whether a tool watches.
func (n *Nsight) Attached() bool { return n.tool != nil }

// Profile implements [tensor.Profiler]: from now on d's ranges and operations are shown. A device is taken once.
func (n *Nsight) Profile(d *tensor.Device) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.tool == nil || n.devices[d] != nil {
		return
	}
	n.devices[d] = d.Observe(func(e *device.Event) { n.show(d, e) }, device.KindRange, device.KindBackward, device.KindLaunch)
}

// Stop ends the showing, and the ranges that are open.
func (n *Nsight) Stop() {
	n.mu.Lock()
	stops := slices.Collect(maps.Values(n.devices))
	n.mu.Unlock()
	for _, stop := range stops { // which waits for show
		stop()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, id := range slices.Concat(append(slices.Collect(maps.Values(n.walks)), slices.Collect(maps.Values(n.open)))...) {
		n.tool.End(id)
	}
	clear(n.devices)
	clear(n.walks)
	clear(n.open)
}

func (n *Nsight) show(d *tensor.Device, e *device.Event) {
	if e.Kind == device.KindLaunch {
		if e.Step == 0 {
			n.tool.Mark(e.Kernel.What())
		}
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case e.Kind == device.KindRange && !e.End:
		n.open[e.Range.Number] = n.tool.Start(e.Range.Name)
	case e.Kind == device.KindRange:
		n.tool.End(n.open[e.Range.Number])
		delete(n.open, e.Range.Number)
	case !e.End:
		n.walks[d] = append(n.walks[d], n.tool.Start("backward"))
	case len(n.walks[d]) > 0:
		last := len(n.walks[d]) - 1
		n.tool.End(n.walks[d][last])
		n.walks[d] = n.walks[d][:last]
	}
}
