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

// copyAsync copies `count` bytes of 16, 8 or 4 and fills the rest with zeros. With a count of 0 the source is not read.
template <int size> DEVICE void copyAsync(u32 to, const void *from, u32 count) {
	if constexpr (size == 16)
		asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(count) : "memory");
	else
		asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(size), "r"(count) : "memory");
}

// Pipeline is a ring of stages. A block calls, per step, wait for the oldest filled stage, acquire for the one to be
// filled ahead, commit after the copies into it, and release when it has read the oldest. One barrier per step orders
// both: who waits has released the stage before.
template <int stages, int stageBytes> struct Pipeline {
	u32 base, filling, reading;

	DEVICE Pipeline(u32 base) : base(base), filling(base), reading(base) {}

	DEVICE u32 next(u32 stage) const {
		stage += stageBytes;
		return stage == base + stages * stageBytes ? base : stage;
	}
	DEVICE u32 acquire() const { return filling; }
	DEVICE void commit() {
		asm volatile("cp.async.commit_group;" ::: "memory");
		filling = next(filling);
	}
	DEVICE u32 wait() const {
		asm volatile("cp.async.wait_group %0;" ::"n"(stages - 2) : "memory");
		barrier();
		return reading;
	}
	DEVICE void release() { reading = next(reading); }
	// drain waits for all copies and for all threads to be done with the stages.
	DEVICE void drain() const {
		asm volatile("cp.async.wait_all;" ::: "memory");
		barrier();
	}
};

// feed runs a loop of steps over k through a pipeline: fill(stage, left) copies the operands of the next step, of which
// `left` terms remain, use(stage) multiplies.
template <int stages, int stageBytes, int depth, class Fill, class Use> DEVICE void feed(u32 shared, i32 terms, Fill &&fill, Use &&use) {
	Pipeline<stages, stageBytes> pipe(shared);
	i32 ahead = terms;
#pragma unroll
	for (int s = 0; s < stages - 1; s++) {
		if (ahead > 0)
			fill(pipe.acquire(), ahead);
		ahead -= depth;
		pipe.commit();
	}
#pragma unroll 1
	for (; terms > 0; terms -= depth) {
		u32 stage = pipe.wait();
		if (ahead > 0)
			fill(pipe.acquire(), ahead);
		ahead -= depth;
		pipe.commit();
		use(stage);
		pipe.release();
	}
	pipe.drain();
}

DEVICE i32 within(i32 x, i32 high) { return x < 0 ? 0 : x < high ? x : high; }

// copyGeneral copies a chunk of elements that lie `stride` apart, `count` of them and zeros after: four bytes at a time
// where they can be, else 16-bit elements through registers.
DEVICE void copyGeneral(u32 to, const f32 *from, i64 stride, i32 count) {
#pragma unroll
	for (int e = 0; e < 4; e++, from += stride)
		copyAsync<4>(to + 4 * e, from, e < count ? 4 : 0);
}
template <class E> DEVICE void copyGeneral(u32 to, const E *from, i64 stride, i32 count) {
	if (stride == 1 && u64(from) % 4 == 0) {
#pragma unroll
		for (int e = 0; e < 4; e++)
			copyAsync<4>(to + 4 * e, from + 2 * e, within(2 * count - 4 * e, 4));
		return;
	}
	u32 pair[4];
#pragma unroll
	for (int e = 0; e < 8; e++, from += stride) {
		u32 x = e < count ? from->bits : 0;
		pair[e / 2] = e % 2 ? pair[e / 2] | x << 16 : x;
	}
	asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(pair[0]), "r"(pair[1]), "r"(pair[2]), "r"(pair[3]) : "memory");
}

// MatrixCopy copies at most `most` of an operand's lines, rows of a or columns of b, by 128 bytes' worth of k, step after step.
// With alongK the rows of the tile are lines and k runs along a row. Without, the rows are k and panels of 128 bytes of
// lines follow each other. Copies are 16 bytes wide where the operand's rows allow; any other strides go by elements.
template <class E, int most, bool alongK, int threads> struct MatrixCopy {
	static const int depth = 128 / sizeof(E), perChunk = 16 / sizeof(E);
	static const int rows = alongK ? most : depth, panels = alongK ? 1 : most / depth, bytes = rows * panels * 128;
	static const int jump = threads / 8; // rows between a thread's chunks

	const E *at;
	i64 row, col; // strides in elements
	i32 limit;    // lines that the operand has from here
	bool wide;

	DEVICE MatrixCopy(const E *from, i64 line, i64 k, i32 limit) : row(alongK ? line : k), col(alongK ? k : line), limit(limit) {
		wide = col == 1 && ((u64(from) | u64(row) * sizeof(E)) & 15) == 0;
		at = from + row * (threadIdx.x / 8) + col * (threadIdx.x % 8 * perChunk);
	}

	DEVICE void fill(u32 to, i32 left) {
		i32 lines = opaque(limit);
		i32 rowsLeft = (alongK ? lines : left) - i32(threadIdx.x / 8);
		i32 colsLeft = (alongK ? left : lines) - i32(threadIdx.x % 8 * perChunk);
		to += threadIdx.x / 8 * 128;
		if (wide)
			fillWide(to, rowsLeft, colsLeft);
		else
			fillGeneral(to, rowsLeft, colsLeft);
		at += alongK ? depth * col : depth * row;
	}

	// place is where the chunk of this thread goes in its i-th row.
	static DEVICE u32 place(int i) { return i * jump * 128 + ((threadIdx.x % 8 ^ (threadIdx.x / 8 + i * jump) % 8) << 4); }

	DEVICE void fillWide(u32 to, i32 rowsLeft, i32 colsLeft) const {
#pragma unroll
		for (int p = 0; p < panels; p++) {
			u32 count = within(colsLeft - p * depth, perChunk) * sizeof(E);
			const E *from = at + p * depth;
#pragma unroll
			for (int i = 0; i < rows / jump; i++, from += jump * row)
				copyAsync<16>(to + p * rows * 128 + place(i), from, i * jump < rowsLeft ? count : 0);
		}
	}

	DEVICE void fillGeneral(u32 to, i32 rowsLeft, i32 colsLeft) const {
#pragma unroll 1
		for (int n = 0; n < panels * (rows / jump); n++) {
			int p = n / (rows / jump), i = n % (rows / jump);
			i32 count = i * jump < rowsLeft ? within(colsLeft - p * depth, perChunk) : 0;
			copyGeneral(to + p * rows * 128 + place(i), at + p * depth * col + i * jump * row, col, count);
		}
	}
};
