// What kernels over rows share: teams of threads that take a row together, and sweeps over a row in steps of 16 bytes
// where its place and length allow, else element by element.
#pragma once
#include "math.cuh"

// Pack is N neighbours in the type they are computed in.
template <class W, int N> struct Pack {
	W v[N];
	DEVICE W &operator[](int i) { return v[i]; }
	DEVICE W operator[](int i) const { return v[i]; }
};

typedef u32 Words2 __attribute__((ext_vector_type(2)));
typedef u32 Words4 __attribute__((ext_vector_type(4)));

// Piece is the widest part of so many bytes that memory moves at once.
template <int bytes> struct Piece {
	typedef Words4 type;
};
template <> struct Piece<8> {
	typedef Words2 type;
};
template <class T, int N> union Raw {
	typedef typename Piece<N * sizeof(T)>::type Part;
	static const int parts = N * sizeof(T) / sizeof(Part);
	Part part[parts];
	T v[N];
};

// load reads N elements: one, or as many as fill a multiple of 8 bytes to which p is aligned.
template <int N, class T> DEVICE Pack<wide<T>, N> load(const T *p) {
	Pack<wide<T>, N> out;
	if constexpr (N == 1) {
		out[0] = widen(*p);
	} else {
		Raw<T, N> raw;
#pragma unroll
		for (int i = 0; i < raw.parts; i++)
			raw.part[i] = ((const typename Raw<T, N>::Part *)p)[i];
#pragma unroll
		for (int i = 0; i < N; i++)
			out[i] = widen(raw.v[i]);
	}
	return out;
}

template <int N, class T> DEVICE void store(T *p, const Pack<wide<T>, N> &x) {
	if constexpr (N == 1) {
		*p = narrow<T>(x[0]);
	} else {
		Raw<T, N> raw;
#pragma unroll
		for (int i = 0; i < N; i++)
			raw.v[i] = narrow<T>(x[i]);
#pragma unroll
		for (int i = 0; i < raw.parts; i++)
			((typename Raw<T, N>::Part *)p)[i] = raw.part[i];
	}
}

// perStep is how many elements a thread takes at once in a sweep by 16 bytes.
template <class T> constexpr int perStep = 16 / sizeof(T);

// inSteps is whether rows of d elements at all the places can be swept by steps of n elements of T.
template <int n, class T, class... Ps> DEVICE bool inSteps(i64 d, const T *p, const Ps *...more) {
	u64 places = (u64(p) | ... | u64(more));
	const int piece = n * sizeof(T) < 16 ? n * sizeof(T) : 16;
	return (u64(d % n) | places % piece) == 0;
}

template <int N> struct Width {
	static constexpr int value = N;
};

// sweep calls body(Width<N>, i) for the elements i to i+N of a row that fall to one of a team's threads.
template <class T, class Team, class Body> DEVICE void sweep(Team team, bool wideSteps, i32 d, Body body) {
	constexpr int n = perStep<T>;
	if (wideSteps)
		for (i32 i = team.rank() * n; i < d; i += team.size() * n)
			body(Width<n>{}, i);
	else
		for (i32 i = team.rank(); i < d; i += team.size())
			body(Width<1>{}, i);
}

// lead is how many elements of rows at all the places come before the first at a multiple of 16 bytes; all d of them where
// the places differ in that.
template <class T, class... Ps> DEVICE i32 lead(i32 d, const T *p, const Ps *...more) {
	u32 off = u64(p) % 16;
	bool alike = ((u64(more) % 16 == off) && ... && true);
	i32 n = (16 - off) % 16 / sizeof(T);
	return alike && n < d ? n : d;
}

// sweepFrom is a sweep of a row in steps of 16 bytes after its lead: those elements, and the last, are taken singly.
template <class T, class Team, class Body> DEVICE void sweepFrom(Team team, i32 lead, i32 d, Body body) {
	constexpr int n = perStep<T>;
	i32 end = lead + (d - lead) / n * n, singly = lead + d - end;
	for (i32 i = lead + team.rank() * n; i < end; i += team.size() * n)
		body(Width<n>{}, i);
	for (i32 i = team.rank(); i < singly; i += team.size())
		body(Width<1>{}, i < lead ? i : i - lead + end);
}

