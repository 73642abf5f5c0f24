package train

import (
	"os"

	"github.com/warpline-ml/warpline/tensor"
)

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
