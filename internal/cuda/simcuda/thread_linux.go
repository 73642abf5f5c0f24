package simcuda

import "syscall"

// thread identifies the calling thread.
func thread() uint64 { return uint64(syscall.Gettid()) }
