//go:build !linux && !darwin && !windows

package cpufeat

func system() (model string, cores int) { return "", 0 }
