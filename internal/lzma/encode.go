package lzma

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Encode packs a text, as small as it can, which takes seconds for megabytes.
func Encode(text []byte) []byte {
	out := make([]byte, headerLen)
	out[0] = contexts
	binary.LittleEndian.PutUint32(out[1:], uint32(max(len(text), 1<<12)))
	binary.LittleEndian.PutUint64(out[5:], uint64(len(text)))
	e := encoder{model: newModel(contexts), out: out, width: math.MaxUint32, held: 1}
	e.finder = finder{text: text, sides: make([][2]int32, len(text))}
	for e.done < len(text) {
		for _, s := range e.plan() {
			e.write(s)
		}
	}
	for range 5 {
		e.shift()
	}
	return e.out
}

type encoder struct {
	*model
	finder
	tariff
	nodes [window + longest*2 + 2]node // of the bytes from done on
	end   int                          // the last node that a way leads to
	found []found                      // at the node under way
	done  int                          // bytes of the text that are written

	out   []byte
	low   uint64
	width uint32
	last  byte // not written yet, since one may be carried into it
	held  int  // how many bytes that is: the others are 0xFF
}

// step is a literal, or a match.
type step struct {
	n    int    // bytes; a literal is one byte at the distance literal
	back uint32 // the number of a distance used before, or 4 and a distance
}

const literal = math.MaxUint32

// write writes a step and goes behind it.
func (e *encoder) write(s step) {
	was := e.state
	switch {
	case s.back == literal:
		e.bit(&e.match[was], 0)
		e.literal(e.text[e.done])
	case s.back >= 4:
		e.bit(&e.match[was], 1)
		e.bit(&e.rep[was], 0)
		e.length(&e.model.lens, uint32(s.n-shortest))
		e.distance(s.back-4, min(s.n-shortest, lenClasses-1))
	default:
		e.bit(&e.match[was], 1)
		e.bit(&e.rep[was], 1)
		e.repeated(s, was)
	}
	e.pass(way{step: s})
	e.done += s.n
}

func (e *encoder) repeated(s step, was state) {
	e.bit(&e.rep0[was], min(s.back, 1))
	switch s.back {
	case 0:
		e.bit(&e.long[was], uint32(min(s.n-1, 1)))
	case 1:
		e.bit(&e.rep1[was], 0)
	default:
		e.bit(&e.rep1[was], 1)
		e.bit(&e.rep2[was], s.back-2)
	}
	if s.n > 1 {
		e.length(&e.model.repLens, uint32(s.n-shortest))
	}
}

// pass goes behind a way.
func (p *past) pass(w way) {
	switch s := w.step; {
	case s.back == literal:
		p.state = p.state.afterLiteral()
	case s.back >= 4:
		p.add(s.back - 4)
		p.state = p.state.after(7)
	case s.n == 1:
		p.state = p.state.after(9)
	default:
		p.use(int(s.back))
		p.state = p.state.after(8)
	}
	if w.mid {
		p.state = p.state.afterLiteral()
	}
	if w.tail > 0 {
		p.state = p.state.after(8)
	}
}

func (e *encoder) literal(b byte) {
	var before byte
	if e.done > 0 {
		before = e.text[e.done-1]
	}
	ps := &e.literals[int(before)*len(e.literals)>>8]
	same, matched := e.state >= 7, byte(0)
	if same {
		matched = e.text[e.done-1-int(e.reps[0])]
	}
	at := uint32(1)
	for i := 7; i >= 0; i-- {
		bit, offset := uint32(b)>>i&1, uint32(0)
		if same {
			offset = (1 + uint32(matched)>>i&1) << 8
			same = uint32(matched)>>i&1 == bit
		}
		e.bit(&ps[offset+at], bit)
		at = at<<1 | bit
	}
}

func (e *encoder) length(l *lengths, n uint32) {
	e.bit(&l.above8, min(n>>3, 1))
	switch {
	case n < 8:
		e.tree(l.low[:], n)
	case n < 16:
		e.bit(&l.above16, 0)
		e.tree(l.mid[:], n-8)
	default:
		e.bit(&l.above16, 1)
		e.tree(l.high[:], n-16)
	}
}

// slot is the two highest bits of a distance and how many follow.
func slot(distance uint32) uint32 {
	if distance < firstTree {
		return distance
	}
	n := uint32(bits.Len32(distance)) - 2
	return (n+1)<<1 | distance>>n&1
}

func (e *encoder) distance(distance uint32, class int) {
	s := slot(distance)
	e.tree(e.model.slots[class][:], s)
	if s < firstTree {
		return
	}
	n := s>>1 - 1
	base := (2 | s&1) << n
	if s < firstAlign {
		e.reversed(e.trees[base-s:], distance-base, n)
		return
	}
	for i := int(n) - 1; i >= alignBits; i-- {
		e.width >>= 1
		if distance>>i&1 == 1 {
			e.low += uint64(e.width)
		}
		e.settle()
	}
	e.reversed(e.model.align[:], distance&(1<<alignBits-1), alignBits)
}

func (e *encoder) tree(ps []prob, v uint32) {
	n := bits.Len32(uint32(len(ps))) - 1
	at := uint32(1)
	for i := n - 1; i >= 0; i-- {
		bit := v >> i & 1
		e.bit(&ps[at], bit)
		at = at<<1 | bit
	}
}

func (e *encoder) reversed(ps []prob, v, n uint32) {
	at := uint32(1)
	for ; n > 0; n-- {
		e.bit(&ps[at], v&1)
		at, v = at<<1|v&1, v>>1
	}
}

func (e *encoder) bit(p *prob, bit uint32) {
	bound := e.width >> probBits * uint32(*p)
	if bit == 0 {
		e.width = bound
		*p += (1<<probBits - *p) >> rate
	} else {
		e.low += uint64(bound)
		e.width -= bound
		*p -= *p >> rate
	}
	e.settle()
}

func (e *encoder) settle() {
	if e.width < renew {
		e.width <<= 8
		e.shift()
	}
}

// shift writes the highest byte, once it is known what is carried into it.
func (e *encoder) shift() {
	if e.low < 0xFF<<24 || e.low > math.MaxUint32 {
		carry := byte(e.low >> 32)
		for ; e.held > 0; e.held-- {
			e.out = append(e.out, e.last+carry)
			e.last = 0xFF
		}
		e.last = byte(e.low >> 24)
	}
	e.held++
	e.low = e.low & 0x00FFFFFF << 8
}
