// The 8-bit floating-point types, which are only converted: to f32 exactly, and from it to nearest even. Of what is beyond
// its range f8e4m3, which has no infinity, makes its largest value, f8e5m2 infinity, as dtype.Convert has it.
#pragma once
#include "convert.cuh"

struct f8e4m3 {
	u8 bits;
};
struct f8e5m2 {
	u8 bits;
};
template <> struct Wide<f8e4m3> {
	typedef f32 type;
};
template <> struct Wide<f8e5m2> {
	typedef f32 type;
};

// The product with a power of two moves the exponent's bias, of subnormal numbers too.
DEVICE f32 widen(f8e4m3 x) {
	u32 b = x.bits & 0x7f;
	f32 y = b == 0x7f ? __builtin_nanf("") : __builtin_bit_cast(f32, b << 20) * 0x1p120f;
	return x.bits >> 7 ? -y : y;
}
DEVICE f32 widen(f8e5m2 x) {
	u32 b = x.bits & 0x7f;
	f32 y = b >= 0x7c ? __builtin_bit_cast(f32, b << 21 | 0x7f800000) : __builtin_bit_cast(f32, b << 21) * 0x1p112f;
	return x.bits >> 7 ? -y : y;
}

// eighth rounds to a format of some widths, with what is above the largest pattern as the pattern over.
template <int exponent, int mantissa> DEVICE u8 eighth(f32 x, u32 largest, u32 over) {
	const int shift = 23 - mantissa, bias = (1 << (exponent - 1)) - 1;
	const u32 normal = (128 - bias) << 23, step = (128 - bias + shift) << 23;
	u32 b = bits(x) & 0x7fffffff, r;
	if (b < normal) { // subnormal: the sum's ulp is the smallest step
		r = bits(__builtin_bit_cast(f32, b) + __builtin_bit_cast(f32, step)) - step;
	} else {
		r = b - ((127 - bias) << 23);
		r = (r + (1 << (shift - 1)) - 1 + (r >> shift & 1)) >> shift;
	}
	r = x != x ? 0x7f : r > largest ? over : r;
	return u8(r | (bits(x) >> 24 & 0x80));
}

// toF32 is x in f32 so that rounding again rounds once.
DEVICE f32 toF32(f32 x) { return x; }
DEVICE f32 toF32(f64 x) { return oddly(x); }
DEVICE f32 toF32(i64 x) { return oddly(x); }
DEVICE f32 toF32(i32 x) { return oddly(i64(x)); }
DEVICE f32 toF32(u8 x) { return f32(x); }

template <class S> struct Convert<f8e4m3, S> {
	static DEVICE f8e4m3 from(S x) { return {eighth<4, 3>(toF32(x), 0x7e, 0x7e)}; }
};
template <class S> struct Convert<f8e5m2, S> {
	static DEVICE f8e5m2 from(S x) { return {eighth<5, 2>(toF32(x), 0x7b, 0x7c)}; }
};
