// Uniform, Normal, RandInt and Dropout. A thread evaluates Philox blocks: one makes four neighbouring elements of 24 or
// 32 random bits, or two of 53 or 64; element i depends on key and i alone. The bits are those of package rng.
//
//warpline:module random_f32 -DT=f32 -DNAME(op)=op##_f32 -DDISTRIBUTIONS
//warpline:module random_f64 -DT=f64 -DNAME(op)=op##_f64 -DDISTRIBUTIONS
//warpline:module random_f16 -DT=f16 -DNAME(op)=op##_f16 -DDISTRIBUTIONS
//warpline:module random_bf16 -DT=bf16 -DNAME(op)=op##_bf16 -DDISTRIBUTIONS
//warpline:module random_dropout_f32 -DT=f32 -DNAME(op)=op##_f32 -DDROPOUT
//warpline:module random_dropout_f64 -DT=f64 -DNAME(op)=op##_f64 -DDROPOUT
//warpline:module random_dropout_f16 -DT=f16 -DNAME(op)=op##_f16 -DDROPOUT
//warpline:module random_dropout_bf16 -DT=bf16 -DNAME(op)=op##_bf16 -DDROPOUT
//warpline:module random_int_f32 -DT=f32 -DNAME(op)=op##_f32
//warpline:module random_int_f64 -DT=f64 -DNAME(op)=op##_f64
//warpline:module random_int_f16 -DT=f16 -DNAME(op)=op##_f16
//warpline:module random_int_bf16 -DT=bf16 -DNAME(op)=op##_bf16
//warpline:module random_int_i64 -DT=i64 -DNAME(op)=op##_i64
//warpline:module random_int_i32 -DT=i32 -DNAME(op)=op##_i32
//warpline:module random_int_u8 -DT=u8 -DNAME(op)=op##_u8
#include "cell.cuh"
#include "index.cuh"
#include "philox.cuh"

// below is the largest number that [lo, hi) holds in its type, hi where that is empty.
DEVICE f32 below(f32 lo, f32 hi) {
	if (!(lo < hi))
		return hi;
	u32 bits = __builtin_bit_cast(u32, hi);
	return __builtin_bit_cast(f32, hi > 0 ? bits - 1 : hi < 0 ? bits + 1 : 0x80000001);
}

DEVICE f64 below(f64 lo, f64 hi) {
	if (!(lo < hi))
		return hi;
	u64 bits = __builtin_bit_cast(u64, hi);
	return __builtin_bit_cast(f64, hi > 0 ? bits - 1 : hi < 0 ? bits + 1 : 0x8000000000000001);
}

// bounded rounds v, which is below hi, to T, and to the number before where that reaches hi.
template <class T> DEVICE T bounded(f32 v, f64 lo, f64 hi) {
	T y = narrow<T>(v);
	if constexpr (sizeof(T) == 2) {
		if (lo < hi && f64(widen(y)) >= hi) {
			T under = {u16(hi > 0 ? y.bits - 1 : hi < 0 ? y.bits + 1 : 0x8001)};
			if (f64(widen(under)) >= lo)
				return under;
		}
	}
	return y;
}

// draw calls f(block, index of its first element) for the blocks that the elements come from, N of each.
template <int N, class F> DEVICE void draw(u64 key, i64 n, F f) {
	for (i64 b = globalThread(); b * N < n; b += globalThreads())
		f(philox(key, b), b * N);
}

#if defined DISTRIBUTIONS

DEVICE void uniform32(T *out, f64 lo, f64 hi, u64 key, i64 n, const Strided &y) {
	f64 base = f32(lo), width = f64(f32(hi)) - base;
	if (base == 0 && width == 1) { // what f64 would give, without it
		draw<4>(key, n, [&](Block r, i64 i) {
			Vec<T, 4> v;
#pragma unroll
			for (int k = 0; k < 4; k++)
				v.v[k] = bounded<T>(f32(r.r[k] >> 8) * 0x1p-24f, lo, hi);
			store<4>(out, y, i, n, v);
		});
		return;
	}
	f32 last = below(f32(lo), f32(hi));
	draw<4>(key, n, [&](Block r, i64 i) {
#pragma clang fp contract(off)
		Vec<T, 4> v;
#pragma unroll
		for (int k = 0; k < 4; k++) {
			f32 u = f32(base + width * unit24(r.r[k]));
			v.v[k] = bounded<T>(u < last ? u : last, lo, hi);
		}
		store<4>(out, y, i, n, v);
	});
}

