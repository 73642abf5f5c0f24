//go:build !linux

package main

import "time"

// processorTime is the time that has passed: no other is asked for here.
func processorTime() time.Duration { return time.Since(began) }
