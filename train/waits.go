package train

import (
	"os"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/tensor"
)

// CheckEnvironment refuses values of WARPLINE_SYNC and WARPLINE_BLOCKING that have no meaning.
func CheckEnvironment() error {
	if _, err := device.FromEnvironment(); err != nil {
		return fail("unset it, or give it a value that it has", "%v", err)
	}
	return nil
}

// allowWaits lets the host wait for a device, whatever WARPLINE_SYNC says, until restore is called. The variable is for
// the steps of a training; scores, checkpoints and samples are asked for and have to be read. Who calls Device.OnWait has
// the say, so nothing is done without the variable.
func allowWaits(d *tensor.Device) (restore func()) {
	policy, set := map[string]tensor.Waits{"warn": tensor.WarnWaits, "error": tensor.FailWaits}[os.Getenv("WARPLINE_SYNC")]
	if !set {
		return func() {}
	}
	d.OnWait(tensor.AllowWaits)
	return func() { d.OnWait(policy) }
}
