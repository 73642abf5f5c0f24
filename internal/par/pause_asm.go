//go:build !purego && (amd64 || arm64)

package par

// pause tells the processor n times that the thread waits, so that it leaves
// the core and the memory to others: about 40 ns each. There is no such
// operation in Go. It equals
//
//	for range n {
//	}
//
//go:noescape
func pause(n int)
