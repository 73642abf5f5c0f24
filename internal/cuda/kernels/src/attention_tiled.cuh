// FlashAttention (arXiv 2205.14135, 2307.08691) and its gradient in the order of attention.cuh, in terms of a Kit that has
// the arithmetic: attention_mma.cu on the tensor cores, attention_ffma.cu with float32 multiply-adds.
//
// A block of 128 threads owns Kit::rows rows of a result and loops over the other side in tiles of n rows that
// asynchronous copies bring one ahead. Rows are padded with zeros to D elements. Tiles stand in panels of 128 bytes a row,
// laid out as pipeline.cuh has them, so that neither rows nor columns of chunks meet a bank twice.
//
// A lane has Scores::lines rows and Scores::columns columns of a tile of scores.
#pragma once
#include "attention.cuh"
#include "pipeline.cuh"

const int threads = 128;
const f32 log2e = 1.4426950408889634f, ln2 = 0.6931471805599453f;

DEVICE f32 exp2(f32 x) { return __nvvm_ex2_approx_ftz_f(x); }

// placeOf is where a row and a chunk of 16 bytes is in a panel. The chunk k further on is at an exclusive or with 16·k, if
// no bit of k is set in the chunk.
DEVICE u32 placeOf(u32 row, u32 chunk) { return row * 128 + ((chunk ^ row % 8) << 4); }

// HeadTile is so many rows of D columns in shared memory.
template <class T, int D, int rows> struct HeadTile {
	static const int panelBytes = rows * 128, panels = D * sizeof(T) > 128 ? D * sizeof(T) / 128 : 1;
	static const int bytes = panels * panelBytes;
};

// TileCopy copies rows of d elements, a distance apart, into tiles, one tile after the other.
template <class T, int D, int rows> struct TileCopy {
	static const int perChunk = 16 / sizeof(T), perRow = D / perChunk, jump = threads / perRow;

	const T *at;
	i32 apart, row, count; // elements of the thread's chunk
	u32 place;
	bool wide;

	// ownRow is the thread's row. Rows of 64 bytes go in pairs four apart, which lie in different halves of the banks.
	static DEVICE i32 ownRow() {
		u32 i = threadIdx.x / perRow;
		return perRow > 4 ? i : i / 8 * 8 + i / 2 % 4 + i % 2 * 4;
	}

	// The first tile begins at from.
	DEVICE TileCopy(const T *from, i64 rowStep, i32 d) : apart(i32(rowStep)), row(ownRow()) {
		i32 chunk = threadIdx.x % perRow, left = d - chunk * perChunk;
		count = left < 0 ? 0 : atMost(left, perChunk);
		at = from + i64(row) * apart + chunk * perChunk;
		place = chunk / 8 * HeadTile<T, D, rows>::panelBytes + placeOf(row, chunk % 8);
		wide = (u64(from) | apart * sizeof(T)) % 16 == 0 && (!TURING || count % perChunk == 0);
	}

	// narrow copies a chunk by words where it can.
	static DEVICE void narrow(u32 to, const T *from, i32 count) {
		if (sizeof(T) < 4 && u64(from) % 4 != 0) {
			copySingly(to, from, 1, count);
			return;
		}
#pragma unroll
		for (int e = 0; e < 4; e++)
			copyAsync<4>(to + 4 * e, from + e * perChunk / 4, within(i32(count * sizeof(T)) - 4 * e, 4));
	}

	DEVICE void fill(u32 tile, i32 left) {
		const T *from = at;
		i64 step = jump * i64(apart);
		asm volatile("" : "+l"(step)); // a sum each is cheaper than registers for the multiples
		if (wide) {
#pragma unroll
			for (int i = 0; i < rows / jump; i++, from += step)
				copyAsync<16>(tile + (place ^ i * jump % 8 << 4) + i * jump * 128, from, row + i * jump < left ? count * sizeof(T) : 0);
		} else {
#pragma unroll 1
			for (i32 i = row; i < rows; i += jump, from += step)
				narrow(tile + (place ^ (i - row) % 8 << 4) + (i - row) * 128, from, i < left ? count : 0);
		}
		at += rows * i64(apart);
	}
};

// Part is the block's share of rows: a head and its first row. Under causality queries of many keys come first, so that no
// long block is left at the end.
struct Part {
	i64 head;
	i32 first;

	DEVICE Part(i32 rows, i32 perBlock, bool last) {
		u32 block, tiles = (rows + perBlock - 1) / perBlock;
		asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block)); // found anew after the loop instead of kept in registers
		u32 tile = block % tiles;
		head = block / tiles;
		first = i32(last ? tiles - 1 - tile : tile) * perBlock;
	}
};

