// Attention of any sizes and element type, in the precision of wide<T>. For float64, and for heads too large for the
// kernels that hold a whole row in registers.
//
// A warp owns a row of the result (a query, or a key for dk and dv) and 128 of its columns, blockIdx.y says which. It goes
// over the other side 32 rows at a time: each lane has the score of one of them, then all lanes add that row times its
// weight.
//
//warpline:module attention_any_f32 -DELEM=f32 -DNAME(op)=op##_f32
//warpline:module attention_any_f64 -DELEM=f64 -DNAME(op)=op##_f64
//warpline:module attention_any_f16 -DELEM=f16 -DNAME(op)=op##_f16
//warpline:module attention_any_bf16 -DELEM=bf16 -DNAME(op)=op##_bf16
#include "attention.cuh"

const int perLane = 4; // columns

// Columns is the part of a row that a warp sums up.
template <class W> struct Columns {
	W sum[perLane] = {};

	static DEVICE i32 column(int i) { return (blockIdx.y * perLane + i) * 32 + laneID(); }

	DEVICE void scale(W by) {
#pragma unroll
		for (int i = 0; i < perLane; i++)
			sum[i] *= by;
	}

	// add adds weight times a row of n elements.
	template <class T> DEVICE void add(W weight, const T *row, i32 n) {
#pragma unroll
		for (int i = 0; i < perLane; i++)
			if (column(i) < n)
				sum[i] += weight * widen(row[column(i)]);
	}

	template <class T> DEVICE void store(T *row, i32 n, W by) const {
#pragma unroll
		for (int i = 0; i < perLane; i++)
			if (column(i) < n)
				row[column(i)] = narrow<T>(sum[i] * by);
	}
};

template <class T> DEVICE wide<T> dot(const T *x, const T *y, i32 n) {
	wide<T> a = 0, b = 0;
	i32 i = 0;
	for (; i + 1 < n; i += 2) {
		a += widen(x[i]) * widen(y[i]);
		b += widen(x[i + 1]) * widen(y[i + 1]);
	}
	if (i < n)
		a += widen(x[i]) * widen(y[i]);
	return a + b;
}

// masked brings the mask into a score; at is the place in mask[count,t,s].
template <class T> DEVICE wide<T> masked(wide<T> score, MaskKind kind, const T *mask, i64 at) {
	if (kind == addedMask)
		return score + widen(mask[at]);
	if (kind == seenMask && ((const u8 *)mask)[at] == 0)
		return -infinity<wide<T>>;
	return score;
}

template <class T>
DEVICE void forward(T *o, wide<T> *lse, const T *q, const T *k, const T *v, const T *mask, const Heads &h, wide<T> scale) {
	typedef wide<T> W;
	const T *q0, *k0, *v0;
	for (i64 row = WarpTeam::first(); row < i64(h.count) * h.t; row += WarpTeam::stride()) {
		i64 head = row / h.t;
		i32 query = i32(row % h.t), seen = h.sees(query);
		q0 = q + h.place(h.q, head, query), k0 = k + h.place(h.k, head, 0), v0 = v + h.place(h.v, head, 0);
		W high = -infinity<W>, total = 0;
		Columns<W> out;
		for (i32 first = 0; first < seen; first += 32) {
			i32 key = first + laneID(), count = atMost(seen - first, 32);
			W score = -infinity<W>;
			if (key < seen)
				score = masked(dot(q0, k0 + key * h.k.row, h.d) * scale, h.maskKind, mask, row * h.s + key);
			W higher = Larger{}(high, WarpTeam::all(score, Larger{})), shift = finite(higher);
			W fade = fastExp(high - shift), p = fastExp(score - shift);
			high = higher;
			total = total * fade + WarpTeam::all(p, Plus{});
			out.scale(fade);
			for (i32 j = 0; j < count; j++)
				out.add(broadcast(p, j), v0 + (first + j) * h.v.row, h.e);
		}
		out.store(o + h.place(h.o, head, query), h.e, total == 0 ? W(0) : 1 / total);
		if (laneID() == 0 && blockIdx.y == 0)
			lse[row] = high + fastLog(total);
	}
}

