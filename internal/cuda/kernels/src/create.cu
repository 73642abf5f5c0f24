// Full and Iota into any layout. A thread takes 16 bytes at a time where the result is contiguous, whose ends beyond
// the aligned middle are written element by element.
//
//warpline:module create_fill -DFILL
//warpline:module create_iota_f32 -DT=f32 -DNAME(op)=op##_f32
//warpline:module create_iota_f64 -DT=f64 -DNAME(op)=op##_f64
//warpline:module create_iota_f16 -DT=f16 -DNAME(op)=op##_f16
//warpline:module create_iota_bf16 -DT=bf16 -DNAME(op)=op##_bf16
//warpline:module create_iota_i64 -DT=i64 -DNAME(op)=op##_i64
//warpline:module create_iota_i32 -DT=i32 -DNAME(op)=op##_i32
//warpline:module create_iota_u8 -DT=u8 -DNAME(op)=op##_u8
#include "cell.cuh"
#include "index.cuh"

#ifdef FILL

template <class T> DEVICE void fill(T *out, T value, i64 n, const Strided &y) {
	if (!y.contiguous()) {
		for (i64 i = globalThread(); i < n; i += globalThreads())
			out[y.at(i)] = value;
		return;
	}
	const int N = 16 / sizeof(T);
	i64 head = (16 - u64(out) % 16) % 16 / sizeof(T), t = globalThread();
	head = head < n ? head : n;
	i64 vectors = (n - head) / N, tail = head + vectors * N;
	Vec<T, N> v;
#pragma unroll
	for (int k = 0; k < N; k++)
		v.v[k] = value;
	if (t < head)
		out[t] = value;
	if (tail + t < n)
		out[tail + t] = value;
	for (i64 i = t; i < vectors; i += globalThreads())
		storeWhole<N>(out + head + i * N, v);
}

KERNEL(256) fill_b8(u8 *out, u8 value, i64 n, Strided y) { fill(out, value, n, y); }
KERNEL(256) fill_b16(u16 *out, u16 value, i64 n, Strided y) { fill(out, value, n, y); }
KERNEL(256) fill_b32(u32 *out, u32 value, i64 n, Strided y) { fill(out, value, n, y); }
KERNEL(256) fill_b64(u64 *out, u64 value, i64 n, Strided y) { fill(out, value, n, y); }

#else

// count computes in f64, product and sum rounded one after the other as on the CPU, and converts once. A thread makes
// four neighbours.
template <class T> DEVICE void count(T *out, f64 first, f64 step, i64 n, const Strided &y) {
#pragma clang fp contract(off)
	const int N = 4;
	for (i64 i = globalThread() * N; i < n; i += globalThreads() * N) {
		Vec<T, N> v;
#pragma unroll
		for (int k = 0; k < N; k++)
			v.v[k] = convert<T>(first + f64(i + k) * step);
		store<N>(out, y, i, n, v);
	}
}

KERNEL(256) NAME(iota)(T *out, Word<f64> first, Word<f64> step, i64 n, Strided y) { count(out, f64(first), f64(step), n, y); }

#endif
