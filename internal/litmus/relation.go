package litmus

import "math/bits"

// set is a set of events.
type set = uint64

// relation relates events: row a is the set of those that a is before.
type relation []set

func newRelation(n int) relation { return make(relation, n) }

func (r relation) has(a, b int) bool { return r[a]>>b&1 != 0 }
func (r relation) add(a, b int)      { r[a] |= 1 << b }

func (r relation) clone() relation { return append(relation(nil), r...) }

// join adds another relation.
func (r relation) join(other relation) {
	for a, row := range other {
		r[a] |= row
	}
}

// then is r followed by next.
func (r relation) then(next relation) relation {
	out := newRelation(len(r))
	for a, row := range r {
		for s := row; s != 0; s &= s - 1 {
			out[a] |= next[bits.TrailingZeros64(s)]
		}
	}
	return out
}

// both is what two relations have in common.
func (r relation) both(other relation) relation {
	out := newRelation(len(r))
	for a, row := range r {
		out[a] = row & other[a]
	}
	return out
}

// close makes r transitive (Warshall).
func (r relation) close() relation {
	for k := range r {
		if r[k] == 0 {
			continue
		}
		for a := range r {
			if r[a]>>k&1 != 0 {
				r[a] |= r[k]
			}
		}
	}
	return r
}

// loop is an event that is before itself, or -1.
func (r relation) loop() int {
	for a, row := range r {
		if row>>a&1 != 0 {
			return a
		}
	}
	return -1
}
