//go:build !linux

package gpusim

import "time"

var begin = time.Now()

// threadTime is the time since the start: the system does not tell more.
func threadTime() time.Duration { return time.Since(begin) }
