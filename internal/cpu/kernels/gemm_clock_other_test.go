//go:build !linux

package kernels

import "time"

var start = time.Now()

// threadTime is the time since the start: the system does not tell more.
func threadTime() time.Duration { return time.Since(start) }
