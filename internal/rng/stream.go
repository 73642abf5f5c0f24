package rng

import "math/bits"

// Stream draws one number after another, for procedural work that does not know
// beforehand how many it needs. It is a plain value: a copy repeats the draws, and
// Key with Counter is its whole state. It implements math/rand/v2's Source. Not
// safe for concurrent use: give each goroutine a key of its own.
type Stream struct {
	Key     Key
	Counter uint64
}

// next returns the next block.
func (s *Stream) next() (r0, r1, r2, r3 uint32) {
	s.Counter++
	return s.Key.block(s.Counter-1, forStreams)
}

// Uint64 returns 64 random bits.
func (s *Stream) Uint64() uint64 {
	r0, r1, _, _ := s.next()
	return join(r0, r1)
}

// Float64 returns a number uniform in [0, 1), of 53 bits.
func (s *Stream) Float64() float64 {
	r0, r1, _, _ := s.next()
	return unit53(r0, r1)
}

// Norm returns a number of the standard normal distribution.
func (s *Stream) Norm() float64 {
	z, _ := normals(s.next())
	return z
}

// IntN returns an integer uniform in [0, n), and 0 if n < 1. A value's probability
// is off by less than 2⁻⁶⁴.
func (s *Stream) IntN(n int) int { return int(scale(s.Uint64(), uint64(max(n, 0)))) }

// scale maps 64 random bits to [0, n), and to 0 if n is 0.
func scale(x, n uint64) uint64 {
	high, _ := bits.Mul64(x, n)
	return high
}

// Perm returns a uniform permutation of 0, …, n-1, a function of n and key alone
// (Fisher-Yates over the key's stream).
func Perm(n int, key Key) []int {
	p := make([]int, max(n, 0))
	s := Stream{Key: key}
	for i := range p {
		j := s.IntN(i + 1)
		p[i] = p[j]
		p[j] = i
	}
	return p
}
