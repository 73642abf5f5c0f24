package cuda_test

import (
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/libcuda"
	"github.com/warpline-ml/warpline/internal/cuda/shimtest"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/device/devicetest"
	"github.com/warpline-ml/warpline/internal/gpusim"
)

// opened is the table of a library at a path.
func opened(t testing.TB, path string) *driver.API {
	t.Helper()
	t.Setenv(libcuda.PathEnv, path)
	api, _, err := libcuda.Open()
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// TestConformanceThroughLibrary runs the suite through a C library that forwards every call to the simulated GPU: the
// way to a card, with dlopen, symbols, structs and callbacks.
func TestConformanceThroughLibrary(t *testing.T) {
	s, err := simcuda.New(simcuda.Config{Checks: gpusim.AllChecks})
	if err != nil {
		t.Fatal(err)
	}
	api := opened(t, shimtest.Install(t, s.API()))
	api.Unbind = true // so that a call outside of Do is an error, as it is with the simulated GPU itself
	devicetest.RunShort(t, func() device.Device {
		d, err := cuda.New(api, 0, "cuda:0", cuda.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}

// TestLaunchCostThroughLibrary counts the calls that reach the library, and what they allocate on the way.
func TestLaunchCostThroughLibrary(t *testing.T) {
	path, counts := shimtest.NoOp(t)
	l := newLauncher(t, opened(t, path))
	before := counts()
	if n := testing.AllocsPerRun(100, func() {
		if err := l.launch(); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations in a launch", n)
	}
	const runs = 101 // AllocsPerRun warms up with one
	for name, n := range counts() {
		n -= before[name]
		if want := map[string]int{"cuLaunchKernelEx": runs, "cuCtxSetCurrent": runs}[name]; n != want {
			t.Errorf("%d launches called %s %d times, want %d", runs, name, n, want)
		}
	}
}

// BenchmarkLaunchThroughLibrary is the host's cost of an eager launch beside the driver's own work.
func BenchmarkLaunchThroughLibrary(b *testing.B) {
	path, _ := shimtest.NoOp(b)
	l := newLauncher(b, opened(b, path))
	b.ReportAllocs()
	for b.Loop() {
		if err := l.launch(); err != nil {
			b.Fatal(err)
		}
	}
}
