package gpusim

import (
	"syscall"
	"time"
)

// threadTime is the processor time that the thread has used, which other programs on the machine disturb less.
func threadTime() time.Duration {
	const thread = 1
	var u syscall.Rusage
	if err := syscall.Getrusage(thread, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
