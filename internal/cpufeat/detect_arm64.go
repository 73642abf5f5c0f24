//go:build !purego

package cpufeat

// detect asks nothing: every 64-bit ARM processor that Go runs on has vectors.
func detect() []Level { return []Level{Generic, NEON} }
