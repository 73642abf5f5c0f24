package lzma

import "math"

// prices has what a bit costs, in 64ths of a bit, by the probability of what it is.
var prices = func() (p [1 << (probBits - 4)]uint32) {
	for i := range p {
		p[i] = uint32(math.Round(-64 * math.Log2((float64(i)+0.5)/float64(len(p)))))
	}
	return p
}()

const never = math.MaxUint32

func price(p prob, bit uint32) uint32 {
	if bit == 1 {
		p = 1<<probBits - p
	}
	return prices[p>>4]
}

func treePrice(ps []prob, v uint32) (sum uint32) {
	for at := v + uint32(len(ps)); at > 1; at >>= 1 {
		sum += price(ps[at>>1], at&1)
	}
	return sum
}

func reversedPrice(ps []prob, v, n uint32) (sum uint32) {
	for at := uint32(1); n > 0; n-- {
		sum += price(ps[at], v&1)
		at, v = at<<1|v&1, v>>1
	}
	return sum
}

// tariff is what lengths and distances cost by a model, as of some time ago.
type tariff struct {
	lens, repLens [longest - shortest + 1]uint32
	slots         [lenClasses][64]uint32
	near          [lenClasses][128]uint32 // distances below 128
	align         [1 << alignBits]uint32
}

func (t *tariff) renew(m *model) {
	lengthPrices(&m.lens, &t.lens)
	lengthPrices(&m.repLens, &t.repLens)
	for c := range t.slots {
		for s := range t.slots[c] {
			t.slots[c][s] = treePrice(m.slots[c][:], uint32(s))
		}
		for d := range t.near[c] {
			s := slot(uint32(d))
			t.near[c][d] = t.slots[c][s]
			if s >= firstTree {
				n := s>>1 - 1
				base := (2 | s&1) << n
				t.near[c][d] += reversedPrice(m.trees[base-s:], uint32(d)-base, n)
			}
		}
	}
	for i := range t.align {
		t.align[i] = reversedPrice(m.align[:], uint32(i), alignBits)
	}
}

func lengthPrices(l *lengths, into *[longest - shortest + 1]uint32) {
	for i := range into {
		switch {
		case i < 8:
			into[i] = price(l.above8, 0) + treePrice(l.low[:], uint32(i))
		case i < 16:
			into[i] = price(l.above8, 1) + price(l.above16, 0) + treePrice(l.mid[:], uint32(i-8))
		default:
			into[i] = price(l.above8, 1) + price(l.above16, 1) + treePrice(l.high[:], uint32(i-16))
		}
	}
}

// distance is what a match of a length costs for lying as far back.
func (t *tariff) distance(distance uint32, n int) uint32 {
	class := min(n-shortest, lenClasses-1)
	if distance < 128 {
		return t.near[class][distance]
	}
	s := slot(distance)
	return t.slots[class][s] + (s>>1-1-alignBits)*64 + t.align[distance&(1<<alignBits-1)]
}

// literalPrice is what a byte costs behind another; matched is the one where the match before would go on.
func (m *model) literalPrice(s state, b, before, matched byte) (sum uint32) {
	ps := &m.literals[int(before)*len(m.literals)>>8]
	v := uint32(b) | 0x100
	if s < 7 {
		return treePrice(ps[:0x100], uint32(b))
	}
	for i := 7; i >= 0; i-- {
		bit := uint32(matched) >> i & 1
		sum += price(ps[(1+bit)<<8+v>>(i+1)], v>>i&1)
		if v>>i&1 != bit {
			for i--; i >= 0; i-- {
				sum += price(ps[v>>(i+1)], v>>i&1)
			}
		}
	}
	return sum
}
