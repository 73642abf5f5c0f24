// Shared memory as a ring of stages that copies run ahead in, and the copy of a matrix's part into a stage.
//
// A tile is rows of 128 bytes. The 16-byte chunk c of row r lies in place c^(r%8) of its row, as the tensor memory
// accelerator's 128-byte swizzle lays it, so that eight chunks of a column of chunks are in eight different groups of
// banks. Stages begin at multiples of 1024 bytes.
#pragma once
#include "base.cuh"

// opaque keeps what depends on x from being computed ahead of a loop and held in registers through it.
template <class I> DEVICE I opaque(I x) {
	if constexpr (sizeof(x) == 8)
		asm volatile("" : "+l"(x));
	else
		asm volatile("" : "+r"(x));
	return x;
}

// copyAsync copies `count` bytes of 16 or 4 and fills the rest with zeros. With a count of 0 the source is not read.
#if TURING
// The copy is there when its thread goes on: loads that follow each other are under way at a time, and nothing is waited
// for later. Of 16 bytes it copies all or none.
template <int size> DEVICE void copyAsync(u32 to, const void *from, u32 count) {
	if constexpr (size == 16)
		asm volatile("{ .reg .pred p; .reg .b32 w<4>; mov.b32 w0, 0; mov.b32 w1, 0; mov.b32 w2, 0; mov.b32 w3, 0; setp.ne.u32 p, %2, 0;"
					 " @p ld.global.v4.b32 {w0, w1, w2, w3}, [%1]; st.shared.v4.b32 [%0], {w0, w1, w2, w3}; }" ::"r"(to), "l"(from), "r"(count) : "memory");
	else
		asm volatile("{ .reg .pred p, q; .reg .b16 h; .reg .b32 w; mov.b16 h, 0; setp.eq.u32 p, %2, 4; setp.eq.u32 q, %2, 2;"
					 " @q ld.global.b16 h, [%1]; cvt.u32.u16 w, h; @p ld.global.b32 w, [%1]; st.shared.b32 [%0], w; }" ::"r"(to), "l"(from), "r"(count) : "memory");
}
#define ASYNC(...)
#else
template <int size> DEVICE void copyAsync(u32 to, const void *from, u32 count) {
	if constexpr (size == 16)
		asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(count) : "memory");
	else
		asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(size), "r"(count) : "memory");
}
#define ASYNC(...) asm volatile(__VA_ARGS__)
#endif

DEVICE void loadChunk(u32 (&w)[5], u32 at) {
	asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "r"(at) : "memory");
}
DEVICE void storeChunk(u32 at, const u32 (&w)[5]) {
	asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]) : "memory");
}

// Pipeline is a ring of stages, of which all but one are filled ahead of the one that is read. A block calls, per step,
// arrive and a barrier for the stage that is read, commit after the copies into the one that is filled, and step. One
// barrier per step orders both: who arrives is done with the stage before.
template <int stages, int stageBytes> struct Pipeline {
	u32 base, filling;

	DEVICE Pipeline(u32 base) : base(base), filling(base) {}

	DEVICE u32 next() const { return filling == base + (stages - 1) * stageBytes ? base : filling + stageBytes; }
	DEVICE u32 reading() const { return next(); }
	DEVICE void commit() const { ASYNC("cp.async.commit_group;" ::: "memory"); }
	// arrive waits for this thread's copies into the stage that is read.
	DEVICE void arrive() const { ASYNC("cp.async.wait_group %0;" ::"n"(stages - 2) : "memory"); }
	DEVICE void step() { filling = next(); }
	// drain waits for all copies and for all threads to be done with the stages.
	DEVICE void drain() const {
		ASYNC("cp.async.wait_all;" ::: "memory");
		barrier();
	}
};

// AsCopied is for copies that leave nothing to settle.
struct AsCopied {
	DEVICE void operator()(u32, i32) const {}
};

// feed runs a loop of steps over k through a pipeline: fill(stage, left) copies the operands of the next step, of which
// `left` terms remain, settle(stage, left) completes what the threads of a warp have copied, use(stage) multiplies.
template <int stages, int stageBytes, int depth, class Fill, class Use, class Settle = AsCopied> DEVICE void feed(u32 shared, i32 terms, Fill &&fill, Use &&use, Settle &&settle = {}) {
	Pipeline<stages, stageBytes> pipe(shared);
	const i32 lead = (stages - 1) * depth;
#pragma unroll 1
	for (i32 ahead = terms; ahead > -lead; ahead -= depth) {
		i32 left = ahead + lead;
		bool filled = left <= terms;
		if (filled) {
			pipe.arrive();
			settle(pipe.reading(), left);
			barrier();
		}
		if (ahead > 0)
			fill(pipe.filling, ahead);
		pipe.commit();
		if (filled)
			use(pipe.reading());
		pipe.step();
	}
	pipe.drain();
}

