// How elementwise kernels walk operands of any strides.
//
// The elements are taken row by row in the row-major order of the result; a row is the innermost dimension, which
// planning has made as long as the strides of all operands allow. A thread takes a chunk of W neighbours of a row: one
// vector of each operand where it lies contiguous and aligned, W loads where it does not. A row-major operand is one long row, so nothing is divided there; elsewhere one division per
// dimension finds the chunk. A launch has fewer than 2^31 elements (planning splits larger ones), operands may span more.
#pragma once
#include "base.cuh"

// Divisor divides numbers below 2^31 by multiplication (Granlund and Montgomery 1994).
struct Divisor {
	u32 by, mul, shift, unused;
};

DEVICE u32 operator/(u32 n, const Divisor &d) { return (__nvvm_mulhi_ui(n, d.mul) + n) >> d.shift; }

template <int N> struct Dim {
	Divisor size;
	i64 stride[N];
};

// Layout says where the elements of N operands are. Its twin in Go is layout.
template <int N> struct Layout {
	u32 chunks; // in all rows
	u32 inner;  // elements of a row
	u32 outer;  // number of other dimensions
	u32 unused;
	Divisor perRow;  // chunks of a row
	i64 step[N];     // strides of the innermost dimension
	Dim<N> dims[7];  // the other dimensions, the outermost last
};

// Chunk is where a chunk begins in each operand, and in a row-major result.
template <int N> struct Chunk {
	i64 at[N];
	u32 out;
	int n; // elements, fewer than W at the end of a row
};

template <int W, int N> DEVICE Chunk<N> locate(const Layout<N> &l, u32 chunk) {
	Chunk<N> c;
	u32 row = 0, column = chunk;
	if (l.outer != 0) {
		row = chunk / l.perRow;
		column = chunk - row * l.perRow.by;
	}
	column *= W;
	c.out = row * l.inner + column;
	u32 left = l.inner - column;
	c.n = left < W ? left : W;
	for (int k = 0; k < N; k++)
		c.at[k] = column * l.step[k];
#pragma unroll 1
	for (u32 d = 0; d < l.outer; d++) {
		const Dim<N> &dim = l.dims[d];
		u32 rest = row / dim.size, i = row - rest * dim.size.by;
		for (int k = 0; k < N; k++)
			c.at[k] += i * dim.stride[k];
		row = rest;
	}
	return c;
}

DEVICE u64 globalAddress(const void *p) { return u64((const __attribute__((address_space(1))) void *)p); }

template <int W, class T> DEVICE bool aligned(const T *p) { return u64(p) % (W * sizeof(T)) == 0; }

// Whole moves W elements at once. It is assembly because the compiler takes vectors apart, to join their loads with those
// of the elements one by one. There is no memory clobber: a kernel touches each element once, and its result after that.
template <int bytes> struct Whole;
template <> struct Whole<16> {
	Vec<u32, 4> w;
	DEVICE void load(u64 p) {
		asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(w.v[0]), "=r"(w.v[1]), "=r"(w.v[2]), "=r"(w.v[3]) : "l"(p));
	}
	DEVICE void store(u64 p) const {
		asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(w.v[0]), "r"(w.v[1]), "r"(w.v[2]), "r"(w.v[3]));
	}
};
template <> struct Whole<8> {
	Vec<u32, 2> w;
	DEVICE void load(u64 p) { asm volatile("ld.global.v2.b32 {%0, %1}, [%2];" : "=r"(w.v[0]), "=r"(w.v[1]) : "l"(p)); }
	DEVICE void store(u64 p) const { asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(p), "r"(w.v[0]), "r"(w.v[1])); }
};
template <> struct Whole<4> {
	u32 w;
	DEVICE void load(u64 p) { asm volatile("ld.global.b32 %0, [%1];" : "=r"(w) : "l"(p)); }
	DEVICE void store(u64 p) const { asm volatile("st.global.b32 [%0], %1;" ::"l"(p), "r"(w)); }
};
template <> struct Whole<2> {
	u16 w;
	DEVICE void load(u64 p) { asm volatile("ld.global.b16 %0, [%1];" : "=h"(w) : "l"(p)); }
	DEVICE void store(u64 p) const { asm volatile("st.global.b16 [%0], %1;" ::"l"(p), "h"(w)); }
};

