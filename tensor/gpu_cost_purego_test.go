//go:build purego

package tensor_test

// callAllocations is what the two calls of the driver allocate in Go: without assembly they go by purego's SyscallN, which
// takes its arguments as a slice on the heap.
const callAllocations = 2
