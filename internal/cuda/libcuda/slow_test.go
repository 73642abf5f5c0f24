//go:build purego || race

package libcuda_test

const fast = false
