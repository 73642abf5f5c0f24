package machine

import (
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/tensor"
)

// shown is the kind of cards that are here during a test; at other times there are none of them.
var shown string

// held are machines with two simulated cards, by the kind they go by, and how many of their cards, from the first on,
// another process holds.
var held = map[string]int{"cuda-one-held": 1, "cuda-both-held": 2}

func init() {
	for kind, n := range held {
		device.Register(kind, device.Engine{Rank: 9, Count: func() int {
			if kind == shown {
				return 2
			}
			return 0
		}, Open: func(name device.Name) (device.Device, error) { return openHeld(name, n) }})
	}
}

// openHeld opens a card of a machine, of whose driver the first n contexts cannot be had.
func openHeld(name device.Name, n int) (device.Device, error) {
	s, err := simcuda.New(simcuda.Config{Devices: 2})
	if err != nil {
		return nil, err
	}
	api := s.API()
	retain := api.DevicePrimaryCtxRetain
	api.DevicePrimaryCtxRetain = func(d driver.Device) (driver.Context, driver.Result) {
		if int(d) < n {
			return 0, driver.DeviceUnavailable
		}
		return retain(d)
	}
	return cuda.New(api, name.Index, name.String(), cuda.Options{})
}

// TestSecondCard: a card that cannot be opened is told and passed over for the next one, and not for the CPU.
func TestSecondCard(t *testing.T) {
	for kind, want := range map[string]string{"cuda-one-held": "cuda-one-held:1", "cuda-both-held": "cpu"} {
		t.Run(kind, func(t *testing.T) {
			shown = kind
			defer func() { shown = "" }()
			name, passed := Best()
			if want == "cpu" && !strings.HasPrefix(name, kind) {
				want = name // a machine may have a card of its own
			}
			if name != want {
				t.Errorf("the best device is %s, want %s", name, want)
			}
			if passed == nil || !strings.HasPrefix(passed.Error(), "passed over: device "+kind+":0: ") || !strings.Contains(passed.Error(), "CUDA_ERROR_DEVICE_UNAVAILABLE") || !strings.Contains(passed.Error(), "exclusive") {
				t.Errorf("passed over: %v", passed)
			}
			if best := tensor.Best().Device().Name(); best != want {
				t.Errorf("tensor.Best is on %s, want %s", best, want)
			}
		})
	}
}
