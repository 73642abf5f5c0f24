// Package lzma compresses texts that a release has in it: by LZMA, in the format of .lzma files, of which other programs (xz, 7-Zip)
// read what this one writes. It takes whole texts in memory, and of the format's parameters the one that texts want: no literal and
// no match is foretold by where it stands (lp and pb are 0).
//
// What is written follows the specification in Igor Pavlov's LZMA SDK, which is in the public domain.
package lzma

const (
	headerLen  = 13      // properties, size of the dictionary, size of the text
	contexts   = 4       // lc: high bits of the byte before a literal by which it is foretold
	half       = 1 << 10 // the probability of a bit of which nothing is known, of 1 << probBits
	probBits   = 11
	rate       = 5       // how fast probabilities follow what was seen
	renew      = 1 << 24 // a range below this takes the next byte
	shortest   = 2       // bytes of a match
	longest    = shortest + 8 + 8 + 256 - 1
	lenClasses = 4  // of the length of a match, by which its distance is foretold
	firstTree  = 4  // slots of distances below it are distances
	firstAlign = 14 // slots from it on have bits that nothing foretells, and four below these
	alignBits  = 4
)

// state is what the last few steps were: 0 to 6 after a literal, 7 to 11 after a match.
type state uint8

func (s state) afterLiteral() state {
	switch {
	case s < 4:
		return 0
	case s < 10:
		return s - 3
	}
	return s - 6
}

// after is the state behind a match; of is that of one after literals: 7 of a match, 8 of one at a distance used before, 9 of one byte of it.
func (s state) after(of state) state {
	if s < 7 {
		return of
	}
	return max(10, min(of+3, 11))
}

type prob = uint16

// model is all that is known of what comes next.
type model struct {
	match, rep, rep0, rep1, rep2, long [12]prob // by state: is it a match, at a distance used before, which of the four, of more than a byte
	lens, repLens                      lengths
	slots                              [lenClasses][64]prob
	trees                              [1 + 128 - firstAlign]prob
	align                              [1 << alignBits]prob
	literals                           [][0x300]prob // by the high bits of the byte before
	past
}

// past is what a model knows of what came before.
type past struct {
	reps  [4]uint32 // distances used last, less one
	state state
}

// lengths foretells lengths of matches.
type lengths struct {
	above8, above16 prob
	low, mid        [8]prob
	high            [256]prob
}

func newModel(lc int) *model {
	m := &model{literals: make([][0x300]prob, 1<<lc)}
	for _, ps := range [][]prob{m.match[:], m.rep[:], m.rep0[:], m.rep1[:], m.rep2[:], m.long[:], m.trees[:], m.align[:]} {
		fill(ps)
	}
	for i := range m.slots {
		fill(m.slots[i][:])
	}
	for i := range m.literals {
		fill(m.literals[i][:])
	}
	for _, l := range []*lengths{&m.lens, &m.repLens} {
		l.above8, l.above16 = half, half
		fill(l.low[:])
		fill(l.mid[:])
		fill(l.high[:])
	}
	return m
}

func fill(ps []prob) {
	for i := range ps {
		ps[i] = half
	}
}

// use makes distance number i of those used last the last one.
func (p *past) use(i int) {
	d := p.reps[i]
	copy(p.reps[1:i+1], p.reps[:i])
	p.reps[0] = d
}

// add is a distance that is none of those used last.
func (p *past) add(distance uint32) {
	copy(p.reps[1:], p.reps[:3])
	p.reps[0] = distance
}
