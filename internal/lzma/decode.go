package lzma

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// errDamaged is of a text that no encoder makes.
var errDamaged = errors.New("lzma: the packed text is damaged")

// Decode is the text that was packed. It is an error if packed is no .lzma file of lp and pb 0 that has its text's size, or is damaged.
func Decode(packed []byte) ([]byte, error) {
	if len(packed) < headerLen+5 {
		return nil, fmt.Errorf("lzma: %d bytes are too few", len(packed))
	}
	size := binary.LittleEndian.Uint64(packed[5:])
	switch {
	case packed[0] > 8:
		return nil, fmt.Errorf("lzma: properties %d are not of lp=0,pb=0", packed[0])
	case size > math.MaxInt32:
		return nil, fmt.Errorf("lzma: texts of %d bytes are not read", size)
	}
	d := decoder{model: newModel(int(packed[0])), in: packed[headerLen+5:], width: math.MaxUint32, code: binary.BigEndian.Uint32(packed[headerLen+1:])}
	// No bit takes less than log2(2048/2017) of one, so no byte packs more than what follows from that and the longest match.
	d.out = make([]byte, 0, min(int(size), longest*60*len(packed)))
	for len(d.out) < int(size) {
		if !d.step(int(size)) || d.past > 4 {
			return nil, errDamaged
		}
	}
	return d.out, nil
}

type decoder struct {
	*model
	in, out     []byte
	width, code uint32
	past        int // bytes that were asked for behind the last
}

// step decodes a literal or a match. It reports whether that can be of a text of a size.
func (d *decoder) step(size int) bool {
	s := d.state
	if d.bit(&d.match[s]) == 0 {
		d.literal()
		return true
	}
	n := 0
	if d.bit(&d.rep[s]) == 0 {
		n = d.length(&d.lens)
		d.add(d.distance(min(n, lenClasses-1)))
		d.state = s.after(7)
	} else {
		n = d.repeated(s)
	}
	from, n := len(d.out)-1-int(d.reps[0]), n+shortest
	if from < 0 || n > size-len(d.out) {
		return false
	}
	for n > 0 { // of what it repeats itself a part is there at first
		part := d.out[from:min(from+n, len(d.out))]
		d.out = append(d.out, part...)
		from, n = from+len(part), n-len(part)
	}
	return true
}

// repeated decodes what is as far back as a match before, and is how much longer than the shortest match it is.
func (d *decoder) repeated(s state) int {
	switch {
	case d.bit(&d.rep0[s]) == 0:
		if d.bit(&d.long[s]) == 0 {
			d.state = s.after(9)
			return 1 - shortest
		}
	case d.bit(&d.rep1[s]) == 0:
		d.use(1)
	case d.bit(&d.rep2[s]) == 0:
		d.use(2)
	default:
		d.use(3)
	}
	d.state = s.after(8)
	return d.length(&d.repLens)
}

// literal decodes one byte. After a match it is foretold by the byte where the match would go on, as long as it is the same.
func (d *decoder) literal() {
	var before, matched byte
	if n := len(d.out); n > 0 {
		before = d.out[n-1]
	}
	ps := &d.literals[int(before)*len(d.literals)>>8]
	b := uint32(1)
	if d.state >= 7 {
		matched = d.out[len(d.out)-1-int(d.reps[0])]
		for same := true; same && b < 0x100; matched <<= 1 {
			bit := uint32(matched >> 7)
			b = b<<1 | d.bit(&ps[(1+bit)<<8+b])
			same = b&1 == bit
		}
	}
	for b < 0x100 {
		b = b<<1 | d.bit(&ps[b])
	}
	d.out = append(d.out, byte(b))
	d.state = d.state.afterLiteral()
}

func (d *decoder) length(l *lengths) int {
	switch {
	case d.bit(&l.above8) == 0:
		return int(d.tree(l.low[:]))
	case d.bit(&l.above16) == 0:
		return 8 + int(d.tree(l.mid[:]))
	}
	return 16 + int(d.tree(l.high[:]))
}

// distance decodes how far back a match lies, less one.
func (d *decoder) distance(class int) uint32 {
	slot := d.tree(d.slots[class][:])
	if slot < firstTree {
		return slot
	}
	n := slot>>1 - 1
	distance := (2 | slot&1) << n
	if slot < firstAlign {
		return distance + d.reversed(d.trees[distance-slot:], n)
	}
	high := uint32(0)
	for range n - alignBits {
		d.width >>= 1
		bit := uint32(0)
		if d.code >= d.width {
			d.code -= d.width
			bit = 1
		}
		high = high<<1 | bit
		d.next()
	}
	return distance + high<<alignBits + d.reversed(d.align[:], alignBits)
}

// tree decodes a number of as many values as there are probabilities, by its bits from the highest on.
func (d *decoder) tree(ps []prob) uint32 {
	at := uint32(1)
	for at < uint32(len(ps)) {
		at = at<<1 | d.bit(&ps[at])
	}
	return at - uint32(len(ps))
}

// reversed decodes n bits from the lowest on.
func (d *decoder) reversed(ps []prob, n uint32) uint32 {
	at, v := uint32(1), uint32(0)
	for i := range n {
		bit := d.bit(&ps[at])
		at, v = at<<1|bit, v|bit<<i
	}
	return v
}

func (d *decoder) bit(p *prob) uint32 {
	bound := d.width >> probBits * uint32(*p)
	bit := uint32(0)
	if d.code < bound {
		d.width = bound
		*p += (1<<probBits - *p) >> rate
	} else {
		d.width -= bound
		d.code -= bound
		*p -= *p >> rate
		bit = 1
	}
	if d.width < renew {
		d.next()
	}
	return bit
}

// next takes a byte if the range has become small.
func (d *decoder) next() {
	if d.width >= renew {
		return
	}
	d.width <<= 8
	d.code <<= 8
	if len(d.in) == 0 {
		d.past++
		return
	}
	d.code |= uint32(d.in[0])
	d.in = d.in[1:]
}
