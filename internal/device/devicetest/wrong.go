package devicetest

import (
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/ir"
)

// Subtracting is a device that subtracts where it should add, for tests of those who look for such mistakes.
func Subtracting(dev device.Device) device.Device { return subtracting{dev} }

type subtracting struct{ device.Device }

func (s subtracting) Prepare(op ir.Op) (*device.Kernel, error) {
	asked := op
	if op.Code == ir.Add {
		op.Code = ir.Sub
	}
	k, err := s.Device.Prepare(op)
	if err == nil {
		k.Op = asked
	}
	return k, err
}
