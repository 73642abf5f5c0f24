// ScatterAdd and EmbeddingGrad, in an order that follows from the indices alone.
//
//warpline:module index_add_f32 -DT=f32 -DNAME(op)=op##_f32
//warpline:module index_add_f64 -DT=f64 -DNAME(op)=op##_f64
//warpline:module index_add_f16 -DT=f16 -DNAME(op)=op##_f16
//warpline:module index_add_bf16 -DT=bf16 -DNAME(op)=op##_bf16
//warpline:module index_add_i64 -DT=i64 -DNAME(op)=op##_i64
//warpline:module index_add_i32 -DT=i32 -DNAME(op)=op##_i32
//warpline:module index_add_u8 -DT=u8 -DNAME(op)=op##_u8
#include "reduce.cuh"

typedef Sum<T>::A A;

// scatter_lines adds line by line along the dimension, a thread for each: different lines meet different elements.
// start is where out has index 0, in the order of idx. In 16 bits it is for lines of one element.
KERNEL(256) NAME(scatter_lines)(T *out, const i64 *__restrict__ idx, const T *__restrict__ src, i64 lines, i64 n, Divisor64 inner, i64 size, i64 step, Strided start, Fault *fault, u32 launch) {
	i64 l = globalThread();
	if (l >= lines)
		return;
	i64 outer = inner.split(l), at = outer * n * inner.by + l, line = start.at(at);
	for (i64 j = 0; j < n; j++, at += inner.by) {
		i64 v = idx[at];
		if (u64(v) >= u64(size)) {
			outOfRange(fault, launch, v, size);
			continue;
		}
		T *p = out + line + v * step;
		*p = Sum<T>::finish(Sum<T>::lift(*p, 0) + Sum<T>::lift(src[at], 0));
	}
}

// scatter_sorted adds to each element, in order, what index_sort has brought together: the thread of the first place of
// a key does so.
KERNEL(256) NAME(scatter_sorted)(T *out, const T *__restrict__ src, const u32 *__restrict__ keys, const u32 *__restrict__ places, u32 n, u32 none) {
	i64 i = globalThread();
	if (i >= n)
		return;
	u32 key = keys[i];
	if (key == none || (i > 0 && keys[i - 1] == key))
		return;
	A sum = Sum<T>::lift(out[key], 0);
	for (; i < n && keys[i] == key; i++)
		sum += Sum<T>::lift(src[places[i]], 0);
	out[key] = Sum<T>::finish(sum);
}

// ballot is the lanes for which p holds.
DEVICE u32 ballot(bool p) { return __nvvm_vote_ballot_sync(everyLane, p); }

const int across = 4; // columns of a thread, 128 apart

// Row is a thread's columns of a row of g.
struct Row {
	T v[across];

	DEVICE void load(const T *row, i64 column, i64 width) {
#pragma unroll
		for (int k = 0; k < across; k++)
			v[k] = column + 128 * k < width ? row[column + 128 * k] : T{};
	}

	DEVICE void addTo(A (&sum)[across]) const {
#pragma unroll
		for (int k = 0; k < across; k++)
			sum[k] += Sum<T>::lift(v[k], 0);
	}
};

// embedding_grad adds up, in order, the rows of g that belong to one row of the table. blockIdx.x is a sorted place; the
// block of a key's first place works, on 512 columns at blockIdx.y. A warp looks 32 places ahead and loads two rows at a
// time, so that loads do not wait for each other.
KERNEL(128) NAME(embedding_grad)(T *out, const T *__restrict__ g, const u32 *__restrict__ keys, const u32 *__restrict__ places, u32 n, u32 none, i64 width) {
	u32 i = blockIdx.x, key = keys[i];
	if (key == none || (i > 0 && keys[i - 1] == key))
		return;
	i64 column = i64(blockIdx.y) * 128 * across + threadIdx.x;
	A sum[across] = {};
	for (i32 count = 32; count == 32; i += 32) {
		u32 at = i + laneID();
		bool same = at < n && keys[at] == key;
		u32 mine = same ? places[at] : 0;
		count = __builtin_popcount(ballot(same));
		for (i32 k = 0; k < count; k += 2) {
			Row a, b;
			a.load(g + i64(__nvvm_shfl_sync_idx_i32(everyLane, mine, k, 31)) * width, column, width);
			b.load(g + i64(__nvvm_shfl_sync_idx_i32(everyLane, mine, k + 1, 31)) * width, column, k + 1 < count ? width : 0);
			a.addTo(sum);
			b.addTo(sum);
		}
	}
#pragma unroll
	for (int k = 0; k < across; k++)
		if (column + 128 * k < width)
			out[i64(key) * width + column + 128 * k] = Sum<T>::finish(sum[k]);
}
