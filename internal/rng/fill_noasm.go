//go:build purego || !amd64

package rng

func assembly() bool { return false }

func uniform16(*float32, Key, uint64, int, float64, float64, float32) { panic("rng: no assembly") }

func normal16(*float32, Key, uint64, int, float64, float64) { panic("rng: no assembly") }
