// Package slab allocates many small values that live and die together, such as the nodes of a syntax tree.
package slab

// A Slab gives out values of one type from pieces of memory that hold many. Go's collector finds, marks and sweeps a piece
// once, where it would visit each value on its own; in return a piece lives as long as any value in it. The zero value is ready.
type Slab[T any] struct {
	free []T
	size int // of the last piece, in values
}

// Pieces grow, so that a few values take little.
const (
	first = 8
	last  = 256
)

// New is a value that is zero.
func (s *Slab[T]) New() *T { return &s.take(1)[0] }

// Clone is a copy of a list, which appending to it leaves for another; nil for an empty one.
func (s *Slab[T]) Clone(list []T) []T {
	if len(list) == 0 {
		return nil
	}
	c := s.take(len(list))
	copy(c, list)
	return c
}

// take is the next n values, and no more.
func (s *Slab[T]) take(n int) []T {
	if n > len(s.free) {
		s.size = min(max(first, 2*s.size), last)
		s.free = make([]T, max(n, s.size))
	}
	c := s.free[:n:n]
	s.free = s.free[n:]
	return c
}
