//go:build !purego

package rng

import "github.com/warpline-ml/warpline/internal/cpufeat"

func assembly() bool { return cpufeat.Active() >= cpufeat.AVX2 }

func uniform16(dst *float32, key Key, index uint64, turns int, lo, width float64, last float32) {
	uniformAVX2(dst, key, index, turns, lo, width, last)
}

func normal16(dst *float32, key Key, index uint64, turns int, mean, std float64) {
	normalAVX2(dst, key, index, turns, mean, std)
}
