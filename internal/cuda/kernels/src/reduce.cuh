// Folds: what reductions compute, and in which order.
//
// A fold takes elements of T into accumulators A by lift and merge, and makes the result of one by finish. merge is
// commutative, so that lanes that exchange their accumulators agree. Which thread folds which elements follows from the
// sizes alone: neither the card nor the place in memory changes a bit of a result.
#pragma once
#include "index.cuh"

template <class T> struct Modular {
	typedef wide<T> type;
};
template <> struct Modular<i64> {
	typedef u64 type;
};
template <> struct Modular<i32> {
	typedef u32 type;
};
template <> struct Modular<u8> {
	typedef u32 type;
};

// Sum adds in the type that T is computed in; integers wrap.
template <class T> struct Sum {
	typedef typename Modular<T>::type A;
	static DEVICE A identity() { return 0; }
	static DEVICE A lift(T x, i64) { return A(widen(x)); }
	static DEVICE A merge(A a, A b) { return a + b; }
	static DEVICE T finish(A a) { return narrow<T>(wide<T>(a)); }
};

// Exact is a product with what its roundings have lost.
struct Exact {
	f64 value, lost;
};

// Prod multiplies f32 and narrower in f64, which neither overflows before the end nor loses digits, and f64 with the
// rounding errors carried along: those of equal factors would all go to one side.
template <class T> struct Prod {
	typedef f64 A;
	static DEVICE A identity() { return 1; }
	static DEVICE A lift(T x, i64) { return widen(x); }
	static DEVICE A merge(A a, A b) { return a * b; }
	static DEVICE T finish(A a) { return narrow<T>(f32(a)); }
};
template <> struct Prod<f64> {
	typedef Exact A;
	static DEVICE A identity() { return {1, 0}; }
	static DEVICE A lift(f64 x, i64) { return {x, 0}; }
	static DEVICE A merge(A a, A b) {
		f64 value = a.value * b.value;
		f64 lost = __nvvm_fma_rn_d(a.value, b.value, -value);
		return {value, lost + (a.value * b.lost + a.lost * b.value)};
	}
	static DEVICE f64 finish(A a) { return a.lost - a.lost == 0 ? a.value + a.lost : a.value; }
};

// Modulo multiplies integers, which wrap.
template <class T> struct Modulo {
	typedef typename Modular<T>::type A;
	static DEVICE A identity() { return 1; }
	static DEVICE A lift(T x, i64) { return A(x); }
	static DEVICE A merge(A a, A b) { return a * b; }
	static DEVICE T finish(A a) { return T(a); }
};
template <> struct Prod<i64> : Modulo<i64> {};
template <> struct Prod<i32> : Modulo<i32> {};
template <> struct Prod<u8> : Modulo<u8> {};

template <class T> struct Limits;
template <> struct Limits<f32> {
	static constexpr f32 least = -__builtin_huge_valf(), most = __builtin_huge_valf();
};
template <> struct Limits<f64> {
	static constexpr f64 least = -__builtin_huge_val(), most = __builtin_huge_val();
};
template <> struct Limits<i64> {
	static constexpr i64 least = i64(1ull << 63), most = ~least;
};
template <> struct Limits<i32> {
	static constexpr i32 least = i32(1u << 31), most = ~least;
};
template <> struct Limits<u8> {
	static constexpr u8 least = 0, most = 255;
};

// Extreme is the largest or smallest element; NaN wins.
template <class T, bool largest> struct Extreme {
	typedef wide<T> A;
	static DEVICE A identity() { return largest ? Limits<A>::least : Limits<A>::most; }
	static DEVICE A lift(T x, i64) { return widen(x); }
	static DEVICE A merge(A a, A b) {
		if constexpr (__is_same(A, f32))
			return largest ? maxNaN(a, b) : minNaN(a, b);
		if constexpr (__is_same(A, f64))
			if (a != a)
				return a;
		if (largest)
			return a > b ? a : b;
		return a < b ? a : b;
	}
	static DEVICE T finish(A a) { return narrow<T>(a); }
};

// Found is an element and its place.
template <class W> struct Found {
	W value;
	i64 at;
};

