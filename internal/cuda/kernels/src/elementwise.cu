// Elementwise arithmetic: one kernel per operation and element type, for operands of any strides (layout.cuh has the order
// of the elements and what a thread does).
//
// Integers wrap around. Their division truncates towards zero and gives 0 where the divisor is 0.
//
//warpline:module elementwise_f32 -DELEMENT=f32 -DNAME(op)=op##_f32 -DFLOATS
//warpline:module elementwise_f64 -DELEMENT=f64 -DNAME(op)=op##_f64 -DFLOATS
//warpline:module elementwise_f16 -DELEMENT=f16 -DNAME(op)=op##_f16 -DFLOATS
//warpline:module elementwise_bf16 -DELEMENT=bf16 -DNAME(op)=op##_bf16 -DFLOATS
//warpline:module elementwise_i64 -DELEMENT=i64 -DNAME(op)=op##_i64
//warpline:module elementwise_i32 -DELEMENT=i32 -DNAME(op)=op##_i32
//warpline:module elementwise_u8 -DELEMENT=u8 -DNAME(op)=op##_u8
//warpline:module elementwise_rare_f32 -DELEMENT=f32 -DNAME(op)=op##_f32 -DRARE -DFLOATS
//warpline:module elementwise_rare_f64 -DELEMENT=f64 -DNAME(op)=op##_f64 -DRARE -DFLOATS
//warpline:module elementwise_rare_f16 -DELEMENT=f16 -DNAME(op)=op##_f16 -DRARE -DFLOATS
//warpline:module elementwise_rare_bf16 -DELEMENT=bf16 -DNAME(op)=op##_bf16 -DRARE -DFLOATS
//warpline:module elementwise_rare_i64 -DELEMENT=i64 -DNAME(op)=op##_i64 -DRARE
//warpline:module elementwise_rare_i32 -DELEMENT=i32 -DNAME(op)=op##_i32 -DRARE
//warpline:module elementwise_rare_u8 -DELEMENT=u8 -DNAME(op)=op##_u8 -DRARE
#include "cell.cuh"
#include "elementwise.cuh"

const int W = shortWidth;
const bool quick = shortQuick;

// Ring is the type in which integers wrap around.
template <class T> struct Ring {
	typedef T type;
};
template <> struct Ring<i32> {
	typedef u32 type;
};
template <> struct Ring<i64> {
	typedef u64 type;
};
template <class T> using ring = typename Ring<T>::type;

template <class T> DEVICE T neg(T x) {
	if constexpr (isFloat<T>)
		return -x;
	else
		return T(0 - ring<T>(x));
}
template <class T> DEVICE T add(T x, T y) { return T(ring<T>(x) + ring<T>(y)); }
template <class T> DEVICE T sub(T x, T y) { return T(ring<T>(x) - ring<T>(y)); }
template <class T> DEVICE T mul(T x, T y) { return T(ring<T>(x) * ring<T>(y)); }
template <class T> DEVICE T multiplyAdd(T x, T y, T z) { return T(ring<T>(x) * ring<T>(y) + ring<T>(z)); }

DEVICE i64 abs(i64 x) { return x < 0 ? neg(x) : x; }
DEVICE i32 abs(i32 x) { return x < 0 ? neg(x) : x; }
DEVICE u8 abs(u8 x) { return x; }

template <class T> DEVICE T div(T x, T y) {
	if constexpr (isFloat<T>)
		return x / y;
	else if (y == 0)
		return 0;
	else if (T(-1) < 0 && y == T(-1)) // the least integer has no opposite
		return neg(x);
	else
		return x / y;
}

template <class T> DEVICE T relu(T x) { return larger(x, T(0)); }
template <class T> DEVICE T reluGrad(T y, T g) { return y <= 0 ? T(0) : g; } // of a NaN g
template <class T> DEVICE T rsqrt(T x) { return 1 / sqrt(x); }

#ifndef RARE
BINARY(add, add)
BINARY(sub, sub)
BINARY(mul, mul)
BINARY(div, div)

KERNEL(256) NAME(affine)(T *out, const T *x, const Layout<1> l, Number<C> factor, Number<C> term) {
	C p = factor, q = term;
	map<W, quick>(out, x, l, [=](C x) -> C { return multiplyAdd(p, x, q); });
}

KERNEL(256) NAME(axpy)(T *out, const T *x, const T *y, const Layout<2> l, Number<C> factor) {
	C p = factor;
	map<W, quick>(out, x, y, l, [=](C x, C y) -> C { return multiplyAdd(p, y, x); });
}

#ifdef FLOATS
UNARY(sqrt, sqrt)
#endif
#else
UNARY(neg, neg)
UNARY(abs, abs)
UNARY(relu, relu)

#ifdef FLOATS
UNARY(rsqrt, rsqrt)
BINARY(relu_grad, reluGrad)

KERNEL(256) NAME(lerp)(T *out, const T *x, const T *y, const Layout<2> l, Number<C> part) {
	C p = part;
	map<W, quick>(out, x, y, l, [=](C x, C y) -> C { return x + p * (y - x); });
}
#endif
#endif
