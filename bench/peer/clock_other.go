//go:build !linux

package peer

import "time"

// began is when this process did.
var began = time.Now()

// ProcessorTime is the time that has passed: no other is asked for here.
func ProcessorTime() time.Duration { return time.Since(began) }
