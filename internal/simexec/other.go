//go:build !linux

package simexec

import (
	"context"
	"runtime"

	"github.com/warpline-ml/warpline/internal/advice"
)

// Run refuses: programs of other systems find their driver in other ways.
func Run(context.Context, Config) (*Result, error) {
	return nil, advice.Failf("run it on Linux, or the kernel alone by warpline sim run", "programs are run on simulated GPUs on Linux only, and this is %s", runtime.GOOS)
}
