// Elementwise comparisons, extremes, rounding, logic and bits; the operands are as in elementwise.cu, whose operations are the
// frequent ones.
//
// Maximum, minimum and clamp of floating-point numbers are NaN where an operand is. The remainder has the divisor's sign;
// of integers it is 0 where the divisor is 0.
//
//warpline:module compare_f32 -DELEMENT=f32 -DNAME(op)=op##_f32 -DCOMPARISONS -DFLOATS
//warpline:module compare_f64 -DELEMENT=f64 -DNAME(op)=op##_f64 -DCOMPARISONS -DFLOATS
//warpline:module compare_f16 -DELEMENT=f16 -DNAME(op)=op##_f16 -DCOMPARISONS -DFLOATS
//warpline:module compare_bf16 -DELEMENT=bf16 -DNAME(op)=op##_bf16 -DCOMPARISONS -DFLOATS
//warpline:module compare_i64 -DELEMENT=i64 -DNAME(op)=op##_i64 -DCOMPARISONS
//warpline:module compare_i32 -DELEMENT=i32 -DNAME(op)=op##_i32 -DCOMPARISONS
//warpline:module compare_u8 -DELEMENT=u8 -DNAME(op)=op##_u8 -DCOMPARISONS
//warpline:module compare_bool -DELEMENT=boolean -DNAME(op)=op##_bool -DCOMPARISONS -DLOGIC
//warpline:module order_f32 -DELEMENT=f32 -DNAME(op)=op##_f32 -DFLOATS
//warpline:module order_f64 -DELEMENT=f64 -DNAME(op)=op##_f64 -DFLOATS
//warpline:module order_f16 -DELEMENT=f16 -DNAME(op)=op##_f16 -DFLOATS
//warpline:module order_bf16 -DELEMENT=bf16 -DNAME(op)=op##_bf16 -DFLOATS
//warpline:module order_i64 -DELEMENT=i64 -DNAME(op)=op##_i64
//warpline:module order_i32 -DELEMENT=i32 -DNAME(op)=op##_i32
//warpline:module order_u8 -DELEMENT=u8 -DNAME(op)=op##_u8
//warpline:module order_bool -DELEMENT=boolean -DNAME(op)=op##_bool -DLOGIC
#include "elementwise.cuh"
#include "convert.cuh"

const int W = shortWidth;
const bool quick = shortQuick;

// sign of NaN is 0.
template <class T> DEVICE T sign(T x) { return T(int(x > 0) - int(x < 0)); }

template <class T> DEVICE T rem(T x, T y) {
	if constexpr (isFloat<T>) {
		return floorMod(x, y);
	} else {
		if (y == 0 || (T(-1) < 0 && y == T(-1)))
			return 0;
		T r = x % y;
		return r != 0 && (r < 0) != (y < 0) ? T(r + y) : r;
	}
}

template <class T> DEVICE T bitAnd(T x, T y) { return x & y; }
template <class T> DEVICE T bitOr(T x, T y) { return x | y; }
template <class T> DEVICE T bitXor(T x, T y) { return x ^ y; }

// A shift by a negative number counts as one by very many, after which only the sign is left.
template <class T> DEVICE T shiftLeft(T x, T y) { return u64(y) < 8 * sizeof(T) ? T(u64(x) << u64(y)) : T(0); }
template <class T> DEVICE T shiftRight(T x, T y) { return T(i64(x) >> (u64(y) < 8 * sizeof(T) ? u64(y) : 63)); }

// gcd is of magnitudes: that of the least integer is itself.
template <class T> DEVICE T gcd(T x, T y) {
	u64 a = x < 0 ? 0 - u64(x) : u64(x), b = y < 0 ? 0 - u64(y) : u64(y);
	while (b != 0) {
		u64 rest = a % b;
		a = b;
		b = rest;
	}
	return T(a);
}

template <class T> DEVICE T logicalNot(T x) { return x ^ 1; }
template <class T> DEVICE T logicalAnd(T x, T y) { return x & y; }
template <class T> DEVICE T logicalOr(T x, T y) { return x | y; }
template <class T> DEVICE T logicalXor(T x, T y) { return x ^ y; }

// bound brings a bound of clamp into the range of T: every integer is above -∞.
template <class T> DEVICE T bound(f64 p) {
	if constexpr (isFloat<T>)
		return T(p);
	else if constexpr (sizeof(T) == 1)
		return p != p ? 0 : T(truncate<i32>(smaller(larger(p, 0.0), 255.0)));
	else
		return truncate<T>(p);
}

#ifdef COMPARISONS
COMPARISON(eq, ==)
COMPARISON(ne, !=)
COMPARISON(lt, <)
COMPARISON(le, <=)
#else
BINARY(maximum, larger)
BINARY(minimum, smaller)

#ifdef LOGIC
UNARY(logical_not, logicalNot)
BINARY(logical_and, logicalAnd)
BINARY(logical_or, logicalOr)
BINARY(logical_xor, logicalXor)
#else
UNARY(sign, sign)
BINARY(rem, rem)

KERNEL(256) NAME(clamp)(T *out, const T *x, const Layout<1> l, f64 low, f64 high) {
	C lo = bound<C>(low), hi = bound<C>(high);
	map<W, quick>(out, x, l, [=](C x) -> C { return smaller(larger(x, lo), hi); });
}
#endif

#ifdef FLOATS
UNARY(floor, floor)
UNARY(ceil, ceil)
UNARY(round, rint)
UNARY(trunc, trunc)
#elif !defined LOGIC
BINARY(bit_and, bitAnd)
BINARY(bit_or, bitOr)
BINARY(bit_xor, bitXor)
BINARY(shift_left, shiftLeft)
BINARY(shift_right, shiftRight)
BINARY(gcd, gcd)
#endif
#endif
