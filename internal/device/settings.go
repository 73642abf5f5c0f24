package device

import (
	"fmt"
	"os"

	"github.com/warpline-ml/warpline/internal/cpufeat"
)

// Settings are what the environment asks of every device.
type Settings struct {
	Blocking bool  // wait after each launch, so that an error names the launch it belongs to
	Waits    Waits // what to do where the host waits without having been asked to
	Verbose  bool  // tell each operation as it runs
	Pin      bool  // keep the CPU's workers on processors of their own
	Alloc    Conf  // of the caching allocators
}

// Waits is a setting of the environment variable [WaitsEnv].
type Waits string

// The settings of waits.
const (
	AllowWaits Waits = ""
	WarnWaits  Waits = "warn"
	FailWaits  Waits = "error"
)

// The environment variables. PyTorch's CUDA_LAUNCH_BLOCKING=1 works as BlockingEnv=1 does.
const (
	BlockingEnv = "WARPLINE_BLOCKING"
	WaitsEnv    = "WARPLINE_SYNC"
	VerboseEnv  = "WARPLINE_VERBOSE"
	PinEnv      = "WARPLINE_PIN"
)

// FromEnvironment reads the settings, and looks at the level that [cpufeat.Env] names: every engine here computes, plans or
// simulates on the host. [Name.Open] refuses what it refuses.
func FromEnvironment() (s Settings, err error) {
	if err := cpufeat.Check(); err != nil {
		return s, err
	}
	switch v := os.Getenv(BlockingEnv); v {
	case "", "0", "1":
		s.Blocking = v == "1" || os.Getenv("CUDA_LAUNCH_BLOCKING") == "1"
	default:
		return s, fmt.Errorf("%s=%s means nothing: 1 waits after every launch; 0, or leaving it unset, does not", BlockingEnv, v)
	}
	switch v := os.Getenv(VerboseEnv); v {
	case "", "0", "1":
		s.Verbose = v == "1"
	default:
		return s, fmt.Errorf("%s=%s means nothing: 1 prints a line for each operation as it runs; 0, or leaving it unset, does not", VerboseEnv, v)
	}
	if s.Alloc, err = ParseConf(os.Getenv(AllocEnv)); err != nil {
		return s, fmt.Errorf("%s: %w", AllocEnv, err)
	}
	switch v := os.Getenv(PinEnv); v {
	case "", "0", "1":
		s.Pin = v == "1"
	default:
		return s, fmt.Errorf("%s=%s means nothing: 1 keeps each worker of the CPU on a processor of its own; 0, or leaving it unset, does not", PinEnv, v)
	}
	switch s.Waits = Waits(os.Getenv(WaitsEnv)); s.Waits {
	case AllowWaits, WarnWaits, FailWaits:
		return s, nil
	}
	return s, fmt.Errorf("%s=%s means nothing: warn logs where the host waits, error fails there; unset, it may wait", WaitsEnv, s.Waits)
}