// Window says what the rows of a lane see of the columns, counted over all tiles.
template <class Scores, class T> struct Window {
	static const int lines = Scores::lines;
	static const i32 most = 0x7fffffff;

	i32 from[lines], to[lines];
	i32 allFrom, allTo; // what all rows of the warp see
	MaskKind kind;
	const T *mask;
	i64 place, step, row; // in the mask: the lane's first row at column 0, distances of columns and of the lane's rows

	// ofQueries is where the rows are queries, the block's from first on, and the columns keys.
	static DEVICE Window ofQueries(const Heads &h, const T *mask, i64 head, i32 first) {
		Window w;
		i32 lane = first + Scores::line(0);
		w.allFrom = 0, w.allTo = h.sees(first + Scores::warpFirst()), w.kind = h.maskKind, w.mask = mask;
		w.place = (head * h.t + lane) * h.s, w.step = 1, w.row = i64(Scores::lineStep) * h.s;
#pragma unroll
		for (int r = 0; r < lines; r++) {
			i32 query = first + Scores::line(r);
			w.from[r] = 0, w.to[r] = query < h.t ? h.sees(query) : 0;
		}
		return w;
	}
	// ofKeys is where the rows are keys and the columns queries.
	static DEVICE Window ofKeys(const Heads &h, const T *mask, i64 head, i32 first) {
		Window w;
		w.allFrom = h.seenFrom(first + Scores::warpLast()), w.allTo = h.t, w.kind = h.maskKind, w.mask = mask;
		w.place = head * h.t * h.s + first + Scores::line(0), w.step = h.s, w.row = Scores::lineStep;
#pragma unroll
		for (int r = 0; r < lines; r++) {
			i32 key = first + Scores::line(r);
			w.from[r] = key < h.s ? h.seenFrom(key) : most, w.to[r] = h.t;
		}
		return w;
	}

	// inUnits is an element of the mask in units of log2e, of which all below the least power of 2 count as that: times ln2 and
	// log2e it is itself, so that a row of the least float32 is one of equal scores, and not one that sees nothing.
	DEVICE static f32 inUnits(f32 m) {
		f32 v = m * log2e;
		return v < -0x1p127f && m != -infinity<f32> ? -0x1p127f : v;
	}

	// apply multiplies scores by a unit, adds the mask in units of log2e and makes those that are not seen -∞. The tile
	// begins at column first.
	DEVICE void apply(Scores &s, i32 first, f32 unit) const {
		s.each([&](f32 &x, int, int) INLINED { x *= unit; });
		if ((!MASKED || kind == noMask) && first >= allFrom && first + Scores::width <= allTo)
			return;
		first += Scores::column();
		i32 low[lines], high[lines];
#pragma unroll
		for (int r = 0; r < lines; r++)
			low[r] = from[r] - first, high[r] = to[r] - first;
		auto seen = [&](int r, int c) INLINED { return Scores::offset(c) >= low[r] && Scores::offset(c) < high[r]; };
		i64 at = place + first * step;
		if (MASKED && kind == addedMask)
			s.each([&](f32 &x, int r, int c) INLINED {
				if (seen(r, c))
					x += inUnits(widen(mask[at + r * row + Scores::offset(c) * step]));
			});
		if (MASKED && kind == seenMask)
			s.each([&](f32 &x, int r, int c) INLINED {
				if (seen(r, c) && ((const u8 *)mask)[at + r * row + Scores::offset(c) * step] == 0)
					x = -infinity<f32>;
			});
		s.each([&](f32 &x, int r, int c) INLINED { x = seen(r, c) ? x : -infinity<f32>; });
	}
};

// Softening is the online softmax of a lane's rows, in powers of 2. The lanes that share a row share its maximum; each has
// the sum of its own columns.
template <class Scores> struct Softening {
	static const int lines = Scores::lines;

	f32 high[lines], total[lines];

	DEVICE Softening() {
#pragma unroll
		for (int r = 0; r < lines; r++)
			high[r] = -infinity<f32>, total[r] = 0;
	}

	// soften turns scores into weights, relative to the highest score so far, and brings what was before to that.
	template <class Result> DEVICE void soften(Scores &s, Result &out) {
		f32 shift[lines], fade[lines];
#pragma unroll
		for (int r = 0; r < lines; r++)
			shift[r] = high[r];
		s.each([&](f32 &x, int r, int) INLINED { shift[r] = Larger{}(shift[r], x); });
#pragma unroll
		for (int r = 0; r < lines; r++) {
			f32 higher = butterfly(shift[r], Larger{}, Scores::lanes);
			shift[r] = finite(higher);
			fade[r] = exp2(high[r] - shift[r]);
			high[r] = higher;
			total[r] *= fade[r];
		}
		s.each([&](f32 &x, int r, int) INLINED {
			x = exp2(x - shift[r]);
			total[r] += x;
		});
		out.scale(fade);
	}
};

