// Package engines registers every engine of this build by name. It is the only package that imports them all.
package engines

import (
	"github.com/warpline-ml/warpline/internal/cpu"
	"github.com/warpline-ml/warpline/internal/cuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/null"
	"github.com/warpline-ml/warpline/internal/par"
)

func init() {
	device.Register("cpu", device.Engine{Rank: 1, Open: openCPU})
	null.Register(cuda.Plan)
}

// Imitate is a device that has what d has, but for its memory, and computes nothing.
func Imitate(d device.Device) device.Device { return null.Like(d) }

func openCPU(device.Name) (device.Device, error) {
	s, err := device.FromEnvironment()
	if err == nil && s.Pin {
		err = par.Pin(true)
	}
	if err != nil {
		return nil, err
	}
	return cpu.New(), nil
}
