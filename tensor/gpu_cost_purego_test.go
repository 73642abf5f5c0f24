//go:build purego

package tensor_test

// callAllocations is what a call of the driver allocates in Go: without assembly it goes by purego's SyscallN, which takes its
// arguments as a slice on the heap.
const callAllocations = 1