template <class Kit, class T>
DEVICE void forward(T *o, f32 *lse, const T *q, const T *k, const T *v, const T *mask, const Heads &h, f32 scale) {
	typedef typename Kit::Scores Scores;
	const int n = Scores::width, D = Kit::D, tileBytes = HeadTile<T, D, n>::bytes, ownBytes = HeadTile<T, D, Kit::rows>::bytes;
	alignas(1024) extern __shared__ u8 shared[];
	const u32 base = sharedAddress(shared), stages = base + ownBytes;
	Part part(h.t, Kit::rows, h.causal);
	i32 left = h.t - part.first, first = 0;
	TileCopy<T, D, Kit::rows>(q + h.place(h.q, part.head, part.first), h.q.row, h.d).fill(base, left);
	TileCopy<T, D, n> copyK(k + h.place(h.k, part.head, 0), h.k.row, h.d), copyV(v + h.place(h.v, part.head, 0), h.v.row, h.e);
	typename Kit::Own queries(base);
	typename Kit::Result out(stages + 4 * tileBytes);
	Softening<Scores> online;
	auto window = Window<Scores, T>::ofQueries(h, mask, part.head, part.first);
	feed<2, 2 * tileBytes, n>(
	    stages, h.sees(atMost(part.first + Kit::rows, h.t) - 1),
	    [&](u32 stage, i32 left) INLINED {
		    copyK.fill(stage, left);
		    copyV.fill(stage + tileBytes, left);
	    },
	    [&](u32 stage) INLINED {
		    if (first == 0)
			    queries.arrive();
		    Scores s;
		    s.product(queries, stage);
		    window.apply(s, first, scale * log2e);
		    online.soften(s, out);
		    out.add(s, stage + tileBytes);
		    first += n;
	    });
	part = Part(h.t, Kit::rows, h.causal);
	i64 rows = i64(part.head) * h.t + part.first;
	left = h.t - part.first;
	f32 by[Scores::lines];
#pragma unroll
	for (int r = 0; r < Scores::lines; r++) {
		f32 total = butterfly(online.total[r], Plus{}, Scores::lanes);
		by[r] = total == 0 ? 0 : 1 / total;
		if (laneID() % Scores::lanes == 0 && Scores::line(r) < left)
			lse[rows + Scores::line(r)] = (online.high[r] + __nvvm_lg2_approx_f(total)) * ln2;
	}
	out.scale(by);
	out.store(o + h.place(h.o, part.head, part.first), left, h.e, h.o.row);
}

// Operands are those of the gradient.
template <class T> struct Operands {
	const T *g, *q, *k, *v, *mask;
	const Statistic<f32> *stats;
	Heads h;
	f32 scale;
};

