// Package engines registers every engine of this build by name. It is the only package that imports them all.
package engines

import (
	"github.com/warpline-ml/warpline/internal/cpu"
	"github.com/warpline-ml/warpline/internal/cuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/null"
)

func init() {
	device.Register("cpu", device.Engine{Rank: 1, Open: func(device.Name) (device.Device, error) { return cpu.New(), nil }})
	null.Register(cuda.Plan)
}
