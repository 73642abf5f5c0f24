//go:build !linux

package simcuda

import (
	"bytes"
	"runtime"
	"strconv"
)

// thread identifies the caller by its goroutine. A goroutine inside of driver.Do keeps its thread, so that this serves as
// well; what goes unnoticed is a goroutine that binds a context without being locked to its thread.
func thread() uint64 {
	var b [64]byte
	s := bytes.TrimPrefix(b[:runtime.Stack(b[:], false)], []byte("goroutine "))
	n, _ := strconv.ParseUint(string(s[:max(0, bytes.IndexByte(s, ' '))]), 10, 64)
	return n
}