// Arg is the place of the largest or smallest element: the first of equals, and the first NaN before all.
template <class T, bool largest> struct Arg {
	typedef wide<T> W;
	typedef Found<W> A;
	static DEVICE A identity() { return {largest ? Limits<W>::least : Limits<W>::most, Limits<i64>::most}; }
	static DEVICE A lift(T x, i64 at) { return {widen(x), at}; }
	static DEVICE A merge(A a, A b) {
		bool wins = largest ? b.value > a.value : b.value < a.value;
		if constexpr (W(0.5) != 0) {
			bool nan = a.value != a.value;
			wins = b.value != b.value ? !nan || b.at < a.at : wins && !nan;
		}
		return wins || (b.value == a.value && b.at < a.at) ? b : a;
	}
	static DEVICE i64 finish(A a) { return a.at; }
};

template <class W> DEVICE Found<W> shuffleXor(Found<W> f, int mask) {
	return {W(shuffleXor(f.value, mask)), shuffleXor(f.at, mask)};
}
DEVICE Exact shuffleXor(Exact e, int mask) { return {shuffleXor(e.value, mask), shuffleXor(e.lost, mask)}; }
DEVICE u8 shuffleXor(u8 v, int mask) { return u8(shuffleXor(u32(v), mask)); }

// Runs is how the elements of a result come: in vectors of 16 bytes or not, and if so, whether all are aligned when the
// first is.
enum Runs : i64 { none, unaligning, aligning };

// Fold is one reduction: every result folds n elements, in parts that different blocks take.
struct Fold {
	i64 results, n;
	i64 partLen;     // elements of a part, a multiple of 16
	i64 parts;       // gridDim.y
	i64 runs;        // Runs
	i64 lanes;       // threads that take a result together (rows), or results that a block takes side by side (columns)
	Strided kept;    // the results' first elements in x
	Strided places;  // the results in the output
	Strided reduced; // the elements of a result, from its first
};

// keep stores a part's accumulator: as result, or for merge_parts.
template <class Op, class R> DEVICE void keep(R *out, typename Op::A *partial, const Fold &f, i64 result, const typename Op::A &a) {
	if (f.parts == 1)
		out[f.places.at(result)] = Op::finish(a);
	else
		partial[result * f.parts + blockIdx.y] = a;
}

// together merges the accumulators of neighbouring threads: a power of two up to a warp, or the whole block. The first
// of them gets the result.
template <class Op> DEVICE typename Op::A together(typename Op::A a, u32 lanes) {
	for (u32 m = (lanes < 32 ? lanes : 32) / 2; m > 0; m /= 2)
		a = Op::merge(a, shuffleXor(a, m));
	if (lanes <= 32)
		return a;
	__shared__ typename Op::A warps[8];
	if (laneID() == 0)
		warps[threadIdx.x / 32] = a;
	barrier();
	if (threadIdx.x == 0)
		for (u32 w = 1; w < blockDim.x / 32; w++)
			a = Op::merge(a, warps[w]);
	return a;
}

// Lane is a thread's share of a row: vectors of 16 bytes, its own and every lanes-th after it, into as many
// accumulators as give the additions something to overlap with.
template <class Op, class T> struct Lane {
	typedef typename Op::A A;
	static const int N = 16 / sizeof(T), W = N < 4 ? N : 4, unrolled = sizeof(A) <= 8 && N <= 4 ? 4 : 1;
	A acc[W];

	DEVICE Lane() {
#pragma unroll
		for (int k = 0; k < W; k++)
			acc[k] = Op::identity();
	}

	DEVICE void add(const Vec<T, N> &v, i64 j) {
#pragma unroll
		for (int k = 0; k < N; k++)
			acc[k % W] = Op::merge(acc[k % W], Op::lift(v.v[k], j + k));
	}

	DEVICE A total() {
#pragma unroll
		for (int h = W / 2; h > 0; h /= 2)
#pragma unroll
			for (int k = 0; k < h; k++)
				acc[k] = Op::merge(acc[k], acc[k + h]);
		return acc[0];
	}

	// row folds elements from..to of a row. Vectors that are not aligned are loaded element by element; where the
	// elements do not come in vectors, neighbouring threads take neighbours.
	DEVICE A row(const T *x, const Strided &at, i64 runs, i64 from, i64 to, u32 lane, u32 lanes) {
		i64 vectors = runs != none ? (to - from) / N : 0;
		if (at.rank == 1 && aligned(x + from, 16)) {
#pragma unroll unrolled
			for (i64 i = lane; i < vectors; i += lanes)
				add(load<N>(x + from + i * N, true), from + i * N);
		} else if (runs == aligning && aligned(x, 16)) {
#pragma unroll 1
			for (i64 i = lane; i < vectors; i += lanes)
				add(load<N>(x + at.at(from + i * N), true), from + i * N);
		} else {
#pragma unroll 1
			for (i64 i = lane; i < vectors; i += lanes)
				add(load<N>(x + at.at(from + i * N), false), from + i * N);
		}
#pragma unroll 1
		for (i64 j = from + vectors * N + lane; j < to; j += lanes)
			acc[0] = Op::merge(acc[0], Op::lift(x[at.at(j)], j));
		return total();
	}
};

