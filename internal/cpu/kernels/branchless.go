package kernels

import "math"

// Float32 functions whose outcome is as random as the data: a branch on it would be mispredicted half of the time. They
// decide on the bits, as integers, which the compiler turns into conditional moves.

const (
	signBit = 1 << 31
	infBits = 0x7f800000
)

// ReLU is dst[i] = max(x[i], 0); NaN and -0 stay.
func ReLU(dst, x []float32) {
	dst = dst[:len(x)]
	if mapReLU.inAssembly(dst, x, x, 0, 0) {
		return
	}
	for i, v := range x {
		b := math.Float32bits(v)
		if b-(signBit+1) < infBits { // below zero, to -Inf
			b = 0
		}
		dst[i] = math.Float32frombits(b)
	}
}

// ReLUGrad is dst[i] = 0 where y[i] ≤ 0, else g[i]: of a NaN too.
func ReLUGrad(dst, y, g []float32) {
	dst, g = dst[:len(y)], g[:len(y)]
	if mapReLUGrad.inAssembly(dst, y, g, 0, 0) {
		return
	}
	for i, v := range y {
		b, u := math.Float32bits(g[i]), math.Float32bits(v)
		if u == 0 {
			b = 0
		}
		if u-signBit <= infBits { // -0 to -Inf
			b = 0
		}
		dst[i] = math.Float32frombits(b)
	}
}

// Sign is dst[i] = 1 or -1 by the sign of x[i], and 0 of zeros and NaN.
func Sign(dst, x []float32) {
	const one = 0x3f800000
	dst = dst[:len(x)]
	for i, v := range x {
		b := math.Float32bits(v)
		s := b&signBit | one
		if b<<1-1 >= 2*infBits { // 0, -0 and NaN
			s = 0
		}
		dst[i] = math.Float32frombits(s)
	}
}

// Choose is dst[i] = x[i] where c[i], else y[i].
func Choose(dst []float32, c []bool, x, y []float32) {
	c, x, y = c[:len(dst)], x[:len(dst)], y[:len(dst)]
	for i := range dst {
		a, b := math.Float32bits(x[i]), math.Float32bits(y[i])
		if c[i] {
			b = a
		}
		dst[i] = math.Float32frombits(b)
	}
}

// MaxPairs is the largest of each window of 2×2 in two rows of numbers: out[c] of top[2c], top[2c+1], low[2c], low[2c+1],
// and its place 0 to 3 in that order, the first of equals. It returns false when a NaN may be among them; what it wrote
// for such windows is not right.
func MaxPairs(out []float32, place []uint8, top, low []float32) bool {
	place, top, low = place[:len(out)], top[:2*len(out)], low[:2*len(out)]
	var sum float32
	for c := range out {
		t, l := top[2*c:2*c+2], low[2*c:2*c+2]
		a, b, d, e := t[0], t[1], l[0], l[1]
		sum += (a + b + d + e) * 0 // NaN or infinite windows show
		// Adding 0 makes -0 of the same order as 0.
		best, p := order(a+0), 0
		if k := order(b + 0); k > best {
			best, p = k, 1
		}
		if k := order(d + 0); k > best {
			best, p = k, 2
		}
		if k := order(e + 0); k > best {
			best, p = k, 3
		}
		out[c], place[c] = unorder(best), uint8(p)
	}
	return sum == 0
}

// order maps a number to an integer that compares as the number does.
func order(v float32) int32 {
	b := int32(math.Float32bits(v))
	return b ^ int32(uint32(b>>31)>>1)
}

// unorder is the inverse of order.
func unorder(k int32) float32 { return math.Float32frombits(uint32(k ^ int32(uint32(k>>31)>>1))) }
