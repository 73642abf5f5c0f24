package tensor_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/libcuda"
	"github.com/warpline-ml/warpline/internal/cuda/shimtest"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// idle is a driver that does nothing, of which each run of the test opens another card.
var (
	idle      *driver.API
	idleCards int
)

func init() {
	device.Register("idle", device.Engine{Open: func(n device.Name) (device.Device, error) {
		return cuda.New(idle, 0, n.String(), cuda.Options{})
	}})
}

// TestEagerGPUCost counts what an operation asks of the driver, through its C interface: a launch and the change of
// context before it, no event, query or allocation of memory. Its handle is all that it allocates in Go.
func TestEagerGPUCost(t *testing.T) {
	root, counts := idleCard(t)
	const ops = 1000
	x := root.Ones(4)
	turn := func() {
		e, scope := root.Scope(0)
		defer scope.End()
		y := x.In(e)
		for range ops {
			y.Add(y)
		}
	}
	turn() // the kernel is compiled, the memory is cached
	calls := called(counts, turn)
	if want := map[string]int{"cuLaunchKernelEx": ops, "cuCtxSetCurrent": ops}; !maps.Equal(calls, want) {
		t.Errorf("%d operations made the calls %v", ops, calls)
	}
	e, scope := root.Scope(1)
	defer scope.End()
	y := x.In(e)
	if n := testing.AllocsPerRun(ops, func() { y.Add(y) }); n != 1+2*callAllocations {
		t.Errorf("%v allocations in an operation; a handle is one, its two calls of the driver %d", n, 2*callAllocations)
	}
}

// idleCard is the root env of a card whose driver does nothing, with the counts of its calls.
func idleCard(t testing.TB) (root *tensor.Env, counts func() map[string]int) {
	t.Helper()
	path, counts := shimtest.NoOp(t)
	t.Setenv(libcuda.PathEnv, path)
	var err error
	if idle, _, err = libcuda.Open(); err != nil {
		t.Fatal(err)
	}
	idleCards++
	return fresh(t, fmt.Sprintf("idle:%d", idleCards)), counts
}

// called is what f asks of a driver.
func called(counts func() map[string]int, f func()) map[string]int {
	before := counts()
	f()
	calls := counts()
	for name, n := range before {
		if calls[name] -= n; calls[name] == 0 {
			delete(calls, name)
		}
	}
	return calls
}

// TestCapturedGPUCost counts what a run of a captured step asks of the driver: a copy for each tensor of the batch, one for
// the random keys, and one launch. It allocates nothing in Go.
func TestCapturedGPUCost(t *testing.T) {
	root, counts := idleCard(t)
	step, _, b, _ := deepStep(root, 10)
	calls := called(counts, func() { step.Run(b) })
	all := 0
	for _, n := range calls {
		all += n
	}
	want := map[string]int{"cuMemcpyDtoDAsync_v2": 2, "cuMemcpyHtoDAsync_v2": 1, "cuGraphLaunch": 1, "cuCtxSetCurrent": 4}
	for name, n := range calls { // an event now and then tells when staging memory is free again
		if want[name] != n && name != "cuEventRecord" && name != "cuCtxSetCurrent" && name != "cuEventQuery" {
			t.Errorf("%d calls of %s, want %d", n, name, want[name])
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("no calls: %v", want)
	}
	if n := testing.AllocsPerRun(1000, func() { step.Run(b) }); n >= float64(1+all*callAllocations) {
		t.Errorf("%v allocations in a run, its %d calls of the driver %d", n, all, all*callAllocations)
	}
}

// deepBatch is what a deepStep learns from.
type deepBatch struct{ X, Y *tensor.Tensor }

// deepStep is a captured step of training of some layers with dropout, ready for replays, and the step itself, with a batch and
// the number of launches.
func deepStep(root *tensor.Env, layers int) (step *tensor.Captured[*deepBatch], f func(b *deepBatch) *tensor.Tensor, b *deepBatch, launches int) {
	m := nn.Sequential{}
	for range layers {
		m = append(m, nn.NewLinear(root, 8, 8), nn.ReLU{}, nn.Dropout{P: 0.1})
	}
	opt := optim.NewAdamW(nn.Params(m), optim.AdamWConfig{Clip: 1})
	f = func(b *deepBatch) *tensor.Tensor {
		loss := nn.MSE(m.Forward(b.X), b.Y)
		loss.Backward()
		opt.Step()
		return loss
	}
	step = tensor.Capture(root, f)
	b = &deepBatch{root.Ones(4, 8), root.Ones(4, 8)}
	for range 4 { // the first of which as such makes its memory
		step.Run(b)
	}
	defer root.Device().Observe(func(*device.Event) { launches++ }, device.KindLaunch, device.KindFill)()
	step.Run(b)
	return step, f, b, launches
}