struct Plus {
	template <class W> DEVICE W operator()(W a, W b) const { return a + b; }
};
struct Larger {
	DEVICE f32 operator()(f32 a, f32 b) const { return __nvvm_fmax_f(a, b); }
	DEVICE f64 operator()(f64 a, f64 b) const { return __nvvm_fmax_d(a, b); }
};

// butterfly combines the values of the first lanes of a warp, a power of two; each of them gets the result.
template <class W, class Op> DEVICE W butterfly(W v, Op op, int lanes = 32) {
	for (int mask = lanes / 2; mask > 0; mask /= 2)
		v = op(v, shuffleXor(v, mask));
	return v;
}

// broadcast is a lane's value, in every lane.
DEVICE f32 broadcast(f32 v, int lane) { return __nvvm_shfl_sync_idx_f32(everyLane, v, lane, 31); }
DEVICE f64 broadcast(f64 v, int lane) {
	u64 bits = __builtin_bit_cast(u64, v);
	u32 low = __nvvm_shfl_sync_idx_i32(everyLane, u32(bits), lane, 31);
	u32 high = __nvvm_shfl_sync_idx_i32(everyLane, u32(bits >> 32), lane, 31);
	return __builtin_bit_cast(f64, u64(high) << 32 | low);
}

// WarpTeam is a warp for a row.
struct WarpTeam {
	DEVICE static int rank() { return laneID(); }
	DEVICE static int size() { return 32; }
	DEVICE static i64 first() { return globalThread() / 32; }
	DEVICE static i64 stride() { return globalThreads() / 32; }
	DEVICE static void sync() { syncWarp(); }
	template <class W, class Op> DEVICE static W all(W v, Op op) { return butterfly(v, op); }
};

// BlockTeam is a block for a row.
struct BlockTeam {
	DEVICE static int rank() { return threadIdx.x; }
	DEVICE static int size() { return blockDim.x; }
	DEVICE static i64 first() { return blockIdx.x; }
	DEVICE static i64 stride() { return gridDim.x; }
	DEVICE static void sync() { barrier(); }
	template <class W, class Op> DEVICE static W all(W v, Op op) {
		__shared__ W parts[32];
		int warps = blockDim.x / 32;
		v = butterfly(v, op);
		if (laneID() == 0)
			parts[threadIdx.x / 32] = v;
		barrier();
		v = butterfly(parts[laneID() % warps], op, warps);
		barrier();
		return v;
	}
};

template <class W> constexpr W infinity = W(__builtin_huge_val());

// fastExp is exp for differences from a maximum: off by 2 ulp and |x|/2 ulp, which is the error of x itself.
DEVICE f32 fastExp(f32 x) { return __nvvm_ex2_approx_f(x * 1.4426950408889634f); }
DEVICE f64 fastExp(f64 x) { return exp(x); }

// fastLog is log of a sum that is at least 1: off by 2⁻²² absolutely below 2, relatively above.
DEVICE f32 fastLog(f32 x) { return __nvvm_lg2_approx_f(x) * 0.6931471805599453f; }
DEVICE f64 fastLog(f64 x) { return log(x); }


// finite replaces -∞, the maximum of nothing, by 0, so that exp(-∞ - it) is 0.
template <class W> DEVICE W finite(W v) { return v == -infinity<W> ? W(0) : v; }

// Online is the maximum of numbers and the sum of exp(number - maximum), kept while they come in (Milakov and Gimelshein,
// arXiv 1805.02867).
template <class W> struct Online {
	W max = -infinity<W>, sum = 0;

	template <int N> DEVICE void add(const Pack<W, N> &x) {
		W high = max;
#pragma unroll
		for (int i = 0; i < N; i++)
			high = Larger{}(high, x[i]);
		W shift = finite(high);
		sum *= fastExp(max - shift);
#pragma unroll
		for (int i = 0; i < N; i++)
			sum += fastExp(x[i] - shift);
		max = high;
	}

	// join makes it that of a team's threads together.
	template <class Team> DEVICE void join(Team team) {
		W high = team.all(max, Larger{});
		sum = team.all(sum * fastExp(max - finite(high)), Plus{});
		max = high;
	}
};