// queryGrad computes dq: its block owns queries and loops over keys.
template <class Kit, class T> DEVICE void queryGrad(T *dq, const Operands<T> &a) {
	typedef typename Kit::Scores Scores;
	const int n = Scores::width, D = Kit::D, tileBytes = HeadTile<T, D, n>::bytes, ownBytes = HeadTile<T, D, Kit::rows>::bytes;
	alignas(1024) extern __shared__ u8 shared[];
	const u32 base = sharedAddress(shared), stages = base + 2 * ownBytes;
	const Heads &h = a.h;
	Part part(h.t, Kit::rows, h.causal);
	i32 left = h.t - part.first, first = 0;
	TileCopy<T, D, Kit::rows>(a.q + h.place(h.q, part.head, part.first), h.q.row, h.d).fill(base, left);
	TileCopy<T, D, Kit::rows>(a.g + h.place(h.o, part.head, part.first), h.o.row, h.e).fill(base + ownBytes, left);
	TileCopy<T, D, n> copyK(a.k + h.place(h.k, part.head, 0), h.k.row, h.d), copyV(a.v + h.place(h.v, part.head, 0), h.v.row, h.e);
	typename Kit::Own queries(base), grads(base + ownBytes);
	typename Kit::Result out(stages + 4 * tileBytes);
	auto window = Window<Scores, T>::ofQueries(h, a.mask, part.head, part.first);
	Statistic<f32> stats[Scores::lines];
#pragma unroll
	for (int r = 0; r < Scores::lines; r++)
		stats[r] = a.stats[part.head * h.padded() + part.first + Scores::line(r)], stats[r].shift *= log2e;
	feed<2, 2 * tileBytes, n>(
	    stages, h.sees(atMost(part.first + Kit::rows, h.t) - 1),
	    [&](u32 stage, i32 left) INLINED {
		    copyK.fill(stage, left);
		    copyV.fill(stage + tileBytes, left);
	    },
	    [&](u32 stage) INLINED {
		    if (first == 0) {
			    queries.arrive();
			    grads.arrive();
		    }
		    Scores p, ds;
		    p.product(queries, stage);
		    window.apply(p, first, a.scale * log2e);
		    p.each([&](f32 &x, int r, int) INLINED { x = exp2(x - stats[r].shift); });
		    ds.product(grads, stage + tileBytes);
		    ds.each([&](f32 &x, int r, int c) INLINED { x = p(r, c) * (x - stats[r].delta); });
		    out.add(ds, stage);
		    first += n;
	    });
	part = Part(h.t, Kit::rows, h.causal);
	left = h.t - part.first;
	out.scale(a.scale);
	out.store(dq + h.place(h.q, part.head, part.first), left, h.d, h.q.row);
}

// keyGrad computes dk and dv: its block owns keys and loops over queries.
template <class Kit, class T> DEVICE void keyGrad(T *dk, T *dv, const Operands<T> &a) {
	typedef typename Kit::Scores Scores;
	const int n = Scores::width, D = Kit::D, tileBytes = HeadTile<T, D, n>::bytes, ownBytes = HeadTile<T, D, Kit::rows>::bytes;
	alignas(1024) extern __shared__ u8 shared[];
	const u32 base = sharedAddress(shared), stages = base + 2 * ownBytes;
	const Heads &h = a.h;
	Part part(h.s, Kit::rows, false);
	i32 left = h.s - part.first, begin = h.seenFrom(part.first), first = begin;
	TileCopy<T, D, Kit::rows>(a.k + h.place(h.k, part.head, part.first), h.k.row, h.d).fill(base, left);
	TileCopy<T, D, Kit::rows>(a.v + h.place(h.v, part.head, part.first), h.v.row, h.e).fill(base + ownBytes, left);
	TileCopy<T, D, n> copyQ(a.q + h.place(h.q, part.head, begin), h.q.row, h.d), copyG(a.g + h.place(h.o, part.head, begin), h.o.row, h.e);
	typename Kit::Own ownK(base), ownV(base + ownBytes);
	typename Kit::Result keyOut(stages + 4 * tileBytes), valueOut(stages + 4 * tileBytes);
	auto window = Window<Scores, T>::ofKeys(h, a.mask, part.head, part.first);
	feed<2, 2 * tileBytes, n>(
	    stages, h.t - begin,
	    [&](u32 stage, i32 left) INLINED {
		    copyQ.fill(stage, left);
		    copyG.fill(stage + tileBytes, left);
	    },
	    [&](u32 stage) INLINED {
		    if (first == begin) {
			    ownK.arrive();
			    ownV.arrive();
		    }
		    const Statistic<f32> *stats = a.stats + part.head * h.padded() + first + Scores::column();
		    Scores p;
		    p.product(ownK, stage);
		    f32 shift[Scores::columns], delta[Scores::columns];
#pragma unroll
		    for (int c = 0; c < Scores::columns; c++)
			    shift[c] = stats[Scores::offset(c)].shift * log2e;
		    window.apply(p, first, a.scale * log2e);
		    p.each([&](f32 &x, int, int c) INLINED { x = exp2(x - shift[c]); });
		    valueOut.add(p, stage + tileBytes);
		    Scores ds;
		    ds.product(ownV, stage + tileBytes);
#pragma unroll
		    for (int c = 0; c < Scores::columns; c++)
			    delta[c] = stats[Scores::offset(c)].delta;
		    ds.each([&](f32 &x, int r, int c) INLINED { x = p(r, c) * (x - delta[c]); });
		    keyOut.add(ds, stage);
		    first += n;
	    });
	part = Part(h.s, Kit::rows, false);
	left = h.s - part.first;
	keyOut.scale(a.scale);
	keyOut.store(dk + h.place(h.k, part.head, part.first), left, h.d, h.k.row);
	valueOut.store(dv + h.place(h.v, part.head, part.first), left, h.e, h.v.row);
}