template <int W, class T> DEVICE Vec<T, W> loadWhole(const T *p) {
	Whole<W * sizeof(T)> w;
	w.load(globalAddress(p));
	return __builtin_bit_cast(Vec<T, W>, w);
}
template <int W, class T> DEVICE void storeWhole(T *p, const Vec<T, W> &v) { __builtin_bit_cast(Whole<W * sizeof(T)>, v).store(globalAddress(p)); }

// Vectors of f32 need no moves between kinds of registers.
template <int W>
	requires(W == 4)
DEVICE Vec<f32, W> loadWhole(const f32 *p) {
	Vec<f32, W> v;
	asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.v[0]), "=f"(v.v[1]), "=f"(v.v[2]), "=f"(v.v[3]) : "l"(globalAddress(p)));
	return v;
}
template <int W>
	requires(W == 4)
DEVICE void storeWhole(f32 *p, const Vec<f32, W> &v) {
	asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(globalAddress(p)), "f"(v.v[0]), "f"(v.v[1]), "f"(v.v[2]), "f"(v.v[3]));
}

// load takes n neighbours; what is beyond them repeats the last one, so that nothing depends on n but addresses.
template <int W, class T> DEVICE Vec<T, W> load(const T *p, i64 step, int n) {
	if constexpr (W > 1)
		if (step == 1 && n == W && aligned<W>(p))
			return loadWhole<W>(p);
	Vec<T, W> v;
	step *= sizeof(T);
	for (int i = 0; i < W; i++) {
		v.v[i] = *p;
		p = (const T *)((const u8 *)p + (i + 1 < n ? step : 0));
	}
	return v;
}

// store writes n neighbours, of which the last may be repeated: equal operands gave equal results.
template <int W, class T> DEVICE void store(T *p, i64 step, int n, const Vec<T, W> &v) {
	if constexpr (W > 1)
		if (step == 1 && n == W && aligned<W>(p)) {
			storeWhole<W>(p, v);
			return;
		}
	step *= sizeof(T);
	for (int i = 0; i < W; i++) {
		*p = v.v[i];
		p = (T *)((u8 *)p + (i + 1 < n ? step : 0));
	}
}

// mapped is f of the elements of vectors, in the types that they are computed in.
template <class R, int W, class T, class F> DEVICE Vec<R, W> mapped(F f, const Vec<T, W> &x) {
	Vec<R, W> r;
	for (int i = 0; i < W; i++)
		r.v[i] = narrow<R>(f(widen(x.v[i])));
	return r;
}
template <class R, int W, class T, class F> DEVICE Vec<R, W> mapped(F f, const Vec<T, W> &x, const Vec<T, W> &y) {
	Vec<R, W> r;
	for (int i = 0; i < W; i++)
		r.v[i] = narrow<R>(f(widen(x.v[i]), widen(y.v[i])));
	return r;
}

// map computes out = f(x) elementwise. Where f is quick, aligned row-major operands have a loop of their own, and only what
// it leaves goes through the general one.
template <int W, bool quick, class R, class T, class F> DEVICE void map(R *out, const T *x, const Layout<1> &l, F f) {
	u32 i = globalThread(), threads = globalThreads();
	if (quick && l.outer == 0 && l.step[0] == 1 && aligned<W>(out) && aligned<W>(x))
		for (; i < l.inner / W; i += threads) {
			u64 at = u64(i) * W;
			storeWhole<W>(out + at, mapped<R>(f, loadWhole<W>(x + at)));
		}
	for (; i < l.chunks; i += threads) {
		Chunk<1> c = locate<W>(l, i);
		store<W>(out + c.out, 1, c.n, mapped<R>(f, load<W>(x + c.at[0], l.step[0], c.n)));
	}
}

// map computes out = f(x, y).
template <int W, bool quick, class R, class T, class F> DEVICE void map(R *out, const T *x, const T *y, const Layout<2> &l, F f) {
	u32 i = globalThread(), threads = globalThreads();
	if (quick && l.outer == 0 && l.step[0] == 1 && l.step[1] == 1 && aligned<W>(out) && aligned<W>(x) && aligned<W>(y))
		for (; i < l.inner / W; i += threads) {
			u64 at = u64(i) * W;
			storeWhole<W>(out + at, mapped<R>(f, loadWhole<W>(x + at), loadWhole<W>(y + at)));
		}
	for (; i < l.chunks; i += threads) {
		Chunk<2> c = locate<W>(l, i);
		store<W>(out + c.out, 1, c.n, mapped<R>(f, load<W>(x + c.at[0], l.step[0], c.n), load<W>(y + c.at[1], l.step[1], c.n)));
	}
}
