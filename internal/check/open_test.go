package check

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cpu"
	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/device"
)

// lostSearch is the error of a search for a driver.
type lostSearch struct{ error }

func (l lostSearch) Unwrap() error { return l.error }

func (lostSearch) Searched() []string { return []string{"/a", "/b"} }

// refusing are the errors that devices of the kind refuse to open with, by index.
var refusing = []error{
	&driver.Error{Call: "cuDevicePrimaryCtxRetain", Result: driver.DeviceUnavailable},
	&driver.Error{Call: "cuDevicePrimaryCtxRetain", Result: driver.Unknown},
	lostSearch{advice.Failf("install it", "no driver")},
	advice.Failf("take another card", "too old"),
}

func init() {
	device.Register("refusing", device.Engine{Open: func(n device.Name) (device.Device, error) { return nil, refusing[n.Index] }})
	device.Register("second", device.Engine{Rank: 1, Count: func() int { return 2 }, Open: func(n device.Name) (device.Device, error) {
		if n.Index > 0 {
			return nil, refusing[0]
		}
		return cpu.New(), nil
	}})
}

// TestRefused: an error of opening a device comes with what to do.
func TestRefused(t *testing.T) {
	for i, words := range [][2]string{
		{"CUDA_ERROR_DEVICE_UNAVAILABLE (46)", "nvidia-smi -c 0"}, {"CUDA_ERROR_UNKNOWN (999)", "Prohibited"}, {"no driver: /a, /b", "install it"},
		{"too old", "take another card"},
	} {
		for _, f := range []func(string) error{Comparable, Recordable, func(name string) error { _, err := Run(t.Context(), Config{Device: name}); return err }} {
			var e *advice.Error
			if err := f(fmt.Sprint("refusing:", i)); !errors.As(err, &e) || !strings.Contains(e.Text, words[0]) || !strings.Contains(e.Hint, words[1]) {
				t.Errorf("%d: %v, %+v", i, err, e)
			}
		}
	}
}

// TestSecondRefused: a second card that is there and does not open is no silence.
func TestSecondRefused(t *testing.T) {
	n, dev, err := open("second:0")
	if err != nil {
		t.Fatal(err)
	}
	var rep Report
	for _, p := range together(n, dev) {
		rep.add(t.Context(), &p, 0)
	}
	if len(rep.Rows) != 1 || rep.Cases != 0 || rep.Failed != 0 || !strings.Contains(rep.Rows[0].Skipped, "CUDA_ERROR_DEVICE_UNAVAILABLE") {
		t.Errorf("%+v", rep.Rows)
	}
	if text := rep.Text(200); !strings.Contains(text, "NOT RUN devices copies with second:1: device second:1: cuDevicePrimaryCtxRetain") {
		t.Error(text)
	}
}
