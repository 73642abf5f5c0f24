// What the sources of elementwise kernels share: the element type T, the type C that it is computed in, and the heads of
// kernels. A source names the width W of its chunks (planning knows the same) and whether its functions are quick.
#pragma once
#include "layout.cuh"
#include "math.cuh"

typedef ELEMENT T;
typedef wide<T> C;

// The width and quickness of operations of a few instructions: bytes are rare, and 16 of them would be much code.
const int shortWidth = sizeof(T) == 1 ? 8 : 16 / sizeof(T);
const bool shortQuick = sizeof(T) == 2 || sizeof(T) == 4;

// The width of long ones, which are bound by arithmetic.
const int longWidth = sizeof(T) == 8 ? 1 : 4;

#define UNARY(op, f) \
	KERNEL(256) NAME(op)(T *out, const T *x, const Layout<1> l) { \
		map<W, quick>(out, x, l, [](C x) -> C { return f(x); }); \
	}
#define BINARY(op, f) \
	KERNEL(256) NAME(op)(T *out, const T *x, const T *y, const Layout<2> l) { \
		map<W, quick>(out, x, y, l, [](C x, C y) -> C { return f(x, y); }); \
	}
#define COMPARISON(op, sign) \
	KERNEL(256) NAME(op)(boolean *out, const T *x, const T *y, const Layout<2> l) { \
		map<W, quick>(out, x, y, l, [](C x, C y) -> u8 { return x sign y; }); \
	}
