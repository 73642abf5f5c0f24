//go:build !purego

package cpufeat

import "time"

// chain adds n×64 times in a row, each time to what the addition before gave:
// no processor does more than one a cycle.
//
//go:noescape
func chain(n int)

// Clock measures the cycles a second of one thread. It takes some
// milliseconds.
func Clock() float64 {
	const turns = 100_000
	start := time.Now()
	chain(turns)
	return 64 * turns / time.Since(start).Seconds()
}
