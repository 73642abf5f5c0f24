package callsite

import "sync/atomic"

// A program has some hundred places that operations are called from, each a million times: what they share is kept once. The
// table is bounded, as places far up a deep recursion differ without end; by its hash a site belongs to one of sets sets.
const (
	sets = 1 << 10
	ways = 4
)

// table is read without a lock. What several goroutines write at once may push out a site too many, or be there twice.
var table [sets][ways]atomic.Pointer[Site]

// At is the chain of calls that leads to its caller, as Capture records it. It is shared with other calls from there and must
// not be written.
//
//go:noinline
func At(skip int) *Site {
	var s Site
	Capture(1+skip, &s)
	set := &table[s.hash()%sets]
	for i := range set {
		if p := set[i].Load(); p != nil && *p == s {
			return p
		}
	}
	return s.enter(set)
}

func (s *Site) hash() uint64 {
	const a, b, c, d = 0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9, 0xd6e8feb86659fd93
	h := uint64(s[0])*a ^ uint64(s[1])*b ^ uint64(s[2])*c ^ uint64(s[3])*d
	h ^= (uint64(s[4])*a ^ uint64(s[5])*b ^ uint64(s[6])*c ^ uint64(s[7])*d) >> 7
	return h >> 40
}

// enter puts a copy of s in front of a set.
func (s *Site) enter(set *[ways]atomic.Pointer[Site]) *Site {
	own := *s
	for i := ways - 1; i > 0; i-- {
		set[i].Store(set[i-1].Load())
	}
	set[0].Store(&own)
	return &own
}