// Operands are those of the gradient.
template <class T> struct Operands {
	const T *g, *q, *k, *v, *mask;
	const Statistic<wide<T>> *stats;
	Heads h;
	wide<T> scale;

	const T *q0, *k0, *v0, *g0; // of the head

	// enter goes to a head, counted over all batches.
	DEVICE void enter(i64 head) {
		q0 = q + h.place(h.q, head, 0), k0 = k + h.place(h.k, head, 0), v0 = v + h.place(h.v, head, 0), g0 = g + h.place(h.o, head, 0);
	}

	// at gives a pair's weight p and the gradient ds of its score.
	DEVICE void at(i64 head, i64 query, i64 key, wide<T> &p, wide<T> &ds) const {
		Statistic<wide<T>> s = stats[head * h.padded() + query];
		wide<T> score = masked(dot(q0 + query * h.q.row, k0 + key * h.k.row, h.d) * scale, h.maskKind, mask, (head * h.t + query) * h.s + key);
		p = fastExp(score - s.shift);
		ds = p * (dot(g0 + query * h.o.row, v0 + key * h.v.row, h.e) - s.delta);
	}
};

template <class T> DEVICE void queryGrad(T *dq, Operands<T> a) {
	typedef wide<T> W;
	const Heads &h = a.h;
	for (i64 row = WarpTeam::first(); row < i64(h.count) * h.t; row += WarpTeam::stride()) {
		i64 head = row / h.t;
		i32 query = i32(row % h.t), seen = h.sees(query);
		a.enter(head);
		Columns<W> out;
		for (i32 first = 0; first < seen; first += 32) {
			i32 key = first + laneID(), count = atMost(seen - first, 32);
			W p, ds = 0;
			if (key < seen)
				a.at(head, query, key, p, ds);
			for (i32 j = 0; j < count; j++)
				out.add(broadcast(ds, j), a.k0 + (first + j) * h.k.row, h.d);
		}
		out.store(dq + h.place(h.q, head, query), h.d, a.scale);
	}
}

template <class T> DEVICE void keyGrad(T *dk, T *dv, Operands<T> a) {
	typedef wide<T> W;
	const Heads &h = a.h;
	for (i64 row = WarpTeam::first(); row < i64(h.count) * h.s; row += WarpTeam::stride()) {
		i64 head = row / h.s;
		i32 key = i32(row % h.s);
		a.enter(head);
		Columns<W> keys, values;
		for (i32 first = h.seenFrom(key); first < h.t; first += 32) {
			i32 query = first + laneID(), count = atMost(h.t - first, 32);
			W p = 0, ds = 0;
			if (query < h.t)
				a.at(head, query, key, p, ds);
			for (i32 j = 0; j < count; j++) {
				values.add(broadcast(p, j), a.g0 + (first + j) * h.o.row, h.e);
				keys.add(broadcast(ds, j), a.q0 + (first + j) * h.q.row, h.d);
			}
		}
		keys.store(dk + h.place(h.k, head, key), h.d, a.scale);
		values.store(dv + h.place(h.v, head, key), h.e, 1);
	}
}

typedef wide<ELEM> STAT;

KERNEL(256)
NAME(attention_any)(ELEM *o, STAT *lse, const ELEM *q, const ELEM *k, const ELEM *v, const ELEM *mask, Heads h, STAT scale) {
	forward(o, lse, q, k, v, mask, h, scale);
}

KERNEL(256, 3)
NAME(attentiongrad_any_q)(ELEM *dq, const ELEM *g, const ELEM *q, const ELEM *k, const ELEM *v, const ELEM *mask,
                          const Statistic<STAT> *stats, Heads h, STAT scale) {
	queryGrad(dq, Operands<ELEM>{g, q, k, v, mask, stats, h, scale});
}
KERNEL(256, 2)
NAME(attentiongrad_any_kv)(ELEM *dk, ELEM *dv, const ELEM *g, const ELEM *q, const ELEM *k, const ELEM *v, const ELEM *mask,
                           const Statistic<STAT> *stats, Heads h, STAT scale) {
	keyGrad(dk, dv, Operands<ELEM>{g, q, k, v, mask, stats, h, scale});
}
