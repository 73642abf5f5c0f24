//go:build purego || (!amd64 && !arm64)

package par

import "runtime"

// pause lets other goroutines run: Go has no cheaper way to wait.
func pause(int) { runtime.Gosched() }
