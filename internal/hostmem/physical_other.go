//go:build !linux && !darwin

package hostmem

func physical() int64 { return 0 }
