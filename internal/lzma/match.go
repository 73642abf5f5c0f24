package lzma

// finder finds where the bytes from a place on were before, by binary trees of the places with the same first three bytes, the
// latest on top, ordered by what stands there.
type finder struct {
	text  []byte
	heads [1 << hashBits]int32 // roots of the trees, less one
	sides [][2]int32           // of each place, those of lesser and of greater text, less one
	at    int                  // the next place
}

const (
	hashBits = 18
	tries    = 96  // places that are compared
	enough   = 128 // bytes of a match that no longer one is looked for
)

// found is a match and how far back it lies, less one.
type found struct {
	n        int
	distance uint32
}

// next are the matches at the next place, ever longer and further away.
func (f *finder) next(into []found) []found {
	at := f.at
	f.at++
	limit := min(len(f.text)-at, longest)
	if limit < 3 {
		return into
	}
	text := f.text
	hash := (uint32(text[at]) | uint32(text[at+1])<<8 | uint32(text[at+2])<<16) * 0x9E3779B1 >> (32 - hashBits)
	place := f.heads[hash] - 1
	f.heads[hash] = int32(at) + 1
	lesser, greater := &f.sides[at][0], &f.sides[at][1]
	sameLess, sameGreat, most := 0, 0, shortest
	for range tries {
		if place < 0 {
			break
		}
		n := min(sameLess, sameGreat)
		for n < limit && text[int(place)+n] == text[at+n] {
			n++
		}
		if n > most {
			most = n
			into = append(into, found{n, uint32(at-int(place)) - 1})
		}
		sides := &f.sides[place]
		switch {
		case n == limit: // the same to the end: the place that was there is needed no more
			*lesser, *greater = sides[0], sides[1]
			return into
		case text[int(place)+n] < text[at+n]:
			*lesser, lesser, sameLess = place+1, &sides[1], n
			place = sides[1] - 1
		default:
			*greater, greater, sameGreat = place+1, &sides[0], n
			place = sides[0] - 1
		}
	}
	*lesser, *greater = 0, 0
	return into
}
