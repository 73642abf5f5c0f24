package train

import (
	"os"
	"slices"

	"github.com/warpline-ml/warpline/tensor"
)

// CheckEnvironment refuses values of WARPLINE_SYNC and WARPLINE_BLOCKING that have no meaning.
func CheckEnvironment() error {
	for _, v := range []struct {
		name, hint string
		known      []string
	}{
		{"WARPLINE_SYNC", "set it to warn or error, or unset it", []string{"warn", "error"}},
		{"WARPLINE_BLOCKING", "set it to 1, or unset it", []string{"0", "1"}},
	} {
		if is := os.Getenv(v.name); is != "" && !slices.Contains(v.known, is) {
			return fail(v.hint, "%s is %q", v.name, is)
		}
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
