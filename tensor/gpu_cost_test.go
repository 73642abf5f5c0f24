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
	path, counts := shimtest.NoOp(t)
	t.Setenv(libcuda.PathEnv, path)
	var err error
	if idle, _, err = libcuda.Open(); err != nil {
		t.Fatal(err)
	}
	idleCards++
	root, err := tensor.Fresh(fmt.Sprintf("idle:%d", idleCards))
	if err != nil {
		t.Fatal(err)
	}
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
	before := counts()
	turn()
	calls := counts()
	for name, n := range before {
		if calls[name] -= n; calls[name] == 0 {
			delete(calls, name)
		}
	}
	if want := map[string]int{"cuLaunchKernelEx": ops, "cuCtxSetCurrent": ops}; !maps.Equal(calls, want) {
		t.Errorf("%d operations made the calls %v", ops, calls)
	}
	e, scope := root.Scope(1)
	defer scope.End()
	y := x.In(e)
	if n := testing.AllocsPerRun(ops, func() { y.Add(y) }); n != 1+callAllocations {
		t.Errorf("%v allocations in an operation; a handle is one, its calls of the driver %d", n, callAllocations)
	}
}
