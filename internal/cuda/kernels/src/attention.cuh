// What the attention kernels share: sizes, and which keys a query sees.
//
// o = softmax(scale·q·kᵀ + mask)·v per head, with q[t,d], k[s,d], v[s,e]. lse[t] is the log-sum-exp of the scores. A query that sees no key has the result 0 and the log-sum-exp -∞, and gives no gradient.
//
// The gradient, with p = exp(score - lse) and delta = Σ g·o of each query: dv = pᵀ·g, ds = p∘(g·vᵀ - delta),
// dq = scale·ds·k, dk = scale·dsᵀ·q. Each of dq, dk, dv is summed by the block that owns its rows, in one order.
#pragma once
#include "rows.cuh"

DEVICE i32 atMost(i32 x, i32 most) { return x < most ? x : most; }

enum MaskKind : i32 { noMask, seenMask, addedMask };

// HeadRows says where the rows of an operand lie: distances in elements. Its twin in Go is headRows.
struct HeadRows {
	i64 batch, head;
	i64 row; // in 32 bits
};

// Heads is the sizes of an attention and the layout of its operands; o's is also that of g, and q's that of dq. Its twin in
// Go is headSizes.
struct Heads {
	i32 count, t, s, d, e;
	i32 causal;
	MaskKind maskKind;
	i32 perBatch;
	HeadRows q, k, v, o;

	// place is that of a row of a head, counted over all batches.
	DEVICE i64 place(const HeadRows &r, u32 head, i32 row) const {
		return head / perBatch * r.batch + head % perBatch * r.head + row * r.row;
	}

	// sees is the number of keys before which those that a query sees end, by causality.
	DEVICE i32 sees(i32 query) const { return causal && query + 1 < s ? query + 1 : s; }
	// seenFrom is the first query that sees a key, by causality.
	DEVICE i32 seenFrom(i32 key) const { return causal ? key : 0; }
	// padded is the number of queries of a head in the statistics.
	DEVICE i32 padded() const { return (t + 63) / 64 * 64; }
};

// Statistic is what the gradient needs of a query: exp(score - shift) is its weight, 0 for all scores where it sees no key
// and in the padding, and delta is Σ g·o.
template <class W> struct alignas(2 * sizeof(W)) Statistic {
	W shift, delta;
};
