//go:build !purego && !race

package libcuda_test

// fast tells that calls do not allocate: with the tag purego they go through purego.SyscallN, and the race detector makes
// pools forget.
const fast = true
