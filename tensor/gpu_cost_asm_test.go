//go:build !purego

package tensor_test

// callAllocations is what a call of the driver allocates in Go.
const callAllocations = 0
