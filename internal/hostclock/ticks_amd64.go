//go:build linux && !purego

package hostclock

import (
	"os"
	"strings"
	"sync"
)

// ticks is the processor's counter.
func ticks() uint64

// trusted tells whether the kernel takes its time from the counter: it does where the counter has one rate and is the same on all
// processors.
var trusted = sync.OnceValue(func() bool {
	name, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	return err == nil && strings.TrimSpace(string(name)) == "tsc"
})
