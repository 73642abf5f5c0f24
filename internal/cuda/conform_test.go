package cuda_test

import (
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/device/devicetest"
	"github.com/warpline-ml/warpline/internal/gpusim"
)

// opener opens device 0 of a simulated machine.
func opener(t *testing.T, c simcuda.Config) func() device.Device {
	t.Helper()
	s, err := simcuda.New(c)
	if err != nil {
		t.Fatal(err)
	}
	api := s.API()
	return func() device.Device {
		d, err := cuda.New(api, 0, "sim:0", cuda.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

// TestConformance runs the suite under all checks. A finding fails the launch.
func TestConformance(t *testing.T) {
	devicetest.RunSlow(t, opener(t, simcuda.Config{Checks: gpusim.AllChecks}))
}
