// Conversions between the element types, each rounded once, as dtype.Convert has them: to floating point to nearest even;
// from floating point into integers towards zero, beyond the range the nearest limit, NaN 0, and u8 the low bits of what
// i64 gives; to bool whether it differs from 0.
#pragma once
#include "base.cuh"
#include "math.cuh"

template <class I> struct Truncate;
template <> struct Truncate<i32> {
	static DEVICE i32 from(f32 x) {
		i32 y;
		asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(y) : "f"(x));
		return y;
	}
	static DEVICE i32 from(f64 x) {
		i32 y;
		asm("cvt.rzi.s32.f64 %0, %1;" : "=r"(y) : "d"(x));
		return y;
	}
};
template <> struct Truncate<i64> {
	static DEVICE i64 from(f32 x) {
		i64 y;
		asm("cvt.rzi.s64.f32 %0, %1;" : "=l"(y) : "f"(x));
		return y;
	}
	static DEVICE i64 from(f64 x) {
		i64 y;
		asm("cvt.rzi.s64.f64 %0, %1;" : "=l"(y) : "d"(x));
		return y;
	}
};
template <> struct Truncate<u8> {
	template <class F> static DEVICE u8 from(F x) { return u8(Truncate<i64>::from(x)); }
};

// truncate converts f32 or f64 to an integer.
template <class I, class F> DEVICE I truncate(F x) { return x == x ? Truncate<I>::from(x) : I(0); }

// Convert has a rule for each pair of types. Conversions of the 16-bit types go through f32, which holds them exactly.
template <class D, class S> struct Convert {
	static DEVICE D from(S x) {
		if constexpr (isFloat<S> && !isFloat<D>)
			return truncate<D>(x);
		else
			return D(x);
	}
};

// oddly rounds to f32 so that rounding again gives what one rounding would: towards zero, the last bit set where
// something is left.
DEVICE f32 oddly(f64 x) {
	f32 y;
	asm("cvt.rz.f32.f64 %0, %1;" : "=f"(y) : "d"(x));
	return f64(y) == x || x != x ? y : __builtin_bit_cast(f32, __builtin_bit_cast(u32, y) | 1);
}
DEVICE f32 oddly(i64 x) {
	f32 y;
	asm("cvt.rz.f32.s64 %0, %1;" : "=f"(y) : "l"(x));
	return Truncate<i64>::from(y) == x ? y : __builtin_bit_cast(f32, __builtin_bit_cast(u32, y) | 1);
}

// toBF16 rounds once.
DEVICE bf16 toBF16(f32 x) { return narrow<bf16>(x); }
DEVICE bf16 toBF16(f64 x) { return narrow<bf16>(oddly(x)); }
DEVICE bf16 toBF16(i64 x) { return narrow<bf16>(oddly(x)); }
DEVICE bf16 toBF16(i32 x) { return narrow<bf16>(oddly(i64(x))); }
DEVICE bf16 toBF16(u8 x) { return narrow<bf16>(f32(x)); }

template <class S> struct Convert<bf16, S> {
	static DEVICE bf16 from(S x) { return toBF16(x); }
};
template <class S> struct Convert<f16, S> {
	static DEVICE f16 from(S x) {
		f16 y;
		if constexpr (sizeof(S) == 8 && isFloat<S>)
			asm("cvt.rn.f16.f64 %0, %1;" : "=h"(y.bits) : "d"(x));
		else if constexpr (isFloat<S>)
			y = narrow<f16>(x);
		else
			asm("cvt.rn.f16.s64 %0, %1;" : "=h"(y.bits) : "l"(i64(x)));
		return y;
	}
};
template <class S> struct Convert<boolean, S> {
	static DEVICE boolean from(S x) { return boolean(x != 0); }
};

// convert is x as a D.
template <class D, class S> DEVICE D convert(S x) { return Convert<D, wide<S>>::from(widen(x)); }
