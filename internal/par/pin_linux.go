package par

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// processors are those that the process may use.
func processors() (list []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("par: which processors the process may use: %w", err)
	}
	for i := range 8 * len(set) * 8 {
		if set.IsSet(i) {
			list = append(list, i)
		}
	}
	return list, nil
}

// stay ties the calling goroutine to a thread of its own, which ends with it, and that to a processor. One that has been
// taken from the process meanwhile is not insisted on: any other will do.
func stay(processor int) {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(processor)
	_ = unix.SchedSetaffinity(0, &set)
}
