package rng

import "math"

//go:generate go run -C ../_asm . draws ../rng

// The Fill functions write elements start, start+1, … of key's tensor to dst.
// Element i depends on key and i alone. 32-bit forms take element i from lane i%4
// of block i/4, 64-bit forms from half i%2 of block i/2.

// unit24 maps a lane to [0, 1) in steps of 2⁻²⁴, exact in float32.
func unit24(r uint32) float64 { return float64(float64(r>>8) * 0x1p-24) }

// unit53 maps two lanes to [0, 1) in steps of 2⁻⁵³.
func unit53(low, high uint32) float64 { return float64(float64(join(low, high)>>11) * 0x1p-53) }

// by4 calls f with each block that overlaps elements [start, start+len(dst)) and
// copies the overlap.
func by4[T any](dst []T, key Key, start uint64, f func(r0, r1, r2, r3 uint32) (v0, v1, v2, v3 T)) {
	index := start / 4
	for skip := int(start % 4); len(dst) > 0; index++ {
		v0, v1, v2, v3 := f(key.block(index, forElements))
		if skip == 0 && len(dst) >= 4 {
			dst[0], dst[1], dst[2], dst[3] = v0, v1, v2, v3
			dst = dst[4:]
			continue
		}
		v := [4]T{v0, v1, v2, v3}
		dst = dst[copy(dst, v[skip:]):]
		skip = 0
	}
}

// sixteens divides n elements from start on for assembly: how many come before the first whole block, and how many sixteens of
// that block and those behind it there are. Without assembly there are none.
func sixteens(n int, start uint64) (head int, index uint64, turns int) {
	head = int(-start % 4)
	if n < head+16 || !assembly() {
		return 0, 0, 0
	}
	return head, start/4 + (start%4+3)/4, (n - head) / 16
}

// by2 is by4 for two elements per block.
func by2[T any](dst []T, key Key, start uint64, f func(r0, r1, r2, r3 uint32) (v0, v1 T)) {
	index := start / 2
	for skip := int(start % 2); len(dst) > 0; index++ {
		v0, v1 := f(key.block(index, forElements))
		if skip == 1 {
			dst[0] = v1
			dst = dst[1:]
			skip = 0
			continue
		}
		dst[0] = v0
		if len(dst) > 1 {
			dst[1] = v1
		}
		dst = dst[min(2, len(dst)):]
	}
}

// FillUniform32 writes numbers uniform in [lo, hi), lo + (hi-lo)·u with u of 24 bits,
// computed in float64 and rounded once.
func FillUniform32(dst []float32, key Key, start uint64, lo, hi float32) {
	base, width := float64(lo), float64(hi)-float64(lo)
	last := below32(lo, hi)
	at := func(r uint32) float32 { return min(float32(base+float64(width*unit24(r))), last) }
	plain := func(r0, r1, r2, r3 uint32) (v0, v1, v2, v3 float32) { return at(r0), at(r1), at(r2), at(r3) }
	// Of two zeros min takes the negative one, the processor's the number that was drawn.
	if head, index, turns := sixteens(len(dst), start); turns > 0 && last != 0 {
		by4(dst[:head], key, start, plain)
		uniform16(&dst[head], key, index, turns, base, width, last)
		done := head + 16*turns
		dst, start = dst[done:], start+uint64(done)
	}
	by4(dst, key, start, plain)
}

// below32 returns the largest value that [lo, hi) holds: rounding may reach hi.
func below32(lo, hi float32) float32 {
	if lo < hi {
		return math.Nextafter32(hi, lo)
	}
	return hi
}

// FillUniform64 writes numbers uniform in [lo, hi), lo + (hi-lo)·u with u of 53 bits.
// hi-lo must be finite.
func FillUniform64(dst []float64, key Key, start uint64, lo, hi float64) {
	width, last := hi-lo, hi
	if lo < hi {
		last = math.Nextafter(hi, lo)
	}
	at := func(low, high uint32) float64 { return min(lo+float64(width*unit53(low, high)), last) }
	by2(dst, key, start, func(r0, r1, r2, r3 uint32) (v0, v1 float64) {
		return at(r0, r1), at(r2, r3)
	})
}

// FillNormal32 writes numbers of the normal distribution with the given mean and
// standard deviation. Lanes 0 and 1 make elements 0 and 1, lanes 2 and 3 the others,
// by [boxMuller] with 32-bit uniforms, rounded to float32 at the end. The largest
// deviation from the mean is 6.76 standard deviations.
func FillNormal32(dst []float32, key Key, start uint64, mean, std float32) {
	mu, sigma := float64(mean), float64(std)
	at := func(z float64) float32 { return float32(mu + float64(sigma*z)) }
	plain := func(r0, r1, r2, r3 uint32) (v0, v1, v2, v3 float32) {
		a, b := boxMuller((float64(r0)+0.5)*0x1p-32, uint64(r1)<<32)
		c, d := boxMuller((float64(r2)+0.5)*0x1p-32, uint64(r3)<<32)
		return at(a), at(b), at(c), at(d)
	}
	if head, index, turns := sixteens(len(dst), start); turns > 0 {
		by4(dst[:head], key, start, plain)
		normal16(&dst[head], key, index, turns, mu, sigma)
		done := head + 16*turns
		dst, start = dst[done:], start+uint64(done)
	}
	by4(dst, key, start, plain)
}

// FillNormal64 is FillNormal32 in float64: one block makes two elements, from a
// radius of 53 bits and an angle of 64. The largest deviation is 8.66 standard deviations.
func FillNormal64(dst []float64, key Key, start uint64, mean, std float64) {
	by2(dst, key, start, func(r0, r1, r2, r3 uint32) (v0, v1 float64) {
		a, b := normals(r0, r1, r2, r3)
		return mean + float64(std*a), mean + float64(std*b)
	})
}

// normals turns a block into two standard normal numbers.
func normals(r0, r1, r2, r3 uint32) (a, b float64) {
	return boxMuller(unit53(r0, r1)+0x1p-54, join(r2, r3))
}

// FillInts writes integers uniform in [lo, hi), and lo where the range is empty. A
// value's probability is off by less than 2⁻⁶⁴.
func FillInts[T int64 | int32 | uint8](dst []T, key Key, start uint64, lo, hi T) {
	width := uint64(max(hi, lo)) - uint64(lo)
	at := func(low, high uint32) T { return lo + T(scale(join(low, high), width)) }
	by2(dst, key, start, func(r0, r1, r2, r3 uint32) (v0, v1 T) {
		return at(r0, r1), at(r2, r3)
	})
}