// rows folds where the elements of a result are nearer to each other in memory than to those of the next. Groups of
// 1 to 32 threads, or a block, take a result; blockIdx.y is the part.
template <class Op, class T, class R> DEVICE void rows(R *out, typename Op::A *partial, const T *x, const Fold &f) {
	u32 lanes = f.lanes, lane = threadIdx.x & (lanes - 1);
	i64 result = i64(blockIdx.x) * (blockDim.x / lanes) + threadIdx.x / lanes;
	i64 from = blockIdx.y * f.partLen, to = from + f.partLen < f.n ? from + f.partLen : f.n;
	typename Op::A a = Op::identity();
	if (result < f.results)
		a = Lane<Op, T>().row(x + f.kept.at(result), f.reduced, f.runs, from, to, lane, lanes);
	a = together<Op>(a, lanes);
	if (result < f.results && lane == 0)
		keep<Op>(out, partial, f, result, a);
}

// columns folds where neighbouring results are neighbours in memory. A block takes f.lanes of them, a power of two; its
// other threads are rows that start one element apart and meet in shared memory. blockIdx.y is the part.
template <class Op, class T, class R> DEVICE void columns(R *out, typename Op::A *partial, const T *x, const Fold &f) {
	typedef typename Op::A A;
	u32 width = f.lanes, height = blockDim.x / width, row = threadIdx.x / width, t = threadIdx.x;
	i64 result = i64(blockIdx.x) * width + (t & (width - 1));
	i64 j = blockIdx.y * f.partLen + row, to = (blockIdx.y + 1) * f.partLen;
	to = to < f.n ? to : f.n;
	A acc[4] = {Op::identity(), Op::identity(), Op::identity(), Op::identity()};
	if (result < f.results) {
		const T *column = x + f.kept.at(result);
		if (f.reduced.rank == 1) {
			i64 step = f.reduced.dims[0].stride;
			for (; j + 3 * height < to; j += 4 * height)
#pragma unroll
				for (int k = 0; k < 4; k++)
					acc[k] = Op::merge(acc[k], Op::lift(column[(j + k * height) * step], j + k * height));
		}
		for (; j < to; j += height)
			acc[0] = Op::merge(acc[0], Op::lift(column[f.reduced.at(j)], j));
	}
	A a = Op::merge(Op::merge(acc[0], acc[1]), Op::merge(acc[2], acc[3]));
	__shared__ A grid[256];
	grid[t] = a;
	for (u32 h = height / 2; h > 0; h /= 2) {
		barrier();
		if (row < h)
			grid[t] = a = Op::merge(a, grid[t + h * width]);
	}
	if (row == 0 && result < f.results)
		keep<Op>(out, partial, f, result, a);
}

// mergeParts makes results of the parts' accumulators. A group of up to a warp takes a result.
template <class Op, class R> DEVICE void mergeParts(R *out, const typename Op::A *partial, i64 results, i64 parts, i32 lanes, const Strided &places) {
	i64 result = i64(blockIdx.x) * (256 / lanes) + threadIdx.x / lanes;
	u32 lane = threadIdx.x & (lanes - 1);
	typename Op::A a = Op::identity();
	if (result < results)
		for (i64 p = lane; p < parts; p += lanes)
			a = Op::merge(a, partial[result * parts + p]);
	for (i32 m = lanes / 2; m > 0; m /= 2)
		a = Op::merge(a, shuffleXor(a, m));
	if (result < results && lane == 0)
		out[places.at(result)] = Op::finish(a);
}