DEVICE i32 within(i32 x, i32 high) { return x < 0 ? 0 : x < high ? x : high; }

// copySingly copies the elements of a chunk that lie `stride` apart, `count` of them and zeros after.
DEVICE void copySingly(u32 to, const f32 *from, i64 stride, i32 count) {
#pragma unroll
	for (int e = 0; e < 4; e++, from += stride)
		copyAsync<4>(to + 4 * e, from, e < count ? 4 : 0);
}
template <class E> DEVICE void copySingly(u32 to, const E *from, i64, i32 count) {
#pragma unroll 1
	for (int e = 0; e < 8; e++)
		asm volatile("st.shared.b16 [%0], %1;" ::"r"(to + 2 * e), "h"(u16(e < count ? from[e].bits : 0)) : "memory");
}

// MatrixCopy copies at most `most` of an operand's lines, rows of a or columns of b, by 128 bytes' worth of k, step after step.
// With alongK the rows of the tile are lines and k runs along a row. Without, the rows are k and panels of 128 bytes of
// lines follow each other. Copies are 16 bytes wide where the operand's rows allow, else by words if that is asked for,
// else of an element each. 16-bit elements must be neighbours in a row.
template <class E, int most, bool alongK, int threads, bool byWords = false> struct MatrixCopy {
	static const int depth = 128 / sizeof(E), perChunk = 16 / sizeof(E);
	static const int rows = alongK ? most : depth, panels = alongK ? 1 : most / depth, bytes = rows * panels * 128;
	static const int jump = threads / 8;               // rows between a thread's chunks
	static const int chunks = panels * (rows / jump);  // of a thread

	const E *at;
	i64 row, col; // strides in elements
	i32 limit;    // lines that the operand has from here

	DEVICE MatrixCopy(const E *from, i64 line, i64 k, i32 limit) : row(alongK ? line : k), col(sizeof(E) == 2 ? 1 : alongK ? k : line), limit(limit) {
		at = from + row * (threadIdx.x / 8) + col * (threadIdx.x % 8 * perChunk);
	}

	// wide reports whether all rows begin at multiples of 16 bytes.
	DEVICE bool wide() const { return col == 1 && ((u64(at) | u64(row) * sizeof(E)) & 15) == 0; }

	// advance is the way from step to step.
	DEVICE i64 advance() const { return alongK ? depth * col : depth * row; }

	DEVICE void fill(u32 to, i32 left) {
		i32 lines = opaque(limit), rowsLeft = alongK ? lines : left, colsLeft = alongK ? left : lines;
		if (wide())
			fillWide(to, rowsLeft, colsLeft);
		else if constexpr (byWords)
			fillWords(to, rowsLeft, colsLeft);
		else
			fillSingly(to, rowsLeft, colsLeft);
		at += advance();
	}

	// place is where this thread's chunk of its i-th row goes in a panel.
	static DEVICE u32 place(int i) { return (threadIdx.x / 8 + i * jump) * 128 + ((threadIdx.x % 8 ^ (threadIdx.x / 8 + i * jump) % 8) << 4); }

	DEVICE void fillWide(u32 to, i32 rowsLeft, i32 colsLeft) const {
		i64 step = opaque(row) * jump;
		rowsLeft -= threadIdx.x / 8;
		colsLeft -= threadIdx.x % 8 * perChunk;
#pragma unroll
		for (int p = 0; p < panels; p++) {
			u32 count = within(colsLeft - p * depth, perChunk) * sizeof(E);
			const E *from = at + p * depth;
#if TURING
			if (count % 16 != 0) {
				fillPanel(to, rowsLeft, colsLeft, p);
				continue;
			}
#endif
#pragma unroll
			for (int i = 0; i < rows / jump; i++, from += step)
				copyAsync<16>(to + p * rows * 128 + place(i), from, i * jump < rowsLeft ? count : 0);
		}
	}

	DEVICE void fillSingly(u32 to, i32 rowsLeft, i32 colsLeft) const {
		rowsLeft -= threadIdx.x / 8;
		colsLeft -= threadIdx.x % 8 * perChunk;
#pragma unroll 1
		for (int n = 0; n < chunks; n++)
			copyChunk(to, rowsLeft, colsLeft, n / (rows / jump), n % (rows / jump));
	}

	// fillPanel copies the thread's chunks of a panel by elements. Rows and columns are counted from the thread's first on.
	DEVICE void fillPanel(u32 to, i32 rowsLeft, i32 colsLeft, int panel) const {
#pragma unroll 1
		for (int i = 0; i < rows / jump; i++)
			copyChunk(to, rowsLeft, colsLeft, panel, i);
	}

	DEVICE void copyChunk(u32 to, i32 rowsLeft, i32 colsLeft, int p, int i) const {
		i32 count = i * jump < rowsLeft ? colsLeft - p * depth : 0;
		copySingly(to + p * rows * 128 + place(i), at + p * depth * col + i * jump * row, col, count);
	}

	// fillWords copies the rows that the threads of this warp have chunks of, a word to a lane. A word begins at a multiple of
	// 4 bytes; of a row that does not, the elements come to lie one place late, and the last is missing: see settle.
	DEVICE void fillWords(u32 to, i32 rowsLeft, i32 colsLeft) const {
		u32 lane = laneID(), first = threadIdx.x / 32 * 4;
		const E *from = at - row * (lane / 8) - lane % 8 * perChunk;
		to += first * 128 + ((lane / 4 ^ first % 8) << 4) + lane % 4 * 4;
		rowsLeft -= first;
		i64 step = row * jump;
#pragma unroll 1
		for (int n = 0; n < 4 * panels; n++) { // every fourth of the warp's rows begins alike
			int p = n / 4, q = n % 4;
			const E *line = from + p * depth + q * row;
			i32 late = u64(line) / 2 % 2, count = colsLeft - p * depth;
			u32 has = count > 0 ? within(2 * (count + late) - 4 * i32(lane), 4) : 0;
			u32 at = (to ^ q << 4) + (p * rows + q) * 128;
			line += 2 * i32(lane) - late;
#pragma unroll
			for (int i = 0; i < rows / jump; i++, line += step)
				copyAsync<4>(at + i * jump * 128, line, i * jump + q < rowsLeft ? has : 0);
		}
	}

	// settle moves elements that lie one place late in a stage with `left` terms to come, once this thread's copies into it
	// have arrived. By then as many as `ahead` steps have been filled from it on.
	DEVICE void settle(u32 tile, i32 left, int ahead) const {
		if constexpr (byWords)
			if (row % 2 != 0 || u64(at) % 4 != 0) {
				i32 lines = opaque(limit), steps = (left + depth - 1) / depth;
				shift(tile, alongK ? lines : left, alongK ? left : lines, steps < ahead ? steps : ahead);
			}
	}

	// shift goes over the thread's chunks. The last elements of rows are fetched first, eight lanes for as many of them as have
	// their last chunks.
	DEVICE void shift(u32 tile, i32 rowsLeft, i32 colsLeft, i32 ahead) const {
		u32 lane = laneID(), last[(chunks + 7) / 8];
		rowsLeft -= threadIdx.x / 8;
		const E *from = at - ahead * advance() - lane % 8 * perChunk + (depth - 1);
#pragma unroll
		for (int h = 0; h < (chunks + 7) / 8; h++) {
			int n = h * 8 + lane % 8, p = n / (rows / jump), i = n % (rows / jump);
			last[h] = n < chunks && i * jump < rowsLeft && (p + 1) * depth <= colsLeft ? from[p * depth + i * jump * row].bits : 0;
		}
		syncWarp();
#pragma unroll 4
		for (int n = 0; n < chunks; n++) {
			u32 at = tile + n / (rows / jump) * rows * 128 + place(n % (rows / jump)), w[5];
			loadChunk(w, at);
			u32 end = shuffle(n < 8 ? last[0] : last[(chunks - 1) / 8], lane / 8 * 8 + n % 8), next = shuffle(w[0], lane + 1);
			w[4] = lane % 8 == 7 ? end : next;
#pragma unroll
			for (int e = 0; e < 4; e++)
				w[e] = __nvvm_prmt(w[e], w[e + 1], 0x5432);
			if (u64(this->at) % 4 != 0)
				storeChunk(at, w);
		}
	}
};
