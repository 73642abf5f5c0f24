// Running sums along a dimension of a dense operand, outer×n×inner.
//
// Contiguous lines (inner = 1) are taken by a warp each, or by a block when they are long: tiles of 4 elements per
// thread, a scan over the threads, and what the tile adds up to is carried to the next. Other lines are taken by a
// thread each, neighbours by neighbours. Where there are few lines, they are cut into parts: the sums of parts come from
// the kernels of reductions, scan_parts turns them into what comes before each part, and the parts start from there.
//
//warpline:module scan_f32 -DT=f32 -DNAME(op)=op##_f32
//warpline:module scan_f64 -DT=f64 -DNAME(op)=op##_f64
//warpline:module scan_f16 -DT=f16 -DNAME(op)=op##_f16
//warpline:module scan_bf16 -DT=bf16 -DNAME(op)=op##_bf16
//warpline:module scan_i64 -DT=i64 -DNAME(op)=op##_i64
//warpline:module scan_i32 -DT=i32 -DNAME(op)=op##_i32
//warpline:module scan_u8 -DT=u8 -DNAME(op)=op##_u8
#include "reduce.cuh"

typedef Sum<T>::A A;

// Lines is the launch of a scan.
struct Lines {
	i64 lines, n, inner;
	i64 partLen, parts; // gridDim.y
};

// before is the sum of a line's elements before a part.
DEVICE A before(const A *partial, const Lines &s, i64 line) {
	return s.parts > 1 ? partial[line * s.parts + blockIdx.y] : A(0);
}

template <class A> DEVICE A shuffleUp(A v, u32 by) {
	if constexpr (sizeof(A) == 8) {
		u64 bits = __builtin_bit_cast(u64, v);
		u32 low = __nvvm_shfl_sync_up_i32(everyLane, i32(bits), by, 0), high = __nvvm_shfl_sync_up_i32(everyLane, i32(bits >> 32), by, 0);
		return __builtin_bit_cast(A, u64(high) << 32 | low);
	} else {
		return __builtin_bit_cast(A, __nvvm_shfl_sync_up_i32(everyLane, __builtin_bit_cast(i32, v), by, 0));
	}
}

// shuffleLast is the last lane's v.
template <class A> DEVICE A shuffleLast(A v) {
	if constexpr (sizeof(A) == 8) {
		u64 bits = __builtin_bit_cast(u64, v);
		u32 low = __nvvm_shfl_sync_idx_i32(everyLane, i32(bits), 31, 31), high = __nvvm_shfl_sync_idx_i32(everyLane, i32(bits >> 32), 31, 31);
		return __builtin_bit_cast(A, u64(high) << 32 | low);
	} else {
		return __builtin_bit_cast(A, __nvvm_shfl_sync_idx_i32(everyLane, __builtin_bit_cast(i32, v), 31, 31));
	}
}

// inWarp is the sum of v over the lanes up to this one.
DEVICE A inWarp(A v) {
#pragma unroll
	for (u32 d = 1; d < 32; d *= 2) {
		A left = shuffleUp(v, d);
		if (laneID() >= d)
			v += left;
	}
	return v;
}

// scanRow scans elements from..to of a row by a warp (threads = 32) or a block.
template <u32 threads> DEVICE void scanRow(T *out, const T *x, i64 from, i64 to, A carry) {
	const int N = 4;
	u32 t = threadIdx.x % threads;
	__shared__ A warps[threads / 32 + 1][2];
	for (i64 tile = from, odd = 0; tile < to; tile += threads * N, odd ^= 1) {
		i64 i = tile + t * N;
		A v[N], own = 0;
		bool whole = i + N <= to && aligned(x + i, sizeof(Vec<T, N>)) && aligned(out + i, sizeof(Vec<T, N>));
		Vec<T, N> w = {};
		if (whole) {
			w = load<N>(x + i, true);
		} else {
#pragma unroll
			for (int k = 0; k < N; k++)
				if (i + k < to)
					w.v[k] = x[i + k];
		}
#pragma unroll
		for (int k = 0; k < N; k++)
			v[k] = own += Sum<T>::lift(w.v[k], 0);
		A sum = inWarp(own);
		A start = shuffleUp(sum, 1);
		start = laneID() == 0 ? carry : carry + start;
		if constexpr (threads > 32) {
			// Two sets of cells, so that one barrier per tile is enough.
			if (laneID() == 31)
				warps[t / 32][odd] = sum;
			barrier();
			A all = 0, left = 0;
#pragma unroll
			for (u32 k = 0; k < threads / 32; k++) {
				if (k == t / 32)
					left = all;
				all += warps[k][odd];
			}
			start += left;
			carry += all;
		} else {
			carry += shuffleLast(sum);
		}
#pragma unroll
		for (int k = 0; k < N; k++)
			w.v[k] = Sum<T>::finish(start + v[k]);
		if (whole) {
			storeWhole<N>(out + i, w);
		} else {
#pragma unroll
			for (int k = 0; k < N; k++)
				if (i + k < to)
					out[i + k] = w.v[k];
		}
	}
}

KERNEL(256) NAME(scan_rows)(T *out, const T *__restrict__ x, const A *__restrict__ partial, Lines s) {
	i64 row = globalThread() / 32;
	if (row < s.lines)
		scanRow<32>(out + row * s.n, x + row * s.n, 0, s.n, 0);
}

KERNEL(256) NAME(scan_long_rows)(T *out, const T *__restrict__ x, const A *__restrict__ partial, Lines s) {
	i64 row = blockIdx.x, from = blockIdx.y * s.partLen, to = from + s.partLen < s.n ? from + s.partLen : s.n;
	scanRow<256>(out + row * s.n, x + row * s.n, from, to, before(partial, s, row));
}

KERNEL(256) NAME(scan_columns)(T *out, const T *__restrict__ x, const A *__restrict__ partial, Lines s) {
	i64 line = globalThread();
	if (line >= s.lines)
		return;
	i64 outer = line / s.inner, at = outer * s.n * s.inner + (line - outer * s.inner);
	i64 j = blockIdx.y * s.partLen, to = j + s.partLen < s.n ? j + s.partLen : s.n;
	A sum = before(partial, s, line);
	at += j * s.inner;
	for (; j + 4 <= to; j += 4, at += 4 * s.inner) {
		T v[4]; // all on their way before the first is waited for
#pragma unroll
		for (int k = 0; k < 4; k++)
			v[k] = x[at + k * s.inner];
#pragma unroll
		for (int k = 0; k < 4; k++) {
			sum += Sum<T>::lift(v[k], 0);
			out[at + k * s.inner] = Sum<T>::finish(sum);
		}
	}
	for (; j < to; j++, at += s.inner) {
		sum += Sum<T>::lift(x[at], 0);
		out[at] = Sum<T>::finish(sum);
	}
}

// scan_parts replaces the sums of a line's parts by what comes before each, a warp for a line.
KERNEL(256) NAME(scan_parts)(A *partial, i64 lines, i64 parts) {
	i64 line = globalThread() / 32;
	if (line >= lines)
		return;
	A carry = 0;
	for (i64 tile = 0; tile < parts; tile += 32) {
		i64 p = tile + laneID();
		A own = p < parts ? partial[line * parts + p] : A(0), sum = inWarp(own), start = shuffleUp(sum, 1);
		if (p < parts)
			partial[line * parts + p] = laneID() == 0 ? carry : carry + start;
		carry += shuffleLast(sum);
	}
}