DEVICE void uniform64(f64 *out, f64 lo, f64 hi, u64 key, i64 n, const Strided &y) {
#pragma clang fp contract(off)
	f64 width = hi - lo, last = below(lo, hi);
	draw<2>(key, n, [&](Block r, i64 i) {
#pragma clang fp contract(off)
		Vec<f64, 2> v;
#pragma unroll
		for (int k = 0; k < 2; k++) {
			f64 u = lo + width * unit53(r.r[2 * k], r.r[2 * k + 1]);
			v.v[k] = u < last ? u : last;
		}
		store<2>(out, y, i, n, v);
	});
}

DEVICE void normal32(T *out, f64 mean, f64 std, u64 key, i64 n, const Strided &y) {
	f64 mu = f32(mean), sigma = f32(std);
	draw<4>(key, n, [&](Block r, i64 i) {
#pragma clang fp contract(off)
		Vec<T, 4> v;
#pragma unroll
		for (int k = 0; k < 4; k += 2) {
			Normals z = boxMuller((f64(r.r[k]) + 0.5) * 0x1p-32, u64(r.r[k + 1]) << 32);
			v.v[k] = narrow<T>(f32(mu + sigma * z.a));
			v.v[k + 1] = narrow<T>(f32(mu + sigma * z.b));
		}
		store<4>(out, y, i, n, v);
	});
}

DEVICE void normal64(f64 *out, f64 mean, f64 std, u64 key, i64 n, const Strided &y) {
	draw<2>(key, n, [&](Block r, i64 i) {
#pragma clang fp contract(off)
		Normals z = boxMuller(unit53(r.r[0], r.r[1]) + 0x1p-54, join(r.r[2], r.r[3]));
		store<2>(out, y, i, n, Vec<f64, 2>{{mean + std * z.a, mean + std * z.b}});
	});
}

template <class U> constexpr bool is64 = sizeof(U) == 8;

KERNEL(256) NAME(uniform)(T *out, Word<f64> lo, Word<f64> hi, Word<u64> key, i64 n, Strided y) {
	if constexpr (is64<T>)
		uniform64((f64 *)out, lo, hi, key, n, y);
	else
		uniform32((T *)out, lo, hi, key, n, y);
}

KERNEL(256) NAME(normal)(T *out, Word<f64> mean, Word<f64> std, Word<u64> key, i64 n, Strided y) {
	if constexpr (is64<T>)
		normal64((f64 *)out, mean, std, key, n, y);
	else
		normal32((T *)out, mean, std, key, n, y);
}

#elif defined DROPOUT

// Dropout compares numbers of 24 bits in every element type, so that all keep the same elements.
KERNEL(256) NAME(dropout)(T *out, const T *x, Word<f64> dropped, Word<u64> key, i64 n) {
	typedef wide<T> W;
	f64 rate = dropped;
	f64 steps = rate * 0x1p24;
	u32 least = steps > 0x1p24 || steps != steps ? 1 << 24 : u32(__nvvm_ceil_d(steps < 0 ? 0 : steps));
	W scale = W(1 / (1 - rate));
	bool whole = aligned(x, sizeof(Vec<T, 4>));
	draw<4>(key, n, [&](Block r, i64 i) {
		Vec<T, 4> v;
		if (i + 4 <= n) {
			v = load<4>(x + i, whole);
		} else {
#pragma unroll
			for (int k = 0; k < 4; k++)
				v.v[k] = i + k < n ? x[i + k] : T{};
		}
#pragma unroll
		for (int k = 0; k < 4; k++)
			v.v[k] = narrow<T>((r.r[k] >> 8) >= least ? widen(v.v[k]) * scale : 0);
		if (i + 4 <= n && aligned(out, sizeof v)) {
			storeWhole<4>(out + i, v);
			return;
		}
#pragma unroll
		for (int k = 0; k < 4; k++)
			if (i + k < n)
				out[i + k] = v.v[k];
	});
}

#else

// RandInt draws i64 and converts: the numbers are the same in every type that holds them.
KERNEL(256) NAME(rand_int)(T *out, Word<i64> from, Word<i64> to, Word<u64> key, i64 n, Strided y) {
	i64 lo = from, hi = to;
	u64 width = u64(hi > lo ? hi : lo) - u64(lo);
	draw<2>(key, n, [&](Block r, i64 i) {
		Vec<T, 2> v;
#pragma unroll
		for (int k = 0; k < 2; k++)
			v.v[k] = convert<T>(i64(u64(lo) + __nvvm_mulhi_ull(join(r.r[2 * k], r.r[2 * k + 1]), width)));
		store<2>(out, y, i, n, v);
	});
}

#endif
