//go:build !linux

package simcuda

import "github.com/warpline-ml/warpline/internal/callsite"

// thread identifies the caller by its goroutine. A goroutine inside of driver.Do keeps its thread, so that this serves as
// well; what goes unnoticed is a goroutine that binds a context without being locked to its thread.
func thread() uint64 { return callsite.Goroutine() }
