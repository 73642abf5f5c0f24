//go:build !purego

package tensor_test

// callAllocations is what the two calls of the driver allocate in Go.
const callAllocations = 0
