// Where the elements of strided operands lie.
#pragma once
#include "base.cuh"

// Divisor64 divides numbers below 2^63 by multiplication (Granlund and Montgomery 1994).
struct Divisor64 {
	u64 by, mul, shift;

	DEVICE i64 quotient(i64 i) const { return by == 1 ? i : __nvvm_mulhi_ull(i, mul) >> shift; }

	// split leaves the remainder in i and returns the quotient.
	DEVICE i64 split(i64 &i) const {
		i64 q = quotient(i);
		i -= q * by;
		return q;
	}
};

// Strided is the dimensions of an operand, outermost first, merged where they run on; there is at least one. Strides
// count elements. Its twin in Go is strided.
struct Strided {
	i64 rank;
	struct {
		i64 stride;
		Divisor64 size;
	} dims[8];

	// at is where element i in row-major order lies.
	DEVICE i64 at(i64 i) const {
		i64 off = 0;
#pragma unroll 1
		for (i64 d = rank - 1; d > 0; d--) {
			i64 q = dims[d].size.split(i);
			off += i * dims[d].stride;
			i = q;
		}
		return off + i * dims[0].stride;
	}

	DEVICE bool contiguous() const { return rank == 1 && dims[0].stride == 1; }
};

// aligned reports whether p is a multiple of bytes, a power of 2.
DEVICE bool aligned(const void *p, u64 bytes) { return (u64(p) & (bytes - 1)) == 0; }

// Words is what memory moves at once: up to 16 bytes, of whatever type.
template <int bytes> struct Words {
	typedef u32 type __attribute__((ext_vector_type(4), may_alias));
};
template <> struct Words<8> {
	typedef u32 type __attribute__((ext_vector_type(2), may_alias));
};
template <> struct Words<4> {
	typedef u32 type __attribute__((may_alias));
};
template <> struct Words<2> {
	typedef u16 type __attribute__((may_alias));
};

// Pieces is N elements of T as words. Compilers keep copies of these whole, those of structs they take apart.
template <int N, class T> struct Pieces {
	typedef typename Words<N * sizeof(T)>::type W;
	static const int n = N * sizeof(T) / sizeof(W);
	W w[n];
};

// load reads N neighbours, by words where they are aligned as a whole.
template <int N, class T> DEVICE Vec<T, N> load(const T *p, bool whole) {
	if (whole) {
		Pieces<N, T> v;
#pragma unroll
		for (int k = 0; k < v.n; k++)
			v.w[k] = reinterpret_cast<const typename Pieces<N, T>::W *>(p)[k];
		return __builtin_bit_cast(Vec<T, N>, v);
	}
	Vec<T, N> v;
#pragma unroll
	for (int k = 0; k < N; k++)
		v.v[k] = p[k];
	return v;
}

// storeWhole writes N neighbours that are aligned as a whole.
template <int N, class T> DEVICE void storeWhole(T *p, const Vec<T, N> &x) {
	Pieces<N, T> v = __builtin_bit_cast(Pieces<N, T>, x);
#pragma unroll
	for (int k = 0; k < v.n; k++)
		reinterpret_cast<typename Pieces<N, T>::W *>(p)[k] = v.w[k];
}

// store writes N neighbours, element i and those after it, of which the ones below n exist.
template <int N, class T> DEVICE void store(T *out, const Strided &y, i64 i, i64 n, const Vec<T, N> &v) {
	if constexpr (sizeof v >= 4) {
		if (y.contiguous() && i + N <= n && aligned(out + i, sizeof v)) {
			storeWhole<N>(out + i, v);
			return;
		}
	}
#pragma unroll
	for (int k = 0; k < N; k++)
		if (i + k < n)
			out[y.at(i + k)] = v.v[k];
}
